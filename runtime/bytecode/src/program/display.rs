//! One line of text per instruction, as `fhec inspect` prints it.

use super::{Instruction, Op};
use std::fmt::{Display, Formatter, Result};

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}  ; {}", self.op, self.layer)
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(dst) = self.dst() {
            write!(f, "{dst} = ")?;
        }
        write!(f, "{}", self.name())?;
        for (i, src) in self.sources().iter().enumerate() {
            write!(f, "{} {src}", if i == 0 { "" } else { "," })?;
        }
        match self {
            Op::Linear { map, scale, .. } => write!(f, " {{map={map}, scale={scale}}}"),
            Op::AddPlain { tensor, .. } => write!(f, " {{tensor={tensor}}}"),
            Op::MulPlain { tensor, scale, .. } => write!(f, " {{tensor={tensor}, scale={scale}}}"),
            Op::MulScalar { value, scale, .. } => write!(f, " {{value={value:.6}, scale={scale}}}"),
            Op::Drop { level, .. } => write!(f, " {{level={level}}}"),
            Op::Input { .. }
            | Op::Square { .. }
            | Op::Mul { .. }
            | Op::Add { .. }
            | Op::Sub { .. }
            | Op::Rescale { .. }
            | Op::Free { .. }
            | Op::Output { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CtRange, LayerId, MapId};
    use crate::scale::Scale;

    #[test]
    fn instructions_print_on_one_line() {
        let op = Op::Linear {
            dst: CtRange::new(4, 2),
            src: vec![CtRange::new(0, 3), CtRange::new(3, 1)],
            map: MapId(7),
            scale: Scale::from_log2(60.5),
        };
        let line = Instruction { layer: LayerId(2), op }.to_string();
        assert_eq!(line, "c4..6 = linear c0..3, c3 {map=m7, scale=2^60.5000}  ; y2");
    }
}

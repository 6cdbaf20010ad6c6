//! Instructions over ciphertext registers.
//!
//! A tensor occupies a run of registers, one per ciphertext of its layout. Element-wise instructions work
//! register by register on runs of equal length. A destination must be free, a source must be defined;
//! sources stay defined until they are freed. Levels and scales follow from the input, so instructions
//! carry only what cannot be derived.
//!
//! Everything that is the same for whoever meets an instruction is said here: its name, registers, text, numbers and kind.

use super::meaning::{Kind, Numbers, Pair};
use crate::ids::{CtRange, LayerId, MapId, TensorId};
use crate::params::Level;
use crate::scale::Scale;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// An instruction and the layer it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// The layer, for progress and profiles.
    pub layer: LayerId,
    /// What to do.
    pub op: Op,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Takes the encrypted input.
    Input {
        /// One register per ciphertext of the input layout.
        dst: CtRange,
    },
    /// Applies a linear map; all sources at one level, which the result keeps.
    Linear {
        /// One register per ciphertext of the map's output layout.
        dst: CtRange,
        /// One run per term of the map.
        src: Vec<CtRange>,
        /// The map.
        map: MapId,
        /// Scale of the result; the weights of a term are encoded at this over the source's scale.
        scale: Scale,
    },
    /// Squares and relinearizes; the scale is squared.
    Square {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
    },
    /// Multiplies and relinearizes; the scales multiply.
    Mul {
        /// Result.
        dst: CtRange,
        /// First operand.
        a: CtRange,
        /// Second operand.
        b: CtRange,
    },
    /// Adds operands of one level and scale.
    Add {
        /// Result.
        dst: CtRange,
        /// First operand.
        a: CtRange,
        /// Second operand.
        b: CtRange,
    },
    /// Subtracts operands of one level and scale.
    Sub {
        /// Result.
        dst: CtRange,
        /// First operand.
        a: CtRange,
        /// Second operand.
        b: CtRange,
    },
    /// Adds a constant per channel `[C]`, per coordinate `[C, H, W]`, or a single one `[1]`.
    AddPlain {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
        /// The constant.
        tensor: TensorId,
    },
    /// Multiplies by a constant per channel `[C]`, per coordinate `[C, H, W]`, or a single one `[1]`.
    MulPlain {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
        /// The constant.
        tensor: TensorId,
        /// Scale of the result.
        scale: Scale,
    },
    /// Multiplies every slot by one number: an integer product, without encoding error.
    MulScalar {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
        /// The number.
        value: f64,
        /// Scale of the result.
        scale: Scale,
    },
    /// Divides by the top tower and drops it.
    Rescale {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
    },
    /// Drops towers without dividing.
    Drop {
        /// Result.
        dst: CtRange,
        /// Operand.
        src: CtRange,
        /// Level of the result.
        level: Level,
    },
    /// Ends the life of registers.
    Free {
        /// The registers.
        src: CtRange,
    },
    /// Hands out the result and frees its registers; the last instruction but for frees.
    Output {
        /// One register per ciphertext of the output layout.
        src: CtRange,
    },
}

impl Op {
    /// Kebab-case name, for profiles and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input { .. } => "input",
            Op::Linear { .. } => "linear",
            Op::Square { .. } => "square",
            Op::Mul { .. } => "mul",
            Op::Add { .. } => "add",
            Op::Sub { .. } => "sub",
            Op::AddPlain { .. } => "add-plain",
            Op::MulPlain { .. } => "mul-plain",
            Op::MulScalar { .. } => "mul-scalar",
            Op::Rescale { .. } => "rescale",
            Op::Drop { .. } => "drop",
            Op::Free { .. } => "free",
            Op::Output { .. } => "output",
        }
    }

    /// The registers that the instruction defines.
    pub fn dst(&self) -> Option<CtRange> {
        match self {
            Op::Input { dst }
            | Op::Linear { dst, .. }
            | Op::Square { dst, .. }
            | Op::Mul { dst, .. }
            | Op::Add { dst, .. }
            | Op::Sub { dst, .. }
            | Op::AddPlain { dst, .. }
            | Op::MulPlain { dst, .. }
            | Op::MulScalar { dst, .. }
            | Op::Rescale { dst, .. }
            | Op::Drop { dst, .. } => Some(*dst),
            Op::Free { .. } | Op::Output { .. } => None,
        }
    }

    /// The registers that the instruction reads.
    pub fn sources(&self) -> Vec<CtRange> {
        match self {
            Op::Input { .. } => vec![],
            Op::Linear { src, .. } => src.clone(),
            Op::Mul { a, b, .. } | Op::Add { a, b, .. } | Op::Sub { a, b, .. } => vec![*a, *b],
            Op::Square { src, .. }
            | Op::AddPlain { src, .. }
            | Op::MulPlain { src, .. }
            | Op::MulScalar { src, .. }
            | Op::Rescale { src, .. }
            | Op::Drop { src, .. }
            | Op::Free { src }
            | Op::Output { src } => vec![*src],
        }
    }

    /// What becomes of the numbers in the slots.
    pub fn numbers(&self) -> Numbers {
        match self {
            Op::Input { .. } => Numbers::Input,
            Op::Linear { map, .. } => Numbers::Map(*map),
            Op::Square { .. } | Op::Mul { .. } => Numbers::Pairs(Pair::Product),
            Op::Add { .. } => Numbers::Pairs(Pair::Sum),
            Op::Sub { .. } => Numbers::Pairs(Pair::Difference),
            Op::AddPlain { tensor, .. } => Numbers::WithConstant(*tensor, Pair::Sum),
            Op::MulPlain { tensor, .. } => Numbers::WithConstant(*tensor, Pair::Product),
            Op::MulScalar { value, .. } => Numbers::Times(*value),
            Op::Rescale { .. } | Op::Drop { .. } => Numbers::Times(1.0),
            Op::Free { .. } => Numbers::Free,
            Op::Output { .. } => Numbers::Output,
        }
    }

    /// What it is to ciphertexts.
    pub fn kind(&self) -> Kind {
        match self {
            Op::Input { .. } => Kind::Input,
            Op::Linear { map, .. } => Kind::Map(*map),
            Op::Square { .. } | Op::Mul { .. } => Kind::Product,
            Op::AddPlain { tensor, .. } => Kind::PlainSum(*tensor),
            Op::MulPlain { tensor, .. } => Kind::PlainProduct(*tensor),
            Op::MulScalar { .. } => Kind::ScalarProduct,
            Op::Rescale { .. } => Kind::Rescale,
            Op::Add { .. } | Op::Sub { .. } => Kind::Exact,
            Op::Drop { .. } => Kind::Drop,
            Op::Free { .. } | Op::Output { .. } => Kind::End,
        }
    }
}

/// One line, as `fhec inspect` prints it.
impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ; {}", self.op, self.layer)
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
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

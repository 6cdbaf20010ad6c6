//! The text form of circuits: one line per value, constants as extents and fingerprint.

use std::fmt::{self, Display, Formatter};

use super::circuit::{Circuit, CircuitOp, Map, ValueId};
use super::constant::Constant;
use super::conv::Conv;

impl Display for Circuit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for id in self.ids() {
            writeln!(f, "{}", self.line(id))?;
        }
        let outputs: Vec<String> = self.outputs.iter().map(ToString::to_string).collect();
        let of_all =
            if self.merged { format!(" (sum over {} members)", self.n_members) } else { String::new() };
        writeln!(f, "result {}{of_all}", outputs.join(", "))
    }
}

impl Circuit {
    /// The line of a value.
    #[must_use]
    pub fn line(&self, id: ValueId) -> String {
        let value = self.value(id);
        let right = match &value.op {
            CircuitOp::Input => "input".to_owned(),
            CircuitOp::Product([a, b]) => format!("product {a}, {b}"),
            CircuitOp::Affine(affine) => {
                let term = |term: &super::Term| match &term.map {
                    Map::Identity => term.source.to_string(),
                    Map::Diagonal(factor) => format!("{} * {factor}", term.source),
                    Map::Conv(conv) => format!("conv({}, {conv})", term.source),
                };
                let terms = affine.terms.iter().map(term);
                let bias = affine.bias.iter().map(ToString::to_string);
                format!("sum {}", terms.chain(bias).collect::<Vec<_>>().join(" + "))
            }
        };
        format!("{id} = {right} : {}  // {}", value.shape, value.name.escape_debug())
    }
}

impl Display for Conv {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { weight, stride, dilation, offset, groups, .. } = self;
        write!(f, "{weight}")?;
        write!(f, " {{s={}x{}, o={}x{}", stride[0], stride[1], offset[0], offset[1])?;
        if *dilation != [1, 1] {
            write!(f, ", d={}x{}", dilation[0], dilation[1])?;
        }
        if *groups != 1 {
            write!(f, ", g={groups}")?;
        }
        f.write_str("}")
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.members().iter().map(ToString::to_string).collect();
        f.write_str(&shown.join(" | "))?;
        match self.codes() {
            Some(codes) => write!(f, " by {} codebooks", codes.codebooks.len()),
            None => Ok(()),
        }
    }
}

//! A network in one line.

use std::fmt;

use super::{Network, Op, Rank};

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [c, h, w] = self.input;
        match self.rank {
            Rank::Vector => write!(f, "{c}")?,
            Rank::Signal => write!(f, "{c}x{w}")?,
            Rank::Image => write!(f, "{c}x{h}x{w}")?,
        }
        for (i, layer) in self.layers.iter().enumerate() {
            f.write_str(" → ")?;
            match &layer.op {
                Op::Conv(conv) => {
                    write!(f, "conv {}x{} to {}", conv.kernel[0], conv.kernel[1], conv.out)?;
                    if conv.stride != [1, 1] {
                        write!(f, " stride {}x{}", conv.stride[0], conv.stride[1])?;
                    }
                    if conv.groups > 1 {
                        write!(f, " in {} groups", conv.groups)?;
                    }
                    peak(f, &conv.weight)?;
                }
                Op::Dense { weight, bias, .. } => {
                    match bias {
                        Some(bias) => write!(f, "dense to {}", bias.len())?,
                        None => write!(f, "dense without bias")?,
                    }
                    peak(f, weight)?;
                }
                Op::BatchNorm { .. } => f.write_str("norm")?,
                Op::Poly(poly) => {
                    write!(f, "degree {}", poly.degree())?;
                    if !poly.remark.is_empty() {
                        write!(f, " ({})", poly.remark)?;
                    }
                }
                Op::AveragePool { kernel, .. } => write!(f, "pool {}x{}", kernel[0], kernel[1])?,
                Op::GlobalPool => f.write_str("global pool")?,
                Op::Flatten => f.write_str("flatten")?,
                Op::Add => f.write_str("add")?,
                Op::Concat => f.write_str("concat")?,
            }
            // An operand that is not the value before it is told by its number.
            for of in layer.of.iter().filter(|of| of.0 != i) {
                write!(f, " v{}", of.0)?;
            }
        }
        Ok(())
    }
}

/// The size of weights that are far from one.
fn peak(f: &mut fmt::Formatter<'_>, weights: &[f32]) -> fmt::Result {
    let peak = weights.iter().fold(0.0, |m: f32, w| m.max(w.abs()));
    match (0.03..30.0).contains(&peak) {
        true => Ok(()),
        false => write!(f, " (weights to {peak:.0e})"),
    }
}

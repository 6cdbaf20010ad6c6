//! The text form of placed circuits: the timed line of a value, its layout, and a line for every part.

use std::fmt::{self, Display, Formatter};

use fhe_bytecode::{Layout, LinearOp, Pairing};

use super::{Part, Placed, PlacedMap};
use crate::lower::ValueId;

impl Display for Placed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for id in self.circuit().ids() {
            writeln!(f, "{}", self.timed.line(id))?;
            let lanes = self.value(id).lanes;
            let members = self.layout(id).members();
            let batch = match lanes * members > self.circuit().n_members {
                true => format!("{lanes} lanes of {members} members, each "),
                false => String::new(),
            };
            writeln!(f, "  in {batch}{}", layout(self.layout(id)))?;
            for part in &self.value(id).parts {
                writeln!(f, "  {}", part_line(part, |map| map_line(map)))?;
            }
            end_lines(self, id, f)?;
        }
        Ok(())
    }
}

/// What is added after the rescale of a value.
pub(crate) fn end_lines(placed: &Placed, id: ValueId, f: &mut Formatter<'_>) -> fmt::Result {
    let value = placed.value(id);
    value.still.iter().try_for_each(|source| writeln!(f, "  plus {source}"))?;
    value.bias.iter().try_for_each(|bias| writeln!(f, "  plus {bias}"))
}

/// The line of a part, with that of its map.
pub(crate) fn part_line<M>(part: &Part<M>, map_line: impl Fn(&M) -> String) -> String {
    match part {
        Part::Map(map) => map_line(map),
        Part::Scalar { source } => format!("times one {source}"),
        Part::Plain { source, factor } => format!("times {source}, {factor}"),
    }
}

/// What a map is in slots.
pub(crate) fn map_line(map: &PlacedMap) -> String {
    let operand = |term: &super::PlacedTerm| {
        let op = match &term.op {
            LinearOp::Conv2d { weight, .. } => format!("conv {weight}"),
            LinearOp::Dense { weight } => format!("dense {weight}"),
            LinearOp::SumPool { kernel, .. } => format!("windows {}x{}", kernel[0], kernel[1]),
            LinearOp::Pick { factors: Some(factors), .. } => format!("pick {factors}"),
            LinearOp::Pick { factors: None, .. } => "pick".to_owned(),
        };
        format!("{op} {}", term.source)
    };
    let operands: Vec<String> = map.terms.iter().map(operand).collect();
    let diagonals = &map.diagonals;
    let pairing = match diagonals.pairing() {
        Pairing::None => "",
        Pairing::Halves => ", halves paired",
        Pairing::Outputs => ", outputs paired",
    };
    format!(
        "map {}: {} diagonals, {} plaintexts of period {}, {} folds{pairing}",
        operands.join(" + "),
        diagonals.list().len(),
        diagonals.n_plaintexts(),
        diagonals.period(),
        diagonals.folds().len(),
    )
}

fn layout(layout: &Layout) -> String {
    let spec = layout.spec();
    format!(
        "{} ciphertexts: {} blocks, gap {}x{}, phases {}x{}, period {} of {}",
        layout.n_cts(),
        spec.blocks,
        spec.gap[0],
        spec.gap[1],
        spec.phases[0],
        spec.phases[1],
        spec.period,
        spec.slots,
    )
}

//! The judge of placed circuits.

use fhe_bytecode::TensorId;

use super::{Part, Placed, PlacedMap};
use crate::lower::{CircuitOp, ValueId};
use crate::stages::{Judge, StageErrors, StageKind};

impl Placed {
    /// Checks what holds of every placed circuit; the module says it in prose.
    ///
    /// # Errors
    /// Everything that does not hold.
    pub fn judge(&self) -> Result<(), StageErrors> {
        let mut judge = Judge::new();
        let n_values = self.circuit().values.len();
        judge.whole(self.values.len() == n_values, || {
            format!("{} of {n_values} values are placed", self.values.len())
        });
        if judge.is_content() {
            self.circuit().ids().for_each(|id| self.judge_value(id, &mut judge));
        }
        judge.verdict(StageKind::Placed, |id| self.timed.line(id))
    }

    fn judge_value(&self, id: ValueId, judge: &mut Judge) {
        let (value, placed) = (self.circuit().value(id), self.value(id));
        let layout = &placed.layout;
        judge.value(id, layout.shape() == super::shape(value.shape), || {
            format!("a layout for {}", layout.shape())
        });
        judge.value(id, layout.slots() == self.values[0].layout.slots(), || {
            format!("{} slots where others have {}", layout.slots(), self.values[0].layout.slots())
        });
        let constant = |judge: &mut Judge, tensor: TensorId| {
            let is_known = self.constants.tensor(tensor).is_ok();
            judge.value(id, is_known, || format!("there is no constant {tensor}"));
        };
        placed.bias.iter().for_each(|&bias| constant(judge, bias));
        let mut moved = Vec::new();
        for part in &placed.parts {
            match part {
                Part::Scalar { source } => moved.push(*source),
                Part::Plain { source, factor } => {
                    moved.push(*source);
                    constant(judge, *factor);
                }
                Part::Map(map) => {
                    moved.extend(map.sources());
                    judge.value(id, self.fits(id, map), || "a map has other ciphertexts".to_owned());
                }
            }
        }
        let (mut asked, mut near) = (Vec::new(), placed.still.clone());
        match &value.op {
            CircuitOp::Input => {}
            CircuitOp::Product(factors) => near.extend(factors),
            CircuitOp::Affine(affine) => {
                let terms = affine.terms.iter().filter(|term| !self.timed.is_still(term, id));
                asked.extend(terms.map(|term| term.source));
                near.extend(placed.parts.iter().filter_map(|part| match part {
                    Part::Scalar { source } | Part::Plain { source, .. } => Some(*source),
                    Part::Map(_) => None,
                }));
            }
        }
        moved.sort_unstable();
        // Several parts of one operand's lanes are one summand.
        let n_parts = |source: &ValueId| self.value(*source).lanes / placed.lanes.max(1);
        let mut asked: Vec<ValueId> =
            asked.into_iter().flat_map(|source| std::iter::repeat_n(source, n_parts(&source))).collect();
        asked.sort_unstable();
        judge.value(id, moved == asked, || "its parts are not what is multiplied".to_owned());
        for source in near {
            let same = self.layout(source) == layout && self.value(source).lanes == placed.lanes;
            judge.value(id, same, || format!("{source} is in another layout"));
        }
    }

    fn fits(&self, id: ValueId, map: &PlacedMap) -> bool {
        let n_inputs: usize = map.sources().map(|source| self.layout(source).n_cts()).sum();
        (map.diagonals.n_inputs(), map.diagonals.n_outputs()) == (n_inputs, self.layout(id).n_cts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Placed), expected: &str) {
        let mut placed = Placed::clone(&crate::stages::tests::scheduled().placed);
        placed.judge().unwrap();
        change(&mut placed);
        let errors = placed.judge().unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    }

    /// The first value that fits.
    fn first(placed: &Placed, fits: impl Fn(ValueId) -> bool) -> ValueId {
        placed.circuit().ids().find(|&id| fits(id)).unwrap()
    }

    fn has_map(placed: &Placed, id: ValueId) -> bool {
        placed.value(id).maps().next().is_some()
    }

    #[test]
    fn every_value_is_placed() {
        refused(|placed| placed.values.truncate(2), "2 of");
    }

    #[test]
    fn layouts_have_the_extent_and_slots_of_the_circuit() {
        let strided = |placed: &Placed| placed.layout(placed.circuit().outputs[0]).clone();
        refused(|placed| placed.values[0].layout = strided(placed), "a layout for [4,4,4], at `v0 = input");
        let small = |layout: &fhe_bytecode::Layout| {
            let spec = fhe_bytecode::LayoutSpec { slots: 128, ..layout.spec().clone() };
            fhe_bytecode::Layout::new(spec).unwrap()
        };
        let output = |placed: &Placed| placed.circuit().outputs[0].index();
        refused(
            |placed| {
                let output = output(placed);
                placed.values[output].layout = small(&placed.values[output].layout);
            },
            "128 slots where others have 256",
        );
    }

    #[test]
    fn what_is_not_moved_shares_a_layout() {
        refused(
            |placed| {
                let is_product = |id| matches!(placed.circuit().value(id).op, CircuitOp::Product(_));
                let product = first(placed, is_product);
                let layout = &mut placed.values[product.index()].layout;
                let spec = fhe_bytecode::LayoutSpec { period: layout.spec().slots, ..layout.spec().clone() };
                *layout = fhe_bytecode::Layout::new(spec).unwrap();
            },
            "is in another layout",
        );
    }

    #[test]
    fn parts_are_what_is_multiplied() {
        refused(
            |placed| {
                let id = first(placed, |id| has_map(placed, id));
                placed.values[id.index()].parts.clear();
            },
            "its parts are not what is multiplied",
        );
    }

    #[test]
    fn maps_have_the_ciphertexts_of_their_layouts() {
        refused(
            |placed| {
                let id = first(placed, |id| has_map(placed, id));
                let layout = &mut placed.values[id.index()].layout;
                let spec = fhe_bytecode::LayoutSpec { blocks: 1, phases: [1, 1], ..layout.spec().clone() };
                *layout = fhe_bytecode::Layout::new(spec).unwrap();
            },
            "a map has other ciphertexts",
        );
    }

    #[test]
    fn constants_are_in_the_table() {
        refused(
            |placed| {
                let id = first(placed, |id| placed.value(id).bias.is_some());
                placed.values[id.index()].bias = Some(TensorId(99));
            },
            "there is no constant w99",
        );
    }
}

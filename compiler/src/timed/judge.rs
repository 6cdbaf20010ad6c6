//! The judge of timed circuits.

use super::{Time, Timed};
use crate::lower::{CircuitOp, ValueId};
use crate::stages::{Judge, StageErrors, StageKind};

impl Timed {
    /// Checks what holds of every timed circuit; the module says it in prose.
    ///
    /// # Errors
    /// Everything that does not hold.
    pub fn judge(&self) -> Result<(), StageErrors> {
        let mut judge = Judge::new();
        let circuit = self.circuit();
        judge.whole(self.times.len() == circuit.values.len(), || {
            format!("{} times for {} values", self.times.len(), circuit.values.len())
        });
        if judge.is_content() {
            circuit.ids().for_each(|id| self.judge_value(id, &mut judge));
            for &output in &circuit.outputs {
                let time = self.time(output);
                let is_last = (time.rung.0, time.level) == (0, 0);
                judge.value(output, is_last, || "a result has rescales before it".to_owned());
            }
            let mut at: Vec<Option<Time>> = vec![None; self.positions.depth() as usize + 1];
            for id in circuit.ids() {
                let time = self.time(id);
                match at.get_mut(time.position as usize) {
                    Some(first) => {
                        let same = *first.get_or_insert(time) == time;
                        judge.value(id, same, || format!("two times at position {}", time.position));
                    }
                    None => judge.value(id, false, || format!("there is no position {}", time.position)),
                }
            }
        }
        judge.verdict(StageKind::Timed, |id| self.line(id))
    }

    fn judge_value(&self, id: ValueId, judge: &mut Judge) {
        let time = self.time(id);
        let n_rescales = i32::from(time.working.0) - i32::from(time.rung.0);
        judge.value(id, [0, 1].contains(&n_rescales), || format!("{n_rescales} rescales in one place"));
        match &self.circuit().value(id).op {
            CircuitOp::Input => {
                judge.value(id, time.position == 0, || "an input after a multiplication".to_owned());
            }
            CircuitOp::Product(factors) => {
                for &factor in factors {
                    let of = self.time(factor);
                    let fits = of.position + 1 == time.position && of.rung == time.working;
                    judge.value(id, fits, || format!("factor {factor} is not ready just before its product"));
                }
            }
            CircuitOp::Affine(affine) => {
                for term in affine.terms.iter().filter(|term| !self.is_still(term, id)) {
                    let of = self.time(term.source);
                    let fits = of.position < time.position && of.rung >= time.working;
                    judge.value(id, fits, || format!("{} is multiplied before it is ready", term.source));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lower::{Affine, Circuit, Constant, Map, Term, Value, lower};
    use crate::timed::Rung;
    use fhec_ir::spec::GraphSpec;
    use fhec_ir::{Tensor, verify};

    /// An input, a factor, a square and a sum of both, timed.
    fn timed() -> Timed {
        let nodes = r#"(nodes: [(name: "x", op: Input(1, 2, 2)), (name: "o", of: ["x"], op: Output)])"#;
        let spec: GraphSpec = ron::from_str(nodes).unwrap();
        let mut circuit: Circuit = lower(verify(&spec.build().unwrap()).unwrap());
        let (x, first) = (circuit.outputs[0], circuit.values[0].clone());
        let mut push = |op| circuit.push(Value { op, ..first.clone() });
        let two = || Map::Diagonal(Constant::new(vec![Tensor::vector([2.0])]));
        let sum = |terms| CircuitOp::Affine(Affine { terms, bias: None });
        let y = push(sum(vec![Term { source: x, map: two() }]));
        let z = push(CircuitOp::Product([y, y]));
        let out = push(sum(vec![Term { source: z, map: Map::Identity }, Term { source: y, map: two() }]));
        circuit.outputs = vec![out];
        circuit.judge().unwrap();
        Timed::new(Arc::new(circuit), 1)
    }

    fn refused(change: impl FnOnce(&mut Vec<Time>), expected: &str) {
        let mut timed = timed();
        timed.judge().unwrap();
        change(&mut timed.times);
        let errors = timed.judge().unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    }

    #[test]
    fn every_value_has_a_time() {
        refused(|times| times.truncate(3), "3 times for 4 values");
    }

    #[test]
    fn inputs_come_first() {
        refused(|times| times[0].position = 1, "an input after a multiplication, at `v0 = input");
    }

    #[test]
    fn factors_are_just_before_their_product() {
        refused(|times| times[1].position = 0, "factor v1 is not ready just before its product");
        refused(|times| times[1].rung = Rung(0), "factor v1 is not ready just before its product");
    }

    #[test]
    fn operands_are_ready() {
        refused(|times| times[3].position = 1, "v1 is multiplied before it is ready");
    }

    #[test]
    fn one_rescale_lies_behind_a_multiplication() {
        refused(|times| times[2].working = Rung(3), "3 rescales in one place");
    }

    #[test]
    fn results_have_no_rescale_before_them() {
        refused(|times| times[3].level = 1, "a result has rescales before it");
    }

    #[test]
    fn values_at_one_position_have_one_time() {
        refused(|times| times[3].sublevel = 7, "two times at position 2");
        refused(|times| times[3].position = 9, "there is no position 9");
    }
}

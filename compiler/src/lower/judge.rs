//! The judge of circuits.

use super::circuit::{Circuit, CircuitOp, Map, ValueId};
use super::constant::Constant;
use crate::stages::{Judge, StageErrors, StageKind};

impl Circuit {
    /// Checks what holds of every circuit; the module says it in prose.
    ///
    /// # Errors
    /// Everything that does not hold.
    pub fn judge(&self) -> Result<(), StageErrors> {
        let mut judge = Judge::new();
        judge.whole(!self.outputs.is_empty(), || "it has no result".to_owned());
        let known = |id: ValueId| id.index() < self.values.len();
        judge.whole(self.outputs.iter().copied().all(known), || "a result is no value".to_owned());
        for id in self.ids() {
            for source in self.value(id).op.sources() {
                judge.value(id, source < id, || format!("{source} does not come before {id}"));
            }
        }
        // Shapes of operands can be looked up only where there are operands.
        if judge.is_content() {
            self.ids().for_each(|id| self.judge_extents(id, &mut judge));
        }
        judge.verdict(StageKind::Circuit, |id| self.line(id))
    }

    fn judge_extents(&self, id: ValueId, judge: &mut Judge) {
        let shape = self.value(id).shape;
        let of_members = |constant: &Constant| [1, self.n_members].contains(&constant.members().len());
        let spread = |constant: &Constant| {
            let dims = constant.dims();
            of_members(constant) && (dims == [shape.c] || dims == [shape.c, shape.h, shape.w])
        };
        match &self.value(id).op {
            CircuitOp::Input => {}
            CircuitOp::Product(factors) => {
                let same = factors.iter().all(|&f| self.value(f).shape == shape);
                judge.value(id, same, || "a factor has another extent".to_owned());
            }
            CircuitOp::Affine(affine) => {
                judge.value(id, !affine.terms.is_empty(), || "a sum has no summand".to_owned());
                for term in &affine.terms {
                    let from = self.value(term.source).shape;
                    let fits = match &term.map {
                        Map::Identity => from == shape,
                        Map::Diagonal(factor) => from == shape && spread(factor),
                        Map::Conv(conv) => {
                            let dims = conv.weight.dims();
                            conv.input == from
                                && conv.output == shape
                                && of_members(&conv.weight)
                                && dims.len() == 4
                                && dims[0] == shape.c
                                && dims[1] * conv.groups == from.c
                        }
                    };
                    judge.value(id, fits, || format!("the map of {} does not fit", term.source));
                }
                let fits = affine.bias.as_ref().is_none_or(spread);
                judge.value(id, fits, || "the constant does not fit".to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fhec_ir::spec::GraphSpec;
    use fhec_ir::{Shape, Tensor, verify};

    use super::*;
    use crate::lower::{Affine, Constant, lower};

    /// A convolution with a constant, a square, and a sum of both.
    fn circuit() -> Circuit {
        let nodes = r#"(nodes: [
            (name: "x", op: Input(2, 4, 4)),
            (name: "c", of: ["x"], op: Conv2d(weight: Between([2, 2, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([2], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
            (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.1, 0.2, 1.0]))),
            (name: "o", of: ["q"], op: Output),
        ])"#;
        let spec: GraphSpec = ron::from_str(nodes).unwrap();
        lower(verify(&spec.build().unwrap()).unwrap())
    }

    fn affine(circuit: &mut Circuit) -> &mut Affine {
        match &mut circuit.values[1].op {
            CircuitOp::Affine(affine) => affine,
            CircuitOp::Input | CircuitOp::Product(_) => panic!("the convolution comes first"),
        }
    }

    fn refused(change: impl FnOnce(&mut Circuit), expected: &str) {
        let mut circuit = circuit();
        circuit.judge().unwrap();
        change(&mut circuit);
        let errors = circuit.judge().unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    }

    #[test]
    fn operands_come_first() {
        refused(
            |c| affine(c).terms[0].source = ValueId(2),
            "v2 does not come before v1, at `v1 = sum conv(v2",
        );
    }

    #[test]
    fn results_are_values() {
        refused(|c| c.outputs.clear(), "it has no result");
        refused(|c| c.outputs.push(ValueId(99)), "a result is no value");
    }

    #[test]
    fn extents_agree() {
        refused(|c| c.values[0].shape = Shape::new(2, 5, 4), "the map of v0 does not fit");
        refused(|c| c.values[1].shape = Shape::new(2, 4, 5), "the map of v0 does not fit");
        let is_product = |v: &crate::lower::Value| matches!(v.op, CircuitOp::Product(_));
        refused(
            |c| {
                let product = c.values.iter().position(is_product).unwrap();
                c.values[product].shape = Shape::new(3, 4, 4);
            },
            "a factor has another extent",
        );
    }

    #[test]
    fn constants_have_their_extent_and_members() {
        refused(
            |c| affine(c).bias = Some(Constant::new(vec![Tensor::vector([1.0; 5])])),
            "the constant does not fit",
        );
        refused(
            |c| affine(c).bias = Some(Constant::new(vec![Tensor::vector([1.0; 2]); 3])),
            "the constant does not fit",
        );
    }

    #[test]
    fn sums_have_summands() {
        refused(|c| affine(c).terms.clear(), "a sum has no summand");
    }
}

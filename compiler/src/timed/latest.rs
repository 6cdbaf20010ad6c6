//! Every value as late as its readers allow, because later means fewer towers.

use crate::lower::{Affine, Circuit, CircuitOp, Map, Term, Value, ValueId};

/// The circuit with both factors of every product at the position before it: a factor that is ready earlier is multiplied
/// by one on the way, in the slack of its path.
#[must_use]
pub fn with_lifted_factors(mut circuit: Circuit) -> Circuit {
    let positions = latest(&circuit);
    let values = std::mem::take(&mut circuit.values);
    let outputs = std::mem::take(&mut circuit.outputs);
    let mut lifted = circuit;
    let mut renamed: Vec<ValueId> = Vec::with_capacity(values.len());
    for (i, mut value) in values.into_iter().enumerate() {
        if let CircuitOp::Product(factors) = &value.op {
            let mut raised = *factors;
            for factor in &mut raised {
                let early = positions[factor.index()] + 1 < positions[i];
                *factor = renamed[factor.index()];
                if early {
                    let source = *factor;
                    let terms = vec![Term { source, map: Map::Identity }];
                    let op = CircuitOp::Affine(Affine { terms, bias: None });
                    *factor = lifted.push(Value { op, ..value.clone() });
                }
            }
            value.op = CircuitOp::Product(raised);
        } else {
            value.op.rename(|source| renamed[source.index()]);
        }
        renamed.push(lifted.push(value));
    }
    lifted.outputs = outputs.iter().map(|o| renamed[o.index()]).collect();
    lifted
}

/// The latest position of every value; inputs come first of all.
pub(super) fn latest(circuit: &Circuit) -> Vec<u32> {
    let mut earliest = vec![0; circuit.values.len()];
    for id in circuit.ids() {
        let sources = circuit.value(id).op.sources_with_depth();
        earliest[id.index()] = sources.into_iter().map(|(s, d)| earliest[s.index()] + d).max().unwrap_or(0);
    }
    let depth = earliest.iter().copied().max().unwrap_or(0);
    let mut latest = vec![depth; circuit.values.len()];
    for id in circuit.ids().rev() {
        for (source, d) in circuit.value(id).op.sources_with_depth() {
            latest[source.index()] = latest[source.index()].min(latest[id.index()] - d);
        }
        if matches!(circuit.value(id).op, CircuitOp::Input) {
            latest[id.index()] = 0;
        }
    }
    latest
}

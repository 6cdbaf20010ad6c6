//! Gathers sums: a sum that only another sum reads becomes part of it. The depth of the circuit stays.

use super::circuit::{Affine, Circuit, CircuitOp, Map, ValueId};

/// The circuit with sums gathered and unused values gone.
pub(super) fn fuse(mut circuit: Circuit) -> Circuit {
    for id in circuit.ids() {
        let uses = circuit.use_counts();
        let shape = circuit.value(id).shape;
        let CircuitOp::Affine(affine) = circuit.value(id).op.clone() else { continue };
        let mut fused = Affine { terms: Vec::new(), bias: affine.bias };
        for term in affine.terms {
            let source = circuit.value(term.source);
            match (&term.map, &source.op) {
                (Map::Identity, CircuitOp::Affine(inner)) if uses[term.source.index()] == 1 => {
                    fused.terms.extend(inner.terms.iter().cloned());
                    fused.bias = match (fused.bias.take(), inner.bias.clone()) {
                        (Some(a), Some(b)) => Some(a.plus(&b, shape)),
                        (a, b) => a.or(b),
                    };
                }
                _ => fused.terms.push(term),
            }
        }
        circuit.values[id.index()].op = CircuitOp::Affine(fused);
    }
    without_dead(circuit)
}

/// Only the values that a result depends on, and the inputs, renumbered in order.
fn without_dead(mut circuit: Circuit) -> Circuit {
    let mut alive = vec![false; circuit.values.len()];
    circuit.outputs.iter().for_each(|o| alive[o.index()] = true);
    for id in circuit.ids().rev() {
        let op = &circuit.value(id).op;
        alive[id.index()] |= matches!(op, CircuitOp::Input);
        if alive[id.index()] {
            op.sources().into_iter().for_each(|s| alive[s.index()] = true);
        }
    }
    let mut renamed = vec![ValueId(0); alive.len()];
    let values = std::mem::take(&mut circuit.values);
    let outputs = std::mem::take(&mut circuit.outputs);
    let mut kept = circuit;
    for (i, mut value) in values.into_iter().enumerate().filter(|(i, _)| alive[*i]) {
        value.op.rename(|source| renamed[source.index()]);
        renamed[i] = kept.push(value);
    }
    kept.outputs = outputs.iter().map(|o| renamed[o.index()]).collect();
    kept
}

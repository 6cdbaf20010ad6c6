//! Gathers sums: a sum that only another sum reads becomes part of it. The depth of the circuit stays.

use super::circuit::{Affine, Circuit, CircuitOp, Map, ValueId};

/// The circuit with sums gathered and unused values gone.
pub(super) fn fuse(mut circuit: Circuit) -> Circuit {
    // Terms move from the one sum that held them to another, so nothing is read more or less often than at first.
    let uses = circuit.use_counts();
    for id in circuit.ids() {
        let shape = circuit.value(id).shape;
        let CircuitOp::Affine(affine) = &mut circuit.values[id.index()].op else { continue };
        let mut fused = Affine { terms: Vec::new(), bias: affine.bias.take() };
        for term in std::mem::take(&mut affine.terms) {
            let source = &mut circuit.values[term.source.index()].op;
            match (&term.map, source) {
                (Map::Identity, CircuitOp::Affine(inner)) if uses[term.source.index()] == 1 => {
                    let terms = std::mem::take(&mut inner.terms);
                    match fused.terms.is_empty() {
                        true => fused.terms = terms,
                        false => fused.terms.extend(terms),
                    }
                    fused.bias = match (fused.bias.take(), inner.bias.take()) {
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

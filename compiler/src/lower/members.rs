//! Ensembles: the mean of the members' results in the last linear layer, at no depth (paper §5.3).
//!
//! Every member lives in slots of its own up to the last layer, which sums over them: with weights and constants divided by
//! their number that is the mean. Only a dense last layer can do that; other circuits keep one result per member.

use fhec_ir::Tensor;

use super::circuit::{Affine, Circuit, CircuitOp, Map};
use super::constant::Constant;

/// The circuit with the mean over members as its result, where its last layer allows it.
pub(super) fn merged(mut circuit: Circuit) -> Circuit {
    let n = circuit.n_members;
    let [output] = circuit.outputs[..] else { return circuit };
    let uses = circuit.use_counts();
    let value = &mut circuit.values[output.index()];
    let CircuitOp::Affine(Affine { terms, bias }) = &mut value.op else { return circuit };
    let dense = terms.iter().all(|t| matches!(&t.map, Map::Conv(_)));
    if n == 1 || !dense || !value.shape.is_vector() || uses[output.index()] != 1 {
        return circuit;
    }
    for term in terms {
        if let Map::Conv(conv) = &mut term.map {
            let dims = conv.weight.dims().to_vec();
            conv.weight = conv.weight.map(&dims, |t: &Tensor| t.iter().map(|w| w / n as f64).collect());
        }
    }
    if let Some(bias) = bias {
        *bias = mean(bias);
    }
    circuit.merged = true;
    circuit
}

/// The mean of a constant over its members.
fn mean(constant: &Constant) -> Constant {
    let members = constant.members();
    let sum = |i: usize| members.iter().map(|t| t.get(i)).sum::<f64>() / members.len() as f64;
    let values: Vec<f64> = (0..members[0].len()).map(sum).collect();
    let tensor = Tensor::from_f64(constant.dims().to_vec(), values).expect("one number per number");
    Constant::new(vec![tensor])
}

//! What a program loses before anything is encrypted: its larger weights are stored in single precision.
//!
//! Where large numbers cancel, that shows in the scores. It is measured, and becomes part of the bound.

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::{ClearProgram, InputError};
use fhec_ir::{Graph, eval};
use rayon::prelude::*;

/// Inputs that the loss is measured on.
const SAMPLES: usize = 4;
/// How much more other inputs may lose.
const MARGIN: f64 = 2.0;

/// The largest difference between a graph and its program in the clear, with a margin.
pub(super) fn lost(graph: &Graph, program: &CheckedProgram, inputs: &[Vec<f64>]) -> Result<f64, InputError> {
    let clear = ClearProgram::new(program);
    let of_input = |input: &Vec<f64>| -> Result<f64, InputError> {
        // Of a batch of equals, the first result is as good as any.
        let found = clear.run(&input.repeat(program.batch()), &mut ())?;
        let Some(exact) = scores(graph, input) else { return Ok(0.0) };
        let differences = found.iter().zip(&exact).map(|(a, b)| (a - b).abs());
        Ok(differences.fold(0.0, f64::max))
    };
    let lost: Vec<f64> = inputs.par_iter().take(SAMPLES).map(of_input).collect::<Result<_, _>>()?;
    Ok(MARGIN * lost.into_iter().fold(0.0, f64::max))
}

/// What a graph gives, averaged over its members; nothing where it cannot be evaluated alone.
fn scores(graph: &Graph, input: &[f64]) -> Option<Vec<f64>> {
    let of_member =
        |member| eval::evaluate(graph, &[input], member).ok().map(|mut all| all.swap_remove(0).data);
    let members: Vec<Vec<f64>> = graph.members().map(of_member).collect::<Option<_>>()?;
    let n = members.len() as f64;
    Some((0..members.first()?.len()).map(|i| members.iter().map(|m| m[i]).sum::<f64>() / n).collect())
}

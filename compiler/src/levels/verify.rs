//! Compares a graph with the model it came from, as somebody else evaluates it.
//!
//! The compiler links no other evaluator of ONNX files, so whoever calls it brings one ([`Original`]).

use std::path::Path;

use fhec_ir::spec::Uniform;
use fhec_ir::{Graph, MemberIdx, evaluate};
use serde::Serialize;

use crate::import::Imported;

/// A model as it was exported, evaluated by code that shares none with the import.
pub trait Original {
    /// The model's outputs, in the order of the graph's outputs, for inputs in the graph's order.
    ///
    /// # Errors
    /// When the evaluation fails.
    fn run(&self, inputs: &[&[f64]]) -> Result<Vec<Vec<f64>>, OriginalError>;
}

/// Opens the file that a model was imported from.
pub type OpenOriginal = fn(&Path, &Imported) -> Result<Box<dyn Original>, OriginalError>;

/// The model cannot be evaluated as it was exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OriginalError(pub String);

/// How far a graph's outputs are from the model's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Agreement {
    /// Random inputs that were tried.
    pub inputs: usize,
    /// Largest difference, relative to the range of the output.
    pub error: f64,
}

impl Agreement {
    /// Single precision in the original explains differences up to this.
    pub const TOLERANCE: f64 = 1e-3;

    /// Whether the graph computes what the model does.
    pub fn holds(&self) -> bool {
        self.error <= Self::TOLERANCE
    }
}

/// Evaluates graph and original on `n` seeded inputs, uniform in [-1, 1].
///
/// # Errors
/// When the original cannot be evaluated.
pub fn agreement(graph: &Graph, original: &dyn Original, n: usize) -> Result<Agreement, OriginalError> {
    let mut worst = 0.0_f64;
    for seed in 0..n as u64 {
        let mut stream = Uniform::new(seed);
        let inputs: Vec<Vec<f64>> = graph
            .inputs()
            .iter()
            .map(|&id| (0..graph.shape(id).len()).map(|_| stream.between(-1.0, 1.0)).collect())
            .collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        let expected = original.run(&inputs)?;
        let actual = evaluate(graph, &inputs, MemberIdx::FIRST).expect("inputs were made for this graph");
        for (e, a) in expected.iter().zip(&actual) {
            let range = e.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            let difference = e.iter().zip(&a.data).fold(0.0_f64, |m, (x, y)| m.max((x - y).abs()));
            let error = if e.len() == a.data.len() { difference / range } else { f64::INFINITY };
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    Ok(Agreement { inputs: n, error: worst })
}

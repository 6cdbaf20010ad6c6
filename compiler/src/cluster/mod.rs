//! Clustering of convolution weights (paper §5.2) and its joint form for ensembles (paper §5.3).
//!
//! Every weight is replaced by the nearest entry of a codebook, so that few distinct plaintexts remain where a diagonal is
//! one weight over one mask. A codebook serves all convolutions (full) or one layer at one kernel column (slice). The
//! members of an ensemble are clustered together: an entry is a row with one value per member.
//!
//! Clustering runs on the circuit, after all passes, on the weights as they are encoded. The other order, on the weights of
//! the model, leaves few values there too, but fusing multiplies them by factors per channel: then nothing is shared. Dense
//! layers, and maps that only move channels, stay as they are. A weight that is exactly zero stays zero: it has no diagonal.

mod compare;
mod kmeans;
mod model;
mod quantize;

use fhec_ir::Tensor;
use serde::Serialize;

use crate::lower::{Circuit, CircuitOp, Conv, Map};

pub use compare::{distinct_plaintexts, unclustered_bytes};
pub use kmeans::{Clusters, kmeans};
pub use model::cluster_model;
use quantize::{Quantized, quantize};

/// Most centroids of a codebook; one more entry may be zero.
pub const MAX_CENTROIDS: u32 = (1 << 16) - 1;

/// What a codebook serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One codebook for all convolutions.
    Full,
    /// One codebook for every convolution and kernel column.
    Slice,
}

/// When clustering runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// On the weights of the model, before they are fused (the order of the paper).
    Before,
    /// On the weights that are encoded, after fusing and redistribution.
    #[default]
    After,
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterOptions {
    /// What a codebook serves.
    pub method: Method,
    /// Most centroids of a codebook.
    pub centroids: u32,
    /// Seed of the first centroids.
    pub seed: u64,
    /// When clustering runs.
    pub order: Order,
}

/// What clustering did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clustering {
    /// What was asked for.
    #[serde(flatten)]
    pub options: ClusterOptions,
    /// Distinct plaintexts of the circuit without clustering, where that was counted.
    pub plaintexts_before: Option<usize>,
    /// The layers with clustered weights.
    pub layers: Vec<ClusteredLayer>,
}

/// What clustering did to the weights of one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusteredLayer {
    /// Name in the model.
    pub name: String,
    /// Weights of all members.
    pub weights: usize,
    /// Codebooks that serve the layer.
    pub codebooks: usize,
    /// Most entries of one of them.
    pub entries: usize,
    /// Norm of the difference over the norm of the weights.
    pub relative_error: f64,
}

/// Clusters the convolutions of a circuit. Codebooks stay with the weights, for whoever writes them.
pub fn cluster(circuit: &mut Circuit, options: ClusterOptions) -> Clustering {
    let mut convs: Vec<(String, &mut Conv)> = Vec::new();
    for value in &mut circuit.values {
        let name = value.name.clone();
        if let CircuitOp::Affine(affine) = &mut value.op {
            for term in &mut affine.terms {
                if let Map::Conv(conv) = &mut term.map
                    && is_clustered(conv)
                {
                    convs.push((name.clone(), conv));
                }
            }
        }
    }
    let weights: Vec<&[Tensor]> = convs.iter().map(|(_, conv)| conv.weight.members()).collect();
    let quantized = quantize(&weights, options);
    let mut layers = Vec::with_capacity(convs.len());
    for ((name, conv), quantized) in convs.into_iter().zip(quantized) {
        layers.push(quantized.layer(name));
        conv.weight = quantized.into_constant();
    }
    Clustering { options, plaintexts_before: None, layers }
}

/// Whether a map is a convolution worth a codebook: not a dense layer, and not a mere choice of channels.
fn is_clustered(conv: &Conv) -> bool {
    let used = |t: &Tensor| t.iter().filter(|&w| w != 0.0).count();
    !conv.is_dense() && conv.weight.members().iter().any(|t| used(t) > conv.output.c)
}

impl Clustering {
    /// Remembers how many distinct plaintexts there would have been.
    pub(crate) fn replacing(mut self, plaintexts: usize) -> Self {
        self.plaintexts_before = Some(plaintexts);
        self
    }

    /// The largest relative error of a layer.
    #[must_use]
    pub fn worst_error(&self) -> f64 {
        self.layers.iter().map(|l| l.relative_error).fold(0.0, f64::max)
    }
}

impl Quantized {
    fn layer(&self, name: String) -> ClusteredLayer {
        ClusteredLayer {
            name,
            weights: self.members.iter().map(Tensor::len).sum(),
            codebooks: self.codes.codebooks.len(),
            entries: self.codes.codebooks.iter().map(|book| book.n_entries()).max().unwrap_or(0),
            relative_error: self.relative_error,
        }
    }
}

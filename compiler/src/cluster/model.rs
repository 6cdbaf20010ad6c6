//! The order of the paper: clustering the weights of the model, before any pass.

use fhec_ir::{Graph, NodeId, Op, Tensor};

use super::quantize::quantize;
use super::{ClusterOptions, Clustering};

/// Name in the history of a node.
const PASS: &str = "cluster";

/// Replaces the convolution weights of a model by the entries of codebooks.
///
/// # Panics
/// Never for a verified graph: entries have the extents of the weights.
pub fn cluster_model(graph: &mut Graph, options: ClusterOptions) -> Clustering {
    let convs: Vec<(NodeId, fhec_ir::Conv2d)> = graph
        .topo_order()
        .into_iter()
        .filter_map(|id| match graph.op(id) {
            Op::Conv2d(conv) => Some((id, conv.clone())),
            _ => None,
        })
        .collect();
    let weights: Vec<&[Tensor]> =
        convs.iter().map(|(_, conv)| graph.weights().members(conv.weight)).collect();
    let quantized = quantize(&weights, options);
    let mut layers = Vec::with_capacity(convs.len());
    for ((id, conv), quantized) in convs.into_iter().zip(quantized) {
        let name = graph.node(id).origins.first().cloned().unwrap_or_default();
        layers.push(quantized.layer(name));
        let weight = graph.add_member_tensors(quantized.members);
        graph
            .set_op(id, Op::Conv2d(fhec_ir::Conv2d { weight, ..conv }), PASS)
            .expect("entries have the extents of the weights");
    }
    Clustering { options, plaintexts_before: None, layers }
}

//! A network copied layer by layer, where one layer may become several.

use super::super::{Layer, Network, Op, ValueIdx};

pub(super) struct Rebuild {
    pub(super) network: Network,
    /// What became of every value of the original, as far as it is copied.
    renamed: Vec<ValueIdx>,
}

impl Rebuild {
    pub(super) fn new(original: &Network) -> Self {
        let network = Network { layers: Vec::new(), ..original.clone() };
        Self { network, renamed: vec![ValueIdx::INPUT] }
    }

    /// Where the operands of a layer are now.
    pub(super) fn operands(&self, layer: &Layer) -> Vec<ValueIdx> {
        layer.of.iter().map(|of| self.renamed[of.0]).collect()
    }

    /// Adds a layer that is a part of an original one.
    pub(super) fn push(&mut self, op: Op, of: &[ValueIdx]) -> ValueIdx {
        self.network.layers.push(Layer { op, of: of.to_vec() });
        ValueIdx(self.network.layers.len())
    }

    /// Adds the layer whose result is that of the next original one.
    pub(super) fn finish_layer(&mut self, op: Op, of: &[ValueIdx]) {
        let value = self.push(op, of);
        self.renamed.push(value);
    }
}

/// Whether every output of a layer reads every input channel.
pub(super) fn is_plain_linear(op: &Op) -> bool {
    match op {
        Op::Conv(conv) => conv.groups == 1,
        Op::Dense { .. } => true,
        Op::BatchNorm { .. }
        | Op::Poly(_)
        | Op::AveragePool { .. }
        | Op::GlobalPool
        | Op::Flatten
        | Op::Add
        | Op::Concat => false,
    }
}

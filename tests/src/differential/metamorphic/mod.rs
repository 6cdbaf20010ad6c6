//! Changes of a network that change nothing it computes: the compiler sees another network, and scores stay what they are.

mod permute;
mod rebuild;

use super::{Conv, Network, Op, Rank, ValueIdx};
use rebuild::{Rebuild, is_plain_linear};

pub use permute::permute_channels;

/// The network for inputs that are `factor` times as large: the weights that read them become as much smaller.
///
/// # Panics
/// When something other than a linear layer reads the input.
#[must_use]
pub fn scale_input(network: &Network, factor: f32) -> Network {
    let mut scaled = network.clone();
    for layer in &mut scaled.layers {
        if !layer.of.contains(&ValueIdx::INPUT) {
            continue;
        }
        match &mut layer.op {
            Op::Conv(Conv { weight, .. }) | Op::Dense { weight, .. } => {
                weight.iter_mut().for_each(|w| *w /= factor);
            }
            other => panic!("{other:?} reads the input"),
        }
    }
    scaled
}

/// Every linear layer with at least two outputs becomes two layers with a part of its outputs each, joined again.
#[must_use]
pub fn split_by_outputs(network: &Network) -> Network {
    let mut rebuild = Rebuild::new(network);
    for (index, layer) in network.layers.iter().enumerate() {
        let of = rebuild.operands(layer);
        let n_outputs = network.n_outputs(index);
        if !is_plain_linear(&layer.op) || n_outputs < 2 {
            rebuild.finish_layer(layer.op.clone(), &of);
            continue;
        }
        let middle = n_outputs.div_ceil(2);
        let first = rebuild.push(outputs(&layer.op, n_outputs, 0..middle), &of);
        let second = rebuild.push(outputs(&layer.op, n_outputs, middle..n_outputs), &of);
        rebuild.finish_layer(Op::Concat, &[first, second]);
    }
    rebuild.network
}

/// Every linear layer becomes the sum of two: one with two thirds of the weights and the bias, one with the rest.
#[must_use]
pub fn split_by_weights(network: &Network) -> Network {
    let mut rebuild = Rebuild::new(network);
    for layer in &network.layers {
        let of = rebuild.operands(layer);
        if !is_plain_linear(&layer.op) {
            rebuild.finish_layer(layer.op.clone(), &of);
            continue;
        }
        let first = rebuild.push(share(&layer.op, 2.0 / 3.0, true), &of);
        let second = rebuild.push(share(&layer.op, 1.0 / 3.0, false), &of);
        rebuild.finish_layer(Op::Add, &[first, second]);
    }
    rebuild.network
}

/// A layer that does nothing behind the activation number `which`, counted round and round.
///
/// # Panics
/// When the network has no activation.
#[must_use]
pub fn with_identity(network: &Network, which: usize) -> Network {
    let places: Vec<usize> = network.activations().map(|(index, _)| index).collect();
    let place = places[which % places.len()];
    let mut rebuild = Rebuild::new(network);
    for (index, layer) in network.layers.iter().enumerate() {
        let of = rebuild.operands(layer);
        if index != place {
            rebuild.finish_layer(layer.op.clone(), &of);
            continue;
        }
        let value = rebuild.push(layer.op.clone(), &of);
        let identity = identity(network, network.n_outputs(index));
        rebuild.finish_layer(identity, &[value]);
    }
    rebuild.network
}

fn identity(network: &Network, channels: usize) -> Op {
    let eye = (0..channels * channels).map(|i| if i % (channels + 1) == 0 { 1.0 } else { 0.0 });
    let weight: Vec<f32> = eye.collect();
    match network.rank {
        Rank::Vector => Op::Dense { weight, bias: Some(vec![0.0; channels]), as_matmul: false },
        Rank::Signal | Rank::Image => Op::Conv(Conv {
            weight,
            bias: None,
            out: channels,
            kernel: [1, 1],
            stride: [1, 1],
            pad: [0, 0],
            groups: 1,
        }),
    }
}

/// Some outputs of a linear layer.
fn outputs(op: &Op, n_outputs: usize, part: std::ops::Range<usize>) -> Op {
    let rows = |weight: &[f32]| {
        let row = weight.len() / n_outputs;
        weight[part.start * row..part.end * row].to_vec()
    };
    let some = |bias: &Option<Vec<f32>>| bias.as_ref().map(|bias| bias[part.clone()].to_vec());
    match op {
        Op::Conv(conv) => Op::Conv(Conv {
            weight: rows(&conv.weight),
            bias: some(&conv.bias),
            out: part.len(),
            ..conv.clone()
        }),
        Op::Dense { weight, bias, as_matmul } => {
            Op::Dense { weight: rows(weight), bias: some(bias), as_matmul: *as_matmul }
        }
        other => panic!("{other:?} is no linear layer"),
    }
}

/// A part of the weights of a linear layer.
fn share(op: &Op, factor: f32, with_bias: bool) -> Op {
    let part = |weight: &[f32]| weight.iter().map(|w| w * factor).collect::<Vec<f32>>();
    let kept = |bias: &Option<Vec<f32>>| bias.clone().filter(|_| with_bias);
    match op {
        Op::Conv(conv) => {
            Op::Conv(Conv { weight: part(&conv.weight), bias: kept(&conv.bias), ..conv.clone() })
        }
        Op::Dense { weight, bias, as_matmul } => {
            Op::Dense { weight: part(weight), bias: kept(bias), as_matmul: *as_matmul }
        }
        other => panic!("{other:?} is no linear layer"),
    }
}

impl Network {
    /// Channels of a layer's result.
    fn n_outputs(&self, layer: usize) -> usize {
        self.extents()[layer + 1][0]
    }
}

//! Hidden channels in another order.

use super::super::{Conv, Network, Op, ValueIdx};
use super::rebuild::is_plain_linear;
use crate::models::random::Random;

/// Permutes the outputs of every linear layer whose channels reach one other linear layer and nothing else, and the inputs of
/// that layer with them. Tells how many were permuted.
#[must_use]
pub fn permute_channels(network: &Network, random: &mut Random) -> (Network, usize) {
    let extents = network.extents();
    let mut permuted = network.clone();
    let mut count = 0;
    for start in 0..network.layers.len() {
        let n_channels = extents[start + 1][0];
        let Some(path) = path(network, start).filter(|_| n_channels > 1) else { continue };
        let order = shuffled(n_channels, random);
        rows(&mut permuted.layers[start].op, &order);
        let mut per_channel = 1;
        for &index in &path {
            // Flattened channels are blocks of columns.
            if matches!(network.layers[index].op, Op::Flatten) {
                per_channel = extents[index + 1][0] / n_channels;
            }
            channels(&mut permuted.layers[index].op, &order, per_channel);
        }
        count += 1;
    }
    (permuted, count)
}

/// The layers from behind a linear layer to the next one, if nothing else reads anything between them.
fn path(network: &Network, start: usize) -> Option<Vec<usize>> {
    if !is_plain_linear(&network.layers[start].op) {
        return None;
    }
    let mut path = Vec::new();
    let mut value = ValueIdx(start + 1);
    loop {
        let mut readers = (0..network.layers.len()).filter(|&i| network.layers[i].of.contains(&value));
        let (reader, None) = (readers.next()?, readers.next()) else { return None };
        path.push(reader);
        match &network.layers[reader].op {
            op if is_plain_linear(op) => return Some(path),
            Op::BatchNorm { .. } | Op::Poly(_) | Op::AveragePool { .. } | Op::GlobalPool | Op::Flatten => {
                value = ValueIdx(reader + 1);
            }
            Op::Conv(_) | Op::Dense { .. } | Op::Add | Op::Concat => return None,
        }
    }
}

fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// Item `i` of the result is item `order[i]`, items of `size` numbers.
fn pick(numbers: &[f32], order: &[usize], size: usize) -> Vec<f32> {
    order.iter().flat_map(|&from| &numbers[from * size..][..size]).copied().collect()
}

/// Permutes the outputs of a linear layer.
fn rows(op: &mut Op, order: &[usize]) {
    let (Op::Conv(Conv { weight, bias, .. }) | Op::Dense { weight, bias, .. }) = op else { return };
    *weight = pick(weight, order, weight.len() / order.len());
    if let Some(bias) = bias {
        *bias = pick(bias, order, 1);
    }
}

/// Permutes what a layer has for every channel that it reads.
fn channels(op: &mut Op, order: &[usize], per_channel: usize) {
    match op {
        Op::Conv(conv) => {
            let taps = conv.kernel[0] * conv.kernel[1];
            let row = order.len() * taps;
            conv.weight = conv.weight.chunks(row).flat_map(|row| pick(row, order, taps)).collect();
        }
        Op::Dense { weight, .. } => {
            let row = order.len() * per_channel;
            *weight = weight.chunks(row).flat_map(|row| pick(row, order, per_channel)).collect();
        }
        Op::BatchNorm { scale, shift, mean, variance } => {
            for part in [scale, shift, mean, variance] {
                *part = pick(part, order, 1);
            }
        }
        Op::Poly(poly) => {
            for row in poly.coefficients.iter_mut().filter(|row| row.len() > 1) {
                *row = pick(row, order, 1);
            }
        }
        Op::AveragePool { .. } | Op::GlobalPool | Op::Flatten | Op::Add | Op::Concat => {}
    }
}

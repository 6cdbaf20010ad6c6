//! The convolutions that read a piece of a view: weights cut and spread to the value behind the piece.

use fhec_ir::{Shape, Tensor};

use super::constant::Constant;
use super::conv::{Conv, reshaped};
use super::view::Piece;

/// A dense layer `[out, n]` over the n numbers of a piece.
pub(super) fn dense(weight: &Constant, piece: &Piece) -> Conv {
    let window = piece.window.expect("zeros are not read");
    let (out, shape) = (weight.dims()[0], piece.shape);
    let weight = reshaped(weight, &[out, shape.c, shape.h, shape.w]);
    Conv {
        weight: if shape.c == window.extent.c { weight } else { input_channels(&weight, 0, piece) },
        stride: [1, 1],
        dilation: [window.step[1], window.step[2]],
        offset: [window.start[1], window.start[2]],
        groups: 1,
        input: window.extent,
        output: Shape::vector(out),
    }
}

/// The `[len, n]` matrix that puts n numbers at `first` of a vector.
pub(super) fn selection(len: usize, first: usize, n: usize) -> Constant {
    let mut matrix = vec![0.0; len * n];
    (0..n).for_each(|i| matrix[(first + i) * n + i] = 1.0);
    Constant::new(vec![Tensor::from_f64(vec![len, n], matrix).expect("as many as the extents say")])
}

/// Some columns of a dense weight matrix.
pub(super) fn columns(weight: &Constant, first: usize, n: usize) -> Constant {
    let (rows, width) = (weight.dims()[0], weight.dims()[1]);
    if n == width {
        return weight.clone();
    }
    weight.map(&[rows, n], |t| (0..rows * n).map(|i| t.get(i / n * width + first + i % n)).collect())
}

/// A convolution weight without groups.
pub(super) fn ungrouped(weight: &Constant, groups: usize) -> Constant {
    if groups == 1 {
        return weight.clone();
    }
    let d = weight.dims();
    let (out, per_group, cells) = (d[0], d[1], d[2] * d[3]);
    let n_in = per_group * groups;
    let dims = [out, n_in, d[2], d[3]];
    weight.map(&dims, |t| {
        let mut full = vec![0.0; out * n_in * cells];
        for i in 0..t.len() {
            let (o, rest) = (i / (per_group * cells), i % (per_group * cells));
            let first = o / (out / groups) * per_group * cells;
            full[o * n_in * cells + first + rest] = t.get(i);
        }
        full
    })
}

/// The weights for the channels of a piece that begin at `first`, spread over the channels of its value.
pub(super) fn input_channels(weight: &Constant, first: usize, piece: &Piece) -> Constant {
    let Some(window) = piece.window else { return weight.clone() };
    let d = weight.dims();
    let (out, n_in, cells) = (d[0], d[1], d[2] * d[3]);
    let n_value = window.extent.c;
    weight.map(&[out, n_value, d[2], d[3]], |t| {
        let mut spread = vec![0.0; out * n_value * cells];
        for o in 0..out {
            for c in 0..piece.shape.c {
                let to = window.start[0] as usize + c * window.step[0];
                for cell in 0..cells {
                    spread[(o * n_value + to) * cells + cell] = t.get((o * n_in + first + c) * cells + cell);
                }
            }
        }
        spread
    })
}

/// The map that puts a piece at channel `first` of a tensor of `shape`.
pub(super) fn placement(piece: &Piece, first: usize, shape: Shape) -> Conv {
    let window = piece.window.expect("zeros are not placed");
    let n_in = window.extent.c;
    let mut weight = vec![0.0; shape.c * n_in];
    for c in 0..piece.shape.c {
        weight[(first + c) * n_in + window.start[0] as usize + c * window.step[0]] = 1.0;
    }
    let tensor = Tensor::from_f64(vec![shape.c, n_in, 1, 1], weight).expect("as many as the extents say");
    Conv {
        weight: Constant::new(vec![tensor]),
        stride: [window.step[1], window.step[2]],
        dilation: [1, 1],
        offset: [window.start[1], window.start[2]],
        groups: 1,
        input: window.extent,
        output: shape,
    }
}

/// The map to zero.
pub(super) fn zeros(input: Shape, output: Shape) -> Conv {
    let tensor = Tensor::from_f64(vec![output.c, input.c, 1, 1], vec![0.0; output.c * input.c]);
    Conv {
        weight: Constant::new(vec![tensor.expect("as many as the extents say")]),
        stride: [1, 1],
        dilation: [1, 1],
        offset: [0, 0],
        groups: 1,
        input,
        output,
    }
}

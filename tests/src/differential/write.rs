//! Networks as ONNX files.

use super::{Conv, Network, Op, Rank, ValueIdx, spell};
use crate::onnx::{Attr, OnnxWriter};

impl Network {
    /// The bytes of an ONNX model.
    #[must_use]
    pub fn to_onnx(&self) -> Vec<u8> {
        let extents = self.extents();
        let mut ranks = vec![self.rank];
        let mut w = OnnxWriter::new("random");
        let mut names = vec![w.input("x", &dims(self.rank, self.input))];
        for layer in &self.layers {
            let of = |slot: usize| -> usize {
                let ValueIdx(index) = layer.of[slot];
                index
            };
            let x = names[of(0)].clone();
            let rank = ranks[of(0)];
            let n_inputs = extents[of(0)][0];
            let name = match &layer.op {
                Op::Conv(conv) => write_conv(&mut w, &x, conv, rank, n_inputs),
                Op::Dense { weight, bias, as_matmul } => {
                    write_dense(&mut w, &x, weight, bias.as_deref(), *as_matmul, n_inputs)
                }
                Op::BatchNorm { scale, shift, mean, variance } => {
                    let parts: Vec<String> =
                        [scale, shift, mean, variance].map(|part| tensor(&mut w, &[part.len()], part)).into();
                    let inputs: Vec<&str> = std::iter::once(&x).chain(&parts).map(String::as_str).collect();
                    w.node("BatchNormalization", &inputs)
                }
                Op::Poly(poly) => spell::write(&mut w, &x, poly, rank),
                Op::AveragePool { kernel, stride } => {
                    let attrs = [
                        ("kernel_shape", Attr::Ints(spatial(rank, *kernel))),
                        ("strides", Attr::Ints(spatial(rank, *stride))),
                    ];
                    w.node_with("AveragePool", &[&x], &attrs)
                }
                Op::GlobalPool => w.node("GlobalAveragePool", &[&x]),
                Op::Flatten => w.node_with("Flatten", &[&x], &[("axis", Attr::Int(1))]),
                Op::Add => w.node("Add", &[&x, &names[of(1)]]),
                Op::Concat => w.node_with("Concat", &[&x, &names[of(1)]], &[("axis", Attr::Int(1))]),
            };
            names.push(name);
            ranks.push(if matches!(layer.op, Op::Flatten) { Rank::Vector } else { rank });
        }
        let last = self.layers.len();
        w.finish(&names[last], &dims(ranks[last], extents[last]))
    }
}

fn dims(rank: Rank, [c, h, w]: [usize; 3]) -> Vec<Option<i64>> {
    let inner: &[usize] = match rank {
        Rank::Vector => &[c],
        Rank::Signal => &[c, w],
        Rank::Image => &[c, h, w],
    };
    std::iter::once(None).chain(inner.iter().map(|&d| Some(d as i64))).collect()
}

/// Rows and columns, or columns alone.
fn spatial(rank: Rank, [y, x]: [usize; 2]) -> Vec<i64> {
    match rank {
        Rank::Image => vec![y as i64, x as i64],
        Rank::Signal | Rank::Vector => vec![x as i64],
    }
}

fn tensor(w: &mut OnnxWriter, dims: &[usize], data: &[f32]) -> String {
    let name = w.fresh("weight");
    w.tensor(&name, dims, data)
}

fn write_conv(w: &mut OnnxWriter, x: &str, conv: &Conv, rank: Rank, n_inputs: usize) -> String {
    let [kh, kw] = conv.kernel;
    let per_group = n_inputs / conv.groups;
    let dims: &[usize] = match rank {
        Rank::Image => &[conv.out, per_group, kh, kw],
        Rank::Signal | Rank::Vector => &[conv.out, per_group, kw],
    };
    let mut inputs = vec![x.to_owned(), tensor(w, dims, &conv.weight)];
    if let Some(bias) = &conv.bias {
        inputs.push(tensor(w, &[conv.out], bias));
    }
    let pads = spatial(rank, conv.pad);
    let attrs = [
        ("kernel_shape", Attr::Ints(spatial(rank, conv.kernel))),
        ("strides", Attr::Ints(spatial(rank, conv.stride))),
        ("pads", Attr::Ints(pads.iter().chain(&pads).copied().collect())),
        ("group", Attr::Int(conv.groups as i64)),
    ];
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    w.node_with("Conv", &inputs, &attrs)
}

fn write_dense(
    w: &mut OnnxWriter,
    x: &str,
    weight: &[f32],
    bias: Option<&[f32]>,
    as_matmul: bool,
    n_inputs: usize,
) -> String {
    let out = weight.len() / n_inputs;
    if as_matmul {
        let turned: Vec<f32> = (0..weight.len()).map(|i| weight[i % out * n_inputs + i / out]).collect();
        let matrix = tensor(w, &[n_inputs, out], &turned);
        let product = w.node("MatMul", &[x, &matrix]);
        return match bias {
            Some(bias) => {
                let bias = tensor(w, &[out], bias);
                w.node("Add", &[&product, &bias])
            }
            None => product,
        };
    }
    let mut inputs = vec![x.to_owned(), tensor(w, &[out, n_inputs], weight)];
    if let Some(bias) = bias {
        inputs.push(tensor(w, &[out], bias));
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    w.node_with("Gemm", &inputs, &[("transB", Attr::Int(1))])
}

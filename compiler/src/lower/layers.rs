//! Convolutions, dense layers and pooling: the layers that read through views.

use fhec_ir::{Conv2d, Divisor, NodeId, Pool, Shape, Tensor, TensorId};

use super::build::Builder;
use super::circuit::{Map, Term, ValueId};
use super::constant::Constant;
use super::conv::Conv;
use super::piece;
use super::view::{Piece, View};
use super::windows::Windows;

impl Builder<'_> {
    pub(super) fn conv(&mut self, id: NodeId, conv: &Conv2d, operand: &View) -> View {
        let weight = self.constant(conv.weight);
        let bias = conv.bias.map(|b| self.constant(b));
        let output = self.graph.shape(id);
        let pads = [conv.pads.top, conv.pads.left];
        let reads_beyond = |piece: &Piece| {
            piece.window.is_some_and(|w| {
                (0..2).any(|a| {
                    let n = piece.shape.dims()[a + 1];
                    let k = (weight.dims()[a + 2] - 1) * conv.dilation[a];
                    let last = (output.dims()[a + 1] - 1) * conv.stride[a] + k;
                    !w.may_widen(a + 1, n, pads[a] > 0, last >= n + pads[a])
                })
            })
        };
        let operand = if operand.is_flattened() || operand.pieces.iter().any(reads_beyond) {
            self.seen(id, operand)
        } else {
            operand.clone()
        };
        let single = operand.pieces.len() == 1
            && operand.pieces[0].window.is_none_or(|w| w.extent.c == operand.shape.c);
        let (weight, groups) =
            if single { (weight, conv.groups) } else { (piece::ungrouped(&weight, conv.groups), 1) };
        let mut terms = Vec::new();
        let mut first = 0;
        for piece in &operand.pieces {
            if let Some(w) = piece.window {
                let weight =
                    if single { weight.clone() } else { piece::input_channels(&weight, first, piece) };
                let map = Conv {
                    weight,
                    stride: [0, 1].map(|a| conv.stride[a] * w.step[a + 1]),
                    dilation: [0, 1].map(|a| conv.dilation[a] * w.step[a + 1]),
                    offset: [0, 1].map(|a| w.start[a + 1] - (pads[a] * w.step[a + 1]) as i64),
                    groups,
                    input: w.extent,
                    output,
                };
                terms.push(self.conv_term(w.source, map));
            }
            first += piece.shape.c;
        }
        View::of(self.affine(terms, bias, output, id), output)
    }

    pub(super) fn linear(
        &mut self,
        id: NodeId,
        weight: TensorId,
        bias: Option<TensorId>,
        operand: &View,
    ) -> View {
        let weight = self.constant(weight);
        let bias = bias.map(|b| self.constant(b));
        let output = self.graph.shape(id);
        let mut terms = Vec::new();
        let mut first = 0;
        for piece in &operand.pieces {
            let n = piece.shape.len();
            if let Some(window) = piece.window {
                let conv = piece::dense(&piece::columns(&weight, first, n), piece);
                terms.push(self.conv_term(window.source, conv));
            }
            first += n;
        }
        View::of(self.affine(terms, bias, output, id), output)
    }

    /// A convolution of a value, or of what the value sums windows of.
    fn conv_term(&self, source: ValueId, conv: Conv) -> Term {
        let through = self.windows.get(&source).and_then(|w| Some((w.source, w.read_by(&conv)?)));
        let (source, conv) = through.unwrap_or((source, conv));
        Term { source, map: Map::Conv(conv) }
    }

    pub(super) fn pool(&mut self, id: NodeId, pool: &Pool, operand: &View) -> View {
        let output = self.graph.shape(id);
        let operand = match operand.whole_pieces() {
            Some(_) if !operand.is_flattened() => operand.clone(),
            _ => self.seen(id, operand),
        };
        let mut pieces = Vec::new();
        for piece in &operand.pieces {
            let source = piece.whole().expect("just made whole");
            let shape = Shape::new(piece.shape.c, output.h, output.w);
            let value = self.pool_value(id, pool, source, shape);
            pieces.push(View::of(value, shape).pieces[0]);
        }
        View { shape: output, pieces }
    }

    fn pool_value(&mut self, id: NodeId, pool: &Pool, source: ValueId, output: Shape) -> ValueId {
        let input = self.shape(source);
        let fits = (output.h - 1) * pool.stride[0] + pool.kernel[0] <= input.h
            && (output.w - 1) * pool.stride[1] + pool.kernel[1] <= input.w;
        let inside = pool.pads.is_none() && fits;
        let cells = (pool.kernel[0] * pool.kernel[1]) as f64;
        let divisor = match pool.divisor {
            Divisor::Constant(d) => d,
            Divisor::ExcludePad if inside => cells,
            Divisor::ExcludePad => 1.0,
        };
        let dims = vec![input.c, 1, pool.kernel[0], pool.kernel[1]];
        let values = vec![1.0 / divisor; dims.iter().product()];
        let conv = Conv {
            weight: Constant::new(vec![Tensor::from_f64(dims, values).expect("as many as the extents say")]),
            stride: pool.stride,
            dilation: [1, 1],
            offset: [-(pool.pads.top as i64), -(pool.pads.left as i64)],
            groups: input.c,
            input,
            output,
        };
        let excluded = pool.divisor == Divisor::ExcludePad && !inside;
        let counts = excluded.then(|| window_counts(&conv));
        let sum = self.affine(vec![Term { source, map: Map::Conv(conv) }], None, output, id);
        if inside && divisor == 1.0 {
            self.windows.insert(sum, Windows { source, input, kernel: pool.kernel, stride: pool.stride });
        }
        match counts {
            None => sum,
            Some(factor) => {
                self.affine(vec![Term { source: sum, map: Map::Diagonal(factor) }], None, output, id)
            }
        }
    }
}

/// One over the number of operand cells that each output of a sum of windows reads.
fn window_counts(conv: &Conv) -> Constant {
    let mut counts = vec![0.0; conv.output.len()];
    conv.apply(fhec_ir::MemberIdx::FIRST, &vec![1.0; conv.input.len()], &mut counts);
    let dims = conv.output.dims().to_vec();
    let factors: Vec<f64> = counts.into_iter().map(|n| 1.0 / n.max(1.0)).collect();
    Constant::new(vec![Tensor::from_f64(dims, factors).expect("one per output")])
}

//! Sums over windows without a factor: the layer behind them reads their operand directly, at no depth of its own.

use fhec_ir::{Shape, Tensor};

use super::circuit::ValueId;
use super::conv::Conv;

/// A value that sums windows of another one, all of them inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// What is summed.
    pub(super) source: ValueId,
    /// Its extent.
    pub(super) input: Shape,
    /// Rows, columns.
    pub(super) kernel: [usize; 2],
    /// Rows, columns.
    pub(super) stride: [usize; 2],
}

impl Windows {
    /// A convolution of the sums as a convolution of their operand, if padding means the same for both.
    pub(super) fn read_by(&self, conv: &Conv) -> Option<Conv> {
        let (sums, input) = (conv.input.dims(), self.input.dims());
        let outputs = conv.output.dims();
        let kernel = conv.kernel();
        for a in 0..2 {
            let last = ((outputs[a + 1] - 1) * conv.stride[a] + (kernel[a] - 1) * conv.dilation[a]) as i64;
            let reads_before = conv.offset[a] < 0;
            let reads_after = last + conv.offset[a] >= sums[a + 1] as i64;
            let zero_before = self.kernel[a] <= self.stride[a];
            let zero_after = sums[a + 1] * self.stride[a] >= input[a + 1];
            if (reads_before && !zero_before) || (reads_after && !zero_after) {
                return None;
            }
        }
        let wide = [0, 1].map(|a| (kernel[a] - 1) * conv.dilation[a] * self.stride[a] + self.kernel[a]);
        let dims = conv.weight.dims();
        let cells = kernel[0] * kernel[1];
        let weight = conv.weight.map(&[dims[0], dims[1], wide[0], wide[1]], |t: &Tensor| {
            let mut spread = vec![0.0; dims[0] * dims[1] * wide[0] * wide[1]];
            for flat in 0..t.len() {
                let (plane, y, x) = (flat / cells, flat % cells / kernel[1], flat % kernel[1]);
                for ky in 0..self.kernel[0] {
                    for kx in 0..self.kernel[1] {
                        let row = y * conv.dilation[0] * self.stride[0] + ky;
                        let column = x * conv.dilation[1] * self.stride[1] + kx;
                        spread[(plane * wide[0] + row) * wide[1] + column] += t.get(flat);
                    }
                }
            }
            spread
        });
        Some(Conv {
            weight,
            stride: [0, 1].map(|a| conv.stride[a] * self.stride[a]),
            dilation: [1, 1],
            offset: [0, 1].map(|a| conv.offset[a] * self.stride[a] as i64),
            input: self.input,
            ..conv.clone()
        })
    }
}

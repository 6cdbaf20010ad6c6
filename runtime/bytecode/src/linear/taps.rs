//! Operations resolved into taps: one weight that links an output channel to an input channel at an offset.

use super::{LinearError, LinearOp};
use crate::constants::{Constants, Values};
use crate::layout::Shape;
use std::ops::Range;

/// Largest stride, pad, dilation or window side.
const MAX_FIELD: u32 = 1 << 16;
/// Largest number of taps of a pooling.
const MAX_TAPS: u64 = 1 << 24;

/// One weight of a convolution-like operation:
/// `out[out_channel, y, x] += values[weight] · in[in_channel, y·stride + dy, x·stride + dx]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Output channel.
    pub out_channel: usize,
    /// Input channel.
    pub in_channel: usize,
    /// Row offset.
    pub dy: i64,
    /// Column offset.
    pub dx: i64,
    /// Position among one member's values.
    pub weight: usize,
}

/// An operation with its weights, checked against the shapes it links.
#[derive(Clone, Debug)]
pub struct ResolvedOp {
    /// The weights; a single factor where the operation has none.
    pub values: Values,
    /// Rows and columns between outputs.
    pub stride: [usize; 2],
    input: Shape,
    output: Shape,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Conv { pads: [i64; 2], dilation: [i64; 2], groups: usize },
    Dense,
    Pool { kernel: [usize; 2], pads: [i64; 2] },
    Pick { channel_offset: i64, pads: [i64; 2] },
}

impl ResolvedOp {
    /// Looks up the weights of `op` and checks that they link `input` to `output`.
    ///
    /// # Errors
    /// When a field is out of range or a shape does not fit.
    pub fn new(
        op: &LinearOp,
        input: Shape,
        output: Shape,
        constants: &Constants,
    ) -> Result<Self, LinearError> {
        let single = |factor: f64| Values { members: 1, shape: vec![1], data: vec![factor] };
        let shapes = |what, ok| if ok { Ok(()) } else { Err(LinearError::Shapes { what, input, output }) };
        let (values, stride, kind) = match op {
            LinearOp::Conv2d { weight, stride, pads, dilation, groups } => {
                let values = constants.values(*weight)?;
                in_range("stride", stride)?;
                in_range("dilation", dilation)?;
                let groups = *groups as usize;
                let (from, to) = (input.channels as usize, output.channels as usize);
                let fits = groups > 0
                    && from.is_multiple_of(groups)
                    && to.is_multiple_of(groups)
                    && values.shape.len() == 4
                    && values.shape[..2] == [to, from / groups];
                if !fits {
                    let found = values.shape;
                    return Err(LinearError::WeightShape { tensor: *weight, found, input, output });
                }
                in_range("kernel", &[values.shape[2] as u32, values.shape[3] as u32])?;
                let dilation = dilation.map(i64::from);
                (values, *stride, Kind::Conv { pads: checked_pads(pads)?, dilation, groups })
            }
            LinearOp::Dense { weight } => {
                let values = constants.values(*weight)?;
                if values.shape != [output.channels as usize, input.len()] {
                    let found = values.shape;
                    return Err(LinearError::WeightShape { tensor: *weight, found, input, output });
                }
                shapes("a dense layer", output.height == 1 && output.width == 1)?;
                (values, [1, 1], Kind::Dense)
            }
            LinearOp::SumPool { kernel, stride, pads, factor } => {
                in_range("stride", stride)?;
                in_range("kernel", kernel)?;
                let taps = kernel.iter().fold(u64::from(input.channels), |n, &k| n * u64::from(k));
                field("kernel", taps <= MAX_TAPS)?;
                field("factor", factor.is_finite())?;
                shapes("pooling", input.channels == output.channels)?;
                let kernel = kernel.map(|k| k as usize);
                (single(*factor), *stride, Kind::Pool { kernel, pads: checked_pads(pads)? })
            }
            LinearOp::Pick { factors, channel_offset, stride, pads } => {
                in_range("stride", stride)?;
                let values = factors.map_or(Ok(single(1.0)), |tensor| constants.values(tensor))?;
                if let Some(tensor) = *factors
                    && values.len() != 1
                    && values.len() != output.channels as usize
                {
                    let found = values.shape;
                    return Err(LinearError::WeightShape { tensor, found, input, output });
                }
                let channel_offset = i64::from(*channel_offset);
                (values, *stride, Kind::Pick { channel_offset, pads: checked_pads(pads)? })
            }
        };
        Ok(Self { values, stride: stride.map(|s| s as usize), input, output, kind })
    }

    /// Whether this is a matrix over the flattened input, which has no taps.
    pub fn is_dense(&self) -> bool {
        matches!(self.kind, Kind::Dense)
    }

    /// Shape of the input.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Shape of the output.
    pub fn output(&self) -> Shape {
        self.output
    }

    /// Visits every tap in weight order; a dense matrix has none.
    pub fn for_each_tap(&self, mut visit: impl FnMut(Tap)) {
        let (from, to) = (self.input.channels as usize, self.output.channels as usize);
        match &self.kind {
            Kind::Dense => {}
            Kind::Conv { pads, dilation, groups } => {
                let (rows, columns) = (self.values.shape[2], self.values.shape[3]);
                let (in_group, out_group) = (from / groups, to / groups);
                let mut weight = 0;
                for out_channel in 0..to {
                    let first = out_channel / out_group * in_group;
                    for in_channel in first..first + in_group {
                        for ky in 0..rows as i64 {
                            for kx in 0..columns as i64 {
                                let (dy, dx) = (ky * dilation[0] - pads[0], kx * dilation[1] - pads[1]);
                                visit(Tap { out_channel, in_channel, dy, dx, weight });
                                weight += 1;
                            }
                        }
                    }
                }
            }
            Kind::Pool { kernel, pads } => {
                for channel in 0..to {
                    for ky in 0..kernel[0] as i64 {
                        for kx in 0..kernel[1] as i64 {
                            let (dy, dx) = (ky - pads[0], kx - pads[1]);
                            visit(Tap { out_channel: channel, in_channel: channel, dy, dx, weight: 0 });
                        }
                    }
                }
            }
            Kind::Pick { channel_offset, pads } => {
                let shared = self.values.len() == 1;
                for out_channel in 0..to {
                    let source = out_channel as i64 - channel_offset;
                    if (0..from as i64).contains(&source) {
                        let weight = if shared { 0 } else { out_channel };
                        let (dy, dx) = (-pads[0], -pads[1]);
                        visit(Tap { out_channel, in_channel: source as usize, dy, dx, weight });
                    }
                }
            }
        }
    }
}

/// The outputs whose input `i·stride + offset` exists.
pub fn valid_range(n_out: usize, n_in: usize, stride: usize, offset: i64) -> Range<usize> {
    let stride = stride.max(1) as i64;
    let last = n_in as i64 - 1 - offset;
    let start = if offset < 0 { (-offset + stride - 1) / stride } else { 0 };
    let end = if last < 0 { 0 } else { (last / stride + 1).min(n_out as i64) };
    start as usize..end.max(start) as usize
}

fn field(field: &'static str, ok: bool) -> Result<(), LinearError> {
    if ok { Ok(()) } else { Err(LinearError::Field { field }) }
}

fn in_range(name: &'static str, values: &[u32; 2]) -> Result<(), LinearError> {
    field(name, values.iter().all(|v| (1..=MAX_FIELD).contains(v)))
}

fn checked_pads(pads: &[i32; 2]) -> Result<[i64; 2], LinearError> {
    field("pads", pads.iter().all(|pad| pad.unsigned_abs() <= MAX_FIELD))?;
    Ok(pads.map(i64::from))
}

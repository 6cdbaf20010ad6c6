//! Operations resolved into taps: one weight that links an output channel to an input channel at an offset.

use super::{LinearError, LinearOp};
use crate::constants::{Constants, Values};
use crate::ids::TensorId;
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

/// An operation checked against the shapes it links, its weights not looked at.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Rows and columns between outputs.
    pub stride: [usize; 2],
    input: Shape,
    output: Shape,
    kind: Kind,
    weights: Weights,
}

/// An operation with its weights.
#[derive(Clone, Debug)]
pub struct ResolvedOp {
    /// The weights; a single factor where the operation has none.
    pub values: Values,
    /// Rows and columns between outputs.
    pub stride: [usize; 2],
    geometry: Geometry,
}

#[derive(Clone, Debug)]
enum Kind {
    Conv { kernel: [u32; 2], pads: [i64; 2], dilation: [i64; 2], groups: usize },
    Dense,
    Pool { kernel: [u32; 2], pads: [i64; 2] },
    Pick { channel_offset: i64, pads: [i64; 2] },
}

/// Where the weights of an operation come from.
#[derive(Clone, Copy, Debug)]
enum Weights {
    Factor(f64),
    Tensor { id: TensorId, members: u32, len: usize },
}

impl Geometry {
    /// Checks that `op` links `input` to `output`; constants are well formed already.
    ///
    /// # Errors
    /// When a field is out of range or a shape does not fit.
    pub fn new(
        op: &LinearOp,
        input: Shape,
        output: Shape,
        constants: &Constants,
    ) -> Result<Self, LinearError> {
        let shapes = |what, ok| if ok { Ok(()) } else { Err(LinearError::Shapes { what, input, output }) };
        let fits = |id: TensorId, fits: &dyn Fn(&[u32]) -> bool| {
            let tensor = constants.tensor(id)?;
            if fits(&tensor.shape) {
                return Ok((Weights::Tensor { id, members: tensor.members, len: tensor.len() }, tensor));
            }
            let found = tensor.shape.iter().map(|&axis| axis as usize).collect();
            Err(LinearError::WeightShape { tensor: id, found, input, output })
        };
        let (weights, stride, kind) = match op {
            LinearOp::Conv2d { weight, stride, pads, dilation, groups } => {
                in_range("stride", stride)?;
                in_range("dilation", dilation)?;
                let (from, to, groups) = (input.channels, output.channels, *groups);
                let is_grouped = groups > 0 && from.is_multiple_of(groups) && to.is_multiple_of(groups);
                let (weights, tensor) = fits(*weight, &|shape| {
                    is_grouped && shape.len() == 4 && shape[..2] == [to, from / groups]
                })?;
                let kernel = [tensor.shape[2], tensor.shape[3]];
                in_range("kernel", &kernel)?;
                let (dilation, groups) = (dilation.map(i64::from), groups as usize);
                (weights, *stride, Kind::Conv { kernel, pads: checked_pads(pads)?, dilation, groups })
            }
            LinearOp::Dense { weight } => {
                let (weights, _) = fits(*weight, &|shape| {
                    shape.len() == 2 && shape[0] == output.channels && shape[1] as usize == input.len()
                })?;
                shapes("a dense layer", output.height == 1 && output.width == 1)?;
                (weights, [1, 1], Kind::Dense)
            }
            LinearOp::SumPool { kernel, stride, pads, factor } => {
                in_range("stride", stride)?;
                in_range("kernel", kernel)?;
                let taps = kernel.iter().fold(u64::from(input.channels), |n, &k| n * u64::from(k));
                field("kernel", taps <= MAX_TAPS)?;
                field("factor", factor.is_finite())?;
                shapes("pooling", input.channels == output.channels)?;
                (Weights::Factor(*factor), *stride, Kind::Pool { kernel: *kernel, pads: checked_pads(pads)? })
            }
            LinearOp::Pick { factors, channel_offset, stride, pads } => {
                in_range("stride", stride)?;
                let counts = |shape: &[u32]| {
                    let len = shape.iter().fold(1u64, |n, &axis| n.saturating_mul(u64::from(axis)));
                    len == 1 || len == u64::from(output.channels)
                };
                let weights = match factors {
                    Some(tensor) => fits(*tensor, &counts)?.0,
                    None => Weights::Factor(1.0),
                };
                let channel_offset = i64::from(*channel_offset);
                (weights, *stride, Kind::Pick { channel_offset, pads: checked_pads(pads)? })
            }
        };
        Ok(Self { stride: stride.map(|s| s as usize), input, output, kind, weights })
    }

    /// Whether this is a matrix over the flattened input, which has no taps.
    pub fn is_dense(&self) -> bool {
        matches!(self.kind, Kind::Dense)
    }

    /// Members that the weights tell apart.
    pub fn weight_members(&self) -> usize {
        match self.weights {
            Weights::Factor(_) => 1,
            Weights::Tensor { members, .. } => members as usize,
        }
    }

    /// Weights of one member.
    pub fn n_weights(&self) -> usize {
        match self.weights {
            Weights::Factor(_) => 1,
            Weights::Tensor { len, .. } => len,
        }
    }

    /// Distance from a weight of one member to the next member's; zero if all share them.
    pub fn member_step(&self) -> usize {
        if self.weight_members() > 1 { self.n_weights() } else { 0 }
    }

    /// Number of taps; a dense matrix has none.
    pub fn n_taps(&self) -> u64 {
        match &self.kind {
            Kind::Dense => 0,
            Kind::Conv { .. } => self.n_weights() as u64,
            Kind::Pool { .. } => u64::from(self.input.channels).saturating_mul(self.n_offsets()),
            Kind::Pick { .. } => u64::from(self.output.channels),
        }
    }

    /// Number of offsets that taps may have.
    pub fn n_offsets(&self) -> u64 {
        match &self.kind {
            Kind::Dense | Kind::Pick { .. } => 1,
            Kind::Conv { kernel, .. } | Kind::Pool { kernel, .. } => {
                kernel.iter().map(|&k| u64::from(k)).product()
            }
        }
    }

    /// Smallest and largest offset of the taps by rows (axis 0) or columns (axis 1).
    pub fn offsets(&self, axis: usize) -> [i64; 2] {
        let (first, last) = match &self.kind {
            Kind::Dense => (0, 0),
            Kind::Conv { kernel, pads, dilation, .. } => {
                (-pads[axis], (i64::from(kernel[axis]) - 1) * dilation[axis] - pads[axis])
            }
            Kind::Pool { kernel, pads } => (-pads[axis], i64::from(kernel[axis]) - 1 - pads[axis]),
            Kind::Pick { pads, .. } => (-pads[axis], -pads[axis]),
        };
        [first, last]
    }

    /// For every weight of every member whether it is not zero.
    ///
    /// # Errors
    /// When the tensor is malformed.
    pub fn used(&self, constants: &Constants) -> Result<Vec<bool>, LinearError> {
        match self.weights {
            Weights::Factor(factor) => Ok(vec![factor != 0.0]),
            Weights::Tensor { id, .. } => Ok(constants.mapped(id, |v| v != 0.0)?),
        }
    }

    /// Visits every tap in weight order; a dense matrix has none.
    pub fn for_each_tap(&self, mut visit: impl FnMut(Tap)) {
        let (from, to) = (self.input.channels as usize, self.output.channels as usize);
        match &self.kind {
            Kind::Dense => {}
            Kind::Conv { kernel, pads, dilation, groups } => {
                let (rows, columns) = (i64::from(kernel[0]), i64::from(kernel[1]));
                let (in_group, out_group) = (from / groups, to / groups);
                let mut weight = 0;
                for out_channel in 0..to {
                    let first = out_channel / out_group * in_group;
                    for in_channel in first..first + in_group {
                        for ky in 0..rows {
                            for kx in 0..columns {
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
                    for ky in 0..i64::from(kernel[0]) {
                        for kx in 0..i64::from(kernel[1]) {
                            let (dy, dx) = (ky - pads[0], kx - pads[1]);
                            visit(Tap { out_channel: channel, in_channel: channel, dy, dx, weight: 0 });
                        }
                    }
                }
            }
            Kind::Pick { channel_offset, pads } => {
                let shared = self.n_weights() == 1;
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

impl ResolvedOp {
    /// Looks up the weights of `op` and checks that they link `input` to `output`.
    ///
    /// # Errors
    /// When a field is out of range, a shape does not fit, or the weights are malformed.
    pub fn new(
        op: &LinearOp,
        input: Shape,
        output: Shape,
        constants: &Constants,
    ) -> Result<Self, LinearError> {
        let geometry = Geometry::new(op, input, output, constants)?;
        let values = match geometry.weights {
            Weights::Factor(factor) => Values { members: 1, shape: vec![1], data: vec![factor] },
            Weights::Tensor { id, .. } => constants.values(id)?,
        };
        Ok(Self { values, stride: geometry.stride, geometry })
    }

    /// The operation without its weights.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether this is a matrix over the flattened input, which has no taps.
    pub fn is_dense(&self) -> bool {
        self.geometry.is_dense()
    }

    /// Shape of the input.
    pub fn input(&self) -> Shape {
        self.geometry.input
    }

    /// Shape of the output.
    pub fn output(&self) -> Shape {
        self.geometry.output
    }

    /// Visits every tap in weight order; a dense matrix has none.
    pub fn for_each_tap(&self, visit: impl FnMut(Tap)) {
        self.geometry.for_each_tap(visit);
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

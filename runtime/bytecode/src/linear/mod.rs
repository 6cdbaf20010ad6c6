//! Linear maps: every linear layer between two layouts as a set of diagonals.
//!
//! A map sends input tensors to one output tensor, y = Σ over terms op(x_term). Between two layouts it is a
//! sparse matrix, and so a set of diagonals: for each (output ciphertext, input ciphertext, rotation r) one
//! vector d with `y[s] += d[s]·x[s + r]`. Zeros in it are the padding masks, strides and gaps. One level.
//!
//! Replicas make rotations wrap and fold. Let p_in and p_out be the periods of the layouts and p their
//! maximum. Because x has period p_in, rotations count modulo p_in. Where p_out < p_in the output has spare
//! copies: each product is computed in exactly one copy, the one that brings the rotation into a window of
//! p_out, and afterwards the *folds* y ← y + rot(y, f), f = p_out, 2·p_out, … p/2 sum the copies. So a map
//! never has more than min(p_in, p_out) diagonals per pair of ciphertexts, and all of them have period p.
//! Complex diagonals halve that number again, see [`Pairing`].

mod budget;
mod dense;
mod diagonals;
mod free_rows;
mod pairing;
mod rotations;
mod shares;
mod sparse;
mod taps;
mod walk;

use crate::constants::ConstantError;
use crate::ids::{LayoutId, TensorId};
use crate::layout::{Layout, Shape};
use serde::{Deserialize, Serialize};

pub(crate) use budget::steps_of;
pub(crate) use diagonals::Frame;
pub use diagonals::{Diagonal, DiagonalId, Diagonals, PlaintextKey};
pub use pairing::Pairing;
pub(crate) use rotations::distinct_rotations;
pub use shares::Share;
pub use sparse::Mask;
pub use taps::{Geometry, ResolvedOp, Tap, valid_range};

/// A linear operation from one tensor to another. The output's size comes from its layout; coordinates
/// outside the input count as zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LinearOp {
    /// Convolution with weights `[out, in/groups, kernel rows, kernel columns]`.
    Conv2d {
        /// The weights.
        weight: TensorId,
        /// Rows and columns between outputs.
        stride: [u32; 2],
        /// Rows above and columns left of the input; negative ones crop.
        pads: [i32; 2],
        /// Rows and columns between kernel positions.
        dilation: [u32; 2],
        /// Independent groups of channels.
        groups: u32,
    },
    /// Matrix `[out, channels·height·width]` on the flattened input; the output has one row and column.
    Dense {
        /// The matrix.
        weight: TensorId,
    },
    /// Sum over windows, channel by channel, times one factor.
    SumPool {
        /// Rows and columns of a window.
        kernel: [u32; 2],
        /// Rows and columns between outputs.
        stride: [u32; 2],
        /// Rows above and columns left of the input; negative ones crop.
        pads: [i32; 2],
        /// Factor of the sum.
        factor: f64,
    },
    /// `out[c, y, x] = factor[c] · in[c - channel_offset, y·stride - pads.0, x·stride - pads.1]`: identity,
    /// subsampling, channel padding, slices and parts of a concatenation, and changes of layout.
    Pick {
        /// Factors by output channel, or a single one, or none for one.
        factors: Option<TensorId>,
        /// Output channel of the first input channel.
        channel_offset: i32,
        /// Rows and columns between outputs.
        stride: [u32; 2],
        /// Rows above and columns left of the input; negative ones crop.
        pads: [i32; 2],
    },
}

impl LinearOp {
    /// The identity, for a change of layout.
    pub fn identity() -> Self {
        Self::Pick { factors: None, channel_offset: 0, stride: [1, 1], pads: [0, 0] }
    }
}

/// One summand of a linear map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearTerm {
    /// The operation.
    pub op: LinearOp,
    /// Layout of the tensor it reads.
    pub input: LayoutId,
}

/// A summand with its layout at hand.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The operation.
    pub op: &'a LinearOp,
    /// Layout of the tensor it reads.
    pub input: &'a Layout,
}

/// Why an operation does not fit its layouts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinearError {
    /// A constant is missing or malformed.
    #[error(transparent)]
    Constant(#[from] ConstantError),
    /// The weights do not fit the tensors.
    #[error("weights {tensor} of shape {found:?} do not fit {input} to {output}")]
    WeightShape {
        /// The weights.
        tensor: TensorId,
        /// Their shape.
        found: Vec<usize>,
        /// Input of the operation.
        input: Shape,
        /// Output of the operation.
        output: Shape,
    },
    /// Input and output tensors do not fit each other.
    #[error("{what} cannot map {input} to {output}")]
    Shapes {
        /// The operation.
        what: &'static str,
        /// Input of the operation.
        input: Shape,
        /// Output of the operation.
        output: Shape,
    },
    /// A stride, kernel, dilation, pad or group count out of range.
    #[error("{field} out of range")]
    Field {
        /// Name of the field.
        field: &'static str,
    },
    /// Members of input, output and weights disagree.
    #[error("members disagree: input {input}, output {output}, weights {weights}")]
    Members {
        /// Members of the input layout.
        input: usize,
        /// Members of the output layout.
        output: usize,
        /// Members of the weights.
        weights: usize,
    },
    /// The layouts are for ciphertexts of different size.
    #[error("layouts of {input} and {output} slots in one map")]
    Slots {
        /// Slots of the input layout.
        input: usize,
        /// Slots of the output layout.
        output: usize,
    },
    /// Nothing to pair: a single rotation, or a single output.
    #[error("pairing {0:?} has nothing to pair")]
    Pairing(Pairing),
    /// More than 2^32 pieces.
    #[error("a linear map with more than 2^32 pieces")]
    TooManyPieces,
    /// A map without summands.
    #[error("a linear map needs at least one term")]
    NoTerms,
}

/// Which members meet: one step of the sum over members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPair {
    /// First member of the output.
    pub output: usize,
    /// First member of the input.
    pub input: usize,
    /// First member of the weights.
    pub weight: usize,
    /// Members treated alike from there on.
    pub count: usize,
}

/// The member pairs of a map: member by member when both sides have as many, the sum over members when only the input has
/// them, a broadcast of each member to r neighbouring ones when the output has r times as many. Pairs with one
/// rotation are kept together.
///
/// # Errors
/// When the numbers of members do not go together.
pub fn member_pairs(input: &Layout, output: &Layout, weights: usize) -> Result<Vec<MemberPair>, LinearError> {
    let (from, to) = (input.members(), output.members());
    let most = from.max(to);
    if !(to.is_multiple_of(from) || to == 1) || !(weights == 1 || weights == most) {
        return Err(LinearError::Members { input: from, output: to, weights });
    }
    if from == to && (from == 1 || input.member_step() == output.member_step()) {
        return Ok(vec![MemberPair { output: 0, input: 0, weight: 0, count: from }]);
    }
    Ok((0..most)
        .map(|m| MemberPair { output: m.min(to - 1), input: source_member(from, to, m), weight: m, count: 1 })
        .collect())
}

/// The input member that weights of member `m` of the larger side apply to.
pub(crate) fn source_member(from: usize, to: usize, m: usize) -> usize {
    if to > from { m / (to / from) } else { m.min(from - 1) }
}

#[cfg(test)]
mod tests;

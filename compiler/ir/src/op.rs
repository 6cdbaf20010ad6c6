//! The operations of a tensor graph.

use serde::{Deserialize, Serialize};

use crate::{Shape, TensorId};

/// What a node computes from its operands. Constants are ids into the weight table of the graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A value the client encrypts.
    Input {
        /// Its extent.
        shape: Shape,
    },
    /// Two-dimensional convolution.
    Conv2d(Conv2d),
    /// Dense layer over all numbers of its operand, in channel, row, column order; the result is a vector.
    Linear(Linear),
    /// Batch normalization as b1·x + b0 per channel.
    BatchNorm {
        /// b1, `[C]` or `[1]`.
        scale: TensorId,
        /// b0, `[C]` or `[1]`.
        shift: TensorId,
    },
    /// Sum over a window, divided by the divisor.
    Pool(Pool),
    /// Polynomial of one operand; `coeffs` is `[d+1, C]` or `[d+1, 1]`, lowest degree first.
    Poly {
        /// Coefficient table.
        coeffs: TensorId,
    },
    /// Polynomial of two operands; `coeffs` is `[n_monomials(d), C]` or `[n_monomials(d), 1]` in the order of [`monomials`].
    Bivar {
        /// Coefficient table.
        coeffs: TensorId,
    },
    /// Multiplication by a constant per channel.
    Scale {
        /// The factors, `[C]` or `[1]`.
        factor: TensorId,
    },
    /// Addition of a constant: `[1]`, `[C]` or `[C,H,W]`.
    AddConst {
        /// The summands.
        value: TensorId,
    },
    /// Sum of two values of one shape.
    Add,
    /// Product of two values of one shape, number by number.
    Mul,
    /// Concatenation of one or more values along the channels.
    Concat,
    /// Every `step`-th index from `start` (inclusive) to `end` (exclusive), for channels, rows, columns.
    Slice(Slice),
    /// Zeros around the value, for channels, rows, columns.
    Pad(Pad),
    /// The value as a vector, in channel, row, column order.
    Flatten,
    /// A value the client decrypts.
    Output,
}

/// Attributes of [`Op::Conv2d`].
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    /// `[out, in/groups, kh, kw]`.
    pub weight: TensorId,
    /// `[out]`, or `[out,h,w]` where the bias depends on the position.
    pub bias: Option<TensorId>,
    /// Rows, columns.
    pub stride: [usize; 2],
    /// Zeros around the operand.
    pub pads: Pads,
    /// Rows, columns.
    pub dilation: [usize; 2],
    /// Channel groups that do not see each other.
    pub groups: usize,
}

/// Attributes of [`Op::Linear`].
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: TensorId,
    /// `[out]`.
    pub bias: Option<TensorId>,
}

/// Attributes of [`Op::Pool`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// Rows, columns.
    pub kernel: [usize; 2],
    /// Rows, columns.
    pub stride: [usize; 2],
    /// Zeros around the operand.
    pub pads: Pads,
    /// What the sum is divided by.
    pub divisor: Divisor,
}

/// The divisor of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divisor {
    /// The same number everywhere; 1 is sum pooling.
    Constant(f64),
    /// At each position the number of window cells inside the operand.
    ExcludePad,
}

/// Zeros on the four sides of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pads {
    /// Rows above.
    pub top: usize,
    /// Columns to the left.
    pub left: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the right.
    pub right: usize,
}

/// Attributes of [`Op::Slice`]; each array is channels, rows, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slice {
    /// First index.
    pub start: [usize; 3],
    /// One past the last index.
    pub end: [usize; 3],
    /// Distance between indices, at least 1.
    pub step: [usize; 3],
}

/// Attributes of [`Op::Pad`]; each array is channels, rows, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pad {
    /// Zeros before the value.
    pub before: [usize; 3],
    /// Zeros after the value.
    pub after: [usize; 3],
}

impl Op {
    /// Name in printed graphs and messages.
    #[must_use]
    pub fn mnemonic(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Conv2d(_) => "conv2d",
            Self::Linear(_) => "linear",
            Self::BatchNorm { .. } => "batch_norm",
            Self::Pool(_) => "pool",
            Self::Poly { .. } => "poly",
            Self::Bivar { .. } => "bivar",
            Self::Scale { .. } => "scale",
            Self::AddConst { .. } => "add_const",
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Concat => "concat",
            Self::Slice(_) => "slice",
            Self::Pad(_) => "pad",
            Self::Flatten => "flatten",
            Self::Output => "output",
        }
    }

    /// The constants the operation reads, in a fixed order.
    #[must_use]
    pub fn tensors(&self) -> Vec<TensorId> {
        let mut found = Vec::new();
        self.clone().visit_tensors(|id| found.push(*id));
        found
    }

    /// The same operation with every constant renamed by `rename`.
    #[must_use]
    pub fn map_tensors(&self, mut rename: impl FnMut(TensorId) -> TensorId) -> Self {
        let mut op = self.clone();
        op.visit_tensors(|id| *id = rename(*id));
        op
    }

    /// Goes through the constants in a fixed order.
    fn visit_tensors(&mut self, mut visit: impl FnMut(&mut TensorId)) {
        match self {
            Self::Conv2d(Conv2d { weight, bias, .. }) | Self::Linear(Linear { weight, bias }) => {
                visit(weight);
                bias.iter_mut().for_each(visit);
            }
            Self::BatchNorm { scale, shift } => {
                visit(scale);
                visit(shift);
            }
            Self::Poly { coeffs: id }
            | Self::Bivar { coeffs: id }
            | Self::Scale { factor: id }
            | Self::AddConst { value: id } => visit(id),
            Self::Input { .. }
            | Self::Pool(_)
            | Self::Add
            | Self::Mul
            | Self::Concat
            | Self::Slice(_)
            | Self::Pad(_)
            | Self::Flatten
            | Self::Output => {}
        }
    }
}

impl Pads {
    /// No padding.
    pub const NONE: Self = Self { top: 0, left: 0, bottom: 0, right: 0 };

    /// The same number of zeros on every side.
    #[must_use]
    pub const fn same(n: usize) -> Self {
        Self { top: n, left: n, bottom: n, right: n }
    }

    /// Whether nothing is padded.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// The monomials x^i·y^j of a bivariate polynomial of degree d as (i, j): by total degree, then by falling i.
/// For d = 2: 1, x, y, x², xy, y².
pub fn monomials(degree: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..=degree).flat_map(|total| (0..=total).map(move |j| (total - j, j)))
}

/// How many monomials a bivariate polynomial of degree d has.
#[must_use]
pub const fn n_monomials(degree: usize) -> usize {
    (degree + 1) * (degree + 2) / 2
}

/// The degree of a bivariate polynomial with `n` monomials, if there is one.
#[must_use]
pub fn bivar_degree(n: usize) -> Option<usize> {
    (0..n).find(|&d| n_monomials(d) == n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadratic_monomials_come_in_the_documented_order() {
        let order: Vec<_> = monomials(2).collect();
        assert_eq!(order, [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]);
        assert_eq!(order.len(), n_monomials(2));
    }

    #[test]
    fn degree_is_found_from_the_number_of_monomials() {
        assert_eq!(bivar_degree(6), Some(2));
        assert_eq!(bivar_degree(15), Some(4));
        assert_eq!(bivar_degree(7), None);
    }
}

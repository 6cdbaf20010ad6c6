//! The tensors of the model behind one encrypted input or output, and what a client still computes from the scores.
//!
//! A program reads one tensor and computes one. Where the model has several inputs or outputs, or sees them in another
//! shape, ports say which numbers are which. Programs without ports have one of `[channels, height, width]`.

use serde::{Deserialize, Serialize};

/// Most ports of an end, steps of a tail and dimensions of a port.
pub const MAX_PORTS: usize = 256;
const MAX_STEPS: usize = 8;
const MAX_DIMS: usize = 8;

/// A tensor of the model: a range of the numbers that are encrypted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name in the model.
    pub name: String,
    /// Extents in the model, the batch of one included.
    pub dims: Vec<u32>,
    /// Whether the model has channels last; they are encrypted channels first.
    #[serde(default)]
    pub channels_last: bool,
    /// Position of its first number in the tensor of the program.
    #[serde(default)]
    pub offset: u32,
}

impl Port {
    /// Numbers of the tensor; `None` if its extents are none.
    pub fn n_numbers(&self) -> Option<usize> {
        if self.dims.is_empty() || self.dims.len() > MAX_DIMS {
            return None;
        }
        let product = self.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d as usize));
        product.filter(|&n| n > 0)
    }

    /// The positions that the tensor takes, if it lies within `len` numbers.
    pub fn range(&self, len: usize) -> Option<std::ops::Range<usize>> {
        let end = (self.offset as usize).checked_add(self.n_numbers()?)?;
        (end <= len).then_some(self.offset as usize..end)
    }

    /// For a number in the model's order, its position in the program's tensor after `offset`.
    pub fn position(&self, index: usize) -> usize {
        let [.., channels] = self.dims[..] else { return index };
        if !self.channels_last {
            return index;
        }
        let channels = channels as usize;
        let area: usize = self.dims[..self.dims.len() - 1].iter().map(|&d| d as usize).product();
        (index % channels) * area + index / channels
    }
}

/// Inputs or results that ports tell: as many tensors of `len` numbers as they reach into, where every one of them has a port.
pub(crate) fn batch(ports: &[Port], len: usize) -> usize {
    let end = |port: &Port| (port.offset as usize).saturating_add(port.n_numbers().unwrap_or(0));
    let reached = ports.iter().map(end).max().unwrap_or(0).div_ceil(len.max(1)).max(1);
    if reached > ports.len() { 1 } else { reached }
}

/// The ports of a batch: those of one tensor of `len` numbers, once for each.
pub fn batch_ports(one: &[Port], len: usize, batch: usize) -> Vec<Port> {
    let of = |i: usize| {
        let first = u32::try_from(i.saturating_mul(len)).unwrap_or(u32::MAX);
        one.iter().map(move |port| Port { offset: port.offset.saturating_add(first), ..port.clone() })
    };
    (0..batch).flat_map(of).collect()
}

/// An output of the model that a client computes from the scores of a port, one step after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Name in the model.
    pub name: String,
    /// The port of the output whose scores it starts from.
    #[serde(default)]
    pub port: u32,
    /// What is computed.
    pub steps: Vec<TailStep>,
    /// What the result's indices, or positions, are called; empty: as they are.
    #[serde(default)]
    pub classes: Vec<String>,
}

/// A step of a tail. Steps along a dimension work on `length` numbers that are `inner` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TailStep {
    /// Parts of one by exponentials.
    Softmax {
        /// Numbers that share a sum.
        length: u32,
        /// Distance between them.
        inner: u32,
    },
    /// The logarithm of the same.
    LogSoftmax {
        /// Numbers that share a sum.
        length: u32,
        /// Distance between them.
        inner: u32,
    },
    /// Each number between zero and one.
    Sigmoid {},
    /// The index of the largest, the first of equal ones.
    ArgMax {
        /// Numbers that are compared.
        length: u32,
        /// Distance between them.
        inner: u32,
    },
    /// Each number divided by the sum of their magnitudes.
    Normalize {
        /// Numbers that share a sum.
        length: u32,
        /// Distance between them.
        inner: u32,
    },
    /// Decisions between every two of so many classes as votes for each.
    Votes {
        /// Number of classes.
        classes: u32,
    },
}

impl TailStep {
    /// How many numbers a step makes of `n`; `None` if it cannot take so many.
    fn len_after(self, n: usize) -> Option<usize> {
        let whole = |length: u32, inner: u32| {
            let group = (length as usize).checked_mul(inner as usize).filter(|&g| g > 0)?;
            n.is_multiple_of(group).then_some(n)
        };
        match self {
            Self::Softmax { length, inner }
            | Self::LogSoftmax { length, inner }
            | Self::Normalize { length, inner } => whole(length, inner),
            Self::ArgMax { length, inner } => whole(length, inner).map(|n| n / length as usize),
            Self::Sigmoid {} => Some(n),
            Self::Votes { classes } => {
                let classes = classes as usize;
                let pairs = classes.checked_mul(classes.checked_sub(1)?)? / 2;
                (n == pairs && classes > 1).then_some(classes)
            }
        }
    }
}

impl Tail {
    /// How many numbers the tail makes of `n` scores; `None` if it does not fit them.
    pub fn len_after(&self, n: usize) -> Option<usize> {
        if self.steps.len() > MAX_STEPS {
            return None;
        }
        self.steps.iter().try_fold(n, |n, step| step.len_after(n))
    }

    /// Whether the tail can start from `n` scores and has a name for every class, or none.
    pub fn fits(&self, n: usize) -> bool {
        let Some(after) = self.len_after(n) else { return false };
        let n_classes = match self.steps.last() {
            Some(TailStep::ArgMax { length, .. }) => *length as usize,
            _ => after,
        };
        self.classes.is_empty() || self.classes.len() == n_classes
    }

    /// Whether the result are indices of classes.
    pub fn gives_classes(&self) -> bool {
        matches!(self.steps.last(), Some(TailStep::ArgMax { .. }))
    }
}

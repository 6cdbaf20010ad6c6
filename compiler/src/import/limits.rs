//! Limits that keep a hostile file from exhausting time or memory. Real networks stay far below them.

use super::error::Malformed;
use super::node::Node;

/// Largest file: what a protobuf may hold. Data beside the model may hold as much again.
pub(super) const MAX_FILE_LEN: u64 = 1 << 31;
/// Most nested messages in a file.
pub(super) const MAX_NESTING: usize = 32;
/// Most nodes of the graph that is made of a model: passes compare ways to write the whole graph for every node of it.
pub(super) const MAX_NODES: usize = 2048;
/// Highest rank of a tensor.
pub(super) const MAX_RANK: usize = 8;
/// Most numbers in one encrypted value.
pub(super) const MAX_VALUE_LEN: usize = 1 << 23;
/// Largest extent beside a zero in a tensor that has no elements.
pub(super) const MAX_EMPTY_VOLUME: usize = 1 << 16;
/// Largest exponent of `Pow`.
pub(super) const MAX_EXPONENT: u32 = 32;
/// Highest degree of a polynomial of one source before its parts become nodes of their own.
pub(super) const MAX_DEGREE: u32 = 32;
/// The same for two sources.
pub(super) const MAX_BIVARIATE_DEGREE: u32 = 8;

/// Numbers that any model may ask for, however small its file,
const FREE_NUMBERS: usize = 1 << 24;
/// and for every byte of its file and of the data beside it.
const NUMBERS_PER_BYTE: usize = 16;

/// The product of extents, if it is at most `limit`.
pub(super) fn product(dims: &[usize], limit: usize) -> Option<usize> {
    dims.iter().try_fold(1_usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= limit)
}

/// The product of extents with zeros counted as ones, if it is at most `limit`: what a loop over some of the extents may cost.
pub(super) fn volume(dims: &[usize], limit: usize) -> Option<usize> {
    dims.iter().try_fold(1_usize, |n, &d| n.checked_mul(d.max(1))).filter(|&n| n <= limit)
}

/// Numbers that the import may still write or read again, beyond reading the file once.
///
/// Everything that costs more than the file says in its own bytes is charged here before it is done, so that the import's
/// time and memory are in proportion to the file.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// The budget of a file of that many bytes.
    pub(super) fn of_file(bytes: usize) -> Self {
        let mut budget = Budget(FREE_NUMBERS);
        budget.grow(bytes);
        budget
    }

    /// More bytes of the model were read.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes.saturating_mul(NUMBERS_PER_BYTE));
    }

    /// Takes room for a tensor of the given extents that `node` makes or walks through, and returns its size.
    pub(super) fn take(&mut self, node: &Node, dims: &[usize]) -> Result<usize, Malformed> {
        let left = self.0;
        let paid = volume(dims, left).filter(|_| dims.len() <= MAX_RANK).and_then(|cost| self.spend(cost));
        paid.ok_or_else(|| {
            node.malformed(format!(
                "needs constants of {dims:?}, but a model of this size may compute with {left} numbers more"
            ))
        })?;
        Ok(dims.iter().product())
    }

    /// Takes room for so many numbers, if there is as much.
    pub(super) fn spend(&mut self, numbers: usize) -> Option<()> {
        self.0 = self.0.checked_sub(numbers)?;
        Some(())
    }
}

/// An extent as programs write it. One that is too large for that stays too large for every value, and is refused there.
pub(super) fn written(extent: usize) -> u32 {
    u32::try_from(extent).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_hides_no_large_extent() {
        assert_eq!(volume(&[0, 1 << 50], 1 << 20), None);
        assert_eq!(volume(&[0, 3], 1 << 20), Some(3));
        assert_eq!(product(&[0, 1 << 50], 1 << 20), Some(0));
    }
}

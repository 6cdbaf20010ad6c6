//! Limits that keep a hostile file from exhausting time or memory. Real networks stay far below them.

use super::error::Malformed;

/// Largest file: what a protobuf may hold.
pub(super) const MAX_FILE_LEN: u64 = 1 << 31;
/// Most records (messages and strings) in a file; one takes up to a few hundred bytes when decoded.
pub(super) const MAX_RECORDS: usize = 1_000_000;
/// Most nested messages in a file.
pub(super) const MAX_NESTING: usize = 32;
/// Highest rank of a tensor.
pub(super) const MAX_RANK: usize = 8;
/// Most numbers in one encrypted value.
pub(super) const MAX_VALUE_LEN: usize = 1 << 23;
/// Most numbers that folding constants may create in all.
pub(super) const MAX_FOLDED: usize = 1 << 26;
/// Largest exponent of `Pow`.
pub(super) const MAX_EXPONENT: u32 = 32;
/// Highest degree of a polynomial of one source before its parts become nodes of their own.
pub(super) const MAX_DEGREE: u32 = 32;
/// The same for two sources.
pub(super) const MAX_BIVARIATE_DEGREE: u32 = 8;

/// The product of extents, if it is at most `limit`.
pub(super) fn product(dims: &[usize], limit: usize) -> Option<usize> {
    dims.iter().try_fold(1_usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= limit)
}

/// Numbers that constant folding may still create.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget(MAX_FOLDED)
    }
}

impl Budget {
    /// Takes room for a tensor of the given extents and returns its size.
    pub(super) fn take(&mut self, dims: &[usize]) -> Result<usize, Malformed> {
        let problem = || Malformed::Tensor {
            tensor: format!("{dims:?}"),
            problem: format!(
                "is one constant too many: folded constants may hold {MAX_FOLDED} numbers in all"
            ),
        };
        let n = product(dims, self.0).filter(|_| dims.len() <= MAX_RANK).ok_or_else(problem)?;
        self.0 -= n;
        Ok(n)
    }
}

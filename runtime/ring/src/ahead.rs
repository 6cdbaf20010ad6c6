//! Memory that will be read soon.

use std::marker::PhantomData;
use std::ops::Range;

/// Memory to ask for while a transform computes, which leaves it idle. Only addresses: nothing is read through them.
#[derive(Clone, Debug, Default)]
pub struct Ahead<'a> {
    ranges: Vec<Range<usize>>,
    /// The range to go on with.
    at: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> Ahead<'a> {
    /// What will be read, in this order.
    pub fn new<T: 'a>(slices: impl IntoIterator<Item = &'a [T]>) -> Self {
        let addresses = |slice: &[T]| {
            let Range { start, end } = slice.as_ptr_range();
            start.addr()..end.addr()
        };
        Self { ranges: slices.into_iter().map(addresses).collect(), at: 0, of: PhantomData }
    }

    /// Nothing to ask for.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The address of the next bytes, at most `len`; none when all were taken.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn take(&mut self, len: usize) -> Option<usize> {
        let range = self.ranges.get_mut(self.at)?;
        let next = range.start;
        range.start = range.end.min(next + len);
        if range.start == range.end {
            self.at += 1;
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_taken_once_and_in_order() {
        let bytes = [0u8; 100];
        let start = bytes.as_ptr().addr();
        let mut ahead = Ahead::new([&bytes[..32], &bytes[32..33], &bytes[33..]]);
        let taken: Vec<usize> = std::iter::from_fn(|| ahead.take(20)).map(|at| at - start).collect();
        assert_eq!(taken, [0, 20, 32, 33, 53, 73, 93]);
    }
}

//! Work on many towers at once: threads where the feature `rayon` is on, one after the other where it is off.
//!
//! Without threads the same calls run in order, so code that uses this module is written once and gives the same bits.

#[cfg(feature = "rayon")]
pub use rayon::prelude::*;

#[cfg(not(feature = "rayon"))]
pub use sequential::*;

#[cfg(not(feature = "rayon"))]
mod sequential {
    use std::slice::{ChunksExactMut, Iter, IterMut};

    /// Stands in for `rayon::iter::IntoParallelIterator`.
    pub trait IntoOrdered: IntoIterator + Sized {
        /// The items in order.
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoOrdered for I {}

    /// Stands in for the parallel iterators over slices.
    pub trait OrderedSlice<T> {
        /// The items in order.
        fn par_iter(&self) -> Iter<'_, T>;
        /// The items in order, to be changed.
        fn par_iter_mut(&mut self) -> IterMut<'_, T>;
        /// Pieces of `len` items in order.
        fn par_chunks_exact_mut(&mut self, len: usize) -> ChunksExactMut<'_, T>;
    }

    impl<T> OrderedSlice<T> for [T] {
        fn par_iter(&self) -> Iter<'_, T> {
            self.iter()
        }

        fn par_iter_mut(&mut self) -> IterMut<'_, T> {
            self.iter_mut()
        }

        fn par_chunks_exact_mut(&mut self, len: usize) -> ChunksExactMut<'_, T> {
            self.chunks_exact_mut(len)
        }
    }

    /// Stands in for what parallel iterators have beyond ordinary ones.
    pub trait Ordered: Iterator + Sized {
        /// No thread, so no least share of one.
        fn with_min_len(self, _: usize) -> Self {
            self
        }

        /// Maps with something that is made once.
        fn map_init<S, T>(
            self,
            init: impl FnOnce() -> S,
            mut f: impl FnMut(&mut S, Self::Item) -> T,
        ) -> impl Iterator<Item = T> {
            let mut state = init();
            self.map(move |item| f(&mut state, item))
        }
    }

    impl<I: Iterator> Ordered for I {}
}

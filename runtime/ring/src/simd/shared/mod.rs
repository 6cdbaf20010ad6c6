//! Sums of rows, each multiplied once; see [`crate::shared`]. In double precision, or with 52-bit integer products
//! where the CPU has them.

mod double;
mod integer;

pub use double::DoubleShared;
pub use integer::IntegerShared;

use super::lanes::Lanes;
use crate::shared::{Partial, SharedList, Strip};

/// The low and the high words of a sum, as N vectors each.
#[inline(always)]
fn load<S: Lanes, const N: usize>(s: S, sum: &Partial) -> [[S::V; N]; 2] {
    let words = [S::words(&sum.low.0).0, S::words(&sum.high.0).0];
    let mut halves = [[s.splat(0.0); N]; 2];
    for (half, words) in halves.iter_mut().zip(words) {
        for v in 0..N {
            half[v] = s.load(&words[v]);
        }
    }
    halves
}

/// Writes what [`load`] reads.
#[inline(always)]
fn store<S: Lanes, const N: usize>(s: S, sum: &mut Partial, halves: [&[S::V; N]; 2]) {
    let words = [S::words_mut(&mut sum.low.0).0, S::words_mut(&mut sum.high.0).0];
    for (words, half) in words.into_iter().zip(halves) {
        for v in 0..N {
            s.store(&mut words[v], half[v]);
        }
    }
}

/// A sum of products on one strip.
trait Products {
    /// Rows that may be added before a product, at least one.
    fn most_rows(&self) -> usize;
    /// Adds one factor times the sum of `shared`, at least one and at most [`Products::most_rows`].
    fn add(&mut self, factor: &Strip, shared: &[u32], rows: &Rows<'_>);
}

/// Rows that a list may name without a check: its numbers are below the count of rows.
struct Rows<'a>(&'a [Strip]);

impl<'a> Rows<'a> {
    /// The rows of a list.
    ///
    /// # Panics
    /// When the list names a row that does not exist.
    fn of(list: &SharedList, rows: &'a [Strip]) -> Self {
        assert!(list.n_rows() <= rows.len(), "a list names a row that does not exist");
        Self(rows)
    }

    #[inline(always)]
    fn get(&self, row: u32) -> &Strip {
        // SAFETY: `Rows::of` asserts that no number of the list is beyond the rows.
        unsafe { self.0.get_unchecked(row as usize) }
    }
}

/// Adds all products of a list.
#[inline(always)]
fn add_all(products: &mut impl Products, list: &SharedList, rows: &Rows<'_>, plains: &[Strip]) {
    for (run, factors, shared) in list.runs() {
        let factors = factors.iter().map(|&factor| &plains[factor as usize]);
        match run.n_rows {
            n if n > products.most_rows() => {
                for (factor, shared) in factors.zip(shared.chunks_exact(n)) {
                    for part in shared.chunks(products.most_rows()) {
                        products.add(factor, part, rows);
                    }
                }
            }
            1 => add_run::<1>(products, factors, shared, rows),
            2 => add_run::<2>(products, factors, shared, rows),
            3 => add_run::<3>(products, factors, shared, rows),
            4 => add_run::<4>(products, factors, shared, rows),
            5 => add_run::<5>(products, factors, shared, rows),
            6 => add_run::<6>(products, factors, shared, rows),
            7 => add_run::<7>(products, factors, shared, rows),
            8 => add_run::<8>(products, factors, shared, rows),
            n => {
                for (factor, part) in factors.zip(shared.chunks_exact(n)) {
                    products.add(factor, part, rows);
                }
            }
        }
    }
}

/// Products of N rows each: a loop that the compiler unrolls.
#[inline(always)]
fn add_run<'a, const N: usize>(
    products: &mut impl Products,
    factors: impl Iterator<Item = &'a Strip>,
    shared: &[u32],
    rows: &Rows<'_>,
) {
    for (factor, shared) in factors.zip(shared.as_chunks::<N>().0) {
        products.add(factor, shared, rows);
    }
}

//! Sums of rows, each multiplied once: Σ_p plain_p · (Σ rows that share it).
//!
//! Where many products share one factor, adding first leaves an addition where a modular product was. The data of a
//! [`STRIP`] of coefficients of all rows stays in the cache while every result reads it. Only the double-precision
//! kernels do this; without them the caller multiplies term by term, to the same bits.

use super::kernels::Instructions;
use super::modulus::Modulus;
#[cfg(target_arch = "x86_64")]
use super::simd;

/// Coefficients that are worked on at once.
pub const STRIP: usize = 16;

/// A strip of balanced residues, as the bits of doubles.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Strip(pub [u64; STRIP]);

impl Strip {
    /// All zero.
    pub const ZERO: Self = Self([0; STRIP]);
}

/// The rows that one factor multiplies, as a range of a list of row numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEntry {
    /// The factor.
    pub plain: u32,
    /// First position in the list.
    pub start: u32,
    /// First position behind the rows.
    pub end: u32,
}

/// The products of one result: factors, and the rows of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedList {
    /// One entry per factor.
    pub entries: Vec<SharedEntry>,
    /// Rows, entry by entry; every entry has at least one.
    pub rows: Vec<u32>,
}

impl SharedList {
    /// Row k times factor k for every k below `n`: an inner product.
    pub fn diagonal(n: usize) -> Self {
        let entries = (0..n as u32).map(|k| SharedEntry { plain: k, start: k, end: k + 1 });
        Self { entries: entries.collect(), rows: (0..n as u32).collect() }
    }
}

/// Where the strips of one row go: strip s to position `first + s·step`.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Position of the first strip.
    pub first: usize,
    /// Positions between strips.
    pub step: usize,
}

/// The kernel of one prime.
#[derive(Clone, Debug)]
pub struct SharedKernel {
    modulus: Modulus,
    #[cfg(target_arch = "x86_64")]
    fma: simd::FmaShared,
    #[cfg(not(target_arch = "x86_64"))]
    never: std::convert::Infallible,
}

impl SharedKernel {
    /// The kernel, if CPU, prime and choice allow it.
    pub fn new(modulus: Modulus, instructions: Instructions) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return instructions
            .width(modulus)
            .map(|width| Self { modulus, fma: simd::FmaShared::new(width, modulus) });
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (modulus, instructions);
            None
        }
    }

    /// A residue as strips hold it.
    pub fn balanced(&self, residue: u64) -> u64 {
        let q = self.modulus.value();
        let balanced = if 2 * residue > q { -((q - residue) as f64) } else { residue as f64 };
        balanced.to_bits()
    }

    /// Writes residues, or the bits of doubles that stand for them, to strips of `out`.
    ///
    /// # Panics
    /// When a strip would lie outside `out`, or there is no whole number of strips.
    pub fn place(&self, out: &mut [Strip], places: Places, residues: &[u64], doubles: bool) {
        #[cfg(target_arch = "x86_64")]
        self.fma.place(out, places, residues, doubles);
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (out, places, residues, doubles);
            match self.never {}
        }
    }

    /// out ← Σ over entries of plain · Σ rows, in [0, q).
    ///
    /// # Panics
    /// When the list names a row or factor that does not exist.
    pub fn sum_products(&self, out: &mut [u64; STRIP], list: &SharedList, rows: &[Strip], plains: &[Strip]) {
        #[cfg(target_arch = "x86_64")]
        self.fma.sum_products(out, list, rows, plains);
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (out, list, rows, plains);
            match self.never {}
        }
    }
}

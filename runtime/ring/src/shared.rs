//! Sums of rows, each multiplied once: Σ_p plain_p · (Σ rows that share it).
//!
//! Where many products share one factor, adding first leaves an addition where a modular product was. The data of a
//! [`STRIP`] of coefficients of all rows stays in the cache while every result reads it. Only the vector
//! kernels do this; without them the caller multiplies term by term, to the same bits.

use super::kernels::Instructions;
use super::modulus::Modulus;
#[cfg(target_arch = "x86_64")]
use super::simd;

/// Coefficients that are worked on at once.
pub const STRIP: usize = 16;

/// A strip of residues, in the form that the kernel wants.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Strip(pub [u64; STRIP]);

impl Strip {
    /// All zero.
    pub const ZERO: Self = Self([0; STRIP]);
}

/// The products of one result: factors, and the rows that each of them multiplies.
///
/// Factors with equally many rows follow each other, so that the loops of a kernel have lengths that a CPU can foresee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedList {
    runs: Vec<Run>,
    plains: Vec<u32>,
    rows: Vec<u32>,
    n_rows: usize,
}

/// Factors that follow each other in a list and have equally many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of factors.
    pub n_plains: usize,
    /// Rows of each.
    pub n_rows: usize,
}

impl SharedList {
    /// The list of pairs of a factor and a row.
    pub fn new(mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        let mut entries: Vec<&[(u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        entries.sort_by_key(|entry| entry.len());
        let rows: Vec<u32> = entries.iter().copied().flatten().map(|pair| pair.1).collect();
        Self {
            runs: entries
                .chunk_by(|a, b| a.len() == b.len())
                .map(|run| Run { n_plains: run.len(), n_rows: run[0].len() })
                .collect(),
            plains: entries.iter().map(|entry| entry[0].0).collect(),
            n_rows: rows.iter().max().map_or(0, |&last| last as usize + 1),
            rows,
        }
    }

    /// The runs, each with its factors and with their rows, factor by factor.
    pub fn runs(&self) -> impl Iterator<Item = (Run, &[u32], &[u32])> {
        let (mut plains, mut rows) = (self.plains.as_slice(), self.rows.as_slice());
        self.runs.iter().map(move |&run| {
            let (these, after) = plains.split_at(run.n_plains);
            let (their_rows, rows_after) = rows.split_at(run.n_plains * run.n_rows);
            (plains, rows) = (after, rows_after);
            (run, these, their_rows)
        })
    }

    /// Number of products before inputs are added, each row counted as often as it is named.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One more than the largest row.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }
}

/// A sum that is not reduced yet: two words per coefficient, whose meaning is the kernel's.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    pub(super) low: Strip,
    pub(super) high: Strip,
}

/// Copies words to strips at some places of `out`.
///
/// # Panics
/// When a strip would lie outside `out`, or there is no whole number of strips.
pub fn place(out: &mut [Strip], places: Places, words: &[u64]) {
    assert!(words.len().is_multiple_of(STRIP));
    for (at, words) in words.as_chunks::<STRIP>().0.iter().enumerate() {
        out[places.first + at * places.step].0 = *words;
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
pub enum SharedKernel {
    /// In double precision.
    #[cfg(target_arch = "x86_64")]
    Double(simd::DoubleShared),
    /// With 52-bit integer products.
    #[cfg(target_arch = "x86_64")]
    Integer(simd::IntegerShared),
}

impl SharedKernel {
    /// The kernel, if CPU, prime and choice allow it.
    pub fn new(modulus: Modulus, instructions: Instructions) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return instructions.width(modulus).map(|width| {
            match simd::Ifma::detect().filter(|_| instructions == Instructions::Best) {
                Some(token) => Self::Integer(simd::IntegerShared::new(token, modulus)),
                None => Self::Double(simd::DoubleShared::new(width, modulus)),
            }
        });
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (modulus, instructions);
            None
        }
    }

    /// Residues to what strips hold.
    pub fn to_words(&self, residues: &mut [u64]) {
        match *self {
            #[cfg(target_arch = "x86_64")]
            Self::Double(ref kernel) => kernel.to_words(residues),
            #[cfg(target_arch = "x86_64")]
            Self::Integer(_) => {}
        }
    }

    /// Nothing added yet.
    pub fn nothing(&self) -> Partial {
        match *self {
            #[cfg(target_arch = "x86_64")]
            Self::Double(ref kernel) => kernel.nothing(),
            #[cfg(target_arch = "x86_64")]
            Self::Integer(_) => Partial { low: Strip::ZERO, high: Strip::ZERO },
        }
    }

    /// sum ← sum + Σ over the list of plain · Σ rows. At most `used` rows were added before.
    ///
    /// # Panics
    /// When the list names a row or factor that does not exist.
    pub fn sum_products(
        &self,
        sum: &mut Partial,
        used: usize,
        list: &SharedList,
        rows: &[Strip],
        plains: &[Strip],
    ) {
        match *self {
            #[cfg(target_arch = "x86_64")]
            Self::Double(ref kernel) => kernel.sum_products(sum, used, list, rows, plains),
            #[cfg(target_arch = "x86_64")]
            Self::Integer(ref kernel) => kernel.sum_products(sum, used, list, rows, plains),
        }
    }

    /// The residues of a sum, in [0, q).
    pub fn reduce(&self, out: &mut [u64; STRIP], sum: &Partial) {
        match *self {
            #[cfg(target_arch = "x86_64")]
            Self::Double(ref kernel) => kernel.reduce(out, sum),
            #[cfg(target_arch = "x86_64")]
            Self::Integer(ref kernel) => kernel.reduce(out, sum),
        }
    }
}

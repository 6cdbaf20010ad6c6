//! Polynomials as lists of towers.

use std::marker::PhantomData;

use zeroize::Zeroize;

use super::buffer::Buffer;
use super::tower_set::TowerSet;

/// Which primes a polynomial has residues for: some of the chain, in its order, then `n_special` special ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Primes of the chain.
    pub q: TowerSet,
    /// Special primes: none or all.
    pub n_special: usize,
}

impl Basis {
    /// Number of towers.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.n_q() + self.n_special
    }

    /// Number of primes of the chain.
    pub fn n_q(self) -> usize {
        self.q.len()
    }
}

/// Marks coefficient form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coeff {}

/// Marks NTT form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NttForm {}

/// One of the two forms.
pub trait Form: Send + Sync {}
impl Form for Coeff {}
impl Form for NttForm {}

/// A polynomial: towers of n residues each, one after the other, starting at a cache line.
#[derive(Debug, PartialEq, Eq)]
pub struct Poly<F> {
    n: usize,
    basis: Basis,
    data: Buffer,
    form: PhantomData<fn() -> F>,
}

/// The residues of all towers.
impl<F> AsRef<[u64]> for Poly<F> {
    fn as_ref(&self) -> &[u64] {
        &self.data
    }
}

impl<F> Clone for Poly<F> {
    fn clone(&self) -> Self {
        Self { n: self.n, basis: self.basis, data: self.data.clone(), form: PhantomData }
    }
}

impl<F> Poly<F> {
    /// The zero polynomial of degree bound `n`.
    pub fn zero(n: usize, basis: Basis) -> Self {
        Self { n, basis, data: Buffer::zeroed(n * basis.len()), form: PhantomData }
    }

    /// A polynomial with arbitrary residues, for whoever writes all of them.
    pub fn unset(n: usize, basis: Basis) -> Self {
        Self { n, basis, data: Buffer::unset(n * basis.len()), form: PhantomData }
    }

    /// Takes residues laid out tower by tower; none when their number does not fit.
    pub fn from_residues(n: usize, basis: Basis, residues: &[u64]) -> Option<Self> {
        (residues.len() == n * basis.len()).then(|| Self {
            n,
            basis,
            data: Buffer::copy_of(residues),
            form: PhantomData,
        })
    }

    /// The primes of this polynomial.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Number of coefficients.
    pub fn n(&self) -> usize {
        self.n
    }

    /// All residues, tower by tower.
    pub fn data(&self) -> &[u64] {
        &self.data
    }

    /// All residues, tower by tower.
    pub fn data_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }

    /// The residues of the tower at position `i`.
    pub fn tower(&self, i: usize) -> &[u64] {
        &self.data[i * self.n..(i + 1) * self.n]
    }

    /// The towers of the chain that are in `q` alone; the polynomial must have them all, and no special primes.
    pub fn restricted(&self, q: TowerSet) -> Self {
        assert!(self.basis.n_special == 0 && q.is_subset(self.basis.q), "cannot extend a polynomial");
        let mut out = Self::unset(self.n, Basis { q, n_special: 0 });
        let towers = out.data.chunks_exact_mut(self.n).zip(q.iter());
        towers.for_each(|(out, index)| out.copy_from_slice(self.tower(self.basis.q.rank(index))));
        out
    }

    /// The same residues under other names of their primes, as many as before; for chains that share towers.
    pub fn renamed(self, basis: Basis) -> Self {
        assert!(self.basis.len() == basis.len(), "another number of primes");
        Self { basis, ..self }
    }

    /// The same residues, read in another form; for the transforms.
    pub(super) fn assume_form<G>(self) -> Poly<G> {
        Poly { n: self.n, basis: self.basis, data: self.data, form: PhantomData }
    }
}

impl<F> Zeroize for Poly<F> {
    fn zeroize(&mut self) {
        self.data.zeroize();
    }
}

//! The towers of a ring: per prime, its arithmetic, its kernels and its transform.

use crate::parallel::*;

use super::kernels::{Instructions, Kernels};
use super::modulus::Modulus;
use super::ntt::Ntt;
use super::poly::{Basis, Coeff, NttForm, Poly};
use super::shared::SharedKernel;
use super::tower_set::TowerSet;

/// One prime with everything that computes modulo it.
#[derive(Clone, Debug)]
pub struct Tower {
    /// The prime.
    pub modulus: Modulus,
    /// Element-wise operations.
    pub kernels: Kernels,
    /// The transform.
    pub ntt: Ntt,
    /// Sums with shared factors, where the CPU has what they need.
    pub shared: Option<SharedKernel>,
}

/// All towers over one ring degree: the chain q_0 … q_L, then the special primes.
#[derive(Clone, Debug)]
pub struct Ring {
    n: usize,
    n_q: usize,
    towers: Vec<Tower>,
    instructions: Instructions,
}

/// A modulus that has no transform of the ring's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{prime} is no prime with a root of unity of order {order}")]
pub struct RingError {
    /// The offending modulus.
    pub prime: u64,
    /// Order that is missing, twice the ring degree.
    pub order: usize,
}

impl Ring {
    /// A ring of degree `n` with the given chain and special primes, all odd and below 2^61.
    ///
    /// # Errors
    /// When a modulus is out of range or is no prime that is 1 mod 2n.
    pub fn new(
        n: usize,
        chain: &[u64],
        special: &[u64],
        instructions: Instructions,
    ) -> Result<Self, RingError> {
        let towers = chain
            .par_iter()
            .chain(special)
            .map(|&prime| {
                let error = RingError { prime, order: 2 * n };
                if prime < 3 || prime % 2 == 0 || prime >> 61 != 0 {
                    return Err(error);
                }
                let modulus = Modulus::new(prime);
                let ntt = Ntt::new(modulus, n, instructions).ok_or(error)?;
                let shared = SharedKernel::new(modulus, instructions);
                Ok(Tower { modulus, kernels: Kernels::new(modulus, instructions), ntt, shared })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { n, n_q: chain.len(), towers, instructions })
    }

    /// The ring degree N.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of primes in the chain.
    pub fn n_q(&self) -> usize {
        self.n_q
    }

    /// Number of special primes.
    pub fn n_special(&self) -> usize {
        self.towers.len() - self.n_q
    }

    /// Every tower: the chain, then the special primes.
    pub fn towers(&self) -> &[Tower] {
        &self.towers
    }

    /// What the kernels may use.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// The chain q_0 … q_(n_q - 1) without special primes.
    pub fn basis_q(&self, n_q: usize) -> Basis {
        Basis { q: TowerSet::first(n_q), n_special: 0 }
    }

    /// The chain q_0 … q_(n_q - 1) with all special primes.
    pub fn basis_qp(&self, n_q: usize) -> Basis {
        Basis { q: TowerSet::first(n_q), n_special: self.n_special() }
    }

    /// Index into [`Ring::towers`] of position `i` in a polynomial over `basis`.
    pub fn tower_index(&self, basis: Basis, i: usize) -> usize {
        let n_q = basis.n_q();
        if i < n_q { basis.q.nth(i) } else { self.n_q + i - n_q }
    }

    /// The residues of `poly` modulo the tower with index `index`, which it must have.
    pub fn residues<'p, F>(&self, poly: &'p Poly<F>, index: usize) -> &'p [u64] {
        let Basis { q, .. } = poly.basis();
        poly.tower(if index < self.n_q { q.rank(index) } else { q.len() + index - self.n_q })
    }

    /// The tower of position `i` in a polynomial over `basis`.
    pub fn tower(&self, basis: Basis, i: usize) -> &Tower {
        &self.towers[self.tower_index(basis, i)]
    }

    /// A zero polynomial.
    pub fn zero<F>(&self, basis: Basis) -> Poly<F> {
        Poly::zero(self.n, basis)
    }

    /// A polynomial with arbitrary residues, for whoever writes all of them.
    pub fn unset<F>(&self, basis: Basis) -> Poly<F> {
        Poly::unset(self.n, basis)
    }

    /// Runs `f` on every tower of `poly`, in parallel.
    pub fn for_each_tower<F>(&self, poly: &mut Poly<F>, f: impl Fn(&Tower, usize, &mut [u64]) + Sync) {
        let basis = poly.basis();
        poly.data_mut()
            .par_chunks_exact_mut(self.n)
            .enumerate()
            .for_each(|(i, residues)| f(self.tower(basis, i), i, residues));
    }

    /// To NTT form.
    pub fn forward(&self, mut poly: Poly<Coeff>) -> Poly<NttForm> {
        self.for_each_tower(&mut poly, |tower, _, residues| tower.ntt.forward(residues));
        poly.assume_form()
    }

    /// To coefficient form.
    pub fn inverse(&self, mut poly: Poly<NttForm>) -> Poly<Coeff> {
        self.for_each_tower(&mut poly, |tower, _, residues| tower.ntt.inverse(residues));
        poly.assume_form()
    }

    /// The residues of b in the tower at position `i` of a.
    fn like<'b, F>(&self, a: &Poly<F>, i: usize, b: &'b Poly<F>) -> &'b [u64] {
        self.residues(b, self.tower_index(a.basis(), i))
    }

    /// a + b, over the basis of a, which b has at least.
    pub fn add(&self, a: &Poly<NttForm>, b: &Poly<NttForm>) -> Poly<NttForm> {
        let mut out = self.unset(a.basis());
        self.for_each_tower(&mut out, |tower, i, out| {
            tower.kernels.add_into(out, a.tower(i), self.like(a, i, b));
        });
        out
    }

    /// a ← a + b; both over one basis, or b over a longer one.
    pub fn add_assign<F: Sync>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        let basis = a.basis();
        self.for_each_tower(a, |tower, i, a| {
            tower.kernels.add_assign(a, self.residues(b, self.tower_index(basis, i)));
        });
    }

    /// a ← a - b.
    pub fn sub_assign<F: Sync>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        let basis = a.basis();
        self.for_each_tower(a, |tower, i, a| {
            tower.kernels.sub_assign(a, self.residues(b, self.tower_index(basis, i)));
        });
    }

    /// a ← -a.
    pub fn neg_assign<F>(&self, a: &mut Poly<F>) {
        self.for_each_tower(a, |tower, _, a| tower.kernels.neg_assign(a));
    }

    /// a·b.
    pub fn mul(&self, a: &Poly<NttForm>, b: &Poly<NttForm>) -> Poly<NttForm> {
        let mut out = self.unset(a.basis());
        self.for_each_tower(&mut out, |tower, i, out| {
            tower.kernels.mul_into(out, a.tower(i), self.like(a, i, b));
        });
        out
    }

    /// a·b for each a, all over one basis; a tower of b is read once for all of them.
    pub fn mul_each(&self, a: &[Poly<NttForm>], b: &Poly<NttForm>) -> Vec<Poly<NttForm>> {
        let mut products: Vec<Poly<NttForm>> = a.iter().map(|a| self.unset(a.basis())).collect();
        self.for_each_tower_of_all(&mut products, |tower, i, parts| {
            let parts = parts.into_iter().zip(a);
            parts.for_each(|(out, a)| tower.kernels.mul_into(out, a.tower(i), self.like(a, i, b)));
        });
        products
    }

    /// a ← a·b for each a, all over one basis.
    pub fn mul_each_assign(&self, a: &mut [Poly<NttForm>], b: &Poly<NttForm>) {
        let Some(basis) = a.first().map(Poly::basis) else { return };
        self.for_each_tower_of_all(a, |tower, i, parts| {
            let b = self.residues(b, self.tower_index(basis, i));
            parts.into_iter().for_each(|a| tower.kernels.mul_assign(a, b));
        });
    }

    /// As [`Ring::for_each_tower`] for polynomials over one basis at once.
    fn for_each_tower_of_all(
        &self,
        polys: &mut [Poly<NttForm>],
        f: impl Fn(&Tower, usize, Vec<&mut [u64]>) + Sync,
    ) {
        let Some(basis) = polys.first().map(Poly::basis) else { return };
        let mut towers: Vec<Vec<&mut [u64]>> = (0..basis.len()).map(|_| Vec::new()).collect();
        for poly in polys {
            let parts = poly.data_mut().chunks_exact_mut(self.n);
            towers.iter_mut().zip(parts).for_each(|(tower, part)| tower.push(part));
        }
        towers.into_par_iter().enumerate().for_each(|(i, parts)| f(self.tower(basis, i), i, parts));
    }

    /// Whether every residue is below its prime.
    pub fn is_reduced<F>(&self, poly: &Poly<F>) -> bool {
        (0..poly.basis().len()).all(|i| {
            let q = self.tower(poly.basis(), i).modulus.value();
            poly.tower(i).iter().all(|&x| x < q)
        })
    }
}

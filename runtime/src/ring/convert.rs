//! Exact base conversion: residues modulo a few primes to residues modulo another.
//!
//! With D = Π dᵢ and yᵢ = xᵢ·(D/dᵢ)⁻¹ mod dᵢ, the integer is x = Σ yᵢ·D/dᵢ - v·D, where v = round(Σ yᵢ/dᵢ) picks
//! the representative in [-D/2, D/2]. The sum for v is taken in double precision, in a fixed order without
//! contraction, so all kernels agree on it; next to ±D/2 it may pick the other neighbor, which is
//! as good a representative.

use super::buffer::Buffer;
use super::kernels::Instructions;
use super::modulus::{Modulus, ShoupConstant};
use super::scalar;
#[cfg(target_arch = "x86_64")]
use super::simd;
use super::tower::Ring;

/// Converts from a fixed set of towers to any tower of the ring.
#[derive(Clone, Debug)]
pub struct BaseConverter {
    sources: Vec<Source>,
    targets: Vec<Target>,
}

#[derive(Clone, Debug)]
struct Source {
    /// Index of the tower in the ring.
    tower: usize,
    modulus: Modulus,
    /// (D/d)⁻¹ mod d.
    weight: ShoupConstant,
}

#[derive(Clone, Debug)]
struct Target {
    modulus: Modulus,
    /// D/dᵢ modulo the target prime.
    constants: Vec<u64>,
    /// D modulo the target prime.
    product: u64,
    #[cfg(target_arch = "x86_64")]
    fma: Option<simd::FmaConverter>,
}

/// What the targets share: the weighted residues yᵢ and the overflow counts v.
#[derive(Debug)]
pub struct Weighted {
    n: usize,
    residues: Buffer,
    overflow: Vec<f64>,
}

impl BaseConverter {
    /// A converter from the towers with the given indices in `ring` to every tower.
    pub fn new(ring: &Ring, sources: std::ops::Range<usize>) -> Self {
        let primes: Vec<Modulus> = sources.clone().map(|i| ring.towers()[i].modulus).collect();
        let product_without = |q: Modulus, skip: Option<usize>| {
            let others = primes.iter().enumerate().filter(|&(i, _)| Some(i) != skip);
            others.fold(1, |product, (_, d)| q.mul(product, q.reduce(d.value())))
        };
        let weighted = sources.zip(&primes).enumerate().map(|(i, (tower, &modulus))| Source {
            tower,
            modulus,
            weight: modulus.shoup(modulus.inv(product_without(modulus, Some(i)))),
        });
        let targets = ring.towers().iter().map(|tower| {
            let q = tower.modulus;
            let constants = (0..primes.len()).map(|i| product_without(q, Some(i))).collect();
            Target::new(q, constants, product_without(q, None), &primes, ring.instructions())
        });
        Self { sources: weighted.collect(), targets: targets.collect() }
    }

    /// Prepares residues in coefficient form: `x[i]` belongs to the i-th source, in [0, d).
    pub fn weigh(&self, ring: &Ring, x: &[&[u64]]) -> Weighted {
        let n = ring.n();
        let mut residues = Buffer::unset(x.len() * n);
        let mut overflow = vec![0.0; n];
        for ((source, x), y) in self.sources.iter().zip(x).zip(residues.chunks_exact_mut(n)) {
            ring.towers()[source.tower].kernels.weigh(y, x, source.weight, &mut overflow);
        }
        if let Some(source) = self.sources.first() {
            ring.towers()[source.tower].kernels.round(&mut overflow);
        }
        Weighted { n, residues, overflow }
    }

    /// Residues modulo the tower with index `target`, in coefficient form and in [0, q).
    pub fn convert(&self, weighted: &Weighted, target: usize, out: &mut [u64]) {
        let target = &self.targets[target];
        let y: Vec<&[u64]> = weighted.residues.chunks_exact(weighted.n).collect();
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &target.fma {
            return fma.convert(out, &y, &weighted.overflow);
        }
        scalar::convert(target.modulus, out, &y, &target.constants, &weighted.overflow, target.product);
    }

    /// The primes converted from.
    pub fn source_moduli(&self) -> impl Iterator<Item = Modulus> + '_ {
        self.sources.iter().map(|source| source.modulus)
    }
}

impl Target {
    #[cfg(target_arch = "x86_64")]
    fn new(
        modulus: Modulus,
        constants: Vec<u64>,
        product: u64,
        sources: &[Modulus],
        instructions: Instructions,
    ) -> Self {
        let small = sources.iter().all(|d| d.value() < simd::FMA_PRIME_BOUND);
        let fma = super::kernels::fma_token(modulus, instructions)
            .filter(|_| small)
            .map(|token| simd::FmaConverter::new(token, modulus, &constants, product));
        Self { modulus, constants, product, fma }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn new(modulus: Modulus, constants: Vec<u64>, product: u64, _: &[Modulus], _: Instructions) -> Self {
        Self { modulus, constants, product }
    }
}

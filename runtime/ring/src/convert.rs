//! Exact base conversion: residues modulo a few primes to residues modulo another.
//!
//! With D = Π dₖ and yₖ = xₖ·(D/dₖ)⁻¹ mod dₖ, the integer is x = Σ yₖ·D/dₖ - v·D, where v = round(Σ yₖ/dₖ) picks
//! the representative in [-D/2, D/2]. Since D = dₖ·D/dₖ, taking dₖ from the first v of the yₖ does the
//! same, and the conversion is Σ yₖ·D/dₖ modulo the target. The sum for v is taken in double precision, in a
//! fixed order without contraction, so all kernels agree on it; next to ±D/2 it may pick the other neighbor, which
//! is as good a representative.

use crate::parallel::*;

use super::ahead::Ahead;
use super::buffer::Buffer;
use super::modulus::Modulus;
use super::ntt::Begun;
use super::scalar::{self, Conversion, End};
use super::simd;
use super::tower::{Ring, Tower};
use super::words::Held;

/// Converts from a fixed set of towers to any tower of the ring.
#[derive(Clone, Debug)]
pub struct BaseConverter {
    /// Index of each source in the ring.
    sources: Vec<usize>,
    moduli: Vec<Modulus>,
    /// (D/d)⁻¹ mod d, per source.
    weights: Vec<u64>,
    /// D/dₖ modulo each tower of the ring.
    constants: Vec<Vec<u64>>,
    width: Option<simd::Width>,
}

/// What the targets share: the centered yₖ.
#[derive(Debug)]
pub struct Lifted {
    n: usize,
    y: Buffer,
    held: Held,
}

impl Lifted {
    /// To ask for before it is converted.
    pub fn ahead(&self) -> Ahead<'_> {
        Ahead::new([&*self.y])
    }
}

impl BaseConverter {
    /// A converter from the towers with the given indices in `ring` to every tower.
    pub fn new(ring: &Ring, sources: impl IntoIterator<Item = usize>) -> Self {
        Self::times(ring, sources, |_| 1)
    }

    /// A converter of a multiple: `factor` gives the number that residues are multiplied by, modulo each source.
    pub fn times(
        ring: &Ring,
        sources: impl IntoIterator<Item = usize>,
        factor: impl Fn(Modulus) -> u64,
    ) -> Self {
        let sources: Vec<usize> = sources.into_iter().collect();
        let moduli: Vec<Modulus> = sources.iter().map(|&i| ring.towers()[i].modulus).collect();
        let product_without = |q: Modulus, skip: usize| {
            let others = moduli.iter().enumerate().filter(|&(i, _)| i != skip);
            others.fold(1, |product, (_, d)| q.mul(product, q.reduce(d.value())))
        };
        let weight = |(k, d): (usize, &Modulus)| d.mul(factor(*d), d.inv(product_without(*d, k)));
        let constants =
            |tower: &Tower| (0..moduli.len()).map(|k| product_without(tower.modulus, k)).collect();
        let largest = moduli.iter().copied().max_by_key(|d| d.value());
        Self {
            sources,
            weights: moduli.iter().enumerate().map(weight).collect(),
            constants: ring.towers().iter().map(constants).collect(),
            width: largest.and_then(|d| ring.instructions().width(d)),
            moduli,
        }
    }

    /// Prepares residues in NTT form: `x[k]` belongs to the k-th source, in [0, d).
    pub fn lift(&self, ring: &Ring, x: &[&[u64]]) -> Lifted {
        let n = ring.n();
        let mut y = Buffer::unset(x.len() * n);
        y.par_chunks_exact_mut(n).zip(x).enumerate().for_each(|(k, (y, x))| {
            ring.towers()[self.sources[k]].ntt.inverse_times(y, x, self.weights[k]);
        });
        let mut rows: Vec<&mut [u64]> = y.chunks_exact_mut(n).collect();
        let held = match self.width {
            #[cfg(target_arch = "x86_64")]
            Some(width) => {
                simd::center(width, &mut rows, &self.moduli);
                Held::Doubles
            }
            _ => {
                scalar::center(&mut rows, &self.moduli);
                Held::Integers
            }
        };
        Lifted { n, y, held }
    }

    /// The transform of the number modulo the tower with index `target`, and the form it has.
    /// What is `ahead` may be asked for meanwhile.
    pub fn forward(
        &self,
        ring: &Ring,
        lifted: &Lifted,
        target: usize,
        out: &mut [u64],
        end: End<'_>,
        mut ahead: Ahead<'_>,
    ) -> Held {
        let begun = self.begin(ring, lifted, target, out, &mut ahead);
        let tower = &ring.towers()[target];
        let piece = tower.ntt.piece();
        let mut held = Held::Integers;
        for (i, out) in out.chunks_exact_mut(piece).enumerate() {
            let end = end.piece(i * piece..(i + 1) * piece);
            held = tower.ntt.finish_piece(&tower.kernels, begun, i, out, end, &mut ahead);
        }
        held
    }

    /// As [`BaseConverter::forward`], up to where [`Ntt::finish_piece`](super::Ntt::finish_piece) takes over.
    pub fn begin(
        &self,
        ring: &Ring,
        lifted: &Lifted,
        target: usize,
        out: &mut [u64],
        ahead: &mut Ahead<'_>,
    ) -> Begun {
        let y: Vec<&[u64]> = lifted.y.chunks_exact(lifted.n).collect();
        let constants = &self.constants[target];
        let from = Conversion { y: &y, constants, held: lifted.held };
        ring.towers()[target].ntt.begin_converted(out, from, ahead)
    }

    /// D modulo `q`.
    pub fn product(&self, q: Modulus) -> u64 {
        self.moduli.iter().fold(1, |product, d| q.mul(product, q.reduce(d.value())))
    }
}

//! The transform in plain integer arithmetic, for any prime and any size: the definition that every engine is held to.

use super::modulus::{Modulus, ShoupConstant};

/// Tables of one prime, one size and one root.
#[derive(Clone, Debug)]
pub(super) struct PlainNtt {
    q: Modulus,
    /// Entry m + i is ψ^rev(m + i), for block i of the layer with m blocks; rev reverses log2 n bits.
    forward: Vec<ShoupConstant>,
    /// The inverses of `forward`.
    inverse: Vec<ShoupConstant>,
}

impl PlainNtt {
    /// A plan from ψ, a root of unity of order 2n; n is a power of two.
    pub(super) fn new(q: Modulus, n: usize, root: u64) -> Self {
        Self { q, forward: powers(q, n, root), inverse: powers(q, n, q.inv(root)) }
    }

    /// Coefficients in order to values in bit-reversed order.
    pub(super) fn forward(&self, buf: &mut [u64]) {
        let n = self.forward.len();
        assert_eq!(buf.len(), n);
        let q = self.q;
        for m in (0..n.trailing_zeros()).map(|k| 1 << k) {
            for (block, &w) in buf.chunks_exact_mut(n / m).zip(&self.forward[m..]) {
                let (a, b) = block.split_at_mut(n / m / 2);
                for (a, b) in a.iter_mut().zip(b) {
                    let product = q.mul_shoup(*b, w);
                    (*a, *b) = (q.add(*a, product), q.sub(*a, product));
                }
            }
        }
    }

    /// Values in bit-reversed order to coefficients in order, times n.
    pub(super) fn inverse(&self, buf: &mut [u64]) {
        let n = self.inverse.len();
        assert_eq!(buf.len(), n);
        let q = self.q;
        for m in (0..n.trailing_zeros()).rev().map(|k| 1 << k) {
            for (block, &w) in buf.chunks_exact_mut(n / m).zip(&self.inverse[m..]) {
                let (a, b) = block.split_at_mut(n / m / 2);
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (q.add(*a, *b), q.mul_shoup(q.sub(*a, *b), w));
                }
            }
        }
    }
}

/// root^rev(i) for i < n.
fn powers(q: Modulus, n: usize, root: u64) -> Vec<ShoupConstant> {
    let mut table = vec![q.shoup(1); n];
    let mut power = 1;
    for k in 1..n {
        power = q.mul(power, root);
        table[k.reverse_bits() >> (usize::BITS - n.trailing_zeros())] = q.shoup(power);
    }
    table
}

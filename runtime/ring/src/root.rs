//! The roots of unity of the transforms, fixed by a rule of our own because files depend on them (`docs/FILES.md`).
//!
//! With q - 1 = 2^s·t, t odd, and z the least quadratic non-residue modulo q, a square root is the one that the
//! method of Tonelli and Shanks finds with z. The root of order 2 is -1, and the root of order 4k is the square
//! root of the root of order 2k. So the roots of all sizes of one prime are powers of each other.

use super::modulus::Modulus;

/// The root of `order`, a power of two and at least 2; none when q is no prime or has no such root.
pub(super) fn root_of_unity(q: Modulus, order: usize) -> Option<u64> {
    assert!(order.is_power_of_two() && order >= 2, "the order of a root is a power of two");
    let minus_one = q.value() - 1;
    if !minus_one.is_multiple_of(order as u64) || !concrete_ntt::prime::is_prime64(q.value()) {
        return None;
    }
    let squares = Squares::new(q);
    Some((1..order.trailing_zeros()).fold(minus_one, |root, _| squares.root(root)))
}

/// What square roots modulo one prime need.
struct Squares {
    q: Modulus,
    /// s of q - 1 = 2^s·t.
    twos: u32,
    /// t of q - 1 = 2^s·t.
    odd: u64,
    /// z^t, of order 2^s.
    generator: u64,
}

impl Squares {
    /// For a prime.
    fn new(q: Modulus) -> Self {
        let minus_one = q.value() - 1;
        let twos = minus_one.trailing_zeros();
        let odd = minus_one >> twos;
        let z = (2..q.value())
            .find(|&z| q.pow(z, minus_one / 2) == minus_one)
            .expect("half of the residues of an odd prime are no squares");
        Self { q, twos, odd, generator: q.pow(z, odd) }
    }

    /// The square root of a square x other than zero.
    ///
    /// Throughout, root² = x·rest, and the order of rest divides 2^(m - 1), where c = z^(t·2^(s - m)).
    fn root(&self, x: u64) -> u64 {
        let q = self.q;
        let (mut m, mut c) = (self.twos, self.generator);
        let (mut rest, mut root) = (q.pow(x, self.odd), q.pow(x, self.odd.div_ceil(2)));
        while rest != 1 {
            let order = self.log2_order(rest);
            assert!(order < m, "only squares have roots");
            let factor = q.pow(c, 1 << (m - order - 1));
            (m, c) = (order, q.mul(factor, factor));
            (rest, root) = (q.mul(rest, c), q.mul(root, factor));
        }
        root
    }

    /// k of an element of order 2^k.
    fn log2_order(&self, mut x: u64) -> u32 {
        let mut k = 0;
        while x != 1 {
            x = self.q.mul(x, x);
            k += 1;
        }
        k
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root of order 64 by prime, computed apart from this code (`docs/notes/known_answers.py`).
    const KNOWN: [(u64, u64); 4] = [
        (65_537, 64_509),
        (274_876_334_081, 97_295_392_594),
        (1_125_899_904_679_937, 383_181_710_021_681),
        (1_152_921_504_606_584_833, 508_775_114_992_935_345),
    ];

    #[test]
    fn roots_are_the_known_ones() {
        for (prime, root) in KNOWN {
            assert_eq!(root_of_unity(Modulus::new(prime), 64), Some(root), "modulo {prime}");
        }
    }

    #[test]
    fn a_root_is_a_square_root_of_the_one_before() {
        for (prime, _) in KNOWN {
            let q = Modulus::new(prime);
            assert_eq!(root_of_unity(q, 2), Some(prime - 1));
            for log_order in 2..=16 {
                let root = root_of_unity(q, 1 << log_order).unwrap();
                assert_eq!(Some(q.mul(root, root)), root_of_unity(q, 1 << (log_order - 1)));
            }
        }
    }

    #[test]
    fn what_has_no_root_is_refused() {
        // Too few factors of two; not a prime.
        for (modulus, order) in [(65_537, 1 << 17), (1_125_899_904_679_937, 1 << 40), (64 * 5 * 13 + 1, 64)] {
            assert_eq!(root_of_unity(Modulus::new(modulus), order), None);
        }
    }
}

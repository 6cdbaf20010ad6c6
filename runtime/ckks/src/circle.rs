//! Points of the unit circle as doubles, by integer arithmetic: the same bits on every platform.
//!
//! Angles are fractions of an eighth of the circle, so that sines and cosines lie in [0, 1]. They are held in units
//! of 2^-127. The smallest steps come from their power series, all other points from products of two; errors stay
//! below 2^-115, so every double is the nearest one.

/// π/4 in units of 2^-127, rounded down.
const EIGHTH: u128 = 0x6487_ED51_10B4_611A_6263_3145_C06E_0E68;

/// Cosine and sine of an angle in the first eighth of the circle.
#[derive(Clone, Copy)]
struct Point {
    cos: u128,
    sin: u128,
}

/// The points of all multiples of a fraction of the circle.
pub(super) struct Circle {
    /// Cosine and sine of entry k: k times an eighth of the circle, divided by the number of entries less one.
    eighth: Vec<(f64, f64)>,
}

impl Circle {
    /// The points whose angles are multiples of a circle divided by `order`, a power of two and at least 8.
    pub(super) fn new(order: usize) -> Self {
        assert!(order.is_power_of_two() && order >= 8, "the order is a power of two");
        let mut points = vec![Point { cos: ONE, sin: 0 }, Point::small(0)];
        for halvings in 1..=(order / 8).trailing_zeros() {
            // Every second point is new: an old one turned by the smallest step.
            let step = Point::small(halvings);
            let last = points.len() - 1;
            points = points[..last].iter().flat_map(|&p| [p, p.turned(step)]).chain([points[last]]).collect();
        }
        Self { eighth: points.into_iter().map(|p| (to_f64(p.cos), to_f64(p.sin))).collect() }
    }

    /// Cosine and sine of `k` times the circle divided by the order.
    pub(super) fn point(&self, k: usize) -> (f64, f64) {
        let eighth = self.eighth.len() - 1;
        let (octant, rest) = (k / eighth % 8, k % eighth);
        let (a, b) = if octant % 2 == 0 {
            self.eighth[rest]
        } else {
            let (cos, sin) = self.eighth[eighth - rest];
            (sin, cos)
        };
        match octant / 2 {
            0 => (a, b),
            1 => (-b, a),
            2 => (-a, -b),
            _ => (b, -a),
        }
    }
}

const ONE: u128 = 1 << 127;

impl Point {
    /// The angle of an eighth of the circle, halved some times, by power series.
    fn small(halvings: u32) -> Self {
        let angle = EIGHTH >> halvings;
        let squared = mul(angle, angle);
        // Σ (-1)^k·x^(2k + first) / (2k + first)!
        let series = |start: u128, first: u128| {
            let (mut sum, mut term, mut at, mut negative) = (start, start, first, true);
            while term > 0 {
                term = mul(term, squared) / ((at + 1) * (at + 2));
                sum = if negative { sum - term } else { sum + term };
                (at, negative) = (at + 2, !negative);
            }
            sum
        };
        Self { cos: series(ONE, 0), sin: series(angle, 1) }
    }

    /// The sum of two angles that is at most an eighth of the circle.
    fn turned(self, by: Self) -> Self {
        Self {
            cos: mul(self.cos, by.cos) - mul(self.sin, by.sin),
            sin: mul(self.sin, by.cos) + mul(self.cos, by.sin),
        }
    }
}

/// The product of two numbers in units of 2^-127, each at most one; rounded down by less than two units.
fn mul(a: u128, b: u128) -> u128 {
    let (a1, a0, b1, b0) = (a >> 64, a & u128::from(u64::MAX), b >> 64, b & u128::from(u64::MAX));
    let low = (a0 * b0) >> 64;
    let mid = a1 * b0 + low;
    let mid = (mid >> 64, (mid & u128::from(u64::MAX)) + a0 * b1);
    (a1 * b1 + mid.0 + (mid.1 >> 64)) << 1
}

/// The nearest double of a number in units of 2^-127; the division is exact.
fn to_f64(x: u128) -> f64 {
    x as f64 / ONE as f64
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::*;

    /// Largest order that any ring asks for.
    const ORDER: usize = 1 << 18;

    #[test]
    fn points_have_known_bits() {
        let circle = Circle::new(ORDER);
        let mut hasher = blake3::Hasher::new();
        for k in 0..ORDER {
            let (cos, sin) = circle.point(k);
            hasher.update(&cos.to_bits().to_le_bytes());
            hasher.update(&sin.to_bits().to_le_bytes());
        }
        assert_eq!(
            hasher.finalize().to_hex().as_str(),
            "45e99030e1d4781d6133a575c64d64c5a15c7b7f9be163d1f3c8f8684f67f88e"
        );
    }

    #[test]
    fn smaller_circles_are_parts_of_larger_ones() {
        let large = Circle::new(1 << 12);
        for log_order in 3..12 {
            let small = Circle::new(1 << log_order);
            for k in 0..2 << log_order {
                assert_eq!(small.point(k), large.point(k << (12 - log_order)));
            }
        }
    }

    /// cos and sin of 2π·k/order in units of 2^-200, by power series in big integers.
    fn exact(k: usize, order: usize) -> [BigInt; 2] {
        // π in units of 2^-200, rounded down, by Machin's formula.
        let one: BigInt = BigInt::from(1) << 220;
        let inverse_tangent = |x: u32| {
            let (mut sum, mut power, mut at) = (BigInt::from(0), &one / x, 1u32);
            while power != BigInt::from(0) {
                let term = &power / at;
                sum = if at % 4 == 1 { sum + term } else { sum - term };
                power /= x * x;
                at += 2;
            }
            sum
        };
        let pi: BigInt = 16 * inverse_tangent(5) - 4 * inverse_tangent(239);
        let angle: BigInt = pi * 2 * k / order;
        [0u32, 1].map(|first| {
            let start = if first == 0 { one.clone() } else { angle.clone() };
            let (mut sum, mut term, mut at) = (start.clone(), start, first);
            while term != BigInt::from(0) {
                let next: BigInt = (term * &angle * &angle) >> 440;
                term = -next / ((at + 1) * (at + 2));
                sum += &term;
                at += 2;
            }
            sum >> 20
        })
    }

    /// A finite double in units of 2^-200; exact for multiples of that.
    fn in_units(x: f64) -> BigInt {
        let exponent = ((x.to_bits() >> 52) & 0x7FF) as i64;
        let mantissa = BigInt::from((x.to_bits() & ((1 << 52) - 1)) | (u64::from(exponent > 0) << 52));
        let scaled = mantissa << (200 + exponent.max(1) - 1075);
        if x < 0.0 { -scaled } else { scaled }
    }

    #[test]
    fn points_are_the_nearest_doubles() {
        let circle = Circle::new(ORDER);
        let some = (0..ORDER).step_by(1009).chain([0, 1, ORDER / 8, ORDER / 4, ORDER / 2, ORDER - 1]);
        for k in some {
            let (cos, sin) = circle.point(k);
            for (found, exact) in [cos, sin].into_iter().zip(exact(k, ORDER)) {
                if found == 0.0 {
                    assert!(exact.bits() < 20, "{k} of {ORDER} is not zero");
                    continue;
                }
                let error = |x: f64| (in_units(x) - &exact).magnitude().clone();
                for neighbor in [found.next_up(), found.next_down()] {
                    assert!(error(found) <= error(neighbor), "{k} of {ORDER}: {found:e}");
                }
            }
        }
    }
}

//! One prime modulus below 2^61 and its scalar arithmetic.

/// A prime q < 2^61 with the constants that make reduction cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    value: u64,
    /// floor(2^128 / q), for reduction of 128-bit words.
    barrett: u128,
}

/// A constant operand with its precomputed quotient (Shoup): one high and two low products per use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShoupConstant {
    value: u64,
    quotient: u64,
}

impl Modulus {
    /// The modulus `value`, which must be an odd number in [3, 2^61).
    ///
    /// # Panics
    /// When `value` is out of range.
    pub fn new(value: u64) -> Self {
        assert!(value >= 3 && value % 2 == 1 && value >> 61 == 0, "modulus out of range: {value}");
        // 2^128 is no multiple of an odd q, so the quotient of 2^128 - 1 is the one of 2^128.
        Self { value, barrett: u128::MAX / u128::from(value) }
    }

    /// The prime itself.
    pub fn value(self) -> u64 {
        self.value
    }

    /// a + b for a, b in [0, q).
    #[inline(always)]
    pub fn add(self, a: u64, b: u64) -> u64 {
        self.reduce_once(a + b)
    }

    /// a - b for a, b in [0, q).
    #[inline(always)]
    pub fn sub(self, a: u64, b: u64) -> u64 {
        let d = a.wrapping_sub(b);
        d.min(d.wrapping_add(self.value))
    }

    /// -a for a in [0, q).
    #[inline(always)]
    pub fn neg(self, a: u64) -> u64 {
        self.sub(0, a)
    }

    /// x mod q for x in [0, 2q).
    #[inline(always)]
    pub fn reduce_once(self, x: u64) -> u64 {
        x.min(x.wrapping_sub(self.value))
    }

    /// x mod q for any x.
    #[inline(always)]
    pub fn reduce_u128(self, x: u128) -> u64 {
        // The quotient of the high halves is at most two below floor(x / q).
        let (x1, x0) = ((x >> 64) as u64, x as u64);
        let (b1, b0) = ((self.barrett >> 64) as u64, self.barrett as u64);
        let low = product(x0, b0) >> 64;
        let mid = product(x0, b1);
        let mid2 = product(x1, b0);
        let carry = (low + u128::from(mid as u64) + u128::from(mid2 as u64)) >> 64;
        let quotient = x1
            .wrapping_mul(b1)
            .wrapping_add((mid >> 64) as u64)
            .wrapping_add((mid2 >> 64) as u64)
            .wrapping_add(carry as u64);
        let r = x0.wrapping_sub(quotient.wrapping_mul(self.value));
        self.reduce_once(self.reduce_once(r))
    }

    /// x mod q for any word.
    #[inline(always)]
    pub fn reduce(self, x: u64) -> u64 {
        self.reduce_u128(u128::from(x))
    }

    /// x mod q for any signed word, without a branch: `x` may be a secret.
    #[inline(always)]
    pub fn reduce_i64(self, x: i64) -> u64 {
        let r = self.reduce(x.unsigned_abs());
        let is_negative = (x >> 63) as u64;
        r ^ ((r ^ self.neg(r)) & is_negative)
    }

    /// x mod q for an integral `x` of any size.
    pub fn reduce_f64(self, x: f64) -> u64 {
        if x.abs() < 9.0e18 {
            return self.reduce_i64(x as i64);
        }
        let bits = x.abs().to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let shift = (bits >> 52) - 1075;
        let r = self.mul(self.reduce(mantissa), self.pow(2, shift));
        if x < 0.0 { self.neg(r) } else { r }
    }

    /// a·b for a, b in [0, q).
    #[inline(always)]
    pub fn mul(self, a: u64, b: u64) -> u64 {
        self.reduce_u128(product(a, b))
    }

    /// base^exponent for base in [0, q).
    pub fn pow(self, mut base: u64, mut exponent: u64) -> u64 {
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, base);
            }
            base = self.mul(base, base);
            exponent >>= 1;
        }
        result
    }

    /// The inverse of a in [1, q).
    pub fn inv(self, a: u64) -> u64 {
        self.pow(a, self.value - 2)
    }

    /// Prepares the constant w in [0, q) for [`Modulus::mul_shoup`].
    pub fn shoup(self, w: u64) -> ShoupConstant {
        ShoupConstant { value: w, quotient: ((u128::from(w) << 64) / u128::from(self.value)) as u64 }
    }

    /// a·w for any word a; output in [0, q).
    #[inline(always)]
    pub fn mul_shoup(self, a: u64, w: ShoupConstant) -> u64 {
        let q = (product(a, w.quotient) >> 64) as u64;
        self.reduce_once(a.wrapping_mul(w.value).wrapping_sub(q.wrapping_mul(self.value)))
    }

    /// The representative of a in [-(q-1)/2, (q-1)/2], without a branch: `a` may be a secret.
    #[inline(always)]
    pub fn center(self, a: u64) -> i64 {
        // Both are below 2^63, so the sign of the difference tells which is larger.
        let is_above = ((self.value / 2) as i64 - a as i64) >> 63;
        a as i64 - (self.value as i64 & is_above)
    }
}

/// a·b.
#[cfg(not(target_arch = "wasm32"))]
#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// a·b by halves: there is no such instruction, and without this every product is a call.
#[cfg(target_arch = "wasm32")]
#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    const LOW: u64 = u32::MAX as u64;
    let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
    let mid = a1 * b0 + ((a0 * b0) >> 32);
    let mid2 = a0 * b1 + (mid & LOW);
    let high = a1 * b1 + (mid >> 32) + (mid2 >> 32);
    u128::from(high) << 64 | u128::from(a.wrapping_mul(b))
}

impl ShoupConstant {
    /// The constant itself.
    pub fn value(self) -> u64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMES: [u64; 6] =
        [3, 65_537, 274_877_906_951, 1_125_899_904_679_937, 1_152_921_504_606_830_593, (1 << 61) - 1];

    fn samples(q: u64) -> Vec<u64> {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        let mut out = vec![0, 1, q / 2, q - 2, q - 1];
        // An interpreter takes a thousand times as long.
        for _ in 0..if cfg!(miri) { 10 } else { 200 } {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            out.push((x ^ (x >> 29)) % q);
        }
        out
    }

    #[test]
    fn arithmetic_agrees_with_wide_remainders() {
        for p in PRIMES {
            let (q, samples) = (Modulus::new(p), samples(p));
            for &a in &samples {
                for &b in &[1, p - 1, a, samples[7]] {
                    let wide = |x: u128| (x % u128::from(p)) as u64;
                    assert_eq!(q.mul(a, b), wide(u128::from(a) * u128::from(b)));
                    assert_eq!(q.mul_shoup(a, q.shoup(b)), q.mul(a, b));
                    assert_eq!(q.add(a, b), wide(u128::from(a) + u128::from(b)));
                    assert_eq!(q.sub(a, b), wide(u128::from(a) + u128::from(p - b)));
                }
            }
        }
    }

    #[test]
    fn any_word_is_reduced() {
        for p in PRIMES {
            let q = Modulus::new(p);
            for x in [0, 1, u128::MAX, u128::MAX - 1, u128::from(u64::MAX), 1 << 127, (1 << 64) * 12345] {
                assert_eq!(u128::from(q.reduce_u128(x)), x % u128::from(p));
            }
        }
    }

    #[test]
    fn integral_floats_of_any_size_are_reduced() {
        let q = Modulus::new(PRIMES[3]);
        for x in [0.0, -1.0, 1e15, -1e15, 2f64.powi(80) + 2f64.powi(40), -(2f64.powi(100))] {
            let exact = x as i128;
            assert_eq!(i128::from(q.reduce_f64(x)), exact.rem_euclid(i128::from(q.value())), "{x}");
        }
    }

    #[test]
    fn inverses_multiply_to_one() {
        let q = Modulus::new(PRIMES[4]);
        for a in samples(q.value()).into_iter().filter(|&a| a != 0) {
            assert_eq!(q.mul(a, q.inv(a)), 1);
        }
    }
}

//! The negacyclic transform of one prime below 2^50, in double precision.
//!
//! Layers are merged three at a time: a pass reads eight entries, does twelve butterflies and writes them back.
//! The last three layers of the forward transform (the first three of the inverse) work on eight neighboring
//! entries; four such groups are transposed so that each vector holds one entry of each group. Blocks that
//! fit the first cache are finished before the next is touched.
//!
//! Growth: a forward butterfly adds at most about 0.6·p, so for p < 2^47 nothing overflows 2^51 before the
//! end; larger primes balance the four entries that no product reduces, once per pass. An inverse
//! butterfly doubles sums, so small primes balance the two fastest growing entries and large primes all.

use std::arch::x86_64::*;

use super::lanes::{Prime, V, from_int, load, load_f64, splat, store, transpose};
use super::{FMA_PRIME_BOUND, FmaToken};
use crate::ring::modulus::Modulus;

/// Below this bound sums may grow over a whole transform.
const SMALL_PRIME_BOUND: u64 = 1 << 47;
/// Entries of a block that is finished before the next one: half of a 32 KiB cache.
const BLOCK: usize = 1 << 11;
/// Twiddles of one group of the innermost pass: seven vectors.
const INNER: usize = 7;

/// Twiddle tables of one direction.
#[derive(Clone, Debug)]
struct Twiddles {
    /// Entry m + i belongs to block i of the layer with m blocks, for m < n/8; balanced.
    outer: Vec<f64>,
    /// Per 32 entries, seven vectors for the layers with n/8, n/4 and n/2 blocks.
    inner: Vec<[[f64; 4]; INNER]>,
}

/// A transform plan.
#[derive(Clone, Debug)]
pub struct FmaNtt {
    _token: FmaToken,
    q: Modulus,
    n: usize,
    forward: Twiddles,
    inverse: Twiddles,
    n_inv: u64,
}

impl FmaNtt {
    /// Smallest supported size.
    pub const MIN_SIZE: usize = 64;

    /// A plan from ψ, a primitive root of unity of order 2n.
    ///
    /// # Panics
    /// When the prime or the size is out of range.
    pub fn new(token: FmaToken, q: Modulus, n: usize, root: u64) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        assert!(n.is_power_of_two() && n >= Self::MIN_SIZE, "unsupported transform size");
        Self {
            _token: token,
            q,
            n,
            forward: Twiddles::new(q, n, root),
            inverse: Twiddles::new(q, n, q.inv(root)),
            n_inv: q.inv(n as u64 % q.value()),
        }
    }

    /// The number of coefficients.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Coefficients in [0, p), in order, to values in [0, p), bit-reversed.
    pub fn forward(&self, buf: &mut [u64]) {
        self.run_forward::<true>(buf);
    }

    /// Integral coefficients in [-p, p], in order, to values in [0, p), bit-reversed.
    pub fn forward_f64(&self, out: &mut [u64], coeffs: &[f64]) {
        assert_eq!(out.len(), coeffs.len());
        // Adding zero turns a negative zero into a positive one.
        out.iter_mut().zip(coeffs).for_each(|(out, &c)| *out = (c + 0.0).to_bits());
        self.run_forward::<false>(out);
    }

    fn run_forward<const INTEGER: bool>(&self, buf: &mut [u64]) {
        assert_eq!(buf.len(), self.n);
        // SAFETY: the token in `self` proves that the CPU has AVX2 and FMA.
        unsafe {
            if self.q.value() < SMALL_PRIME_BOUND {
                forward::<INTEGER, false>(self, buf);
            } else {
                forward::<INTEGER, true>(self, buf);
            }
        }
    }

    /// Values in [0, p), bit-reversed, to coefficients in [0, p), in order, divided by n.
    pub fn inverse(&self, buf: &mut [u64]) {
        assert_eq!(buf.len(), self.n);
        // SAFETY: the token in `self` proves that the CPU has AVX2 and FMA.
        unsafe {
            if self.q.value() < SMALL_PRIME_BOUND {
                inverse::<false>(self, buf);
            } else {
                inverse::<true>(self, buf);
            }
        }
    }
}

impl Twiddles {
    fn new(q: Modulus, n: usize, root: u64) -> Self {
        let bits = n.trailing_zeros();
        let mut table = vec![0.0; n];
        let mut power = 1;
        for k in 0..n {
            table[k.reverse_bits() >> (usize::BITS - bits)] = q.center(power) as f64;
            power = q.mul(power, root);
        }
        let lanes = |f: &dyn Fn(usize) -> usize| std::array::from_fn(|lane| table[f(lane)]);
        let inner = (0..n / 32)
            .map(|g| {
                std::array::from_fn(|j| match j {
                    0 => lanes(&|l| n / 8 + 4 * g + l),
                    1..=2 => lanes(&|l| n / 4 + 8 * g + 2 * l + (j - 1)),
                    _ => lanes(&|l| n / 2 + 16 * g + 4 * l + (j - 3)),
                })
            })
            .collect();
        table.truncate(n / 8);
        Self { outer: table, inner }
    }
}

/// Seven twiddles of three merged layers with their quotients.
struct Fan {
    w: [V; INNER],
    wp: [V; INNER],
}

impl Fan {
    /// Twiddles of block `i` of the layer with `m` blocks and of its two and four sub-blocks.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn outer(table: &[f64], m: usize, i: usize, prime: Prime) -> Self {
        let at = |j: usize| match j {
            0 => m + i,
            1..=2 => 2 * (m + i) + j - 1,
            _ => 4 * (m + i) + j - 3,
        };
        let w = std::array::from_fn(|j| splat(table[at(j)]));
        Self::with_quotients(w, prime)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn inner(table: &[[f64; 4]; INNER], prime: Prime) -> Self {
        let w = std::array::from_fn(|j| load_f64(&table[j]));
        Self::with_quotients(w, prime)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn with_quotients(w: [V; INNER], prime: Prime) -> Self {
        Self { w, wp: std::array::from_fn(|j| _mm256_mul_pd(w[j], prime.inv)) }
    }
}

/// (x, y) ← (x + w·y, x - w·y).
///
/// The low part of the product meets x while the quotient is still on its way; that shortens the chain.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn cross(prime: Prime, x: &mut [V; 8], (a, b): (usize, usize), fan: &Fan, j: usize) {
    let (rest, low) = prime.mul_const_parts(x[b], fan.w[j], fan.wp[j]);
    let (plus, minus) = (_mm256_add_pd(x[a], low), _mm256_sub_pd(x[a], low));
    (x[a], x[b]) = (_mm256_add_pd(plus, rest), _mm256_sub_pd(minus, rest));
}

/// (x, y) ← (x + y, w·(x - y)).
#[inline]
#[target_feature(enable = "avx2,fma")]
fn uncross(prime: Prime, x: &mut [V; 8], (a, b): (usize, usize), fan: &Fan, j: usize) {
    let d = _mm256_sub_pd(x[a], x[b]);
    x[a] = _mm256_add_pd(x[a], x[b]);
    x[b] = prime.mul_const(d, fan.w[j], fan.wp[j]);
}

/// Three forward layers on eight entries.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fan_forward<const LARGE: bool>(prime: Prime, x: &mut [V; 8], fan: &Fan) {
    if LARGE {
        for x in &mut x[..4] {
            *x = prime.balance(*x);
        }
    }
    for k in 0..4 {
        cross(prime, x, (k, k + 4), fan, 0);
    }
    for (k, j) in [(0, 1), (1, 1), (4, 2), (5, 2)] {
        cross(prime, x, (k, k + 2), fan, j);
    }
    for k in 0..4 {
        cross(prime, x, (2 * k, 2 * k + 1), fan, 3 + k);
    }
}

/// Three inverse layers on eight entries.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fan_inverse<const LARGE: bool>(prime: Prime, x: &mut [V; 8], fan: &Fan) {
    if LARGE {
        for x in x.iter_mut() {
            *x = prime.balance(*x);
        }
    }
    for k in 0..4 {
        uncross(prime, x, (2 * k, 2 * k + 1), fan, 3 + k);
    }
    for (k, j) in [(0, 1), (1, 1), (4, 2), (5, 2)] {
        uncross(prime, x, (k, k + 2), fan, j);
    }
    for k in 0..4 {
        uncross(prime, x, (k, k + 4), fan, 0);
    }
    if !LARGE {
        x[0] = prime.balance(x[0]);
        x[1] = prime.balance(x[1]);
    }
}

/// How entries are read: integers, or doubles of an earlier pass.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn read<const INTEGER: bool>(x: &[u64; 4]) -> V {
    if INTEGER { from_int(load(x)) } else { load(x) }
}

/// The eight equal parts of a block, as vectors.
#[inline]
fn eighths(block: &mut [u64]) -> [&mut [[u64; 4]]; 8] {
    let part = block.len() / 8;
    let mut rest = block;
    std::array::from_fn(|_| {
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(part);
        rest = tail;
        head.as_chunks_mut::<4>().0
    })
}

/// One pass over a block of at least 32 entries.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn pass<const INTEGER: bool, const FORWARD: bool, const LARGE: bool>(
    prime: Prime,
    block: &mut [u64],
    fan: &Fan,
) {
    let mut parts = eighths(block);
    let len = parts[0].len();
    // Equal lengths, spelled out so that the loop below checks no index.
    for part in &mut parts {
        *part = &mut std::mem::take(part)[..len];
    }
    for i in 0..len {
        let mut x: [V; 8] = std::array::from_fn(|k| read::<INTEGER>(&parts[k][i]));
        if FORWARD {
            fan_forward::<LARGE>(prime, &mut x, fan);
        } else {
            fan_inverse::<LARGE>(prime, &mut x, fan);
        }
        for k in 0..8 {
            store(&mut parts[k][i], x[k]);
        }
    }
}

/// One forward layer on integers, for sizes whose number of layers is no multiple of three.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn layer_forward<const INTEGER: bool, const LARGE: bool>(prime: Prime, block: &mut [u64], w: f64) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (w, wp) = (splat(w), _mm256_mul_pd(splat(w), prime.inv));
    for (a, b) in low.as_chunks_mut::<4>().0.iter_mut().zip(high.as_chunks_mut::<4>().0) {
        let mut x = read::<INTEGER>(a);
        if LARGE {
            x = prime.balance(x);
        }
        let t = prime.mul_const(read::<INTEGER>(b), w, wp);
        store(a, _mm256_add_pd(x, t));
        store(b, _mm256_sub_pd(x, t));
    }
}

/// One inverse layer.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn layer_inverse(prime: Prime, block: &mut [u64], w: f64) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (w, wp) = (splat(w), _mm256_mul_pd(splat(w), prime.inv));
    for (a, b) in low.as_chunks_mut::<4>().0.iter_mut().zip(high.as_chunks_mut::<4>().0) {
        let (x, y) = (prime.balance(load(a)), prime.balance(load(b)));
        store(a, _mm256_add_pd(x, y));
        store(b, prime.mul_const(_mm256_sub_pd(x, y), w, wp));
    }
}

/// The three layers on neighboring entries, 32 at a time.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn inner_pass<const FORWARD: bool, const LARGE: bool>(
    prime: Prime,
    buf: &mut [u64],
    table: &[[[f64; 4]; INNER]],
) {
    let groups = buf.as_chunks_mut::<4>().0.as_chunks_mut::<8>().0;
    for (group, table) in groups.iter_mut().zip(table) {
        let fan = Fan::inner(table, prime);
        let mut rows: [V; 8] = std::array::from_fn(|k| load(&group[k]));
        if !FORWARD {
            rows = rows.map(|row| from_int(row));
        }
        let low = transpose([rows[0], rows[2], rows[4], rows[6]]);
        let high = transpose([rows[1], rows[3], rows[5], rows[7]]);
        let mut x = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
        if FORWARD {
            fan_forward::<LARGE>(prime, &mut x, &fan);
            x = x.map(|x| prime.canonical(x));
        } else {
            fan_inverse::<LARGE>(prime, &mut x, &fan);
        }
        let low = transpose([x[0], x[1], x[2], x[3]]);
        let high = transpose([x[4], x[5], x[6], x[7]]);
        for k in 0..4 {
            store(&mut group[2 * k], low[k]);
            store(&mut group[2 * k + 1], high[k]);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn forward<const INTEGER: bool, const LARGE: bool>(plan: &FmaNtt, buf: &mut [u64]) {
    let prime = Prime::new(plan.q.value());
    let table = &plan.forward.outer;
    let layers = plan.n.trailing_zeros() as usize - 3;
    let mut m = 1;
    for single in 0..layers % 3 {
        for (i, block) in buf.chunks_exact_mut(plan.n / m).enumerate() {
            if single == 0 {
                layer_forward::<INTEGER, LARGE>(prime, block, table[m + i]);
            } else {
                layer_forward::<false, LARGE>(prime, block, table[m + i]);
            }
        }
        m *= 2;
    }
    while plan.n / m > BLOCK {
        forward_passes::<INTEGER, LARGE>(plan, prime, buf, m, 0);
        m *= 8;
    }
    for (i, block) in buf.chunks_exact_mut(plan.n / m).enumerate() {
        let mut sub = 1;
        while block.len() / sub > 8 {
            forward_passes::<INTEGER, LARGE>(plan, prime, block, m * sub, i * sub);
            sub *= 8;
        }
        let groups = block.len() / 32;
        inner_pass::<true, LARGE>(prime, block, &plan.forward.inner[i * groups..(i + 1) * groups]);
    }
}

/// One merged pass over every block of `part`, which holds blocks `first`… of the layer with `m` blocks.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn forward_passes<const INTEGER: bool, const LARGE: bool>(
    plan: &FmaNtt,
    prime: Prime,
    part: &mut [u64],
    m: usize,
    first: usize,
) {
    for (i, block) in part.chunks_exact_mut(plan.n / m).enumerate() {
        let fan = Fan::outer(&plan.forward.outer, m, first + i, prime);
        if m == 1 {
            pass::<INTEGER, true, LARGE>(prime, block, &fan);
        } else {
            pass::<false, true, LARGE>(prime, block, &fan);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn inverse<const LARGE: bool>(plan: &FmaNtt, buf: &mut [u64]) {
    let prime = Prime::new(plan.q.value());
    let table = &plan.inverse.outer;
    let layers = plan.n.trailing_zeros() as usize - 3;
    // The forward transform starts with the single layers; here they come last.
    let top = 1 << (layers % 3);
    let mut m = top;
    while plan.n / m > BLOCK {
        m *= 8;
    }
    for (i, block) in buf.chunks_exact_mut(plan.n / m).enumerate() {
        let groups = block.len() / 32;
        inner_pass::<false, LARGE>(prime, block, &plan.inverse.inner[i * groups..(i + 1) * groups]);
        let mut sub = block.len() / 64;
        while sub >= 1 {
            inverse_passes::<LARGE>(plan, prime, block, m * sub, i * sub);
            sub /= 8;
        }
    }
    while m > top {
        m /= 8;
        inverse_passes::<LARGE>(plan, prime, buf, m, 0);
    }
    while m > 1 {
        m /= 2;
        for (i, block) in buf.chunks_exact_mut(plan.n / m).enumerate() {
            layer_inverse(prime, block, table[m + i]);
        }
    }
    let scale = plan.q.center(plan.n_inv) as f64;
    let (w, wp) = (splat(scale), _mm256_mul_pd(splat(scale), prime.inv));
    for x in buf.as_chunks_mut::<4>().0 {
        let v = if LARGE { prime.balance(load(x)) } else { load(x) };
        store(x, prime.canonical_small(prime.mul_const(v, w, wp)));
    }
}

/// One merged inverse pass over every block of `part`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn inverse_passes<const LARGE: bool>(plan: &FmaNtt, prime: Prime, part: &mut [u64], m: usize, first: usize) {
    for (i, block) in part.chunks_exact_mut(plan.n / m).enumerate() {
        let fan = Fan::outer(&plan.inverse.outer, m, first + i, prime);
        pass::<false, false, LARGE>(prime, block, &fan);
    }
}

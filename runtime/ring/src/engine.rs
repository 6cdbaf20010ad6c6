//! Who computes a transform: our kernels in double precision (primes below 2^50), the library (any prime), or
//! plain integer arithmetic (any prime and size).
//!
//! All engines give the same bits for the root that they are given. The library picks its root itself, so it serves
//! only where that is the same one.

use super::ahead::Ahead;
use super::coefficients::Coefficients;
use super::kernels::Instructions;
use super::modulus::Modulus;
use super::plain_ntt::PlainNtt;
use super::scalar::{Conversion, End};
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
use super::simd;

#[derive(Clone, Debug)]
pub(super) enum Engine {
    Plain(PlainNtt),
    Library(concrete_ntt::prime64::Plan),
    #[cfg(target_arch = "x86_64")]
    Four(simd::FmaNtt<simd::Avx2>),
    #[cfg(target_arch = "x86_64")]
    Eight(simd::FmaNtt<simd::Avx512>),
    #[cfg(target_feature = "relaxed-simd")]
    Two(simd::FmaNtt<simd::Relaxed>),
}

impl Engine {
    /// The fastest engine that the instructions allow, for ψ = `root`.
    pub(super) fn choose(q: Modulus, n: usize, root: u64, instructions: Instructions) -> Self {
        if instructions == Instructions::Scalar {
            return Self::Plain(PlainNtt::new(q, n, root));
        }
        #[cfg(target_arch = "x86_64")]
        match instructions.width(q) {
            Some(simd::Width::Four(s)) if n >= simd::FmaNtt::<simd::Avx2>::MIN_SIZE => {
                return Self::Four(simd::FmaNtt::new(s, q, n, root));
            }
            Some(simd::Width::Eight(s)) if n >= simd::FmaNtt::<simd::Avx512>::MIN_SIZE => {
                return Self::Eight(simd::FmaNtt::new(s, q, n, root));
            }
            _ => {}
        }
        #[cfg(target_feature = "relaxed-simd")]
        if let Some(s) = simd::Relaxed::detect()
            && q.value() < simd::FMA_PRIME_BOUND
            && n >= simd::FmaNtt::<simd::Relaxed>::MIN_SIZE
        {
            return Self::Two(simd::FmaNtt::new(s, q, n, root));
        }
        // Its products are calls there, ours are not.
        #[cfg(target_arch = "wasm32")]
        return Self::Plain(PlainNtt::new(q, n, root));
        #[cfg(not(target_arch = "wasm32"))]
        Self::library(q, n, root).unwrap_or_else(|| Self::Plain(PlainNtt::new(q, n, root)))
    }

    /// The library, if it has this size and means the same by a transform as we do.
    pub(super) fn library(q: Modulus, n: usize, root: u64) -> Option<Self> {
        let plan = concrete_ntt::prime64::Plan::try_new(n, q.value())?;
        let mut found = vec![0; n];
        found[1] = 1;
        plan.fwd(&mut found);
        // The transform of X has every odd power of ψ, at the places that the order says.
        let (mut power, squared) = (root, q.mul(root, root));
        for k in 0..n {
            if found[k.reverse_bits() >> (usize::BITS - n.trailing_zeros())] != power {
                return None;
            }
            power = q.mul(power, squared);
        }
        Some(Self::Library(plan))
    }

    /// Short name, for benches.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "plain",
            Self::Library(plan) if plan.use_ifma() => "library-ifma",
            Self::Library(_) => "library",
            #[cfg(target_arch = "x86_64")]
            Self::Four(_) => "avx2-fma",
            #[cfg(target_arch = "x86_64")]
            Self::Eight(_) => "avx512-fma",
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(_) => "wasm-fma",
        }
    }

    /// Coefficients in [0, q) to values in [0, q).
    pub(super) fn forward(&self, buf: &mut [u64]) {
        match self {
            Self::Plain(plan) => plan.forward(buf),
            Self::Library(plan) => plan.fwd(buf),
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => plan.forward(buf),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => plan.forward(buf),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => plan.forward(buf),
        }
    }

    /// Begins the transform of integral coefficients in [-q, q], if the engine takes doubles.
    pub(super) fn begin_integers(&self, out: &mut [u64], coeffs: &Coefficients) -> bool {
        match self {
            Self::Plain(_) | Self::Library(_) => return false,
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => plan.begin_integers(out, coeffs),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => plan.begin_integers(out, coeffs),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => plan.begin_integers(out, coeffs),
        }
        true
    }

    /// Entries that can be finished apart from the others, if the engine works like that.
    pub(super) fn piece(&self) -> Option<usize> {
        match self {
            Self::Plain(_) | Self::Library(_) => None,
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => Some(plan.piece()),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => Some(plan.piece()),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => Some(plan.piece()),
        }
    }

    /// Begins the transform of a base conversion from doubles, if the engine can.
    pub(super) fn begin_converted(
        &self,
        out: &mut [u64],
        from: Conversion<'_>,
        ahead: &mut Ahead<'_>,
    ) -> bool {
        match self {
            Self::Plain(_) | Self::Library(_) => return false,
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => plan.begin_converted(out, from, ahead),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => plan.begin_converted(out, from, ahead),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => plan.begin_converted(out, from, ahead),
        }
        true
    }

    /// Finishes piece `i` of what the engine has begun.
    pub(super) fn finish_piece(&self, i: usize, piece: &mut [u64], end: End<'_>, ahead: &mut Ahead<'_>) {
        match self {
            Self::Plain(_) | Self::Library(_) => unreachable!("it has begun nothing"),
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => plan.finish_piece(i, piece, end, ahead),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => plan.finish_piece(i, piece, end, ahead),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => plan.finish_piece(i, piece, end, ahead),
        }
    }

    /// Values in [0, q) to coefficients in [0, q), times `factor`. The values are in `buf` unless given apart.
    pub(super) fn inverse(&self, q: Modulus, buf: &mut [u64], values: Option<&[u64]>, factor: u64) {
        match self {
            Self::Plain(plan) => unscaled_inverse(|buf| plan.inverse(buf), q, buf, values, factor),
            Self::Library(plan) => unscaled_inverse(|buf| plan.inv(buf), q, buf, values, factor),
            #[cfg(target_arch = "x86_64")]
            Self::Four(plan) => plan.inverse(buf, values, factor),
            #[cfg(target_arch = "x86_64")]
            Self::Eight(plan) => plan.inverse(buf, values, factor),
            #[cfg(target_feature = "relaxed-simd")]
            Self::Two(plan) => plan.inverse(buf, values, factor),
        }
    }
}

/// The inverse transform times `factor` from one that does not divide by the size.
fn unscaled_inverse(
    transform: impl Fn(&mut [u64]),
    q: Modulus,
    buf: &mut [u64],
    values: Option<&[u64]>,
    factor: u64,
) {
    if let Some(values) = values {
        buf.copy_from_slice(values);
    }
    transform(buf);
    let scale = q.shoup(q.mul(q.inv(buf.len() as u64 % q.value()), factor));
    buf.iter_mut().for_each(|x| *x = q.mul_shoup(*x, scale));
}

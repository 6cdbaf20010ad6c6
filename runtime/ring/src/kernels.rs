//! The element-wise kernels of one prime, scalar or SIMD, chosen once.

use super::modulus::{Modulus, ShoupConstant};
use super::packed::Packed;
use super::scalar::{self, End, PackedTerm, Start, Term};
use super::simd;
use super::words::Held;

/// Which instructions a ring may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Whatever the CPU has.
    Best,
    /// Our kernels with eight lanes (AVX512) where the CPU has them and the prime is small enough, never the
    /// library's transforms there.
    Avx512,
    /// Our kernels with four lanes (AVX2 and FMA), likewise.
    Avx2,
    /// Plain scalar code; the reference.
    Scalar,
}

impl Instructions {
    /// The vectors that the CPU has of these.
    pub(super) fn vectors(self) -> Option<simd::Width> {
        match self {
            Self::Best => simd::Width::detect(),
            Self::Avx512 => simd::Width::eight(),
            Self::Avx2 => simd::Width::four(),
            Self::Scalar => None,
        }
    }

    /// The vectors that double-precision kernels may use for this prime, if any.
    pub(super) fn width(self, modulus: Modulus) -> Option<simd::Width> {
        self.vectors().filter(|_| modulus.value() < simd::FMA_PRIME_BOUND)
    }
}

/// Element-wise operations modulo one prime; all residues in [0, q), results canonical.
#[derive(Clone, Debug)]
pub struct Kernels {
    modulus: Modulus,
    #[cfg(target_arch = "x86_64")]
    fma: Option<simd::FmaPointwise>,
    #[cfg(target_feature = "relaxed-simd")]
    relaxed: Option<simd::Relaxed>,
}

impl Kernels {
    /// Chooses the kernels for a prime.
    pub fn new(modulus: Modulus, instructions: Instructions) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = instructions;
        Self {
            modulus,
            #[cfg(target_arch = "x86_64")]
            fma: instructions.width(modulus).map(|width| {
                let integer = simd::Ifma::detect().filter(|_| instructions == Instructions::Best);
                simd::FmaPointwise::new(width, integer, modulus)
            }),
            #[cfg(target_feature = "relaxed-simd")]
            relaxed: simd::Relaxed::detect()
                .filter(|_| instructions != Instructions::Scalar && modulus.value() < simd::FMA_PRIME_BOUND),
        }
    }

    /// The prime.
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// out ← a + b.
    pub fn add_into(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.add_into(out, a, b);
        }
        scalar::add_into(self.modulus, out, a, b);
    }

    /// a ← a + b.
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.add_assign(a, b);
        }
        scalar::add_assign(self.modulus, a, b);
    }

    /// a ← a - b.
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.sub_assign(a, b);
        }
        scalar::sub_assign(self.modulus, a, b);
    }

    /// a ← -a.
    pub fn neg_assign(&self, a: &mut [u64]) {
        scalar::neg_assign(self.modulus, a);
    }

    /// out ← a·b; `b` may be compressed as in [`Term`].
    pub fn mul_into(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.mul_into(out, a, b);
        }
        #[cfg(target_feature = "relaxed-simd")]
        if let Some(s) = self.relaxed {
            return simd::mul_into(s, self.modulus, out, a, b);
        }
        scalar::mul_into(self.modulus, out, a, b);
    }

    /// a ← a·b; `b` may be compressed as in [`Term`].
    pub fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.mul_assign(a, b);
        }
        scalar::mul_assign(self.modulus, a, b);
    }

    /// The three products of (a₀ + a₁·s)².
    pub fn square_into(&self, out: [&mut [u64]; 3], a: [&[u64]; 2]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.square_into(out, a);
        }
        scalar::square_into(self.modulus, out, a);
    }

    /// a ← a·w.
    pub fn mul_scalar_assign(&self, a: &mut [u64], w: ShoupConstant) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.mul_scalar_assign(a, w);
        }
        #[cfg(target_feature = "relaxed-simd")]
        if let Some(s) = self.relaxed {
            return simd::mul_scalar_assign(s, self.modulus, a, w);
        }
        scalar::mul_scalar_assign(self.modulus, a, w);
    }

    /// b ← (a - b)·w.
    pub fn sub_mul_scalar_from(&self, b: &mut [u64], a: &[u64], w: ShoupConstant) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.sub_mul_scalar_from(b, a, w);
        }
        scalar::sub_mul_scalar_from(self.modulus, b, a, w);
    }

    /// sums\[h\] ← Σ x·y\[h\], plus what they start from.
    pub fn dot2(&self, sums: [&mut [u64]; 2], terms: &[Term<'_>], start: Start<'_>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.dot2(sums, terms, start);
        }
        scalar::dot2(self.modulus, sums, terms, start);
    }

    /// What transforms are to leave for [`Kernels::dot2_packed`].
    pub fn packed_end(&self) -> End<'static> {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.packed_end();
        }
        End::Residues
    }

    /// As [`Kernels::dot2`], with packed factors.
    pub fn dot2_packed(&self, sums: [&mut [u64]; 2], terms: &[PackedTerm<'_>], start: Start<'_>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.dot2_packed(sums, terms, start);
        }
        scalar::dot2_packed(self.modulus, sums, terms, start);
    }

    /// Packed residues below 2^50 as factors for [`Kernels::dot2`] next to what [`Kernels::packed_end`] leaves, in the
    /// form that this gives.
    pub fn unpack(&self, out: &mut [u64], packed: Packed<'_>) -> Held {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.unpack(out, packed);
        }
        out.iter_mut().zip(packed.residues()).for_each(|(out, x)| *out = x);
        Held::Integers
    }

    /// Whether packed residues are below the prime.
    pub fn is_reduced(&self, packed: Packed<'_>) -> bool {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.is_reduced(packed);
        }
        packed.residues().all(|x| x < self.modulus.value())
    }

    /// Integral doubles of any size to residues.
    pub fn reduce_f64(&self, out: &mut [u64], x: &[f64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(fma) = &self.fma {
            return fma.reduce_f64(out, x);
        }
        #[cfg(target_feature = "relaxed-simd")]
        if let Some(s) = self.relaxed {
            return simd::reduce_f64(s, self.modulus, out, x);
        }
        scalar::reduce_f64(self.modulus, out, x);
    }
}

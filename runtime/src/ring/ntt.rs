//! The negacyclic transform of one prime: coefficients in order to values in bit-reversed order.
//!
//! Entry i of the transform of f is f(ψ^(2·rev(i)+1)), where ψ is the root of order 2N that the library picks
//! and rev reverses log2 N bits. The inverse divides by N. Two engines give the same bits: the library's
//! (AVX512, AVX2 or scalar, any prime), and ours in double precision, which is faster on AVX2 below 2^50.

use std::sync::OnceLock;

use super::kernels::{Instructions, Kernels};
use super::modulus::Modulus;
#[cfg(target_arch = "x86_64")]
use super::simd;

/// A transform plan for one prime and one size.
#[derive(Clone, Debug)]
pub struct Ntt {
    engine: Engine,
    modulus: Modulus,
    n: usize,
    root: u64,
    instructions: Instructions,
    /// `smaller[k]` transforms n/2^(k+1) coefficients with the root ψ^(2^(k+1)); made on first use.
    smaller: Vec<OnceLock<Option<Box<Ntt>>>>,
}

#[derive(Clone, Debug)]
enum Engine {
    Library(concrete_ntt::prime64::Plan),
    #[cfg(target_arch = "x86_64")]
    Fma(simd::FmaNtt),
}

impl Ntt {
    /// A plan, or none when the prime has no root of order 2n.
    pub fn new(modulus: Modulus, n: usize, instructions: Instructions) -> Option<Self> {
        let plan = concrete_ntt::prime64::Plan::try_new(n, modulus.value())?;
        // The transform of X is ψ at entry 0, which tells the root without knowing how it was picked.
        let mut x = vec![0; n];
        x[1] = 1;
        plan.fwd(&mut x);
        let engine = Engine::choose(plan, modulus, n, x[0], instructions);
        let smaller = (0..n.trailing_zeros()).map(|_| OnceLock::new()).collect();
        Some(Self { engine, modulus, n, root: x[0], instructions, smaller })
    }

    /// The number of coefficients.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Short name of the engine, for benches.
    pub fn engine_name(&self) -> &'static str {
        match &self.engine {
            Engine::Library(plan) if plan.use_ifma() => "library-ifma",
            Engine::Library(_) => "library",
            #[cfg(target_arch = "x86_64")]
            Engine::Fma(_) => "avx2-fma",
        }
    }

    /// Coefficients in [0, q) to values in [0, q).
    pub fn forward(&self, buf: &mut [u64]) {
        match &self.engine {
            Engine::Library(plan) => plan.fwd(buf),
            #[cfg(target_arch = "x86_64")]
            Engine::Fma(plan) => plan.forward(buf),
        }
    }

    /// Transforms a polynomial in X^k given by its n/k integral coefficients, k = n / out.len() a power of two.
    ///
    /// Its full transform has every entry of the result k times in a row. `max` bounds the coefficients.
    ///
    /// # Panics
    /// When the lengths differ or do not divide the size.
    pub fn forward_f64(&self, kernels: &Kernels, out: &mut [u64], coeffs: &[f64], max: f64) {
        #[cfg(target_arch = "x86_64")]
        if let Engine::Fma(plan) = &self.subring(out.len()).map_or(&self.engine, |smaller| &smaller.engine)
            && coeffs.len() == plan.size()
            && max <= self.modulus.value() as f64
        {
            return plan.forward_f64(out, coeffs);
        }
        kernels.reduce_f64(out, coeffs);
        self.forward_subring(out);
    }

    /// Transforms a polynomial in X^k given by its n/k residues, as [`Ntt::forward_f64`].
    ///
    /// # Panics
    /// When the length does not divide the size.
    pub fn forward_subring(&self, buf: &mut [u64]) {
        assert!(buf.len() >= 2 && self.n.is_multiple_of(buf.len()), "no such subring");
        let run = self.n / buf.len();
        if run == 1 {
            return self.forward(buf);
        }
        match self.subring(buf.len()) {
            Some(plan) => plan.forward(buf),
            // Too small for the library, or it picked another root there: transform in full.
            None => {
                let mut full = vec![0; self.n];
                full.iter_mut().step_by(run).zip(&*buf).for_each(|(x, &c)| *x = c);
                self.forward(&mut full);
                buf.iter_mut().zip(full.iter().step_by(run)).for_each(|(x, &v)| *x = v);
            }
        }
    }

    /// The plan for `size` < n coefficients with the matching root, if the library has it.
    fn subring(&self, size: usize) -> Option<&Ntt> {
        let run = self.n / size;
        if run < 2 {
            return None;
        }
        let smaller = self.smaller[run.trailing_zeros() as usize - 1].get_or_init(|| {
            let plan = Self::new(self.modulus, self.n / run, self.instructions)?;
            (plan.root == self.modulus.pow(self.root, run as u64)).then(|| Box::new(plan))
        });
        smaller.as_deref()
    }

    /// Values in [0, q) to coefficients in [0, q).
    pub fn inverse(&self, buf: &mut [u64]) {
        match &self.engine {
            Engine::Library(plan) => {
                plan.inv(buf);
                plan.normalize(buf);
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Fma(plan) => plan.inverse(buf),
        }
    }
}

impl Engine {
    #[cfg(target_arch = "x86_64")]
    fn choose(
        plan: concrete_ntt::prime64::Plan,
        q: Modulus,
        n: usize,
        root: u64,
        instructions: Instructions,
    ) -> Self {
        let wider = instructions == Instructions::Best && plan.use_ifma();
        match super::kernels::fma_token(q, instructions) {
            Some(token) if !wider && n >= simd::FmaNtt::MIN_SIZE => {
                Self::Fma(simd::FmaNtt::new(token, q, n, root))
            }
            _ => Self::Library(plan),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn choose(plan: concrete_ntt::prime64::Plan, _: Modulus, _: usize, _: u64, _: Instructions) -> Self {
        Self::Library(plan)
    }
}

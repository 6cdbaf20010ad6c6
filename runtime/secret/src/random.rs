//! Randomness: seeds, generators and constant-time samplers.
//!
//! Every object takes fresh seeds, one for what must stay private and another for what is published. Each
//! use derives its own ChaCha20 generator from a seed and a purpose, so no stream serves two ends.

use std::fmt;

use fhe_bytecode::noise::ERROR_VARIANCE;
use fhe_ring::parallel::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, RngCore, SeedableRng};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::secret_key::SecretKey;
use fhe_ckks::{CkksError, Context, Galois, KeyRequest, KeyUse, PublicSeed};
use fhe_ring::{Basis, Coeff, NttForm, Poly};

const SECRET: &str = "fhec 1 ternary secret";
const SMALLER: &str = "fhec 1 ternary secret of a smaller ring";
const ERROR: &str = "fhec 1 encryption error";
const KEYS: &str = "fhec 1 seeds of evaluation keys from their secret key";

/// Bits on each side of the centered binomial error; its variance is half of that.
const BINOMIAL_BITS: u32 = 21;
const _: () = assert!(BINOMIAL_BITS as f64 / 2.0 == ERROR_VARIANCE);

/// Where seeds come from.
pub struct SeedSource(Source);

enum Source {
    Os,
    Rng(Box<dyn CryptoRng + Send + Sync>),
}

impl fmt::Debug for SeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Os => "SeedSource(the operating system)",
            Source::Rng(_) => "SeedSource(a generator)",
        })
    }
}

impl SeedSource {
    /// Seeds from the operating system.
    pub fn os() -> Self {
        Self(Source::Os)
    }

    /// Seeds from a generator: whoever can repeat it has every secret that is made with them. No tool does this.
    pub fn from_rng(rng: impl CryptoRng + Send + Sync + 'static) -> Self {
        Self(Source::Rng(Box::new(rng)))
    }

    /// Seeds of the evaluation keys of `request`, from the secret key itself: the same request gives the same keys, so that
    /// sending them can go on where it stopped, after anything. Every other request, also of another program, has seeds that
    /// have nothing to do with these: two keys with one seed would give the secret away.
    pub fn of_keys(context: &Context, secret: &SecretKey, request: &KeyRequest) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(KEYS);
        let coeffs: Zeroizing<Vec<u8>> = Zeroizing::new(secret.coeffs().iter().map(|&c| c as u8).collect());
        hasher.update(&coeffs).update(&secret.id().0).update(&context.params().fingerprint().0);
        for (key_use, level) in request.iter() {
            let steps = match key_use {
                KeyUse::Relinearize => 0,
                KeyUse::Move(Galois::Rotation(rotation)) => rotation.steps() as u64,
                KeyUse::Move(Galois::Conjugation) => u64::MAX,
                KeyUse::Enter => u64::MAX - 1,
            };
            hasher.update(&steps.to_le_bytes()).update(&level.0.to_le_bytes());
        }
        let rng = ChaCha20Rng::from_seed(*hasher.finalize().as_bytes());
        Self(Source::Rng(Box::new(rng)))
    }

    /// 32 fresh bytes.
    ///
    /// # Errors
    /// When the operating system has none.
    pub(crate) fn bytes(&mut self) -> Result<Zeroizing<[u8; 32]>, CkksError> {
        let mut bytes = Zeroizing::new([0; 32]);
        match &mut self.0 {
            Source::Os => {
                getrandom::fill(bytes.as_mut()).map_err(|error| CkksError::Randomness(error.to_string()))?;
            }
            Source::Rng(rng) => rng.fill_bytes(bytes.as_mut()),
        }
        Ok(bytes)
    }

    pub(crate) fn private(&mut self) -> Result<PrivateSeed, CkksError> {
        Ok(PrivateSeed(*self.bytes()?))
    }

    pub(crate) fn public(&mut self) -> Result<PublicSeed, CkksError> {
        Ok(PublicSeed(*self.bytes()?))
    }
}

/// The seed of what must stay private; erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct PrivateSeed([u8; 32]);

impl PrivateSeed {
    /// The seed of the secret of a smaller ring: it follows from the secret of the ring above, so that one file holds both, and
    /// tells nothing of it.
    pub(crate) fn of_smaller(coeffs: &[i8], n: usize) -> Self {
        let mut material: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(coeffs.len() + 8));
        material.extend(coeffs.iter().map(|&c| c as u8));
        material.extend_from_slice(&(n as u64).to_le_bytes());
        Self(blake3::derive_key(SMALLER, &material))
    }

    fn rng(&self, purpose: &str, index: u64) -> ChaCha20Rng {
        let mut material = Zeroizing::new([0; 40]);
        material[..32].copy_from_slice(&self.0);
        material[32..].copy_from_slice(&index.to_le_bytes());
        let seed = Zeroizing::new(blake3::derive_key(purpose, material.as_ref()));
        ChaCha20Rng::from_seed(*seed)
    }

    /// Uniform coefficients in {-1, 0, 1}, in constant time; the bias is below 2^-62.
    pub(crate) fn ternary(&self, n: usize) -> Zeroizing<Vec<i8>> {
        let mut rng = self.rng(SECRET, 0);
        Zeroizing::new((0..n).map(|_| ((u128::from(rng.next_u64()) * 3) >> 64) as i8 - 1).collect())
    }

    /// The `index`-th error polynomial: centered binomial coefficients, in constant time.
    pub(crate) fn error(&self, n: usize, index: u64) -> Zeroizing<Vec<i8>> {
        let mut rng = self.rng(ERROR, index);
        let mask = (1 << BINOMIAL_BITS) - 1;
        let sample = |word: u64| {
            let ones = (word & mask).count_ones();
            ones as i8 - ((word >> 32) & mask).count_ones() as i8
        };
        Zeroizing::new((0..n).map(|_| sample(rng.next_u64())).collect())
    }
}

/// Small secret coefficients to every tower, without branches on their values.
pub(crate) fn small_poly(context: &Context, basis: Basis, coeffs: &[i8]) -> Poly<NttForm> {
    let ring = context.ring();
    let mut poly: Poly<Coeff> = ring.zero(basis);
    let n = ring.n();
    poly.data_mut().par_chunks_exact_mut(n).enumerate().for_each(|(i, residues)| {
        let q = ring.tower(basis, i).modulus.value();
        for (residue, &c) in residues.iter_mut().zip(coeffs) {
            let c = i64::from(c);
            // The sign, spread over all bits, selects q or nothing.
            *residue = (c as u64).wrapping_add(q & (c >> 63) as u64);
        }
    });
    ring.forward(poly)
}

//! What the tests of every file kind share.

use std::sync::Arc;

use fhe_bytecode::{Params, ParamsSpec, params::ntt_primes_below};
use fhe_fixed_seeds::fixed_seeds;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use fhe_ckks::Context;
use fhe_secret::SecretKey;

const N_MUTATIONS: usize = 10_000;

/// A ring too small to protect anything, with towers of different sizes.
pub(crate) fn toy_context() -> Arc<Context> {
    let log_n = 5;
    let mut towers = ntt_primes_below(30, log_n, 2, &[]).unwrap();
    towers.extend(ntt_primes_below(22, log_n, 1, &towers).unwrap());
    let special_primes = ntt_primes_below(33, log_n, 1, &towers).unwrap();
    let spec = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: true,
    };
    Context::new(Params::new(spec).unwrap()).unwrap()
}

pub(crate) fn toy_key(context: &Context, seed: u64) -> SecretKey {
    SecretKey::generate(context, &mut fixed_seeds(seed)).unwrap()
}

/// Every single-byte change, every truncation, a longer file and 10,000 random mutations are refused.
pub(crate) fn check_damage<E: std::fmt::Debug>(data: &[u8], decode: impl Fn(&[u8]) -> Result<(), E>) {
    decode(data).unwrap();
    for at in 0..data.len() {
        let mut damaged = data.to_vec();
        damaged[at] ^= 1 << (at % 8);
        assert!(decode(&damaged).is_err(), "byte {at} changed");
        assert!(decode(&data[..at]).is_err(), "cut after {at} bytes");
    }
    assert!(decode(&[data, &[0]].concat()).is_err(), "one byte more");
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for _ in 0..N_MUTATIONS {
        let mut damaged = data.to_vec();
        for _ in 0..1 + rng.next_u32() % 8 {
            // The header and the counts behind it are where damage does most.
            let end = if rng.next_u32() % 2 == 0 { data.len().min(128) } else { data.len() };
            let at = rng.next_u32() as usize % end;
            damaged[at] = rng.next_u32() as u8;
        }
        if rng.next_u32() % 4 == 0 {
            damaged.truncate(rng.next_u32() as usize % (data.len() + 1));
        }
        assert!(damaged == data || decode(&damaged).is_err());
        // With the right hash the checks behind it are reached; they may accept, but not panic.
        let _ = decode(&with_right_hash(damaged));
    }
}

/// A damaged file with its hash made right.
fn with_right_hash(mut data: Vec<u8>) -> Vec<u8> {
    let body = data.len().saturating_sub(32);
    let hash = blake3::hash(&data[..body]);
    data.truncate(body);
    data.extend_from_slice(hash.as_bytes());
    data
}

//! Tests of the scheme at toy sizes, against clear vectors.

mod chain;
mod known;
mod linear;
mod noise;
mod operations;
mod seeds;
mod segments;

use std::sync::Arc;

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::{ParamsSpec, Pool, TowerIdx};
use fhe_fixed_seeds::fixed_seeds;

use fhe_ckks::*;
use fhe_ring::kernels::Instructions;
use fhe_secret::{SecretKey, SeedSource};

/// Parameters with `n_towers` towers of `bits` bits and special primes two bits longer.
fn toy_params(log_n: u32, n_towers: usize, bits: u32, n_special: usize, digit_size: usize) -> Params {
    let towers = ntt_primes_near(2f64.powi(bits as i32), log_n, n_towers, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(bits as i32 + 2), log_n, n_special, &towers).unwrap();
    Params::new(ParamsSpec { digit_size, ..ParamsSpec::toy(log_n, towers, special_primes) }).unwrap()
}

/// Four towers of 48 bits and two small ones: levels of 71, 96, 149, 167 and 245 bits, the third of which has a tower that the
/// fourth lacks, and the first one that the second lacks.
fn toy_pool(log_n: u32) -> Params {
    let mut towers = ntt_primes_near(2f64.powi(48), log_n, 4, &[]).unwrap();
    for bits in [23, 30] {
        towers.extend(ntt_primes_near(2f64.powi(bits), log_n, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(49), log_n, 2, &towers).unwrap();
    let set = |indices: &[u16]| indices.iter().copied().map(TowerIdx).collect();
    let levels =
        vec![set(&[0, 4]), set(&[0, 1]), set(&[0, 1, 4, 5]), set(&[0, 1, 2, 4]), set(&[0, 1, 2, 3, 4, 5])];
    let pool = Some(Pool { levels, digits: vec![2, 2, 2] });
    let spec = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 2,
        pool,
        lower: Vec::new(),
        insecure: true,
        toy: true,
    };
    Params::new(spec).unwrap()
}

/// A context with keys, seeded.
struct Party {
    context: Arc<Context>,
    secret: SecretKey,
    seeds: SeedSource,
}

impl Party {
    fn new(params: Params) -> Self {
        Self::with_instructions(params, Instructions::Best)
    }

    fn with_instructions(params: Params, instructions: Instructions) -> Self {
        let context = Context::with_instructions(params, instructions).unwrap();
        let mut seeds = fixed_seeds(1);
        let secret = SecretKey::generate(&context, &mut seeds).unwrap();
        Self { context, secret, seeds }
    }

    fn rotation_keys(&mut self, steps: &[i64], level: Level) -> GaloisKeys {
        let wanted: Vec<_> = steps.iter().map(|&s| (Rotation::new(s, &self.context), level)).collect();
        self.secret.rotation_keys(&self.context, &wanted, &mut self.seeds).unwrap()
    }

    fn relin_key(&mut self, level: Level) -> RelinKey {
        self.secret.relin_key(&self.context, level, &mut self.seeds).unwrap()
    }

    fn encrypt(&mut self, x: &[f64], scale: Scale, level: Level) -> Ciphertext {
        let plain = self.context.encoder().encode(x, scale, level).unwrap();
        self.secret.encrypt(&self.context, &plain, &mut self.seeds).unwrap().expand(&self.context)
    }

    fn decrypt(&self, x: &Ciphertext) -> Vec<f64> {
        self.secret.decrypt(&self.context, x).unwrap()
    }

    fn max_level(&self) -> Level {
        self.context.params().max_level()
    }
}

/// A vector of values in [-1, 1].
fn vector(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

fn rotated(x: &[f64], steps: i64) -> Vec<f64> {
    let n = x.len() as i64;
    (0..n).map(|s| x[(s + steps).rem_euclid(n) as usize]).collect()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < tolerance, "off by {worst:e}, allowed {tolerance:e}");
}

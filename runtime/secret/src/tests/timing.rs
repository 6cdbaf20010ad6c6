//! Whether time tells secrets, after dudect (Reparaz, Balasch, Verbauwhede 2017): the same code runs on one fixed and on random
//! secrets in random order, and Welch's t-test compares the times. |t| above 10 is a leak. The test itself is tested on code
//! that leaks.
//!
//! It needs a machine with little else to do:
//! `cargo test --release -p fhe-secret timing -- --ignored --nocapture --test-threads=1`

use std::hint::black_box;
use std::time::Instant;

use fhe_bytecode::Scale;
use fhe_ckks::KeyId;
use zeroize::Zeroizing;

use super::{context, seeds};
use crate::random::small_poly;
use crate::{SecretKey, SeedSource};

const LEAK: f64 = 10.0;

/// Sums of one class of times.
#[derive(Clone, Copy, Default)]
struct Class {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Class {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// Variance of the mean.
    fn variance(&self) -> f64 {
        (self.squares / self.n - self.mean().powi(2)) / (self.n - 1.0)
    }
}

/// The largest |t| over several upper limits: interrupted runs are outliers that say nothing.
fn largest_t(times: &[(bool, f64)]) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    [0.5, 0.7, 0.9, 0.95].iter().fold(0.0, |worst, &part| {
        let limit = sorted[(part * (sorted.len() - 1) as f64) as usize];
        let mut classes = [Class::default(); 2];
        times.iter().filter(|(_, time)| *time <= limit).for_each(|&(class, time)| {
            classes[usize::from(class)].add(time);
        });
        let [a, b] = classes;
        f64::max(worst, ((a.mean() - b.mean()) / (a.variance() + b.variance()).sqrt()).abs())
    })
}

/// Inputs that are prepared before any of them is timed: what prepares the classes may differ, and leaves caches and the units
/// of the processor in other states.
const BATCH: usize = 50;

/// |t| of `run` on inputs that `make` prepares, fixed ones (false) or random ones (true).
fn t_of<T>(name: &str, runs: usize, mut make: impl FnMut(bool) -> T, run: impl Fn(&T)) -> f64 {
    let mut order = seeds();
    let mut times = Vec::with_capacity(runs);
    let mut coins = Vec::new();
    while times.len() < runs {
        if coins.len() < BATCH {
            coins = order.bytes().unwrap().to_vec();
            coins.extend_from_slice(&order.bytes().unwrap()[..]);
        }
        let classes = coins.split_off(coins.len() - BATCH);
        let inputs: Vec<_> =
            classes.iter().map(|coin| coin & 1 == 1).map(|class| (class, make(class))).collect();
        // The first runs warm caches and clocks up.
        inputs.iter().take(BATCH / 5).for_each(|(_, input)| run(black_box(input)));
        for (class, input) in &inputs[BATCH / 5..] {
            let start = Instant::now();
            run(black_box(input));
            times.push((*class, start.elapsed().as_nanos() as f64));
        }
    }
    let t = largest_t(&times);
    println!("{name}: |t| = {t:.2} over {} runs", times.len());
    t
}

/// Runs on one thread, so that no schedule of towers disturbs.
fn alone<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(f)
}

fn private_seed(seeds: &mut SeedSource, class: bool) -> crate::random::PrivateSeed {
    // Both classes take a seed, so that preparing them costs the same.
    let fresh = seeds.private().unwrap();
    if class { fresh } else { super::fixed(0).private().unwrap() }
}

/// All zero, or random.
fn secret(seeds: &mut SeedSource, n: usize, class: bool) -> Zeroizing<Vec<i8>> {
    let fresh = seeds.private().unwrap().ternary(n);
    if class { fresh } else { Zeroizing::new(vec![0; n]) }
}

#[test]
#[ignore = "times code, needs an idle machine; run with cargo xtask slow timing"]
fn timing_of_a_leak_is_seen() {
    let mut seeds = seeds();
    let t = t_of(
        "sum that skips zeros",
        20_000,
        |class| secret(&mut seeds, 1 << 12, class),
        |x| {
            let mut sum = 0i64;
            for &c in x.iter() {
                if black_box(c) != 0 {
                    sum = black_box(sum * 3 + i64::from(c));
                }
            }
            black_box(sum);
        },
    );
    assert!(t > LEAK, "a leak goes unseen");
}

#[test]
#[ignore = "times code, needs an idle machine; run with cargo xtask slow timing"]
fn timing_of_samplers_tells_nothing() {
    let (mut first, mut second) = (seeds(), seeds());
    let ternary = t_of(
        "ternary secret",
        20_000,
        |class| private_seed(&mut first, class),
        |seed| {
            black_box(seed.ternary(1 << 12));
        },
    );
    let error = t_of(
        "binomial error",
        20_000,
        |class| private_seed(&mut second, class),
        |seed| {
            black_box(seed.error(1 << 12, 0));
        },
    );
    assert!(ternary < LEAK && error < LEAK);
}

#[test]
#[ignore = "times code, needs an idle machine; run with cargo xtask slow timing"]
fn timing_of_secret_polynomials_tells_nothing() {
    let context = context();
    let basis = context.key_basis(context.params().max_level());
    let mut seeds = seeds();
    let t = alone(|| {
        t_of(
            "secret to towers and transforms",
            5_000,
            |class| secret(&mut seeds, 1 << 12, class),
            |coeffs| {
                black_box(small_poly(&context, basis, coeffs));
            },
        )
    });
    assert!(t < LEAK);
}

#[test]
#[ignore = "times code, needs an idle machine; run with cargo xtask slow timing"]
fn timing_of_decryption_tells_nothing() {
    let context = context();
    let level = context.params().max_level();
    // Random messages are larger than the first prime, so that they have more digits than zeros.
    let scale = Scale::new(2f64.powi(45)).unwrap();
    let (mut of_keys, mut of_messages) = (seeds(), seeds());
    let zero = vec![0.0; context.slots()];
    let plain = context.encoder().encode(&zero, scale, level).unwrap();
    let key = SecretKey::generate(&context, &mut seeds()).unwrap();
    let fresh = key.encrypt(&context, &plain, &mut seeds()).unwrap().expand(&context);
    let of_key = alone(|| {
        t_of(
            "decryption, zero or random key",
            3_000,
            |class| {
                let coeffs = secret(&mut of_keys, context.ring().n(), class);
                SecretKey::from_coeffs(&context, KeyId([0; 16]), coeffs).unwrap()
            },
            |key| {
                black_box(key.decrypt(&context, &fresh).unwrap());
            },
        )
    });
    let mut coins = seeds();
    let of_message = alone(|| {
        t_of(
            "decryption, zero or random message",
            3_000,
            |class| {
                let random = coins.private().unwrap().error(context.slots(), 0);
                let size = if class { 1e5 } else { 0.0 };
                let x: Vec<f64> = random.iter().map(|&x| f64::from(x) * size).collect();
                let plain = context.encoder().encode(&x, scale, level).unwrap();
                key.encrypt(&context, &plain, &mut of_messages).unwrap().expand(&context)
            },
            |ciphertext| {
                black_box(key.decrypt(&context, ciphertext).unwrap());
            },
        )
    });
    assert!(of_key < LEAK && of_message < LEAK);
}

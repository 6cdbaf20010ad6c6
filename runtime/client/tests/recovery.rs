//! Digits below the noise give the secret key away, and the client shows none of them.
//!
//! A result (c0, c1) decrypts to m = c0 + c1·s modulo q. The slots of real vectors tell m₀ and all mₖ - m₍ₙ₋ₖ₎: N/2 linear
//! equations in the N coefficients of s. Whoever has all digits of two results solves for the key.

mod attack;

use std::sync::Arc;

use attack::{LOG_N, N, coefficients, interface, solve};
use fhe_bytecode::*;
use fhe_ckks::{Ciphertext, Context, Evaluator};
use fhe_client::{Answer, Client, DEVIATIONS, Resolution, noise_floor};
use fhe_fixed_seeds::fixed_seeds;
use fhe_secret::SecretKey;

struct Victim {
    client: Client,
    results: Vec<Ciphertext>,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let interface = Arc::new(interface(LOG_N, 40.0, 16.0, 1e-300));
        let context = Context::new(interface.params().clone()).unwrap();
        let mut seeds = fixed_seeds(seed);
        let key = SecretKey::generate(&context, &mut seeds).unwrap();
        let client = Client::new(interface, context.clone(), key).unwrap();
        let results = (0..2)
            .map(|i| {
                let tensor: Vec<f64> = (0..N / 2).map(|j| ((j * 5 + i * 3) % 7) as f64 - 3.0).collect();
                client.encrypt(&tensor, &mut seeds).unwrap()[0].expand(&context)
            })
            .collect();
        Self { client, results }
    }

    /// How many coefficients of the secret an attacker finds from scores of both results.
    fn recovered(&self, see: impl Fn(&Ciphertext) -> Vec<f64>) -> usize {
        let q = self.client.interface().params().towers()[0];
        let mut equations = Vec::new();
        for result in &self.results {
            let layout = self.client.interface().output_layout();
            let slots = layout.scatter(&see(result)).remove(0);
            equations.extend(equations_of(&self.client, result, &slots, q));
        }
        let found = solve(equations, q);
        let secret = self.client.key().coeffs().iter().map(|&c| i64::from(c).rem_euclid(q as i64) as u64);
        secret.zip(&found).filter(|(a, b)| a == *b).count()
    }
}

/// What the slots of one result tell of the secret: rows of N factors and a sum, modulo q.
fn equations_of(client: &Client, result: &Ciphertext, slots: &[f64], q: u64) -> Vec<Vec<u64>> {
    let [c0, c1] = [0, 1].map(|i| coefficients(client, &result.polys()[i]));
    let scale = result.scale().value();
    // Row k of the product with c1: coefficient k of c1·s is the sum over i of s_i times this.
    let factor = |k: usize, i: usize| if i <= k { c1[k - i] } else { q - c1[N + k - i] };
    let sub = |a: u64, b: u64| (a + q - b) % q;
    (0..N / 2)
        .map(|k| {
            let angle = |power: usize| std::f64::consts::PI * (k * power % (2 * N)) as f64 / N as f64;
            let powers = std::iter::successors(Some(1), |power| Some(power * 5 % (2 * N)));
            let sum: f64 = slots.iter().zip(powers).map(|(slot, power)| slot * angle(power).cos()).sum();
            let known = sum * scale * 2.0 / N as f64 * if k == 0 { 1.0 } else { 2.0 };
            let known = (known.round() as i64).rem_euclid(q as i64) as u64;
            let mut row: Vec<u64> = (0..N)
                .map(|i| if k == 0 { factor(0, i) } else { sub(factor(k, i), factor(N - k, i)) })
                .collect();
            row.push(sub(known, if k == 0 { c0[0] } else { sub(c0[k], c0[N - k]) }));
            row
        })
        .collect()
}

#[test]
fn two_results_with_all_digits_give_the_whole_key() {
    for seed in 0..3 {
        let victim = Victim::new(seed);
        assert_eq!(victim.recovered(|ct| victim.client.decrypt_raw(ct_slice(ct)).unwrap().to_vec()), N);
        // Six decimals, as the author's figure of 1e-300 once asked for, are as good.
        let six = |ct: &Ciphertext| -> Vec<f64> {
            let raw = victim.client.decrypt_raw(ct_slice(ct)).unwrap();
            raw.iter().map(|score| (score * 1e6).round() / 1e6).collect()
        };
        assert_eq!(victim.recovered(six), N);
    }
}

#[test]
fn the_scores_that_are_shown_give_nothing() {
    for seed in 0..3 {
        let victim = Victim::new(seed);
        let shown = |ct: &Ciphertext| victim.client.decrypt(ct_slice(ct)).unwrap().scores;
        let recovered = victim.recovered(shown);
        // The solution is as good as random modulo q of 40 bits: not one coefficient in any lifetime.
        assert_eq!(recovered, 0, "seed {seed}");
    }
}

/// What rounding cannot do: a program that enlarges its input enlarges the noise in it, and an interface does not tell. Scores
/// of a program must not go to whoever wrote it (docs/security.md).
#[test]
fn a_program_that_enlarges_its_input_shows_the_noise_of_it() {
    const FACTOR: f64 = 4096.0;
    let victim = Victim::new(1);
    let enlarged = |ct: &Ciphertext| -> Vec<f64> {
        let evaluator = Evaluator::new(victim.client.context());
        let large = evaluator.mul_scalar(ct, FACTOR, Scale::from_log2(0.0)).unwrap();
        let shown = victim.client.decrypt(&[large]).unwrap().scores;
        shown.iter().map(|score| score / FACTOR).collect()
    };
    assert_eq!(victim.recovered(enlarged), N);
}

fn ct_slice(ct: &Ciphertext) -> &[Ciphertext] {
    std::slice::from_ref(ct)
}

/// Any evaluation leaves at least the floor: the noise of a fresh encryption, measured, is not below it.
#[test]
fn the_floor_is_below_what_encryption_leaves() {
    let victim = Victim::new(1);
    let interface = victim.client.interface();
    let mut seeds = fixed_seeds(9);
    let (mut sum, mut count) = (0.0, 0);
    for _ in 0..200 {
        let fresh =
            victim.client.encrypt(&[0.5; N / 2], &mut seeds).unwrap()[0].expand(victim.client.context());
        let raw = victim.client.decrypt_raw(&[fresh]).unwrap();
        sum += raw.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>();
        count += raw.len();
    }
    let deviation = (sum / f64::from(count as u32)).sqrt();
    assert!(deviation > 0.95 * noise_floor(interface), "{deviation} {}", noise_floor(interface));
}

/// An author who places the range of the scores inside the noise learns nothing of it: what is shown is the same for all
/// raw scores that agree down to the floor.
#[test]
fn nothing_that_is_shown_depends_on_digits_below_the_floor() {
    let honest = interface(12, 40.0, 20.0, 1e-300);
    let unit = Resolution::finest(&honest).unit();
    assert!(unit >= DEVIATIONS * noise_floor(&honest) && unit < 10.0 * DEVIATIONS * noise_floor(&honest));
    let n = honest.output_layout().shape().len();
    let centers: Vec<f64> = (0..n).map(|i| ((i * 37 % 11) as f64 - 5.0) * unit).collect();
    for part in [-0.3, -0.001, 0.0, 1e-9, 0.02, 0.4] {
        let mut spec = honest.spec().clone();
        // Bounds at which the plainest comparison would tell the sign of the noise.
        spec.output.range = Some(Interval { low: -5.0 * unit + unit, high: 5.0 * unit - unit });
        let hostile = Interface::new(spec).unwrap();
        let raw: Vec<f64> =
            (0..n).map(|i| centers[i] + part * unit * if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let (seen, expected) = (Answer::new(&hostile, &raw), Answer::new(&hostile, &centers));
        assert_eq!(seen, expected, "{part}");
    }
}

/// Whatever an author claims, the unit is at least eight deviations of the least noise, and every shown score is a
/// multiple of it.
#[test]
fn no_claim_shows_a_digit_below_the_floor() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut above_one = 0;
    for case in 0..300 {
        let log_n = 5 + (random() * 9.0) as u32;
        let prime_bits = f64::from(log_n) + 12.0 + random() * (46.0 - f64::from(log_n));
        let scale_bits = random() * (prime_bits - 1.0);
        let claimed = match case % 6 {
            0 => 0.0,
            1 => 1e-300,
            2 => f64::MIN_POSITIVE / 2.0,
            3 => random() * 1e-9,
            4 => random() * 10.0,
            _ => 1e12 * random(),
        };
        let interface = interface(log_n, prime_bits, scale_bits, claimed);
        let least = DEVIATIONS * noise_floor(&interface);
        let unit = Resolution::of(&interface).unit();
        let told = format!("case {case}: N = 2^{log_n}, scale 2^{scale_bits}, claimed {claimed}: {unit}");
        assert!(unit >= least && unit >= claimed && unit >= 1e-6, "{told}");
        assert!(unit <= 10.0 * least.max(claimed).max(1e-7), "{told}");
        above_one += usize::from(unit > 1.0);
        let raw: Vec<f64> =
            (0..interface.output_layout().shape().len()).map(|_| random() * 100.0 - 50.0).collect();
        for score in Answer::new(&interface, &raw).scores {
            let steps = score / unit;
            assert!((steps - steps.round()).abs() <= 1e-9 * steps.abs().max(1.0), "{told}: {score}");
        }
    }
    assert!(above_one > 20, "units above one are among the cases: {above_one}");
}

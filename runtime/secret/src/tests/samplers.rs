//! Statistics of the samplers over 3·2^20 coefficients each. The seeds are fixed, so a result never changes by chance.

use super::{context, seeds};
use crate::SeedSource;

const N: usize = 1 << 16;
const POLYS: usize = 48;

/// χ² of counts against their expectations.
fn chi_squared(counts: &[u64], expected: &[f64]) -> f64 {
    counts.iter().zip(expected).map(|(&count, expected)| (count as f64 - expected).powi(2) / expected).sum()
}

/// Refuses a χ² that one sound sampler in a hundred thousand exceeds, on either side (Wilson and Hilferty).
#[track_caller]
fn assert_plausible(counts: &[u64], expected: &[f64]) {
    let freedom = (counts.len() - 1) as f64;
    let width = 2.0 / (9.0 * freedom);
    let deviations = ((chi_squared(counts, expected) / freedom).cbrt() - (1.0 - width)) / width.sqrt();
    assert!(deviations.abs() < 4.3, "{deviations:.2} deviations: {counts:?}, expected {expected:?}");
}

/// Refuses two series whose correlation is beyond five deviations.
#[track_caller]
fn assert_uncorrelated(a: &[i8], b: &[i8], variance: f64) {
    let sum: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    let correlation = sum / variance / (a.len().min(b.len()) as f64).sqrt();
    assert!(correlation.abs() < 5.0, "{correlation:.2} deviations");
}

fn polys(sample: impl Fn(&mut SeedSource) -> Vec<i8>) -> Vec<i8> {
    let mut seeds = seeds();
    let all: Vec<i8> = (0..POLYS).flat_map(|_| sample(&mut seeds)).collect();
    assert_eq!(all.len(), 3 << 20);
    all
}

#[test]
fn secrets_are_uniform_ternary() {
    let x = polys(|seeds| seeds.private().unwrap().ternary(N).to_vec());
    let mut counts = [0; 3];
    x.iter().for_each(|&c| counts[(c + 1) as usize] += 1);
    assert_plausible(&counts, &[x.len() as f64 / 3.0; 3]);
    // Neighbors are independent, next and after next.
    for step in [1, 2] {
        let mut pairs = [0; 9];
        x.windows(step + 1)
            .step_by(step + 1)
            .for_each(|w| pairs[(3 * (w[0] + 1) + w[step] + 1) as usize] += 1);
        let total: u64 = pairs.iter().sum();
        assert_plausible(&pairs, &[total as f64 / 9.0; 9]);
    }
    assert_uncorrelated(&x, &x[N..], 2.0 / 3.0);
}

#[test]
fn errors_are_centered_binomial() {
    let x = polys(|seeds| seeds.private().unwrap().error(N, 0).to_vec());
    // C(42, 21 + k) / 2^42; the ends together, because their expectations are below ten.
    let mut probability = vec![0.5f64.powi(42); 43];
    for k in 1..43 {
        probability[k] = probability[k - 1] * (43 - k) as f64 / k as f64;
    }
    let mut counts = vec![0; 43];
    x.iter().for_each(|&c| counts[(c + 21) as usize] += 1);
    let merge = |values: Vec<f64>| {
        let (low, high) = (values[..8].iter().sum(), values[35..].iter().sum());
        [vec![low], values[8..35].to_vec(), vec![high]].concat()
    };
    let expected = merge(probability.iter().map(|p| p * x.len() as f64).collect());
    let counts: Vec<u64> =
        merge(counts.iter().map(|&c: &u64| c as f64).collect()).iter().map(|&c| c as u64).collect();
    assert!(expected.iter().all(|&e| e > 9.0), "{expected:?}");
    assert_plausible(&counts, &expected);

    let moment = |k| x.iter().map(|&c| f64::from(c).powi(k)).sum::<f64>() / x.len() as f64;
    let deviation = (x.len() as f64).sqrt().recip();
    assert!(moment(1).abs() < 5.0 * 10.5f64.sqrt() * deviation, "mean {}", moment(1));
    // The variance of the square is the fourth moment less the square of the second.
    let fourth = 10.5f64.powi(2) * (3.0 - 1.0 / 21.0);
    let spread = (fourth - 10.5f64.powi(2)).sqrt();
    assert!((moment(2) - 10.5).abs() < 5.0 * spread * deviation, "variance {}", moment(2));
    assert!((moment(4) / fourth - 1.0).abs() < 0.02, "fourth moment {}", moment(4));
    for shift in [1, 2, 7, N] {
        assert_uncorrelated(&x, &x[shift..], 10.5);
    }
}

#[test]
fn streams_of_one_seed_have_nothing_in_common() {
    let seed = seeds().private().unwrap();
    let (first, second, secret) = (seed.error(N, 0), seed.error(N, 1), seed.ternary(N));
    assert_ne!(*first, *second);
    assert_uncorrelated(&first, &second, 10.5);
    assert_uncorrelated(&first, &secret, (10.5f64 * 2.0 / 3.0).sqrt());
}

#[test]
fn uniform_halves_are_uniform_in_every_tower() {
    const BUCKETS: usize = 256;
    let context = context();
    let basis = context.key_basis(context.params().max_level());
    let mut seeds = seeds();
    let polys: Vec<_> = (0..192).map(|i| seeds.public().unwrap().uniform_poly(&context, basis, i)).collect();
    for (i, tower) in context.ring().towers().iter().enumerate() {
        let q = tower.modulus.value();
        let (mut high, mut low) = ([0; BUCKETS], [0; BUCKETS]);
        for &x in polys.iter().flat_map(|poly| poly.tower(i)) {
            high[(u128::from(x) * BUCKETS as u128 / u128::from(q)) as usize] += 1;
            low[x as usize % BUCKETS] += 1;
        }
        let expected = [(polys.len() * context.ring().n() / BUCKETS) as f64; BUCKETS];
        assert_plausible(&high, &expected);
        assert_plausible(&low, &expected);
    }
}

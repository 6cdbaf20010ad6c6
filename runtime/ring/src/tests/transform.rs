//! Transforms: engines agree bit by bit, products are negacyclic, automorphisms are what they say.

use super::{INSTRUCTIONS, PRIMES, residues, rng};
use crate::automorphism::{Automorphism, Moves, permute_blocks};
use crate::kernels::{Instructions, Kernels};
use crate::modulus::Modulus;
use crate::ntt::Ntt;
use crate::scalar::{self, Start, Term};
use crate::shared::{Places, STRIP, Strip};
use crate::{Coefficients, Words};

fn schoolbook(q: Modulus, a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mut out = vec![0; n];
    for i in 0..n {
        for j in 0..n {
            let product = q.mul(a[i], b[j]);
            let k = (i + j) % n;
            out[k] = if i + j < n { q.add(out[k], product) } else { q.sub(out[k], product) };
        }
    }
    out
}

/// The product of transforms is the negacyclic product of n coefficients.
fn check_product(prime: u64, n: usize) {
    let mut rng = rng(1);
    let q = Modulus::new(prime);
    let (a, b) = (residues(&mut rng, prime, n), residues(&mut rng, prime, n));
    let expected = schoolbook(q, &a, &b);
    for instructions in [Instructions::Scalar, Instructions::Best] {
        let ntt = Ntt::new(q, n, instructions).unwrap();
        let (mut fa, mut fb) = (a.clone(), b.clone());
        ntt.forward(&mut fa);
        ntt.forward(&mut fb);
        let mut product: Vec<u64> = fa.iter().zip(&fb).map(|(&x, &y)| q.mul(x, y)).collect();
        ntt.inverse(&mut product);
        assert_eq!(product, expected, "n = {n}, q = {prime}");
    }
}

#[test]
fn product_of_transforms_is_the_negacyclic_product() {
    // An interpreter takes a thousand times as long.
    let sizes: &[usize] = if cfg!(miri) { &[32] } else { &[32, 64, 128, 256, 512] };
    for prime in PRIMES {
        sizes.iter().for_each(|&n| check_product(prime, n));
    }
}

#[test]
fn product_of_transforms_is_the_negacyclic_product_in_a_real_ring() {
    for prime in [PRIMES[1], PRIMES[6]] {
        check_product(prime, 1 << 12);
    }
}

#[test]
#[ignore = "a billion products per prime; run with cargo xtask slow"]
fn product_of_transforms_is_the_negacyclic_product_in_the_usual_ring() {
    for prime in [PRIMES[1], PRIMES[6]] {
        check_product(prime, 1 << 15);
    }
}

#[test]
fn engines_agree_bit_by_bit_at_every_size() {
    for prime in PRIMES {
        let q = Modulus::new(prime);
        for log_n in 5..=15 {
            let n = 1 << log_n;
            let reference = Ntt::new(q, n, Instructions::Scalar).unwrap();
            for instructions in INSTRUCTIONS {
                let ntt = Ntt::new(q, n, instructions).unwrap();
                for x in [residues(&mut rng(log_n), prime, n), vec![prime - 1; n], vec![0; n]] {
                    let (mut expected, mut found) = (x.clone(), x.clone());
                    reference.forward(&mut expected);
                    ntt.forward(&mut found);
                    assert_eq!(found, expected, "forward, n = {n}, q = {prime}");
                    ntt.inverse(&mut found);
                    assert_eq!(found, x, "inverse of forward, n = {n}, q = {prime}");
                    let (mut expected, mut found) = (x.clone(), x);
                    reference.inverse(&mut expected);
                    ntt.inverse(&mut found);
                    assert_eq!(found, expected, "inverse, n = {n}, q = {prime}");
                }
            }
        }
    }
}

#[test]
fn engines_agree_bit_by_bit_in_the_largest_rings() {
    for log_n in [16, 17] {
        let n = 1 << log_n;
        for bits in [36, 46, 50] {
            let below = |k: u64| (1u64 << bits) + 1 - k * 2 * n as u64;
            let reference = |prime| Ntt::new(Modulus::new(prime), n, Instructions::Scalar);
            let (prime, reference) =
                (1..).find_map(|k| Some((below(k), reference(below(k))?))).expect("there are such primes");
            let ntt = Ntt::new(Modulus::new(prime), n, Instructions::Best).unwrap();
            for x in [residues(&mut rng(log_n), prime, n), vec![prime - 1; n]] {
                let (mut expected, mut found) = (x.clone(), x.clone());
                reference.forward(&mut expected);
                ntt.forward(&mut found);
                assert!(found == expected, "forward, n = {n}, q = {prime}");
                ntt.inverse(&mut found);
                assert!(found == x, "inverse, n = {n}, q = {prime}");
            }
        }
    }
}

#[test]
fn transform_of_a_subring_repeats_in_runs() {
    let n = 1024;
    for prime in PRIMES {
        let q = Modulus::new(prime);
        for instructions in INSTRUCTIONS {
            let ntt = Ntt::new(q, n, instructions).unwrap();
            for run in [1, 2, 4, 32, 256] {
                let mut short = residues(&mut rng(run as u64), prime, n / run);
                let mut full = vec![0; n];
                full.iter_mut().step_by(run).zip(&short).for_each(|(x, &c)| *x = c);
                ntt.forward(&mut full);
                ntt.forward_subring(&mut short);
                let repeated: Vec<u64> = short.iter().flat_map(|&x| std::iter::repeat_n(x, run)).collect();
                assert_eq!(repeated, full, "run = {run}, q = {prime}");
            }
        }
    }
}

#[test]
fn transforms_left_for_products_give_the_sums_of_residues() {
    for prime in PRIMES {
        let mut rng = rng(7);
        let q = Modulus::new(prime);
        for (n, instructions) in [64, 256, 2048].into_iter().flat_map(|n| INSTRUCTIONS.map(|i| (n, i))) {
            let (ntt, kernels) = (Ntt::new(q, n, instructions).unwrap(), Kernels::new(q, instructions));
            let y = [vec![prime - 1; n], residues(&mut rng, prime, n)].map(|y| y.to_vec());
            let reference = Ntt::new(q, n, Instructions::Scalar).unwrap();
            let scalar_kernels = Kernels::new(q, Instructions::Scalar);
            // Narrow coefficients, wide ones, and some that no engine takes as they are.
            let cases = [n, n / 2, n / 4, n / 16]
                .into_iter()
                .flat_map(|size| [1e3, 1e11, 1e17].map(|max| (size, max)));
            for (size, max) in cases {
                let random = residues(&mut rng, prime, size);
                let coeffs =
                    random.iter().map(|&x| (q.center(x) as f64 * max / prime as f64).round()).collect();
                let coeffs = Coefficients::new(coeffs).unwrap();
                let (mut x, mut left, mut expected) = (vec![0; size], vec![0; size], vec![0; size]);
                ntt.forward_integers(&kernels, &mut x, &coeffs);
                reference.forward_integers(&scalar_kernels, &mut expected, &coeffs);
                assert_eq!(x, expected, "{size} of {n} modulo {prime}, {instructions:?}");
                let held = ntt.forward_for_products(&kernels, &mut left, &coeffs);
                let y = [&y[0], &y[1]].map(|y| Words::Integers(y));
                let (mut expected, mut found) = ([vec![1; n], vec![2; n]], [vec![1; n], vec![2; n]]);
                let [a, b] = &mut expected;
                scalar::dot2(q, [a, b], &[Term { x: Words::Integers(&x), y }; 5], Start::Sums);
                let [a, b] = &mut found;
                kernels.dot2([a, b], &[Term { x: held.of(&left), y }; 5], Start::Sums);
                assert_eq!(found, expected, "{size} of {n} modulo {prime}, {instructions:?}");
            }
        }
    }
}

#[test]
fn automorphism_substitutes_a_power_of_x() {
    for n in [32, 64, 1024] {
        let q = Modulus::new(PRIMES[1]);
        let ntt = Ntt::new(q, n, Instructions::Best).unwrap();
        let x = residues(&mut rng(4), q.value(), n);
        for element in [1, 3, 5, 25, n + 1, 2 * n - 1] {
            let mut expected = vec![0; n];
            for (i, &c) in x.iter().enumerate() {
                let exponent = i * element % (2 * n);
                expected[exponent % n] = if exponent < n { c } else { q.neg(c) };
            }
            ntt.forward(&mut expected);
            let mut transformed = x.clone();
            ntt.forward(&mut transformed);
            let mut found = vec![0; n];
            Automorphism::new(n, element).apply(&mut found, &transformed);
            assert_eq!(found, expected, "n = {n}, element = {element}");
        }
    }
}

#[test]
fn permutation_kernel_agrees_with_scalar() {
    let x: Vec<u64> = (0..1024).collect();
    let blocks: Vec<u32> = (0..256).map(|b| (b * 77 + 3) % 256).collect();
    let orders: Vec<u8> = (0..=255).collect();
    let mut expected = vec![0; 1024];
    let moves = Moves { first: 0, blocks: &blocks, orders: &orders };
    permute_blocks(&mut expected, &x, moves);
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = crate::simd::Avx2::detect() {
        let mut found = vec![0; 1024];
        crate::simd::permute_blocks(token, &mut found, &x, moves);
        assert_eq!(found, expected);
        // Strips with gaps between them.
        let mut strips = vec![Strip::ZERO; 3 * 1024 / STRIP];
        let places = Places { first: 1, step: 3 };
        crate::simd::permute_strips(token, &mut strips, places, &x, moves);
        let found: Vec<u64> = strips.iter().skip(1).step_by(3).flat_map(|strip| strip.0).collect();
        assert_eq!(found, expected);
    }
}

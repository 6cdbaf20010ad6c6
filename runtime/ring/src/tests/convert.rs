//! Base conversion against big integers, and merged with transforms against step by step.

use num_bigint::BigInt;
use num_traits::{Euclid, Signed, Zero};

use super::{INSTRUCTIONS, PRIMES, residues, rng};
use crate::convert::BaseConverter;
use crate::kernels::Instructions;
use crate::scalar::{self, End};
use crate::{Ahead, Held, Modulus, Ring};

/// The number with the given residues, nearest to zero.
fn centered(primes: &[u64], residues: &[u64]) -> BigInt {
    let product: BigInt = primes.iter().map(|&p| BigInt::from(p)).product();
    let mut sum = BigInt::zero();
    for (&p, &r) in primes.iter().zip(residues) {
        let rest: BigInt = &product / p;
        let inverse = rest.modpow(&BigInt::from(p - 2), &BigInt::from(p));
        sum += rest * inverse * r;
    }
    sum %= &product;
    if &sum * 2 > product { sum - product } else { sum }
}

/// Runs `check` for sources `start..end` of a ring with every prime, given coefficients and their transforms.
fn for_each_case(
    n: usize,
    instructions: &[Instructions],
    check: impl Fn(&Ring, &BaseConverter, std::ops::Range<usize>, &[Vec<u64>], &[Vec<u64>]),
) {
    for start in 0..PRIMES.len() {
        for end in start + 1..=PRIMES.len().min(start + 5) {
            let mut rng = rng(end as u64);
            let x: Vec<Vec<u64>> = PRIMES[start..end].iter().map(|&p| residues(&mut rng, p, n)).collect();
            for &instructions in instructions {
                let ring = Ring::new(n, &PRIMES, &[], instructions).unwrap();
                let transform = |(i, x): (usize, &Vec<u64>)| {
                    let mut x = x.clone();
                    ring.towers()[start + i].ntt.forward(&mut x);
                    x
                };
                let transforms: Vec<Vec<u64>> = x.iter().enumerate().map(transform).collect();
                check(&ring, &BaseConverter::new(&ring, start..end), start..end, &x, &transforms);
            }
        }
    }
}

fn slices(x: &[Vec<u64>]) -> Vec<&[u64]> {
    x.iter().map(Vec::as_slice).collect()
}

#[test]
fn conversion_gives_the_centered_number_with_every_kernel() {
    for_each_case(64, &INSTRUCTIONS, |ring, converter, range, x, transforms| {
        let sources = &PRIMES[range];
        let product: BigInt = sources.iter().map(|&p| BigInt::from(p)).product();
        let lifted = converter.lift(ring, &slices(transforms));
        for (target, &q) in PRIMES.iter().enumerate() {
            let mut out = vec![0; ring.n()];
            converter.forward(ring, &lifted, target, &mut out, End::Residues, Ahead::nothing());
            ring.towers()[target].ntt.inverse(&mut out);
            for i in 0..ring.n() {
                let residues: Vec<u64> = x.iter().map(|x| x[i]).collect();
                let exact = centered(sources, &residues);
                // At half the product both neighbors are as near to zero.
                let halfway = BigInt::from(exact.magnitude() * 2u32) + 1 == product;
                let other = if exact.is_positive() { &exact - &product } else { &exact + &product };
                let is = |x: &BigInt| x.rem_euclid(&BigInt::from(q)) == BigInt::from(out[i]);
                assert!(is(&exact) || (halfway && is(&other)), "{sources:?} to {q}, entry {i}");
            }
        }
    });
}

#[test]
fn ends_of_a_conversion_agree_with_single_steps_at_every_size() {
    for n in [64, 128, 4096] {
        let fast = [Instructions::Avx2, Instructions::Avx512];
        for_each_case(n, &fast, |ring, converter, range, _, transforms| {
            let reference = Ring::new(n, &PRIMES, &[], Instructions::Scalar).unwrap();
            let slow = BaseConverter::new(&reference, range);
            let (lifted, expected) =
                (converter.lift(ring, &slices(transforms)), slow.lift(&reference, &slices(transforms)));
            for (target, tower) in ring.towers().iter().enumerate() {
                let q = tower.modulus;
                let (mut out, mut residue) = (vec![0; n], vec![0; n]);
                slow.forward(&reference, &expected, target, &mut residue, End::Residues, Ahead::nothing());
                converter.forward(ring, &lifted, target, &mut out, End::Residues, Ahead::nothing());
                assert_eq!(out, residue, "residues modulo {}", q.value());
                let held = converter.forward(ring, &lifted, target, &mut out, End::Doubles, Ahead::nothing());
                if held == Held::Doubles {
                    out.iter_mut().for_each(|x| *x = q.reduce_f64(f64::from_bits(*x)));
                }
                assert_eq!(out, residue, "doubles modulo {}", q.value());
                let (a, w) = (residues(&mut rng(7), q.value(), n), q.shoup(q.value() / 3));
                converter.forward(
                    ring,
                    &lifted,
                    target,
                    &mut out,
                    End::Divided { a: &a, w },
                    Ahead::nothing(),
                );
                scalar::sub_mul_scalar_from(q, &mut residue, &a, w);
                assert_eq!(out, residue, "divided modulo {}", q.value());
            }
        });
    }
}

#[test]
fn centering_agrees_with_scalar() {
    let moduli: Vec<Modulus> = PRIMES[..7].iter().map(|&p| Modulus::new(p)).collect();
    #[cfg(target_arch = "x86_64")]
    for width in [crate::simd::Width::four(), crate::simd::Width::eight()].into_iter().flatten() {
        for moduli in (1..=5).flat_map(|k| moduli.windows(k)) {
            let mut rng = rng(8);
            let mut expected: Vec<Vec<u64>> =
                moduli.iter().map(|d| residues(&mut rng, d.value(), 67)).collect();
            let mut found = expected.clone();
            scalar::center(&mut expected.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(), moduli);
            crate::simd::center(
                width,
                &mut found.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
                moduli,
            );
            let signed = |y: Vec<u64>| y.into_iter().map(|y| f64::from_bits(y) as i64 as u64).collect();
            let found: Vec<Vec<u64>> = found.into_iter().map(signed).collect();
            assert_eq!(found, expected);
        }
    }
}

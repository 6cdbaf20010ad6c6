//! Base conversion against big integers.

use num_bigint::BigInt;
use num_traits::{Euclid, Signed, Zero};

use super::{PRIMES, residues, rng};
use crate::ring::Ring;
use crate::ring::convert::BaseConverter;
use crate::ring::kernels::Instructions;

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

#[test]
fn conversion_gives_the_centered_number_with_every_kernel() {
    let n = 32;
    for start in 0..PRIMES.len() {
        for end in start + 1..=PRIMES.len().min(start + 4) {
            let sources = &PRIMES[start..end];
            let mut rng = rng(end as u64);
            let x: Vec<Vec<u64>> = sources.iter().map(|&p| residues(&mut rng, p, n)).collect();
            for instructions in [Instructions::Scalar, Instructions::Best] {
                let ring = Ring::new(n, &PRIMES, &[], instructions).unwrap();
                let converter = BaseConverter::new(&ring, start..end);
                let weighted = converter.weigh(&ring, &x.iter().map(Vec::as_slice).collect::<Vec<_>>());
                for (target, &q) in PRIMES.iter().enumerate() {
                    let mut out = vec![0; n];
                    converter.convert(&weighted, target, &mut out);
                    for i in 0..n {
                        let residues: Vec<u64> = x.iter().map(|x| x[i]).collect();
                        let exact = centered(sources, &residues);
                        let product: BigInt = sources.iter().map(|&p| BigInt::from(p)).product();
                        // At half the product both neighbors are as near to zero.
                        let halfway = BigInt::from(exact.magnitude() * 2u32) + 1 == product;
                        let other = if exact.is_positive() { &exact - &product } else { &exact + &product };
                        let is = |x: &BigInt| x.rem_euclid(&BigInt::from(q)) == BigInt::from(out[i]);
                        assert!(is(&exact) || (halfway && is(&other)), "{sources:?} to {q}, entry {i}");
                    }
                }
            }
        }
    }
}

//! Every SIMD kernel gives the bits of its scalar twin.

use super::{PRIMES, residues, rng};
use crate::ring::kernels::{Instructions, Kernels};
use crate::ring::modulus::Modulus;
use crate::ring::scalar::{self, Mode, Term};

/// Runs `check` for every prime and length with the scalar and the best kernels.
fn for_each_case(lengths: &[usize], check: impl Fn(Modulus, &Kernels, usize)) {
    for prime in PRIMES {
        let q = Modulus::new(prime);
        for instructions in [Instructions::Scalar, Instructions::Avx2, Instructions::Best] {
            for &len in lengths {
                check(q, &Kernels::new(q, instructions), len);
            }
        }
    }
}

#[test]
fn element_wise_kernels_agree_with_scalar() {
    for_each_case(&[6, 7, 8, 9, 15, 16, 17, 64, 1000], |q, kernels, len| {
        let mut rng = rng(1);
        let (a, mut b) = (residues(&mut rng, q.value(), len), residues(&mut rng, q.value(), len));
        b.rotate_left(2);
        let w = q.shoup(b[3]);
        let mut expected = a.clone();
        scalar::add_assign(q, &mut expected, &b);
        let mut found = a.clone();
        kernels.add_assign(&mut found, &b);
        assert_eq!(found, expected);
        scalar::sub_assign(q, &mut expected, &a);
        kernels.sub_assign(&mut found, &a);
        assert_eq!(found, expected);
        scalar::mul_into(q, &mut expected, &a, &b);
        kernels.mul_into(&mut found, &a, &b);
        assert_eq!(found, expected);
        scalar::mul_scalar_assign(q, &mut expected, w);
        kernels.mul_scalar_assign(&mut found, w);
        assert_eq!(found, expected);
        scalar::sub_mul_scalar_from(q, &mut expected, &a, w);
        kernels.sub_mul_scalar_from(&mut found, &a, w);
        assert_eq!(found, expected);
        scalar::neg_assign(q, &mut expected);
        kernels.neg_assign(&mut found);
        assert_eq!(found, expected);
    });
}

#[test]
fn products_with_compressed_factors_agree_with_scalar() {
    for_each_case(&[16, 64, 256], |q, kernels, len| {
        let mut rng = rng(2);
        let a = residues(&mut rng, q.value(), len);
        for run in [1, 2, 4, 8] {
            let b = residues(&mut rng, q.value(), len / run);
            let (mut expected, mut found) = (vec![0; len], vec![0; len]);
            scalar::mul_into(q, &mut expected, &a, &b);
            kernels.mul_into(&mut found, &a, &b);
            assert_eq!(found, expected);
        }
    });
}

#[test]
fn inner_products_agree_with_scalar_for_any_number_of_terms() {
    for_each_case(&[8, 12, 64, 256], |q, kernels, len| {
        let mut rng = rng(3);
        for n_terms in [0, 1, 3, 4, 5, 8, 64, 65, 130] {
            let worst = vec![q.value() - 1; len];
            let shared: Vec<Vec<u64>> =
                (0..n_terms)
                    .map(|t| {
                        if t % 2 == 0 { worst.clone() } else { residues(&mut rng, q.value(), len >> (t % 3)) }
                    })
                    .collect();
            let y = [worst.clone(), residues(&mut rng, q.value(), len)];
            let terms: Vec<Term<'_>> = shared.iter().map(|x| Term { x, y: [&y[0], &y[1]] }).collect();
            let (mut expected, mut found) = ([worst.clone(), y[1].clone()], [worst.clone(), y[1].clone()]);
            for mode in [Mode::Add, Mode::Set] {
                let [a, b] = &mut expected;
                scalar::dot2(q, [a, b], &terms, mode);
                let [a, b] = &mut found;
                kernels.dot2([a, b], &terms, mode);
                assert_eq!(found, expected, "{n_terms} terms of {len} modulo {}", q.value());
            }
        }
    });
}

#[test]
fn weighing_agrees_with_scalar() {
    for_each_case(&[6, 64, 67], |q, kernels, len| {
        let mut rng = rng(5);
        let y = residues(&mut rng, q.value(), len);
        let w = q.shoup(residues(&mut rng, q.value(), 8)[7]);
        let mut expected = (vec![0; len], vec![0.25; len]);
        scalar::weigh(q, &mut expected.0, &y, w, &mut expected.1);
        let mut found = (vec![0; len], vec![0.25; len]);
        kernels.weigh(&mut found.0, &y, w, &mut found.1);
        assert_eq!(found, expected);
        scalar::round(&mut expected.1);
        kernels.round(&mut found.1);
        assert_eq!(found, expected);
    });
}

#[test]
fn integral_doubles_reduce_to_the_same_residues() {
    for_each_case(&[5, 8, 64], |q, kernels, len| {
        let p = q.value() as f64;
        let extremes = [
            0.0,
            -0.0,
            -1.0,
            p,
            -p,
            p * 3.0,
            -5.0 * p - 1.0,
            2f64.powi(51),
            -(2f64.powi(90)),
            2f64.powi(51) - 1.0,
        ];
        let x: Vec<f64> = (0..len).map(|i| extremes[i % extremes.len()]).collect();
        let (mut expected, mut found) = (vec![0; len], vec![0; len]);
        scalar::reduce_f64(q, &mut expected, &x);
        kernels.reduce_f64(&mut found, &x);
        assert_eq!(found, expected);
        assert!(found.iter().all(|&r| r < q.value()));
    });
}

//! Every SIMD kernel gives the bits of its scalar twin.

use super::{INSTRUCTIONS, PRIMES, residues, rng};
use crate::kernels::{Instructions, Kernels};
use crate::modulus::Modulus;
use crate::packed::pack;
use crate::scalar::{self, End, PackedTerm, Start, Term};
use crate::simd::FMA_PRIME_BOUND;
use crate::{Held, PackedPoly, Poly, Ring, Unchecked, Words};

/// Runs `check` for every prime and length with the scalar and the best kernels.
fn for_each_case(lengths: &[usize], check: impl Fn(Modulus, &Kernels, usize)) {
    for prime in PRIMES {
        let q = Modulus::new(prime);
        for instructions in INSTRUCTIONS {
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
        let mut assigned = a.clone();
        kernels.mul_assign(&mut assigned, &b);
        assert_eq!(assigned, expected);
        kernels.add_into(&mut assigned, &a, &b);
        let mut sum = a.clone();
        scalar::add_assign(q, &mut sum, &b);
        assert_eq!(assigned, sum);
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
            let mut assigned = a.clone();
            kernels.mul_assign(&mut assigned, &b);
            assert_eq!(assigned, expected);
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
            let terms: Vec<Term<'_>> = shared
                .iter()
                .map(|x| Term { x: Words::Integers(x), y: [&y[0], &y[1]].map(|y| Words::Integers(y)) })
                .collect();
            let (mut expected, mut found) = ([worst.clone(), y[1].clone()], [worst.clone(), y[1].clone()]);
            for start in [Start::Sums, Start::Zero, Start::First(&y[1])] {
                let [a, b] = &mut expected;
                scalar::dot2(q, [a, b], &terms, start);
                let [a, b] = &mut found;
                kernels.dot2([a, b], &terms, start);
                assert_eq!(found, expected, "{n_terms} terms of {len} modulo {}", q.value());
            }
        }
    });
}

#[test]
fn inner_products_with_doubles_agree_with_scalar() {
    for_each_case(&[16, 256], |q, kernels, len| {
        let mut rng = rng(4);
        // What transforms leave: below 16q for small primes, balanced for large ones.
        let times = if q.value() < 1 << 46 { 15.0 } else { 0.0 };
        for n_terms in [1, 4, 5, 64, 65] {
            let shared: Vec<Vec<u64>> = (0..n_terms)
                .map(|t| {
                    let sign = if t % 3 == 0 { -1.0 } else { 1.0 };
                    let worst = t % 2 == 0;
                    residues(&mut rng, q.value(), len >> (t % 2))
                        .into_iter()
                        .map(|x| if worst { (q.value() / 2) as f64 } else { q.center(x) as f64 })
                        .map(|x| (sign * (x + times * q.value() as f64)).to_bits())
                        .collect()
                })
                .collect();
            let y = [vec![q.value() - 1; len], residues(&mut rng, q.value(), len)];
            let terms: Vec<Term<'_>> = shared
                .iter()
                .map(|x| Term { x: Words::Doubles(x), y: [&y[0], &y[1]].map(|y| Words::Integers(y)) })
                .collect();
            let second = y.clone().map(|y| y.into_iter().map(|y| (y as f64).to_bits()).collect::<Vec<_>>());
            let all_doubles: Vec<Term<'_>> = terms
                .iter()
                .map(|term| Term { y: [&second[0], &second[1]].map(|y| Words::Doubles(y)), ..*term })
                .collect();
            let mut expected = y.clone();
            let [a, b] = &mut expected;
            scalar::dot2(q, [a, b], &terms, Start::Sums);
            // Residues of larger primes are no doubles.
            let all_doubles = (q.value() < 1 << 52).then_some(&all_doubles);
            for terms in all_doubles.into_iter().chain([&terms]) {
                let mut found = y.clone();
                let [a, b] = &mut found;
                kernels.dot2([a, b], terms, Start::Sums);
                assert_eq!(found, expected, "{n_terms} terms of {len} modulo {}", q.value());
            }
        }
    });
}

/// A residue as transforms leave it for products with packed factors, at the far end of what they may.
fn as_factor(q: Modulus, end: End<'_>, x: u64) -> u64 {
    let p = q.value() as f64;
    let small = q.value() < 1 << 46;
    match end {
        End::Doubles => (q.center(x) as f64 - if small { 15.0 * p } else { 0.0 }).to_bits(),
        End::Shifted => (q.center(x) as f64 + if small { 31.0 * p } else { p } + 2f64.powi(52)).to_bits(),
        _ => x,
    }
}

#[test]
fn inner_products_with_packed_factors_agree_with_scalar() {
    let n = 64;
    for prime in PRIMES {
        let mut rng = rng(5);
        let ring = Ring::new(n, &[prime], &[], Instructions::Scalar).unwrap();
        let q = Modulus::new(prime);
        let y = [vec![prime - 1; n], residues(&mut rng, prime, n)];
        let packed = y
            .each_ref()
            .map(|y| PackedPoly::new(&ring, &Poly::from_residues(n, ring.basis_q(1), y).unwrap()));
        for (range, n_terms) in
            [0..n, 8..40, 16..21].into_iter().flat_map(|r| [0, 1, 7, 8, 9, 40].map(|t| (r.clone(), t)))
        {
            let x: Vec<Vec<u64>> = (0..n_terms)
                .map(|t| {
                    if t % 2 == 0 {
                        vec![prime - 1; range.len()]
                    } else {
                        residues(&mut rng, prime, range.len())
                    }
                })
                .collect();
            let y_packed = packed.each_ref().map(|y| y.tower(0).piece(range.clone()));
            let first = &y[1][range.clone()];
            for start in [Start::Zero, Start::Sums, Start::First(first)] {
                let mut expected = [first.to_vec(), first.to_vec()];
                let [a, b] = &mut expected;
                let terms: Vec<_> =
                    x.iter().map(|x| PackedTerm { x: Words::Integers(x), y: y_packed }).collect();
                scalar::dot2_packed(q, [a, b], &terms, start);
                for kernels in INSTRUCTIONS.map(|instructions| Kernels::new(q, instructions)) {
                    // Odd lengths are for rings without our transforms, which leave residues.
                    let end = if range.len() % 16 == 0 { kernels.packed_end() } else { End::Residues };
                    let x: Vec<Vec<u64>> =
                        x.iter().map(|x| x.iter().map(|&x| as_factor(q, end, x)).collect()).collect();
                    let held = if matches!(end, End::Doubles) { Held::Doubles } else { Held::Integers };
                    let terms: Vec<_> = x.iter().map(|x| PackedTerm { x: held.of(x), y: y_packed }).collect();
                    let mut found = [first.to_vec(), first.to_vec()];
                    let [a, b] = &mut found;
                    kernels.dot2_packed([a, b], &terms, start);
                    assert_eq!(found, expected, "{n_terms} terms of {} modulo {prime}, {end:?}", range.len());
                }
            }
        }
    }
}

#[test]
fn squares_agree_with_products() {
    for_each_case(&[6, 8, 67], |q, kernels, len| {
        let mut rng = rng(6);
        let (mut a, b) = (residues(&mut rng, q.value(), len), residues(&mut rng, q.value(), len));
        a.rotate_left(2);
        let mut found = [vec![0; len], vec![0; len], vec![0; len]];
        let [c0, c1, c2] = &mut found;
        kernels.square_into([c0, c1, c2], [&a, &b]);
        for i in 0..len {
            let cross = q.mul(a[i], b[i]);
            assert_eq!(found[0][i], q.mul(a[i], a[i]));
            assert_eq!(found[1][i], q.add(cross, cross));
            assert_eq!(found[2][i], q.mul(b[i], b[i]));
        }
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

#[test]
fn packed_residues_from_outside_are_below_their_prime_or_refused() {
    let n = 64;
    for prime in PRIMES.into_iter().filter(|prime| *prime < FMA_PRIME_BOUND) {
        let sound = residues(&mut rng(6), prime, n);
        let bits = (u64::BITS - prime.leading_zeros()) as usize;
        let largest = (1 << bits) - 1;
        for instructions in INSTRUCTIONS {
            let ring = Ring::new(n, &[prime], &[], instructions).unwrap();
            let basis = ring.basis_q(1);
            assert!(Unchecked::is_possible(&ring, basis));
            let read = |residues: &[u64]| {
                let mut bytes = vec![0; bits * n / 8];
                pack(&mut bytes, residues, bits);
                let mut rest = &bytes[..];
                let fill = |out: &mut [u8]| std::io::Read::read_exact(&mut rest, out);
                Unchecked::read(&ring, basis, fill).unwrap().checked(&ring)
            };
            let expected = PackedPoly::new(&ring, &Poly::from_residues(n, basis, &sound).unwrap());
            assert_eq!(read(&sound), Some(expected));
            for (at, residue) in [(0, prime), (7, largest), (31, prime), (n - 1, prime), (n - 1, largest)] {
                let mut wrong = sound.clone();
                wrong[at] = residue;
                assert_eq!(read(&wrong), None, "{residue} at {at} modulo {prime}, {instructions:?}");
            }
        }
    }
    let large = Ring::new(n, &PRIMES[8..], &[], Instructions::Best).unwrap();
    assert!(!Unchecked::is_possible(&large, large.basis_q(1)), "its words are whole ones");
}

#[test]
fn what_is_filled_tower_by_tower_is_packed_as_a_whole() {
    let (n, mut rng) = (64, rng(7));
    let ring = Ring::new(n, &PRIMES, &[], Instructions::Best).unwrap();
    let basis = ring.basis_q(PRIMES.len());
    let residues: Vec<u64> = PRIMES.iter().flat_map(|&prime| residues(&mut rng, prime, n)).collect();
    let filled = PackedPoly::filled(&ring, basis, |tower, i, out| {
        assert_eq!(tower.modulus.value(), PRIMES[i]);
        out.copy_from_slice(&residues[i * n..][..n]);
    });
    assert_eq!(filled, PackedPoly::new(&ring, &Poly::from_residues(n, basis, &residues).unwrap()));
    assert_eq!(filled.residues(), residues);
}

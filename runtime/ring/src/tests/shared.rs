//! Sums of rows that share factors, against products one by one.

use rand_core::RngCore;

use super::{INSTRUCTIONS, PRIMES, residues, rng};
use crate::modulus::Modulus;
use crate::shared::{Places, STRIP, SharedKernel, SharedList, Strip, place};

/// Residues with a strip of the largest ones in front, row by row.
fn rows(seed: u64, q: u64, n: usize) -> Vec<[u64; STRIP]> {
    let mut rng = rng(seed);
    let random = residues(&mut rng, q, n * STRIP);
    let mut rows = random.as_chunks::<STRIP>().0.to_vec();
    rows[0] = [q - 1; STRIP];
    rows
}

fn placed(kernel: &SharedKernel, rows: &[[u64; STRIP]]) -> Vec<Strip> {
    let mut strips = vec![Strip::ZERO; rows.len()];
    for (first, row) in rows.iter().enumerate() {
        let mut words = *row;
        kernel.to_words(&mut words);
        place(&mut strips, Places { first, step: 1 }, &words);
    }
    strips
}

fn product_by_product(
    q: Modulus,
    pairs: &[(u32, u32)],
    rows: &[[u64; STRIP]],
    plains: &[[u64; STRIP]],
) -> Vec<u64> {
    (0..STRIP)
        .map(|i| {
            let product =
                |&(plain, row): &(u32, u32)| q.mul(plains[plain as usize][i], rows[row as usize][i]);
            pairs.iter().map(product).fold(0, |sum, product| q.add(sum, product))
        })
        .collect()
}

/// Two lists one after the other, with every kernel that the CPU has for every prime.
fn check(n_plains: usize, n_rows: usize, pairs: &dyn Fn(u64) -> Vec<(u32, u32)>) {
    for q in PRIMES.into_iter().map(Modulus::new) {
        let (inputs, factors) = (rows(1, q.value(), n_rows), rows(2, q.value(), n_plains));
        let lists = [pairs(3), pairs(4)];
        let expected = product_by_product(q, &lists.concat(), &inputs, &factors);
        for kernel in INSTRUCTIONS.into_iter().filter_map(|choice| SharedKernel::new(q, choice)) {
            let strips = placed(&kernel, &inputs);
            let mut plains: Vec<Strip> = factors.iter().copied().map(Strip).collect();
            plains.iter_mut().for_each(|plain| kernel.to_words(&mut plain.0));
            let (mut sum, mut used) = (kernel.nothing(), 0);
            for list in lists.iter().cloned().map(SharedList::new) {
                kernel.sum_products(&mut sum, used, &list, &strips, &plains);
                used += list.len();
            }
            let mut found = [0; STRIP];
            kernel.reduce(&mut found, &sum);
            assert_eq!(found.as_slice(), expected, "modulo {} with {kernel:?}", q.value());
        }
    }
}

#[test]
fn lists_of_any_shape_are_sums_of_products() {
    check(5, 40, &|seed| {
        let mut rng = rng(seed);
        (0..40).map(|row| (rng.next_u32() % 5, row)).collect()
    });
}

#[test]
fn the_largest_residues_do_not_overflow_in_long_lists() {
    check(2, 1, &|_| vec![(0, 0); 5000]);
}

#[test]
fn many_factors_of_one_large_row_do_not_overflow() {
    check(3000, 1, &|_| (0..3000).map(|plain| (plain, 0)).collect());
}

#[test]
fn empty_lists_are_zero() {
    check(1, 1, &|_| Vec::new());
}

#[test]
fn factors_with_equally_many_rows_follow_each_other() {
    let list = SharedList::new(vec![(7, 0), (3, 4), (3, 1), (9, 2), (3, 5), (1, 3), (1, 6)]);
    let runs: Vec<_> =
        list.runs().map(|(run, plains, rows)| (run.n_rows, plains.to_vec(), rows.to_vec())).collect();
    assert_eq!(runs, [(1, vec![7, 9], vec![0, 2]), (2, vec![1], vec![3, 6]), (3, vec![3], vec![1, 4, 5])]);
    assert_eq!((list.len(), list.n_rows()), (7, 7));
}

#[test]
fn rows_that_do_not_exist_are_refused() {
    for kernel in
        INSTRUCTIONS.into_iter().filter_map(|choice| SharedKernel::new(Modulus::new(PRIMES[0]), choice))
    {
        let list = SharedList::new(vec![(0, 1)]);
        let add = || kernel.sum_products(&mut kernel.nothing(), 0, &list, &[Strip::ZERO], &[Strip::ZERO]);
        assert!(std::panic::catch_unwind(add).is_err());
    }
}

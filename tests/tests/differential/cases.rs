//! Networks that were wrong once, by what was wrong with them.

use fhec::Request;
use fhec::pipeline::LayoutChoice;
use fhec_tests::differential::{Limits, Temper, draw};

use crate::compile::Rings;
use crate::judge::{Verdict, judge_with};

fn check(seed: u64, temper: Temper, limits: &Limits, rings: Rings) {
    check_with(seed, temper, limits, rings, |_| ());
}

fn check_with(seed: u64, temper: Temper, limits: &Limits, rings: Rings, change: impl FnOnce(&mut Request)) {
    match judge_with(&draw(seed, temper, limits), rings, change) {
        Verdict::Evaluated { evaluations, .. } => {
            assert!(evaluations.iter().all(|e| !e.is_fault()), "seed {seed}: {evaluations:?}");
        }
        other => panic!("seed {seed}: {other:?}"),
    }
}

/// Coefficients of 2e4 cancel to a result of one: in single precision the scores were off by 14 bounds.
#[test]
fn coefficients_that_cancel_keep_double_precision() {
    check(50, Temper::Wild, &Limits::toy(), Rings::Toy);
    check(59, Temper::Wild, &Limits::toy(), Rings::Toy);
}

/// A channel had terms of 3e15 beside channels with terms of one; encoding in doubles lost the small ones.
#[test]
fn tiny_leading_coefficient_makes_no_large_terms() {
    check(55, Temper::Wild, &Limits::toy(), Rings::Toy);
}

/// A row shared a complex sum with one of weights 1400 times its own, which the imaginary part of the noise met: 338 bounds off.
#[test]
fn unequal_rows_share_no_complex_sum() {
    check_with(59, Temper::Wild, &Limits::toy(), Rings::Toy, |request| request.layout = LayoutChoice::Hw);
}

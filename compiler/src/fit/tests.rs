//! The fit against brute force and against the trainer's.

use super::*;

fn relu(x: f64) -> f64 {
    x.max(0.0)
}

fn objective(a: &[i64], spec: FitSpec, f: impl Fn(f64) -> f64) -> f64 {
    let unit = (1_u64 << spec.bits) as f64;
    let steps = (spec.c * unit).floor() as i64;
    (-steps..=steps)
        .map(|k| {
            let x = k as f64 / unit;
            let p = a.iter().rev().fold(0.0, |acc, &c| acc * x + c as f64);
            (p - unit * f(x)).powi(2)
        })
        .sum()
}

/// Tries every integer vector of the box.
fn brute_force(spec: FitSpec, f: impl Fn(f64) -> f64 + Copy) -> f64 {
    let half = 1_i64 << (spec.bits - 1);
    let side = (2 * half) as usize;
    (0..side.pow(spec.degree as u32 + 1))
        .map(|mut code| {
            let a: Vec<i64> = (0..=spec.degree)
                .map(|_| {
                    let digit = (code % side) as i64 - half;
                    code /= side;
                    digit
                })
                .collect();
            objective(&a, spec, f)
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn search_is_as_good_as_trying_every_vector() {
    for (degree, c, bits) in [(1, 2.0, 4), (2, 1.0, 4), (2, 2.0, 4), (2, 3.5, 4), (2, 0.7, 5), (3, 2.0, 3)] {
        let spec = FitSpec { degree, c, bits };
        for f in [relu, |x: f64| x / (1.0 + (-x).exp()), |x: f64| (x - 0.3).powi(2) * 0.4 - 0.2] {
            let found = fit(spec, f).unwrap();
            let (got, best) = (objective(&found.integers, spec, f), brute_force(spec, f));
            assert!(got <= best * (1.0 + 1e-9), "{spec:?}: {found:?} costs {got}, best is {best}");
        }
    }
}

/// `examples/training/tests/test_fit.py` has the same table for the trainer's fit; the two must change together.
#[test]
fn coefficients_are_those_of_the_trainer() {
    let table: [(usize, f64, u32, &[i64]); 8] = [
        (2, 2.0, 10, &[192, 511, 240]),
        (2, 2.0, 8, &[48, 127, 60]),
        (2, 4.0, 10, &[384, 511, 120]),
        (2, 0.5, 10, &[85, 511, 511]),
        (2, 1.3, 6, &[8, 31, 23]),
        (3, 2.0, 10, &[192, 511, 240, 0]),
        (4, 2.0, 10, &[121, 511, 418, 0, -52]),
        (4, 4.0, 12, &[963, 2047, 837, 0, -26]),
    ];
    for (degree, c, bits, expected) in table {
        let spec = FitSpec { degree, c, bits };
        assert_eq!(fit(spec, relu).unwrap().integers, expected, "{spec:?}");
    }
}

#[test]
fn default_fit_of_relu_stays_in_the_box_where_rounding_would_leave_it() {
    let found = fit(FitSpec::default(), relu).unwrap();
    // The real solution has a_1 = 512, which ten bits do not hold.
    assert_eq!(found.integers, [192, 511, 240]);
    assert!(found.max_error < 0.2 && found.rms_error < 0.1, "{found:?}");
}

#[test]
fn integer_search_beats_rounding_the_real_solution() {
    let spec = FitSpec { degree: 2, c: 5.0, bits: 3 };
    let found = fit(spec, relu).unwrap();
    let problem = Problem::new(spec, 40, &relu);
    let rounded: Vec<i64> =
        problem.center.iter().map(|a| (a.round() as i64).clamp(problem.low, problem.high)).collect();
    assert!(objective(&found.integers, spec, relu) < objective(&rounded, spec, relu));
}

#[test]
fn out_of_bounds_requests_are_errors() {
    let base = FitSpec::default();
    assert_eq!(fit(FitSpec { degree: 0, ..base }, relu), Err(FitError::Degree(0)));
    assert_eq!(fit(FitSpec { bits: 60, ..base }, relu), Err(FitError::Bits(60)));
    assert_eq!(fit(FitSpec { c: -1.0, ..base }, relu), Err(FitError::Range(-1.0)));
    assert!(matches!(fit(FitSpec { c: f64::NAN, ..base }, relu), Err(FitError::Range(_))));
}

//! A polynomial that is close to a function where numbers occur, and tame on the rest of its range.
//!
//! The range is what occurred and a margin on both sides. Least squares in Chebyshev polynomials over it, with weights for
//! the numbers that occurred and small ones everywhere else; or, by weights that grow where the error is largest (Lawson's
//! iteration), nearly the smallest largest error.

use rayon::prelude::*;

use super::MARGIN;
use super::network::LayerSeen;
use crate::import::{Fit, Fitted};

/// Points of the range that a fit looks at besides what occurs.
const GRID: usize = 257;
/// Weight of all points of the grid together, relative to what occurs.
const GRID_WEIGHT: f64 = 0.01;
/// Times that weights follow the error.
const ITERATIONS: usize = 40;

/// Half of a channel's range at least, as part of half of the layer's: what hardly moves in some inputs may move in others.
const LEAST_WIDTH: f64 = 0.2;
/// How much worse on what occurs the fit with the smallest largest error may be, to be taken: it errs less on what did not.
const EVEN: f64 = 1.05;

/// Which errors count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighting {
    /// Those of numbers that occur, as often as they do.
    ByWhatOccurs,
    /// The largest on the range.
    Evenly,
}

/// A polynomial of a degree for every channel of numbers `seen` with results `targets`; elsewhere the function tells.
pub(super) fn fitted(
    degree: usize,
    seen: &LayerSeen,
    targets: &[f64],
    f: impl Fn(f64) -> f64 + Sync,
) -> Fitted {
    let mut occurred: Vec<Vec<(f64, f64)>> = vec![Vec::new(); seen.ranges.len()];
    for ((&x, &channel), &y) in seen.x.iter().zip(&seen.channel).zip(targets) {
        occurred[channel].push((x, y));
    }
    let (low, high) = seen.range();
    let least = (LEAST_WIDTH * (high - low) / 2.0).max(1e-6 * (1.0 + low.abs().max(high.abs())));
    let of_channel = |(&range, occurred): (&(f64, f64), &Vec<(f64, f64)>)| {
        let half_width = ((range.1 - range.0) * (0.5 + MARGIN)).max(least);
        let place = Place { center: (range.0 + range.1) / 2.0, half_width, range };
        let [by_occurrence, evenly] = [Weighting::ByWhatOccurs, Weighting::Evenly]
            .map(|weighting| place.fit(degree, occurred, &f, weighting));
        let error = |fit: &Fit| -> f64 { occurred.iter().map(|&(x, y)| (fit.eval(x) - y).powi(2)).sum() };
        if error(&evenly) <= EVEN * error(&by_occurrence) { evenly } else { by_occurrence }
    };
    Fitted { channels: seen.ranges.par_iter().zip(&occurred).map(of_channel).collect() }
}

/// Where a polynomial is fitted.
struct Place {
    center: f64,
    half_width: f64,
    /// What occurred.
    range: (f64, f64),
}

impl Place {
    fn fit(
        &self,
        degree: usize,
        occurred: &[(f64, f64)],
        f: impl Fn(f64) -> f64,
        weighting: Weighting,
    ) -> Fit {
        let Self { center, half_width, range: (low, high) } = *self;
        let at = |i: usize| ((i as f64 + 0.5) / GRID as f64 * std::f64::consts::PI).cos();
        // Where the function has no value beyond what occurred, its last value stands for it.
        let grid: Vec<(f64, f64)> = (0..GRID)
            .map(|i| {
                let x = center + half_width * at(i);
                let y = f(x);
                (at(i), if y.is_finite() { y } else { f(x.clamp(low, high)) })
            })
            .collect();
        let chebyshev = match weighting {
            Weighting::ByWhatOccurs => {
                let numbers = occurred.iter().map(|&(x, y)| ((x - center) / half_width, y, 1.0));
                let weight = GRID_WEIGHT * occurred.len().max(1) as f64 / GRID as f64;
                let rest = grid.iter().map(|&(u, y)| (u, y, weight));
                least_squares(degree, numbers.chain(rest))
            }
            Weighting::Evenly => lawson(degree, &grid),
        };
        Fit { center, half_width, coefficients: to_powers(&chebyshev) }
    }
}

/// Nearly the smallest largest error on the points.
fn lawson(degree: usize, points: &[(f64, f64)]) -> Vec<f64> {
    let mut weights = vec![1.0 / points.len() as f64; points.len()];
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..ITERATIONS {
        let weighted = points.iter().zip(&weights).map(|(&(u, y), &w)| (u, y, w));
        let fit = least_squares(degree, weighted);
        let errors: Vec<f64> = points.iter().map(|&(u, y)| (evaluate(&fit, u) - y).abs()).collect();
        let largest = errors.iter().copied().fold(0.0, f64::max);
        if largest < best.0 {
            best = (largest, fit);
        }
        weights.iter_mut().zip(&errors).for_each(|(w, e)| *w *= e.max(1e-12));
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    best.1
}

/// Chebyshev coefficients with the least weighted sum of squared errors.
fn least_squares(degree: usize, points: impl Iterator<Item = (f64, f64, f64)>) -> Vec<f64> {
    let n = degree + 1;
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for (u, y, weight) in points {
        let basis = basis(degree, u);
        for (i, row) in matrix.iter_mut().enumerate() {
            for (cell, b) in row.iter_mut().zip(&basis) {
                *cell += weight * basis[i] * b;
            }
            row[n] += weight * basis[i] * y;
        }
    }
    solve(matrix)
}

fn basis(degree: usize, u: f64) -> Vec<f64> {
    let mut all = vec![1.0, u];
    for i in 2..=degree {
        all.push(2.0 * u * all[i - 1] - all[i - 2]);
    }
    all.truncate(degree + 1);
    all
}

fn evaluate(chebyshev: &[f64], u: f64) -> f64 {
    basis(chebyshev.len() - 1, u).iter().zip(chebyshev).map(|(b, c)| b * c).sum()
}

/// Gauss elimination with the largest pivots; the last column is the right side.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let n = matrix.len();
    // A little weight on every coefficient keeps what no point tells at zero.
    let ridge = 1e-12 * (0..n).map(|i| matrix[i][i]).fold(f64::MIN_POSITIVE, f64::max);
    (0..n).for_each(|i| matrix[i][i] += ridge);
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        matrix.swap(column, pivot.unwrap_or(column));
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot = &above[column];
        for row in below {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(pivot).skip(column).for_each(|(cell, p)| *cell -= factor * p);
        }
    }
    let mut solution = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| matrix[i][j] * solution[j]).sum();
        solution[i] = (matrix[i][n] - known) / matrix[i][i];
    }
    solution
}

/// The same polynomial in powers.
fn to_powers(chebyshev: &[f64]) -> Vec<f64> {
    let n = chebyshev.len();
    let (mut before, mut last) = (vec![1.0], vec![0.0, 1.0]);
    let mut powers = vec![0.0; n];
    let mut add = |polynomial: &[f64], factor: f64| {
        powers.iter_mut().zip(polynomial).for_each(|(p, c)| *p += factor * c);
    };
    for (i, &factor) in chebyshev.iter().enumerate() {
        match i {
            0 => add(&before, factor),
            1 => add(&last, factor),
            _ => {
                let mut next = vec![0.0; i + 1];
                last.iter().enumerate().for_each(|(k, c)| next[k + 1] += 2.0 * c);
                before.iter().enumerate().for_each(|(k, c)| next[k] -= c);
                add(&next, factor);
                (before, last) = (last, next);
            }
        }
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(fit: &Fit, f: impl Fn(f64) -> f64) -> f64 {
        let at = |i: i32| fit.center + fit.half_width * f64::from(i) / 500.0;
        (-500..=500).map(|i| (fit.eval(at(i)) - f(at(i))).abs()).fold(0.0, f64::max)
    }

    fn only(fitted: Fitted) -> Fit {
        fitted.channels.into_iter().next().unwrap()
    }

    fn values(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
        x.iter().map(|&x| f(x)).collect()
    }

    #[test]
    fn a_polynomial_is_found_again() {
        let f = |x: f64| 3.0 - x + 0.5 * x * x;
        let x: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.07 - 2.0).collect();
        let fit = only(fitted(4, &LayerSeen::of(&x), &values(&x, f), f));
        assert!(worst(&fit, f) < 1e-6, "{}", worst(&fit, f));
    }

    #[test]
    fn even_weights_come_near_the_smallest_largest_error() {
        // Of degree 2 for |x| on [-1, 1] it is 1/8.
        let place = Place { center: 0.0, half_width: 1.0, range: (-1.0, 1.0) };
        let found = worst(&place.fit(2, &[], f64::abs, Weighting::Evenly), f64::abs);
        assert!((0.12..0.132).contains(&found), "{found}");
    }

    #[test]
    fn what_occurs_counts_more_than_what_does_not() {
        let x: Vec<f64> = (0..1000).map(|i| 0.4 * (f64::from(i) * 0.37).sin()).chain([-8.0, 8.0]).collect();
        let relu = |x: f64| x.max(0.0);
        let rms = |fit: &Fit| -> f64 { x.iter().map(|&x| (fit.eval(x) - relu(x)).powi(2)).sum() };
        let found = only(fitted(4, &LayerSeen::of(&x), &values(&x, relu), relu));
        let place = Place { center: 0.0, half_width: found.half_width, range: (-8.0, 8.0) };
        assert!(rms(&found) < 0.5 * rms(&place.fit(4, &[], relu, Weighting::Evenly)));
    }

    #[test]
    fn channels_have_ranges_and_polynomials_of_their_own() {
        let relu = |x: f64| x.max(0.0);
        let x: Vec<f64> =
            (0..400).map(|i| if i % 2 == 0 { 3.0 } else { -3.0 } + f64::from(i % 19) / 10.0).collect();
        let seen = LayerSeen {
            channel: (0..x.len()).map(|i| i % 2).collect(),
            ranges: vec![(3.0, 4.8), (-3.0, -1.2)],
            x: x.clone(),
        };
        let found = fitted(2, &seen, &values(&x, relu), relu);
        // Each has one side of the bend only, where a line is exact.
        for (i, &x) in x.iter().enumerate() {
            assert!((found.eval(i % 2, x) - relu(x)).abs() < 1e-6, "{x}");
        }
    }
}

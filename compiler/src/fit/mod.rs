//! Quantization-aware polynomial fitting (paper §3.2): the best polynomial whose coefficients are fixed-point numbers.
//!
//! Definition, so that another program can compute the same numbers. Given a degree d, a range c > 0, b fractional bits
//! and a function f (ReLU, say):
//!
//! - sample points x_k = k·2^-b for every integer k with |k| <= K, K = floor(c·2^b), so 2K + 1 of them;
//! - targets y_k = 2^b·f(x_k);
//! - A = (a_0, …, a_d) are integers with -2^(b-1) <= a_i <= 2^(b-1) - 1;
//! - A minimizes the sum over k of (a_0 + a_1·x_k + … + a_d·x_k^d - y_k)^2, exactly: it is the best of all integer
//!   vectors in the box, not a rounded real solution. Of vectors that are equally good to 1e-12 relative, the one
//!   with the smallest (a_d, …, a_0) in lexicographic order is taken.
//! - The polynomial is p(x) = sum of (a_i / 2^b)·x^i.
//!
//! The search is a sphere decoder: with the Gram matrix of the powers factored as R^T·R, the objective is
//! |R·(A - A*)|^2 plus a constant for the real solution A*, so the coefficients are fixed from a_d down to a_0, nearest
//! candidates first, and a branch ends where its partial sum exceeds the best sum found.

/// What to fit: degree, range and precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitSpec {
    /// Degree of the polynomial, 1 to 8.
    pub degree: usize,
    /// The function is sampled on [-c, c].
    pub c: f64,
    /// Fractional bits of coefficients and sample points, 2 to 16.
    pub bits: u32,
}

impl Default for FitSpec {
    /// Degree 2 on [-2, 2] with 10 bits.
    fn default() -> Self {
        FitSpec { degree: 2, c: 2.0, bits: 10 }
    }
}

/// The best fixed-point polynomial.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The integers a_0 … a_d.
    pub integers: Vec<i64>,
    /// Fractional bits.
    pub bits: u32,
    /// Largest difference to the function on the sample points.
    pub max_error: f64,
    /// Root of the mean squared difference on the sample points.
    pub rms_error: f64,
}

impl Fit {
    /// The coefficients a_i / 2^b, constant term first.
    pub fn coefficients(&self) -> Vec<f64> {
        self.integers.iter().map(|&a| a as f64 / (1_u64 << self.bits) as f64).collect()
    }
}

/// A request [`fit`] cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Degree outside 1 to 8.
    #[error("the degree of a fit is 1 to 8, not {0}")]
    Degree(usize),
    /// Bits outside 2 to 16.
    #[error("a fit has 2 to 16 fractional bits, not {0}")]
    Bits(u32),
    /// A range that is not positive, or too wide or narrow for the grid.
    #[error("the range c = {0} must be positive and give between 8 and 4194304 sample points on each side")]
    Range(f64),
}

/// Finds the best fixed-point polynomial for `f`; see the module for the definition.
///
/// # Errors
/// When the specification is out of bounds.
pub fn fit(spec: FitSpec, f: impl Fn(f64) -> f64) -> Result<Fit, FitError> {
    if !(1..=8).contains(&spec.degree) {
        return Err(FitError::Degree(spec.degree));
    }
    if !(2..=16).contains(&spec.bits) {
        return Err(FitError::Bits(spec.bits));
    }
    let steps = (spec.c * (1_u64 << spec.bits) as f64).floor();
    if !(spec.c > 0.0 && (8.0..=4_194_304.0).contains(&steps)) {
        return Err(FitError::Range(spec.c));
    }
    let problem = Problem::new(spec, steps as i64, &f);
    let integers = problem.search();
    Ok(measure(integers, spec.bits, steps as i64, &f))
}

/// The normal equations, factored.
struct Problem {
    /// Upper triangular R with R^T·R the Gram matrix of the powers.
    factor: Vec<Vec<f64>>,
    /// The real solution A*.
    center: Vec<f64>,
    low: i64,
    high: i64,
    /// The part of the objective that no A can change, as the scale for calling two sums equal.
    floor: f64,
}

impl Problem {
    fn new(spec: FitSpec, steps: i64, f: &impl Fn(f64) -> f64) -> Self {
        let n = spec.degree + 1;
        let unit = (1_u64 << spec.bits) as f64;
        let mut moments = vec![0.0; 2 * n - 1];
        let mut projections = vec![0.0; n];
        let mut energy = 0.0;
        for k in -steps..=steps {
            let x = k as f64 / unit;
            let y = unit * f(x);
            let mut power = 1.0;
            for (i, moment) in moments.iter_mut().enumerate() {
                *moment += power;
                if i < n {
                    projections[i] += power * y;
                }
                power *= x;
            }
            energy += y * y;
        }
        let factor = cholesky(&moments, n);
        let center = solve(&factor, &projections);
        let explained: f64 = center.iter().zip(&projections).map(|(a, p)| a * p).sum();
        let half = 1_i64 << (spec.bits - 1);
        Problem { factor, center, low: -half, high: half - 1, floor: (energy - explained).max(0.0) }
    }

    fn search(&self) -> Vec<i64> {
        let mut best = (f64::INFINITY, Vec::new());
        self.descend(self.center.len(), 0.0, &mut vec![0; self.center.len()], &mut best);
        best.1
    }

    /// Fixes coefficient `level - 1`, given those above it and the partial sum they cost.
    fn descend(&self, level: usize, cost: f64, chosen: &mut Vec<i64>, best: &mut (f64, Vec<i64>)) {
        let slack = 1e-12 * (self.floor + best.0.min(f64::MAX));
        let Some(i) = level.checked_sub(1) else {
            let better = cost < best.0 - slack;
            let smaller = || chosen.iter().rev().lt(best.1.iter().rev());
            if better || (cost <= best.0 + slack && smaller()) {
                *best = (cost, chosen.clone());
            }
            return;
        };
        let pull: f64 =
            (level..self.center.len()).map(|j| self.factor[i][j] * (chosen[j] as f64 - self.center[j])).sum();
        let middle = self.center[i] - pull / self.factor[i][i];
        for candidate in outwards(middle, self.low, self.high) {
            let step = self.factor[i][i] * (candidate as f64 - middle);
            let reached = cost + step * step;
            if reached > best.0 + 1e-12 * (self.floor + best.0.min(f64::MAX)) {
                break;
            }
            chosen[i] = candidate;
            self.descend(i, reached, chosen, best);
        }
    }
}

/// The integers of [low, high] by rising distance from `middle`.
fn outwards(middle: f64, low: i64, high: i64) -> impl Iterator<Item = i64> {
    let start = middle.round().clamp(low as f64, high as f64) as i64;
    let (mut below, mut above) = (start - 1, start);
    std::iter::from_fn(move || {
        let down = (below >= low).then(|| (middle - below as f64).abs());
        let up = (above <= high).then(|| (above as f64 - middle).abs());
        match (down, up) {
            (None, None) => None,
            (Some(d), Some(u)) if d < u => {
                below -= 1;
                Some(below + 1)
            }
            (Some(_), None) => {
                below -= 1;
                Some(below + 1)
            }
            (_, Some(_)) => {
                above += 1;
                Some(above - 1)
            }
        }
    })
}

/// R with R^T·R = the Hankel matrix of the moments, which is positive definite.
fn cholesky(moments: &[f64], n: usize) -> Vec<Vec<f64>> {
    let mut r = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in i..n {
            let known: f64 = (0..i).map(|k| r[k][i] * r[k][j]).sum();
            let rest = moments[i + j] - known;
            r[i][j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / r[i][i] };
        }
    }
    r
}

/// Solves R^T·R·x = y.
fn solve(r: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let n = y.len();
    let mut x = y.to_vec();
    for i in 0..n {
        let known: f64 = (0..i).map(|k| r[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / r[i][i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| r[i][k] * x[k]).sum();
        x[i] = (x[i] - known) / r[i][i];
    }
    x
}

fn measure(integers: Vec<i64>, bits: u32, steps: i64, f: &impl Fn(f64) -> f64) -> Fit {
    let mut fit = Fit { integers, bits, max_error: 0.0, rms_error: 0.0 };
    let coefficients = fit.coefficients();
    let unit = (1_u64 << bits) as f64;
    for k in -steps..=steps {
        let x = k as f64 / unit;
        let error = (coefficients.iter().rev().fold(0.0, |acc, a| acc * x + a) - f(x)).abs();
        fit.max_error = fit.max_error.max(error);
        fit.rms_error += error * error;
    }
    fit.rms_error = (fit.rms_error / (2 * steps + 1) as f64).sqrt();
    fit
}

#[cfg(test)]
mod tests;

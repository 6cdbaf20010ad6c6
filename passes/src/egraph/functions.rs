//! What a donor gives and a receiver takes, as functions of coefficients (paper §4.1, §4.2, §E).
//!
//! A polynomial is the table c of its coefficients, row i for x^i; a bivariate one has a row per monomial of
//! [`fhec_ir::op::monomials`]. Vectors have one number per channel.

use fhec_ir::op::{bivar_degree, monomials};

use crate::small::Small;

/// c_d, the leading coefficient.
pub(crate) fn lead(c: &Small) -> Small {
    c.row(c.rows() - 1)
}

/// c / c_d, with a leading coefficient of exactly one.
pub(crate) fn monic(c: &Small) -> Small {
    let lead = lead(c);
    with_row(&over(c, &lead), c.rows() - 1, 1.0)
}

/// c_d^(1/d), the factor a polynomial gives backward.
pub(crate) fn root(c: &Small) -> Small {
    real_root(&lead(c), c.rows() - 1)
}

/// c_i / υ^i with υ = c_d^(1/d): the polynomial left after giving backward.
pub(crate) fn unroot(c: &Small) -> Small {
    let degree = c.rows() - 1;
    with_row(&subst(c, &root(c).map(f64::recip)), degree, 1.0)
}

/// c_i·v^i: the polynomial of a scaled operand.
pub(crate) fn subst(c: &Small, v: &Small) -> Small {
    let rows: Vec<Small> = (0..c.rows()).map(|i| c.row(i).zip(v, |c, v| c * v.powi(i as i32))).collect();
    Small::stack(&rows)
}

/// c·v: a polynomial that scales its result.
pub(crate) fn times(c: &Small, v: &Small) -> Small {
    let rows: Vec<Small> = (0..c.rows()).map(|i| c.row(i).zip(v, |c, v| c * v)).collect();
    Small::stack(&rows)
}

/// The polynomial of s·x + t, by Horner's rule.
pub(crate) fn affine(c: &Small, s: &Small, t: &Small) -> Small {
    let degree = c.rows() - 1;
    let zero = Small::scalar(0.0);
    let mut rows = vec![zero; degree + 1];
    for i in (0..=degree).rev() {
        for k in (0..=degree).rev() {
            let kept = rows[k].zip(t, |r, t| r * t);
            rows[k] = if k == 0 { kept } else { rows[k - 1].zip(s, |r, s| r * s).zip(&kept, |a, b| a + b) };
        }
        rows[0] = rows[0].zip(&c.row(i), |r, c| r + c);
    }
    Small::stack(&rows)
}

/// The bivariate polynomial of (s·x + t) + (u·y + v), by Horner's rule.
pub(crate) fn join(c: &Small, s: &Small, t: &Small, u: &Small, v: &Small) -> Small {
    let degree = c.rows() - 1;
    let index = |i: usize, j: usize| monomials(degree).position(|m| m == (i, j));
    let shift = t.zip(v, |t, v| t + v);
    let mut rows = vec![Small::scalar(0.0); monomials(degree).count()];
    for power in (0..=degree).rev() {
        let previous = rows.clone();
        for (k, (i, j)) in monomials(degree).enumerate() {
            let mut sum = previous[k].zip(&shift, |r, t| r * t);
            if let Some(x) = i.checked_sub(1).and_then(|i| index(i, j)) {
                sum = previous[x].zip(s, |r, s| r * s).zip(&sum, |a, b| a + b);
            }
            if let Some(y) = j.checked_sub(1).and_then(|j| index(i, j)) {
                sum = previous[y].zip(u, |r, u| r * u).zip(&sum, |a, b| a + b);
            }
            rows[k] = sum;
        }
        rows[0] = rows[0].zip(&c.row(power), |r, c| r + c);
    }
    Small::stack(&rows)
}

/// The coefficient of x^d.
pub(crate) fn bi_lead(c: &Small) -> Small {
    c.row(bi_lead_row(c))
}

/// c divided by the coefficient of x^d.
pub(crate) fn bi_monic(c: &Small) -> Small {
    with_row(&over(c, &bi_lead(c)), bi_lead_row(c), 1.0)
}

/// The d-th root of the coefficient of x^d.
pub(crate) fn bi_root(c: &Small) -> Small {
    real_root(&bi_lead(c), bi_degree(c))
}

/// c_ij / υ^i with υ = c_d0^(1/d).
pub(crate) fn bi_unroot(c: &Small) -> Small {
    with_row(&bi_subst(c, &bi_root(c).map(f64::recip), |i, _| i), bi_lead_row(c), 1.0)
}

/// c_ij·v^i for a scaled x, c_ij·v^j for a scaled y: `exponent` picks which.
pub(crate) fn bi_subst(c: &Small, v: &Small, exponent: impl Fn(usize, usize) -> usize) -> Small {
    let row =
        |(r, (i, j)): (usize, (usize, usize))| c.row(r).zip(v, |c, v| c * v.powi(exponent(i, j) as i32));
    let rows: Vec<Small> = monomials(bi_degree(c)).enumerate().map(row).collect();
    Small::stack(&rows)
}

/// Degree of a bivariate polynomial.
pub(crate) fn bi_degree(c: &Small) -> usize {
    bivar_degree(c.rows()).expect("shape inference checked the monomial count")
}

fn bi_lead_row(c: &Small) -> usize {
    let degree = bi_degree(c);
    monomials(degree).position(|m| m == (degree, 0)).expect("a pure power is among the monomials")
}

/// The real d-th root; square roots of square roots are exact to the last bit on every machine.
fn real_root(v: &Small, degree: usize) -> Small {
    v.map(|x| match degree {
        1 => x,
        2 => x.sqrt(),
        4 => x.sqrt().sqrt(),
        _ => x.signum() * x.abs().powf(1.0 / degree as f64),
    })
}

fn over(c: &Small, v: &Small) -> Small {
    times(c, &v.map(f64::recip))
}

fn with_row(c: &Small, row: usize, value: f64) -> Small {
    let width = c.dims[1];
    c.rebuild(c.dims.clone(), |m| {
        let mut m = m.to_vec();
        m[row * width..(row + 1) * width].fill(value);
        m
    })
}

#[cfg(test)]
mod tests {
    use fhec_ir::op::monomials;

    use super::*;

    fn table(rows: &[f64]) -> Small {
        let rows: Vec<Small> = rows.iter().map(|&r| Small::scalar(r)).collect();
        Small::stack(&rows)
    }

    fn eval(c: &Small, x: f64) -> f64 {
        c.member(0).iter().rev().fold(0.0, |acc, k| acc * x + k)
    }

    fn eval2(c: &Small, x: f64, y: f64) -> f64 {
        let powers = monomials(bi_degree(c));
        c.member(0).iter().zip(powers).map(|(k, (i, j))| k * x.powi(i as i32) * y.powi(j as i32)).sum()
    }

    #[track_caller]
    fn close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-12 * expected.abs().max(1.0), "{actual} is not {expected}");
    }

    const X: f64 = 0.7;
    const Y: f64 = -1.3;

    #[test]
    fn monic_times_lead_is_the_polynomial() {
        let c = table(&[0.3, -1.5, 0.25]);
        close(eval(&monic(&c), X) * lead(&c).member(0)[0], eval(&c, X));
        assert_eq!(lead(&monic(&c)).member(0), [1.0]);
    }

    #[test]
    fn unroot_of_the_rooted_operand_is_the_polynomial() {
        for c in
            [table(&[0.3, -1.5, 0.25]), table(&[0.3, -1.5, 0.25, -2.0]), table(&[1.0, 2.0, 3.0, 4.0, 5.0])]
        {
            close(eval(&unroot(&c), X * root(&c).member(0)[0]), eval(&c, X));
        }
    }

    #[test]
    fn affine_composes() {
        let c = table(&[0.3, -1.5, 0.25, 0.5]);
        let (s, t) = (Small::scalar(1.7), Small::scalar(-0.4));
        close(eval(&affine(&c, &s, &t), X), eval(&c, 1.7 * X - 0.4));
    }

    #[test]
    fn join_expands_the_sum_of_two_branches() {
        for c in [table(&[0.3, -1.5, 0.25]), table(&[0.3, -1.5, 0.25, 0.5, 1.5])] {
            let [s, t, u, v] = [1.7, -0.4, 0.9, 0.2].map(Small::scalar);
            close(eval2(&join(&c, &s, &t, &u, &v), X, Y), eval(&c, 1.7 * X - 0.4 + 0.9 * Y + 0.2));
        }
    }

    #[test]
    fn bivariate_donors_keep_the_function() {
        let c = table(&[0.3, -1.5, 0.25, 0.5, 0.75, -2.0]);
        close(eval2(&bi_monic(&c), X, Y) * bi_lead(&c).member(0)[0], eval2(&c, X, Y));
        close(eval2(&bi_unroot(&c), X * bi_root(&c).member(0)[0], Y), eval2(&c, X, Y));
        close(eval2(&bi_subst(&c, &Small::scalar(3.0), |_, j| j), X, Y), eval2(&c, X, 3.0 * Y));
    }
}

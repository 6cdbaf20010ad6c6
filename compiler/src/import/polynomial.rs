//! Polynomial arithmetic over element-wise subgraphs.
//!
//! Trainers have no operator for a polynomial activation; they spell it with Add, Mul, Pow and friends. Instead of
//! matching spellings, the import carries every encrypted value as a polynomial in at most two sources (nodes of the
//! graph), with coefficients per channel, and computes with these polynomials. A node is made where something else than
//! element-wise arithmetic needs the value.

use std::collections::BTreeMap;

use fhec_ir::{NodeId, Shape};

use super::coefficient::Coefficient;
use super::limits::{MAX_BIVARIATE_DEGREE, MAX_DEGREE};

/// Exponents of the two sources in a monomial.
pub(super) type Monomial = [u32; 2];

/// A polynomial in one or two nodes of the graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polynomial {
    /// The sources; the second exponent of every monomial is zero if there is only one.
    sources: Vec<NodeId>,
    terms: BTreeMap<Monomial, Coefficient>,
    shape: Shape,
}

impl Polynomial {
    /// The value of a node.
    pub(super) fn source(id: NodeId, shape: Shape) -> Self {
        Polynomial { sources: vec![id], terms: BTreeMap::from([([1, 0], Coefficient::ONE)]), shape }
    }

    /// The same sources with other terms.
    fn with_terms(&self, terms: BTreeMap<Monomial, Coefficient>) -> Self {
        Polynomial { sources: self.sources.clone(), terms, shape: self.shape }
    }

    /// The sources.
    pub(super) fn sources(&self) -> &[NodeId] {
        &self.sources
    }

    /// The shape of value and sources.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// The node this is the plain value of.
    pub(super) fn as_source(&self) -> Option<NodeId> {
        let plain = self.sources.len() == 1 && self.terms.len() == 1 && self.coefficient([1, 0]).is_all(1.0);
        plain.then(|| self.sources[0])
    }

    /// Whether this is one source times a constant that differs between channels.
    pub(super) fn is_multiple_per_channel(&self) -> bool {
        self.sources.len() == 1
            && self.terms.len() == 1
            && matches!(self.coefficient([1, 0]), Coefficient::Channel(_))
    }

    /// The coefficient of a monomial.
    pub(super) fn coefficient(&self, monomial: Monomial) -> Coefficient {
        self.terms.get(&monomial).cloned().unwrap_or(Coefficient::ZERO)
    }

    /// Number of terms, at least one.
    pub(super) fn n_terms(&self) -> usize {
        self.terms.len().max(1)
    }

    /// Numbers in the coefficients.
    pub(super) fn len(&self) -> usize {
        self.terms.values().map(|c| c.values().len()).sum()
    }

    /// Numbers to compute for a product with another polynomial.
    pub(super) fn product_len(&self, other: &Self) -> usize {
        let longest = |p: &Self| p.terms.values().map(|c| c.values().len()).max().unwrap_or(0);
        let pairs = self.terms.len().saturating_mul(other.terms.len());
        pairs.saturating_mul(longest(self).max(longest(other)))
    }

    /// Total degree.
    pub(super) fn degree(&self) -> u32 {
        self.terms.keys().map(|[i, j]| i + j).max().unwrap_or(0)
    }

    /// Whether every coefficient is finite.
    pub(super) fn is_finite(&self) -> bool {
        self.terms.values().all(|c| c.values().iter().all(|v| v.is_finite()))
    }

    /// Whether no term holds both sources.
    pub(super) fn is_separable(&self) -> bool {
        self.terms.keys().all(|[i, j]| *i == 0 || *j == 0)
    }

    /// The part with powers of the source in `slot` only, without the constant term, as a polynomial of one source.
    pub(super) fn part(&self, slot: usize) -> Self {
        let own = self.terms.iter().filter(|(m, _)| m[slot] > 0 && m[1 - slot] == 0);
        let terms = own.map(|(m, c)| ([m[slot], 0], c.clone())).collect();
        Polynomial { sources: vec![self.sources[slot]], terms, shape: self.shape }
    }

    /// If this is p(x + y), the coefficients of p, constant term first.
    pub(super) fn of_sum(&self) -> Option<Vec<Coefficient>> {
        if self.sources.len() != 2 {
            return None;
        }
        let degree = self.degree();
        let coefficients: Vec<_> = (0..=degree).map(|n| self.coefficient([n, 0])).collect();
        for n in 0..=degree {
            let mut binomial = 1.0;
            for j in 0..=n {
                let expected = coefficients[n as usize].map(|c| c * binomial);
                if !expected.is_close(&self.coefficient([n - j, j]), self.shape) {
                    return None;
                }
                binomial = binomial * f64::from(n - j) / f64::from(j + 1);
            }
        }
        Some(coefficients)
    }

    /// Every coefficient times a constant.
    pub(super) fn scaled(&self, factor: &Coefficient) -> Self {
        let terms = self.terms.iter().map(|(m, c)| (*m, c.zip(factor, self.shape, |a, b| a * b)));
        self.with_terms(without_zeros(terms.collect()))
    }

    /// Plus a constant.
    pub(super) fn shifted(&self, constant: &Coefficient) -> Self {
        let mut terms = self.terms.clone();
        add_term(&mut terms, [0, 0], constant, self.shape);
        self.with_terms(without_zeros(terms))
    }

    /// Sum, or `None` if the two have more than two sources together.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let (sources, slots) = self.united(other)?;
        let mut terms = self.terms.clone();
        for (monomial, coefficient) in &other.terms {
            add_term(&mut terms, renamed(*monomial, slots), coefficient, self.shape);
        }
        Some(Polynomial { sources, terms: without_zeros(terms), shape: self.shape }.without_idle_source())
    }

    /// Product, or `None` if the two have more than two sources together or the degree grows too large.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let (sources, slots) = self.united(other)?;
        let limit = if sources.len() == 1 { MAX_DEGREE } else { MAX_BIVARIATE_DEGREE };
        if self.degree() + other.degree() > limit {
            return None;
        }
        let mut terms = BTreeMap::new();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let right = renamed(*right, slots);
                let product = a.zip(b, self.shape, |a, b| a * b);
                add_term(&mut terms, [left[0] + right[0], left[1] + right[1]], &product, self.shape);
            }
        }
        Some(Polynomial { sources, terms: without_zeros(terms), shape: self.shape }.without_idle_source())
    }

    /// Forgets a second source, or a first one beside a second, that no term holds any more.
    fn without_idle_source(mut self) -> Self {
        let holds = |slot: usize| self.terms.keys().any(|m| m[slot] > 0);
        match (self.sources.len(), holds(0), holds(1)) {
            (2, _, false) => {
                self.sources.truncate(1);
                self
            }
            (2, false, true) => {
                let terms = self.terms.iter().map(|(m, c)| ([m[1], 0], c.clone())).collect();
                Polynomial { sources: vec![self.sources[1]], terms, shape: self.shape }
            }
            _ => self,
        }
    }

    /// The sources of both, and for each source of `other` its slot among them.
    fn united(&self, other: &Self) -> Option<(Vec<NodeId>, [usize; 2])> {
        let mut sources = self.sources.clone();
        let mut slots = [0, 1];
        for (i, source) in other.sources.iter().enumerate() {
            slots[i] = sources.iter().position(|s| s == source).unwrap_or_else(|| {
                sources.push(*source);
                sources.len() - 1
            });
        }
        (sources.len() <= 2).then_some((sources, slots))
    }
}

fn renamed(monomial: Monomial, slots: [usize; 2]) -> Monomial {
    let mut result = [0, 0];
    for (exponent, slot) in monomial.into_iter().zip(slots) {
        if exponent > 0 {
            result[slot] += exponent;
        }
    }
    result
}

fn add_term(
    terms: &mut BTreeMap<Monomial, Coefficient>,
    monomial: Monomial,
    coefficient: &Coefficient,
    shape: Shape,
) {
    let sum = match terms.get(&monomial) {
        Some(present) => present.zip(coefficient, shape, |a, b| a + b),
        None => coefficient.clone(),
    };
    terms.insert(monomial, sum);
}

fn without_zeros(mut terms: BTreeMap<Monomial, Coefficient>) -> BTreeMap<Monomial, Coefficient> {
    terms.retain(|_, c| !c.is_all(0.0));
    terms
}

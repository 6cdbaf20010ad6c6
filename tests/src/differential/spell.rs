//! Polynomials of any degree as the arithmetic that exporters leave of them.

use super::{Poly, Rank};
use crate::onnx::{Attr, OnnxWriter};

/// Ways of writing a polynomial.
const SPELLINGS: usize = 4;

/// Writes `poly(x)` and returns its value's name.
pub(super) fn write(w: &mut OnnxWriter, x: &str, poly: &Poly, rank: Rank) -> String {
    let mut speller = Speller { w, x, poly, rank };
    match poly.spelling % SPELLINGS {
        0 => speller.horner(),
        1 => speller.powers(),
        2 => speller.products(),
        _ => speller.halves(),
    }
}

struct Speller<'a> {
    w: &'a mut OnnxWriter,
    x: &'a str,
    poly: &'a Poly,
    rank: Rank,
}

impl Speller<'_> {
    /// `((c3·x + c2)·x + c1)·x + c0`.
    fn horner(&mut self) -> String {
        let degree = self.poly.degree();
        let mut value = self.term(degree, self.x);
        for power in (0..degree).rev() {
            value = self.plus(&value, power);
            if power > 0 {
                value = self.w.node("Mul", &[&value, self.x]);
            }
        }
        value
    }

    /// `c0 + c1·x + c2·Pow(x, 2) + …`, added one by one.
    fn powers(&mut self) -> String {
        let mut value = self.term(1, self.x);
        for power in 2..=self.poly.degree() {
            let exponent = self.w.node_with("Constant", &[], &[("value_float", Attr::Float(power as f32))]);
            let monomial = self.w.node("Pow", &[self.x, &exponent]);
            let term = self.term(power, &monomial);
            value = self.w.node("Add", &[&value, &term]);
        }
        self.plus(&value, 0)
    }

    /// Every power from the halves before it, summed at once.
    fn products(&mut self) -> String {
        let mut monomials = vec![String::new(), self.x.to_owned()];
        let mut terms = vec![self.constant(0), self.term(1, self.x)];
        for power in 2..=self.poly.degree() {
            let (low, high) = (monomials[power / 2].clone(), monomials[power.div_ceil(2)].clone());
            let monomial = self.w.node("Mul", &[&low, &high]);
            terms.push(self.term(power, &monomial));
            monomials.push(monomial);
        }
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        self.w.node("Sum", &terms)
    }

    /// The even part, minus the negative of the odd part.
    fn halves(&mut self) -> String {
        let mut value = self.constant(0);
        for power in (2..=self.poly.degree()).step_by(2) {
            let exponent = self.w.scalar(power as f32);
            let monomial = self.w.node("Pow", &[self.x, &exponent]);
            let term = self.term(power, &monomial);
            value = self.w.node("Add", &[&term, &value]);
        }
        for power in (1..=self.poly.degree()).step_by(2) {
            let exponent = self.w.scalar(power as f32);
            let monomial = self.w.node("Pow", &[self.x, &exponent]);
            let term = self.term(power, &monomial);
            let negative = self.w.node("Neg", &[&term]);
            value = self.w.node("Sub", &[&value, &negative]);
        }
        value
    }

    fn term(&mut self, power: usize, monomial: &str) -> String {
        let coefficient = self.constant(power);
        self.w.node("Mul", &[&coefficient, monomial])
    }

    fn plus(&mut self, value: &str, power: usize) -> String {
        let constant = self.constant(power);
        self.w.node("Add", &[value, &constant])
    }

    /// A coefficient: a scalar, or one number per channel.
    fn constant(&mut self, power: usize) -> String {
        let values = &self.poly.coefficients[power];
        match values[..] {
            [value] => self.w.scalar(value),
            _ => {
                let name = self.w.fresh("coefficient");
                let dims: &[usize] = match self.rank {
                    Rank::Vector => &[values.len()],
                    Rank::Signal => &[values.len(), 1],
                    Rank::Image => &[values.len(), 1, 1],
                };
                self.w.tensor(&name, dims, values)
            }
        }
    }
}

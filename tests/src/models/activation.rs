//! Polynomial activations spelled as ordinary ONNX arithmetic, in the many ways trainers spell them.

use crate::onnx::{Attr, OnnxWriter};

/// Coefficients from the constant term up; the degree is two or four.
#[derive(Clone, Debug)]
pub struct Polynomial(pub Vec<f32>);

impl Polynomial {
    /// The least-squares quadratic of ReLU on [-4, 4].
    pub fn quadratic() -> Self {
        Polynomial(vec![0.375, 0.5, 0.117_187_5])
    }

    /// The least-squares quartic of ReLU on [-6, 6], rounded.
    pub fn quartic() -> Self {
        Polynomial(vec![0.351_562, 0.5, 0.136_719, 0.0, -0.001_899])
    }

    /// The value at `x`.
    pub fn eval(&self, x: f32) -> f32 {
        self.0.iter().rev().fold(0.0, |acc, c| acc * x + c)
    }
}

/// Number of spellings [`write`] knows for each degree.
pub const N_SPELLINGS: usize = 5;

/// Writes `polynomial(x)` in the spelling `spelling % N_SPELLINGS` and returns its value's name.
///
/// # Panics
/// Panics if the degree is neither two nor four.
pub fn write(w: &mut OnnxWriter, x: &str, polynomial: &Polynomial, spelling: usize) -> String {
    let speller = Speller { w, x: x.to_owned() };
    match polynomial.0[..] {
        [c0, c1, c2] => speller.quadratic(c0, c1, c2, spelling % N_SPELLINGS),
        [c0, c1, c2, c3, c4] => speller.quartic([c0, c1, c2, c3, c4], spelling % N_SPELLINGS),
        _ => panic!("activations have degree two or four"),
    }
}

struct Speller<'a> {
    w: &'a mut OnnxWriter,
    x: String,
}

impl Speller<'_> {
    fn quadratic(mut self, c0: f32, c1: f32, c2: f32, spelling: usize) -> String {
        let x = self.x.clone();
        match spelling {
            // c2*x*x + c1*x + c0
            0 => {
                let scaled = self.by(c2, &x);
                let square = self.w.node("Mul", &[&scaled, &x]);
                let linear = self.by(c1, &x);
                let sum = self.w.node("Add", &[&square, &linear]);
                self.plus(&sum, c0)
            }
            // c2*(x + s)^2 + t
            1 => {
                let shift = c1 / (2.0 * c2);
                let moved = self.plus(&x, shift);
                let square = self.pow(&moved, 2.0);
                let scaled = self.by(c2, &square);
                self.plus(&scaled, c0 - c2 * shift * shift)
            }
            // x*(c2*x + c1) + c0
            2 => {
                let slope = self.by(c2, &x);
                let slope = self.plus(&slope, c1);
                let product = self.w.node("Mul", &[&x, &slope]);
                self.plus(&product, c0)
            }
            // Sum(pow(x, 2)*c2, c1*x, c0)
            3 => {
                let square = self.pow(&x, 2.0);
                let square = self.by(c2, &square);
                let linear = self.by(c1, &x);
                let constant = self.w.scalar(c0);
                self.w.node("Sum", &[&square, &linear, &constant])
            }
            // (x*x - (-c1/c2)*x) / (1/c2) - (-c0), with the minus from Neg
            _ => {
                let square = self.w.node("Mul", &[&x, &x]);
                let linear = self.by(c1 / c2, &x);
                let negative = self.w.node("Neg", &[&linear]);
                let sum = self.w.node("Sub", &[&square, &negative]);
                let divisor = self.w.scalar(1.0 / c2);
                let scaled = self.w.node("Div", &[&sum, &divisor]);
                let constant = self.w.scalar(-c0);
                self.w.node("Sub", &[&scaled, &constant])
            }
        }
    }

    fn quartic(mut self, c: [f32; 5], spelling: usize) -> String {
        let x = self.x.clone();
        match spelling {
            // Horner
            0 | 1 => {
                let mut value = self.by(c[4], &x);
                for &coefficient in c[1..4].iter().rev() {
                    if coefficient != 0.0 {
                        value = self.plus(&value, coefficient);
                    }
                    value = self.w.node("Mul", &[&value, &x]);
                }
                self.plus(&value, c[0])
            }
            // powers by Pow
            2 => {
                let mut value = self.by(c[1], &x);
                for (power, &coefficient) in c.iter().enumerate().skip(2) {
                    if coefficient != 0.0 {
                        let monomial = self.pow(&x, power as f32);
                        let term = self.by(coefficient, &monomial);
                        value = self.w.node("Add", &[&value, &term]);
                    }
                }
                self.plus(&value, c[0])
            }
            // squares of squares, summed at once
            _ => {
                let square = self.w.node("Mul", &[&x, &x]);
                let fourth = self.w.node("Mul", &[&square, &square]);
                let cube = self.w.node("Mul", &[&square, &x]);
                let mut terms = vec![self.w.scalar(c[0])];
                for (value, coefficient) in [(&x, c[1]), (&square, c[2]), (&cube, c[3]), (&fourth, c[4])] {
                    terms.push(self.by(coefficient, value));
                }
                let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
                self.w.node("Sum", &terms)
            }
        }
    }

    fn by(&mut self, factor: f32, x: &str) -> String {
        let factor = self.w.scalar(factor);
        self.w.node("Mul", &[&factor, x])
    }

    fn plus(&mut self, x: &str, term: f32) -> String {
        let term = self.w.scalar(term);
        self.w.node("Add", &[x, &term])
    }

    fn pow(&mut self, x: &str, exponent: f32) -> String {
        let exponent = self.w.node_with("Constant", &[], &[("value_float", Attr::Float(exponent))]);
        self.w.node("Pow", &[x, &exponent])
    }
}

//! Functions of one number without settings, by operator.

/// A function with its words and its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    op: &'static str,
    words: &'static str,
    eval: fn(f64) -> f64,
}

/// Functions without settings, by operator.
const NAMED: [Named; 13] = [
    Named { op: "Reciprocal", words: "a reciprocal", eval: f64::recip },
    Named { op: "Sin", words: "a sine", eval: f64::sin },
    Named { op: "Cos", words: "a cosine", eval: f64::cos },
    Named { op: "Tan", words: "a tangent", eval: f64::tan },
    Named { op: "Asin", words: "an arc sine", eval: f64::asin },
    Named { op: "Acos", words: "an arc cosine", eval: f64::acos },
    Named { op: "Atan", words: "an arc tangent", eval: f64::atan },
    Named { op: "Sinh", words: "a hyperbolic sine", eval: f64::sinh },
    Named { op: "Cosh", words: "a hyperbolic cosine", eval: f64::cosh },
    Named { op: "Asinh", words: "an inverse hyperbolic sine", eval: f64::asinh },
    Named { op: "Acosh", words: "an inverse hyperbolic cosine", eval: f64::acosh },
    Named { op: "Atanh", words: "an inverse hyperbolic tangent", eval: f64::atanh },
    Named { op: "Sign", words: "a sign", eval: sign },
];

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// The function of an operator, if it is one of these.
pub(super) fn of(op: &str) -> Option<Named> {
    NAMED.into_iter().find(|named| named.op == op)
}

impl Named {
    /// How messages call it.
    pub(super) fn words(&self) -> &'static str {
        self.words
    }

    /// Its value.
    pub(super) fn eval(&self, x: f64) -> f64 {
        (self.eval)(x)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op
    }
}

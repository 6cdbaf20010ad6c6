//! Functions of one number that models apply to every element: what a node, or several nodes in a row, do to it.

use std::collections::HashMap;

use super::error::Malformed;
use super::named::{self, Named};
use super::node::Node;

/// What one node does to its operands, element by element.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Relu,
    LeakyRelu(f64),
    ThresholdedRelu(f64),
    Elu(f64),
    Selu {
        alpha: f64,
        gamma: f64,
    },
    Celu(f64),
    Softplus,
    Softsign,
    HardSwish,
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    Gelu {
        is_tanh: bool,
    },
    Mish,
    Swish(f64),
    Sigmoid,
    Tanh,
    Erf,
    Exp,
    Log,
    Sqrt,
    Abs,
    Clip {
        min: f64,
        max: f64,
    },
    Min,
    Max,
    PRelu,
    Shrink {
        bias: f64,
        lambda: f64,
    },
    /// A function of one number that has no settings.
    Named(Named),
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Not,
    Where,
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Pow,
    Same,
}

impl Kind {
    /// What a node does, if it works on every element alone; limits may be constants of the model.
    pub(super) fn of(node: &Node, scalars: &HashMap<&str, f64>) -> Result<Option<Self>, Malformed> {
        if !node.domain.is_empty() || node.outputs.len() != 1 {
            return Ok(None);
        }
        Ok(Some(match node.op.as_str() {
            "Relu" => Self::Relu,
            "LeakyRelu" => Self::LeakyRelu(node.float("alpha", 0.01)?),
            "ThresholdedRelu" => Self::ThresholdedRelu(node.float("alpha", 1.0)?),
            "Elu" => Self::Elu(node.float("alpha", 1.0)?),
            "Selu" => Self::Selu {
                alpha: node.float("alpha", 1.673_263_2)?,
                gamma: node.float("gamma", 1.050_701)?,
            },
            "Celu" => Self::Celu(node.float("alpha", 1.0)?),
            "Softplus" => Self::Softplus,
            "Softsign" => Self::Softsign,
            "HardSwish" => Self::HardSwish,
            "HardSigmoid" => {
                Self::HardSigmoid { alpha: node.float("alpha", 0.2)?, beta: node.float("beta", 0.5)? }
            }
            "Gelu" => Self::Gelu { is_tanh: node.text("approximate", "none")? == "tanh" },
            "Mish" => Self::Mish,
            "Swish" => Self::Swish(node.float("alpha", 1.0)?),
            "Sigmoid" => Self::Sigmoid,
            "Tanh" => Self::Tanh,
            "Erf" => Self::Erf,
            "Exp" => Self::Exp,
            "Log" => Self::Log,
            "Sqrt" => Self::Sqrt,
            "Abs" => Self::Abs,
            "Clip" => {
                let limit = |name: &str, slot: usize, default: f32| -> Result<Option<f64>, Malformed> {
                    match node.input(slot) {
                        Some(input) => Ok(scalars.get(input).copied()),
                        None => node.float(name, default).map(Some),
                    }
                };
                match (limit("min", 1, f32::MIN)?, limit("max", 2, f32::MAX)?) {
                    (Some(min), Some(max)) => Self::Clip { min, max },
                    _ => return Ok(None),
                }
            }
            "Min" => Self::Min,
            "Max" => Self::Max,
            "Add" => Self::Add,
            "Sub" => Self::Sub,
            "Mul" => Self::Mul,
            "Div" => Self::Div,
            "Neg" => Self::Neg,
            "Pow" => Self::Pow,
            "PRelu" => Self::PRelu,
            "Shrink" => Self::Shrink { bias: node.float("bias", 0.0)?, lambda: node.float("lambd", 0.5)? },
            "Greater" => Self::Greater,
            "GreaterOrEqual" => Self::GreaterOrEqual,
            "Less" => Self::Less,
            "LessOrEqual" => Self::LessOrEqual,
            "Not" => Self::Not,
            "Where" => Self::Where,
            "Identity" | "Dropout" => Self::Same,
            // To floating point; what integers lose is none of these.
            "Cast" if matches!(node.int("to", 0)?, 1 | 10 | 11 | 16) => Self::Same,
            op => match named::of(op) {
                Some(named) => Self::Named(named),
                None => return Ok(None),
            },
        }))
    }

    /// Operands that count; others are settings.
    pub(super) fn n_operands(&self, node: &Node) -> usize {
        match self {
            Self::Clip { .. } | Self::Same => 1,
            _ => node.inputs.len(),
        }
    }

    /// Whether it is a sum or product, which needs no replacement.
    pub(super) fn is_arithmetic(&self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Neg | Self::Pow | Self::Same)
    }

    /// How messages call it; `None` for what is not a function by itself.
    pub(super) fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Relu => "ReLU",
            Self::LeakyRelu(_) => "leaky ReLU",
            Self::ThresholdedRelu(_) => "thresholded ReLU",
            Self::Elu(_) => "ELU",
            Self::Selu { .. } => "SELU",
            Self::Celu(_) => "CELU",
            Self::Softplus => "softplus",
            Self::Softsign => "softsign",
            Self::HardSwish => "hard swish",
            Self::HardSigmoid { .. } => "a hard sigmoid",
            Self::Gelu { .. } => "GELU",
            Self::Mish => "Mish",
            Self::Swish(_) => "SiLU",
            Self::Sigmoid => "a sigmoid",
            Self::Tanh => "a hyperbolic tangent",
            Self::Erf => "an error function",
            Self::Exp => "an exponential",
            Self::Log => "a logarithm",
            Self::Sqrt => "a square root",
            Self::Abs => "an absolute value",
            Self::Clip { .. } => "a clip",
            Self::Min => "a minimum",
            Self::Max => "a maximum",
            Self::PRelu => "PReLU",
            Self::Shrink { .. } => "a shrinkage",
            Self::Named(named) => named.words(),
            Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Not
            | Self::Where => "a comparison",
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Neg | Self::Pow | Self::Same => {
                return None;
            }
        })
    }

    /// Whether `--relu` replaces it by one polynomial for all layers.
    pub(super) fn is_rectifier(&self) -> bool {
        matches!(
            self,
            Self::Relu
                | Self::LeakyRelu(_)
                | Self::ThresholdedRelu(_)
                | Self::Elu(_)
                | Self::Softplus
                | Self::HardSwish
                | Self::Gelu { .. }
        )
    }

    /// Its value.
    pub(super) fn eval(&self, operands: &[f64]) -> f64 {
        let x = operands.first().copied().unwrap_or(f64::NAN);
        let y = operands.get(1).copied().unwrap_or(f64::NAN);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        // Stable where the exponential would overflow.
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        match *self {
            Self::Relu => x.max(0.0),
            Self::LeakyRelu(slope) => {
                if x < 0.0 {
                    slope * x
                } else {
                    x
                }
            }
            Self::ThresholdedRelu(threshold) => {
                if x > threshold {
                    x
                } else {
                    0.0
                }
            }
            Self::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Selu { alpha, gamma } => gamma * if x < 0.0 { alpha * x.exp_m1() } else { x },
            Self::Celu(alpha) => x.max(0.0) + (alpha * (x / alpha).exp_m1()).min(0.0),
            Self::Softplus => softplus(x),
            Self::Softsign => x / (1.0 + x.abs()),
            Self::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Self::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
            Self::Gelu { is_tanh: true } => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                0.5 * x * (1.0 + inner.tanh())
            }
            Self::Gelu { is_tanh: false } => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
            Self::Mish => x * softplus(x).tanh(),
            Self::Swish(alpha) => x * sigmoid(alpha * x),
            Self::Sigmoid => sigmoid(x),
            Self::Tanh => x.tanh(),
            Self::Erf => erf(x),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Sqrt => x.sqrt(),
            Self::Abs => x.abs(),
            Self::Clip { min, max } => x.max(min).min(max),
            Self::Min => operands.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Max => operands.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::PRelu => {
                if x < 0.0 {
                    y * x
                } else {
                    x
                }
            }
            Self::Shrink { bias, lambda } => match x {
                x if x < -lambda => x + bias,
                x if x > lambda => x - bias,
                _ => 0.0,
            },
            Self::Named(named) => named.eval(x),
            Self::Greater => truth(x > y),
            Self::GreaterOrEqual => truth(x >= y),
            Self::Less => truth(x < y),
            Self::LessOrEqual => truth(x <= y),
            Self::Not => truth(x == 0.0),
            Self::Where => {
                if x == 0.0 {
                    operands.get(2).copied().unwrap_or(f64::NAN)
                } else {
                    y
                }
            }
            Self::Add => operands.iter().sum(),
            Self::Sub => x - y,
            Self::Mul => x * y,
            Self::Div => x / y,
            Self::Neg => -x,
            Self::Pow => x.powf(y),
            Self::Same => x,
        }
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The error function, to about 1e-15: its series near zero, the continued fraction of its complement elsewhere.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-17 * sum.abs().max(1e-300) {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return sum.copysign(x) * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..=60).rev().fold(a, |below, k| a + f64::from(k) / 2.0 / below);
    let complement = (-a * a).exp() / (fraction * std::f64::consts::PI.sqrt());
    (1.0 - complement).copysign(x)
}

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    /// What the function is of.
    X,
    /// A constant.
    Constant(f64),
    /// The result of an earlier step.
    Step(usize),
}

/// A function of one number, as a model spells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    name: String,
    steps: Vec<(Kind, Vec<Operand>)>,
}

impl Function {
    /// A function of steps; the last one is its result.
    pub(super) fn new(steps: Vec<(Kind, Vec<Operand>)>) -> Self {
        let kinds: Vec<&Kind> = steps.iter().map(|(kind, _)| kind).filter(|k| !k.is_arithmetic()).collect();
        let is_gated =
            steps.iter().any(|(kind, operands)| *kind == Kind::Mul && operands.contains(&Operand::X));
        let name = match (&kinds[..], is_gated) {
            ([Kind::Sigmoid], true) => "SiLU",
            ([Kind::HardSigmoid { .. } | Kind::Clip { .. }], true) => "hard swish",
            ([Kind::Erf], true) | ([Kind::Tanh], true) => "GELU",
            ([Kind::Clip { min, .. }], false) if *min == 0.0 => "clipped ReLU",
            ([first, ..], _) => first.name().unwrap_or("a function"),
            ([], _) => "a polynomial",
        };
        Self { name: name.to_owned(), steps }
    }

    /// How messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value.
    #[must_use]
    pub fn eval(&self, x: f64) -> f64 {
        let mut results = Vec::with_capacity(self.steps.len());
        for (kind, operands) in &self.steps {
            let value = |operand: &Operand| match *operand {
                Operand::X => x,
                Operand::Constant(value) => value,
                Operand::Step(i) => results[i],
            };
            let operands: Vec<f64> = operands.iter().map(value).collect();
            results.push(kind.eval(&operands));
        }
        results.last().copied().unwrap_or(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_function_has_its_known_values() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.4, 0.999_311_486_103_355),
            (3.0, 0.999_977_909_503_001_4),
            (-1.0, -0.842_700_792_949_714_9),
        ] {
            assert!((erf(x) - expected).abs() < 1e-13, "{x}: {}", erf(x));
        }
    }

    #[test]
    fn a_function_is_its_steps_one_after_the_other() {
        let silu = Function::new(vec![
            (Kind::Sigmoid, vec![Operand::X]),
            (Kind::Mul, vec![Operand::Step(0), Operand::X]),
        ]);
        assert_eq!(silu.name(), "SiLU");
        assert!((silu.eval(2.0) - 2.0 / (1.0 + (-2f64).exp())).abs() < 1e-15);
        assert!((Kind::Softplus.eval(&[800.0]) - 800.0).abs() < 1e-12);
    }
}

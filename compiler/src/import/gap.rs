//! Functions that are no polynomials, on request: left open to be measured, or replaced by fitted polynomials.

use std::collections::BTreeMap;

use fhec_ir::{NodeId, Op};

use super::coefficient::Coefficient;
use super::error::Malformed;
use super::function::Function;
use super::node::Node;
use super::polynomial::Polynomial;
use super::reason::Reason;
use super::region::Region;
use super::translate::Translator;
use super::value::{Encrypted, OpError, Value};
use super::{Fit, Fitted, Note};

/// What becomes of functions that are no polynomials.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Functions {
    /// They are refused.
    #[default]
    Refused,
    /// The graph ends before each and begins again behind it.
    Open,
    /// Each is replaced by the polynomial of its name.
    Fitted(BTreeMap<String, Fitted>),
}

/// A function that a graph leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// ONNX node that messages name.
    pub name: String,
    /// The function.
    pub function: Function,
    /// The node that it is applied to.
    pub before: NodeId,
    /// The input of the graph that stands for its result.
    pub after: NodeId,
}

/// Translates a region whose root is encrypted; `false` if it is not.
pub(super) fn translate(cx: &mut Translator<'_>, node: &Node, region: &Region) -> Result<bool, Malformed> {
    let Some(Value::Encrypted(x)) = cx.value(&region.root) else { return Ok(false) };
    let Some(name) = node.outputs.first() else { return Ok(false) };
    let result = match closed(cx, x, region) {
        Ok(y) => cx.bind(name, Value::Encrypted(y)).map_err(OpError::from),
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => Ok(true),
        Err(OpError::Malformed(error)) => Err(error),
        Err(OpError::Refused(reason)) => {
            cx.refuse(node, None, reason);
            cx.forget(name);
            Ok(true)
        }
    }
}

fn closed(cx: &mut Translator<'_>, x: Encrypted, region: &Region) -> Result<Encrypted, OpError> {
    if !x.is_float {
        return Err(Reason::Integers.into());
    }
    let x = cx.committed(x)?;
    match &cx.options.functions {
        Functions::Refused => Err(Reason::Operator.into()),
        Functions::Open => {
            let (before, shape) = (cx.node_of(&x)?, x.view.shape());
            cx.emitter.add(Op::Output, &[before], &region.name)?;
            let after = cx.emitter.add(Op::Input { shape }, &[], &region.name)?;
            let function = region.function.clone();
            cx.gaps.push(Gap { name: region.name.clone(), function, before, after });
            Ok(Encrypted::new(Polynomial::source(after, shape), x.view, &region.name))
        }
        Functions::Fitted(all) => {
            let fitted = all.get(&region.name).ok_or(Reason::Operator)?.clone();
            if fitted.channels.len() != x.view.shape().c {
                return Err(Reason::Operator.into());
            }
            let shape = x.view.shape();
            let of = |number: &dyn Fn(&Fit) -> f64| {
                Coefficient::Channel(fitted.channels.iter().map(number).collect()).reduced(shape)
            };
            // The value relative to its range: coefficients stay of moderate size.
            let scale = of(&|fit| 1.0 / fit.half_width);
            let shift = of(&|fit| -fit.center / fit.half_width);
            let u = x.with_polynomial(x.polynomial.scaled(&scale).shifted(&shift));
            let u = cx.committed(u)?;
            let mut result = u.polynomial.scaled(&Coefficient::ZERO);
            for power in (0..=fitted.degree()).rev() {
                let raised = result.times(&u.polynomial).ok_or(Reason::TooManyConstants)?;
                result = raised.shifted(&of(&|fit| fit.coefficients[power]));
            }
            let y = u.with_polynomial(result);
            let y = cx.committed(y)?;
            let function = region.function.name().to_owned();
            cx.notes.push(Note::Approximated { node: region.name.clone(), function, fitted });
            Ok(Encrypted { origin: region.name.clone(), ..y })
        }
    }
}

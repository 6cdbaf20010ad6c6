//! Receivers: how a factor moves through an operation or disappears in its constants (paper §4.2, derived in paper §E).
//!
//! At a join only a factor of the longer operand moves on; a shorter operand has slack for a scale of its own. Otherwise
//! an identity shortcut would square the factor at every block (ours).

use super::Rule;
use super::guard::{
    is_even, is_first_long, is_invertible, is_not_one, is_scalar, is_second_long, is_unshared,
};

/// Declares rules that differ in name, patterns and guards only.
macro_rules! rules {
    ($($name:literal: $from:literal => $to:literal $(if $($var:literal $guard:ident),+)?;)*) => {
        &[$(Rule {
            name: $name,
            source: "paper §4.2",
            from: $from,
            to: $to,
            guards: &[$($(($var, $guard)),+)?],
        }),*]
    };
}

/// A factor on an operand goes into the consumer, or past it.
pub(super) const FORWARD: &[Rule] = rules! {
    "conv-takes-operand-scale": "(conv ?a ?w ?b (scale ?v ?x))" => "(conv ?a (in ?w ?v) ?b ?x)";
    "linear-takes-operand-scale": "(linear ?a ?w ?b (scale ?v ?x))" => "(linear ?a (in ?w ?v) ?b ?x)";
    "norm-takes-operand-scale": "(bn ?s ?t (scale ?v ?x))" => "(bn (mul ?s ?v) ?t ?x)";
    "poly-takes-operand-scale": "(poly ?c (scale ?v ?x))" => "(poly (subst ?c ?v) ?x)";
    "bivar-takes-first-scale": "(bivar ?c (scale ?v ?x) ?y)" => "(bivar (subst-x ?c ?v) ?x ?y)";
    "bivar-takes-second-scale": "(bivar ?c ?x (scale ?v ?y))" => "(bivar (subst-y ?c ?v) ?x ?y)";
    "scale-leaves-pool": "(pool ?a ?f (scale ?v ?x))" => "(scale ?v (pool ?a ?f ?x))";
    "scale-leaves-operation": "(op ?a (scale ?v ?x))" => "(scale ?v (op ?a ?x))" if "?a" is_even;
    "scale-leaves-shift": "(shift ?t (scale ?v ?x))" => "(scale ?v (shift (bias-times ?t (inv ?v)) ?x))"
        if "?v" is_invertible;
    "scale-leaves-join": "(add ?j (scale ?v ?x) (scale ?v ?y))" => "(scale ?v (add ?j ?x ?y))";
    "scale-leaves-first-of-join":
        "(add ?j (scale ?v ?x) ?y)" => "(scale ?v (add ?j ?x (scale (inv ?v) ?y)))"
        if "?j" is_first_long, "?v" is_invertible;
    "scale-leaves-second-of-join":
        "(add ?j ?x (scale ?v ?y))" => "(scale ?v (add ?j (scale (inv ?v) ?x) ?y))"
        if "?j" is_second_long, "?v" is_invertible;
    "scale-leaves-first-of-product": "(prod (scale ?v ?x) ?y)" => "(scale ?v (prod ?x ?y))";
    "scale-leaves-second-of-product": "(prod ?x (scale ?v ?y))" => "(scale ?v (prod ?x ?y))";
    "scale-leaves-first-of-concat": "(concat (scale ?v ?x) ?y)" => "(scale (cat ?v ?x one ?y) (concat ?x ?y))";
    "scale-leaves-second-of-concat": "(concat ?x (scale ?v ?y))" => "(scale (cat one ?x ?v ?y) (concat ?x ?y))";
    "scale-leaves-slice": "(slice ?a (scale ?v ?x))" => "(scale (slice-of ?a ?v) (slice ?a ?x))";
    "scale-leaves-pad": "(pad ?a (scale ?v ?x))" => "(scale (pad-of ?a ?v) (pad ?a ?x))";
    "scale-leaves-flatten": "(flatten (scale ?v ?x))" => "(scale (expand ?v ?x) (flatten ?x))";
};

/// A factor on a result goes into the producer, or before it.
pub(super) const BACKWARD: &[Rule] = rules! {
    "conv-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (conv ?a ?w ?b ?x)" => "(conv ?a (out ?w ?v) (bias-times ?b ?v) ?x)"
        if "?k" is_unshared;
    "linear-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (linear ?a ?w ?b ?x)" => "(linear ?a (out ?w ?v) (bias-times ?b ?v) ?x)"
        if "?k" is_unshared;
    "norm-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (bn ?s ?t ?x)" => "(bn (mul ?s ?v) (mul ?t ?v) ?x)"
        if "?k" is_unshared;
    "poly-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (poly ?c ?x)" => "(poly (times ?c ?v) ?x)"
        if "?k" is_unshared;
    "bivar-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (bivar ?c ?x ?y)" => "(bivar (times ?c ?v) ?x ?y)"
        if "?k" is_unshared;
    "pool-takes-result-scale":
        "?r = (scale ?v ?k), ?k = (pool ?a ?f ?x)" => "(pool ?a (mul ?f ?v) ?x)"
        if "?k" is_unshared;
    "scale-enters-operation":
        "?r = (scale ?v ?k), ?k = (op ?a ?x)" => "(op ?a (scale ?v ?x))"
        if "?k" is_unshared, "?a" is_even;
    "scale-enters-shift":
        "?r = (scale ?v ?k), ?k = (shift ?t ?x)" => "(shift (bias-times ?t ?v) (scale ?v ?x))"
        if "?k" is_unshared;
    "scale-enters-join":
        "?r = (scale ?v ?k), ?k = (add ?j ?x ?y)" => "(add ?j (scale ?v ?x) (scale ?v ?y))"
        if "?k" is_unshared;
    "scale-enters-concat":
        "?r = (scale ?v ?k), ?k = (concat ?x ?y)" => "(concat (scale (take ?v ?x) ?x) (scale (skip ?v ?x) ?y))"
        if "?k" is_unshared;
    "scale-enters-slice":
        "?r = (scale ?v ?k), ?k = (slice ?a ?x)" => "(slice ?a (scale ?v ?x))"
        if "?k" is_unshared, "?v" is_scalar;
    "scale-enters-pad":
        "?r = (scale ?v ?k), ?k = (pad ?a ?x)" => "(pad ?a (scale (unpad-of ?a ?v) ?x))"
        if "?k" is_unshared;
    "scale-enters-flatten":
        "?r = (scale ?v ?k), ?k = (flatten ?x)" => "(flatten (scale ?v ?x))"
        if "?k" is_unshared, "?v" is_scalar;
};

/// Factors meet.
pub(super) const EITHER: &[Rule] = rules! {
    "scales-merge": "(scale ?v (scale ?w ?x))" => "(scale (mul ?v ?w) ?x)" if "?v" is_not_one;
    "scale-by-one": "(scale one ?x)" => "?x";
};

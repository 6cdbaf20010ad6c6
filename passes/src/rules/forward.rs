//! Donors of the forward direction (paper §4.2, derived in paper §E): F becomes υ·F̄ with F̄ normalized.

use super::Rule;
use super::guard::{has_bi_lead_to_give, has_lead_to_give, is_invertible, is_not_one};

pub(super) const DONORS: &[Rule] = &[
    Rule {
        name: "forward-poly",
        source: "paper §4.2",
        from: "(poly ?c ?x)",
        to: "(scale (lead ?c) (poly (monic ?c) ?x))",
        guards: &[("?c", has_lead_to_give)],
    },
    Rule {
        name: "forward-norm",
        source: "paper §4.2",
        from: "(bn ?s ?t ?x)",
        to: "(scale ?s (bn one (mul ?t (inv ?s)) ?x))",
        guards: &[("?s", is_not_one), ("?s", is_invertible)],
    },
    Rule {
        name: "forward-pool",
        source: "paper §4.2",
        from: "(pool ?a ?f ?x)",
        to: "(scale ?f (pool ?a one ?x))",
        guards: &[("?f", is_not_one)],
    },
    Rule {
        name: "forward-bivar",
        source: "paper §E",
        from: "(bivar ?c ?x ?y)",
        to: "(scale (bi-lead ?c) (bivar (bi-monic ?c) ?x ?y))",
        guards: &[("?c", has_bi_lead_to_give)],
    },
];

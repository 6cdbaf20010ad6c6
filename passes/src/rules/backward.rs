//! Donors of the backward direction (paper §4.2, derived in paper §E): F(x) becomes F̄(υ·x) with F̄ normalized.

use super::Rule;
use super::guard::{has_bi_root_to_give, has_root_to_give, is_not_one};

pub(super) const DONORS: &[Rule] = &[
    Rule {
        name: "backward-poly",
        source: "paper §4.2",
        from: "(poly ?c ?x)",
        to: "(poly (unroot ?c) (scale (root ?c) ?x))",
        guards: &[("?c", has_root_to_give)],
    },
    Rule {
        name: "backward-norm",
        source: "paper §4.2",
        from: "(bn ?s ?t ?x)",
        to: "(bn one ?t (scale ?s ?x))",
        guards: &[("?s", is_not_one)],
    },
    Rule {
        name: "backward-pool",
        source: "paper §4.2",
        from: "(pool ?a ?f ?x)",
        to: "(pool ?a one (scale ?f ?x))",
        guards: &[("?f", is_not_one)],
    },
    Rule {
        name: "backward-bivar",
        source: "paper §E",
        from: "(bivar ?c ?x ?y)",
        to: "(bivar (bi-unroot ?c) (scale (bi-root ?c) ?x) ?y)",
        guards: &[("?c", has_bi_root_to_give)],
    },
];

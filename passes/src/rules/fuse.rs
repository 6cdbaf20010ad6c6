//! Node fusing, cases 1 to 4 (paper §4.1, derived in paper §E).
//!
//! Case 2 is better conditioned than case 1 and cheaper than cases 3 and 4, which square two operands; the cost function
//! takes it wherever the convolution has one consumer.

use super::Rule;
use super::guard::is_unshared;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fuse-norm-into-poly",
        source: "paper §4.1",
        from: "?r = (poly ?c ?k), ?k = (bn ?s ?t ?x)",
        to: "(poly (affine ?c ?s ?t) ?x)",
        guards: &[("?k", is_unshared)],
    },
    Rule {
        name: "fuse-norm-into-conv",
        source: "paper §4.1",
        from: "?r = (bn ?s ?t ?k), ?k = (conv ?a ?w ?b ?x)",
        to: "(conv ?a (out ?w ?s) (bias ?b ?s ?t) ?x)",
        guards: &[("?k", is_unshared)],
    },
    Rule {
        name: "fuse-norm-into-linear",
        source: "paper §4.1",
        from: "?r = (bn ?s ?t ?k), ?k = (linear ?a ?w ?b ?x)",
        to: "(linear ?a (out ?w ?s) (bias ?b ?s ?t) ?x)",
        guards: &[("?k", is_unshared)],
    },
    Rule {
        name: "fuse-norm-into-norm",
        source: "paper §4.1",
        from: "?r = (bn ?s ?t ?k), ?k = (bn ?u ?v ?x)",
        to: "(bn (mul ?s ?u) (bias ?v ?s ?t) ?x)",
        guards: &[("?k", is_unshared)],
    },
    Rule {
        name: "fuse-two-norms-and-join",
        source: "paper §4.1",
        from: "?r = (poly ?c ?z), ?z = (add ?j ?k ?l), ?k = (bn ?s ?t ?x), ?l = (bn ?u ?v ?y)",
        to: "(bivar (join ?c ?s ?t ?u ?v) ?x ?y)",
        guards: &[("?z", is_unshared), ("?k", is_unshared), ("?l", is_unshared)],
    },
    Rule {
        name: "fuse-norm-and-join",
        source: "paper §4.1",
        from: "?r = (poly ?c ?z), ?z = (add ?j ?k ?y), ?k = (bn ?s ?t ?x)",
        to: "(bivar (join ?c ?s ?t one zero) ?x ?y)",
        guards: &[("?z", is_unshared), ("?k", is_unshared)],
    },
    Rule {
        name: "fuse-join-and-norm",
        source: "paper §4.1",
        from: "?r = (poly ?c ?z), ?z = (add ?j ?y ?k), ?k = (bn ?s ?t ?x)",
        to: "(bivar (join ?c ?s ?t one zero) ?x ?y)",
        guards: &[("?z", is_unshared), ("?k", is_unshared)],
    },
];

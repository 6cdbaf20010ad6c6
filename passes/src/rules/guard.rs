//! Guards: what must hold for a class before a rule may fire.

use egg::Id;

use crate::egraph::{EGraph, functions as f};

/// A named predicate over a class.
pub(crate) type Guard = fn(&EGraph, Id) -> bool;

/// Only one consumer reads the value, so it may change without a copy.
pub(crate) fn is_unshared(egraph: &EGraph, id: Id) -> bool {
    !egraph[id].data.value().shared
}

/// The constant is not exactly one everywhere.
pub(crate) fn is_not_one(egraph: &EGraph, id: Id) -> bool {
    !egraph[id].data.small().is_all(1.0)
}

/// No channel is zero or nearly dead, so the vector has an inverse that does not explode.
pub(crate) fn is_invertible(egraph: &EGraph, id: Id) -> bool {
    egraph[id].data.small().is_invertible()
}

/// One number for all channels.
pub(crate) fn is_scalar(egraph: &EGraph, id: Id) -> bool {
    egraph[id].data.small().len() == 1
}

/// The polynomial can give its leading coefficient: there is one, it has an inverse, and it is not one already.
pub(crate) fn has_lead_to_give(egraph: &EGraph, id: Id) -> bool {
    let c = egraph[id].data.small();
    c.rows() > 1 && f::lead(c).is_invertible() && !f::lead(c).is_all(1.0)
}

/// As [`has_lead_to_give`], and the leading coefficient has a real root of the degree.
pub(crate) fn has_root_to_give(egraph: &EGraph, id: Id) -> bool {
    let c = egraph[id].data.small();
    has_lead_to_give(egraph, id) && has_real_root(&f::lead(c), c.rows() - 1)
}

/// The bivariate polynomial can give the coefficient of x^d.
pub(crate) fn has_bi_lead_to_give(egraph: &EGraph, id: Id) -> bool {
    let c = egraph[id].data.small();
    c.rows() > 1 && f::bi_lead(c).is_invertible() && !f::bi_lead(c).is_all(1.0)
}

/// As [`has_bi_lead_to_give`], and the coefficient has a real root of the degree.
pub(crate) fn has_bi_root_to_give(egraph: &EGraph, id: Id) -> bool {
    let c = egraph[id].data.small();
    has_bi_lead_to_give(egraph, id) && has_real_root(&f::bi_lead(c), f::bi_degree(c))
}

/// The first operand of the join lies on the longest path.
pub(crate) fn is_first_long(egraph: &EGraph, id: Id) -> bool {
    egraph.analysis.nodes[&egraph[id].data.attribute()].long[0]
}

/// The second operand of the join lies on the longest path.
pub(crate) fn is_second_long(egraph: &EGraph, id: Id) -> bool {
    egraph.analysis.nodes[&egraph[id].data.attribute()].long[1]
}

/// A factor per channel passes the operation as it is.
pub(crate) fn is_even(egraph: &EGraph, id: Id) -> bool {
    egraph.analysis.nodes[&egraph[id].data.attribute()].even
}

fn has_real_root(lead: &crate::small::Small, degree: usize) -> bool {
    !degree.is_multiple_of(2) || lead.all(|x| x > 0.0)
}

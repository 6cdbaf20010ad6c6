//! The values of constants: what every function of the [language](super::language) computes.

use std::sync::Arc;

use egg::Id;
use fhec_ir::Op;

use super::facts::{EGraph, Fact};
use super::functions as f;
use super::language::Lang;
use crate::passage;
use crate::small::Small;

/// The fact of a constant, or nothing for a value.
pub(super) fn constant_fact(egraph: &EGraph, enode: &Lang) -> Option<Fact> {
    let data = |id: &Id| &egraph[*id].data;
    let small = |id: &Id| egraph[*id].data.small();
    let channels = |id: &Id| egraph[*id].data.value().shape.c;
    let op = |id: &Id| &egraph.analysis.nodes[&egraph[*id].data.attribute()].op;
    let pad = |id: &Id| match op(id) {
        Op::Pad(pad) => pad,
        other => panic!("attributes of padding were expected, not {other:?}"),
    };
    let fact = match enode {
        Lang::One => Small::scalar(1.0),
        Lang::Zero => Small::scalar(0.0),
        Lang::Absent => return Some(Fact::Absent),
        Lang::Constant(id) => return Some(egraph.analysis.constants[id].clone()),
        Lang::Attribute(id) => return Some(Fact::Attribute(id.0)),
        Lang::Inv([v]) => small(v).map(f64::recip),
        Lang::Mul([v, w]) => small(v).zip(small(w), |a, b| a * b),
        Lang::Bias([b, s, t]) => match data(b) {
            Fact::Absent => small(t).clone(),
            b => b.small().zip(small(s), |b, s| b * s).zip(small(t), |b, t| b + t),
        },
        Lang::BiasTimes([b, v]) => match data(b) {
            Fact::Absent => return Some(Fact::Absent),
            b => b.small().zip(small(v), |b, v| b * v),
        },
        Lang::Expand([v, x]) => passage::flattened(small(v), data(x).value().shape),
        Lang::SliceOf([a, v]) => match op(a) {
            Op::Slice(slice) => passage::sliced(small(v), slice),
            other => panic!("attributes of a slice were expected, not {other:?}"),
        },
        Lang::PadOf([a, v]) => passage::padded(small(v), pad(a)),
        Lang::UnpadOf([a, v]) => passage::unpadded(small(v), pad(a)),
        Lang::Cat([v, x, w, y]) => passage::joined([small(v), small(w)], [channels(x), channels(y)]),
        Lang::Take([v, x]) => passage::part(small(v), 0, channels(x)),
        Lang::Skip([v, x]) => passage::part(small(v), channels(x), small(v).len()),
        Lang::Out([w, v]) => {
            let mut weight = data(w).weight().clone();
            weight.out = weight.out.zip(small(v), |a, b| a * b);
            return Some(Fact::Weight(Arc::new(weight)));
        }
        Lang::In([w, v]) => {
            let mut weight = data(w).weight().clone();
            let per_input = passage::into_weight(small(v), &weight.dims);
            weight.input = weight.input.zip(&per_input, |a, b| a * b);
            weight.gather_scalar();
            return Some(Fact::Weight(Arc::new(weight)));
        }
        Lang::Lead([c]) => f::lead(small(c)),
        Lang::Monic([c]) => f::monic(small(c)),
        Lang::Root([c]) => f::root(small(c)),
        Lang::Unroot([c]) => f::unroot(small(c)),
        Lang::Subst([c, v]) => f::subst(small(c), small(v)),
        Lang::Times([c, v]) => f::times(small(c), small(v)),
        Lang::Affine([c, s, t]) => f::affine(small(c), small(s), small(t)),
        Lang::Join([c, s, t, u, v]) => f::join(small(c), small(s), small(t), small(u), small(v)),
        Lang::BiLead([c]) => f::bi_lead(small(c)),
        Lang::BiMonic([c]) => f::bi_monic(small(c)),
        Lang::BiRoot([c]) => f::bi_root(small(c)),
        Lang::BiUnroot([c]) => f::bi_unroot(small(c)),
        Lang::SubstX([c, v]) => f::bi_subst(small(c), small(v), |i, _| i),
        Lang::SubstY([c, v]) => f::bi_subst(small(c), small(v), |_, j| j),
        Lang::Input(_)
        | Lang::Conv(_)
        | Lang::Linear(_)
        | Lang::Bn(_)
        | Lang::Pool(_)
        | Lang::Poly(_)
        | Lang::Bivar(_)
        | Lang::Scale(_)
        | Lang::Shift(_)
        | Lang::Add(_)
        | Lang::Prod(_)
        | Lang::Concat(_)
        | Lang::Slice(_)
        | Lang::Pad(_)
        | Lang::Flatten(_)
        | Lang::Other(_)
        | Lang::Outputs(_) => return None,
    };
    Some(Fact::of_small(fact))
}

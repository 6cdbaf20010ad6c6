//! The values of constants: what every function of the [language](super::language) computes.

use std::sync::Arc;

use egg::Id;
use fhec_ir::{Op, Shape};

use super::facts::{EGraph, Fact};
use super::functions as f;
use super::language::Lang;
use crate::small::{Small, broadcast};

/// The fact of a constant, or nothing for a value.
pub(super) fn constant_fact(egraph: &EGraph, enode: &Lang) -> Option<Fact> {
    let data = |id: &Id| &egraph[*id].data;
    let small = |id: &Id| egraph[*id].data.small();
    let channels = |id: &Id| egraph[*id].data.value().shape.c;
    let op = |id: &Id| &egraph.analysis.nodes[&egraph[*id].data.attribute()].op;
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
        Lang::Expand([v, x]) => expand(small(v), data(x).value().shape),
        Lang::SliceOf([a, v]) => slice_of(op(a), small(v)),
        Lang::PadOf([a, v]) => pad_of(op(a), small(v)),
        Lang::UnpadOf([a, v]) => unpad_of(op(a), small(v)),
        Lang::Cat([v, x, w, y]) => {
            let (left, right) = (channels(x), channels(y));
            small(v).combine(small(w), vec![left + right], |v, w| {
                let left = (0..left).map(|i| if v.len() == 1 { v[0] } else { v[i] });
                left.chain((0..right).map(|i| if w.len() == 1 { w[0] } else { w[i] })).collect()
            })
        }
        Lang::Take([v, x]) => part(small(v), 0, channels(x)),
        Lang::Skip([v, x]) => part(small(v), channels(x), small(v).len()),
        Lang::Out([w, v]) => {
            let mut weight = data(w).weight().clone();
            weight.out = weight.out.zip(small(v), |a, b| a * b);
            return Some(Fact::Weight(Arc::new(weight)));
        }
        Lang::In([w, v]) => {
            let mut weight = data(w).weight().clone();
            let per_input = per_input(small(v), &weight.dims);
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
        | Lang::PoolInside(_)
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
        | Lang::Outputs(_) => return None,
    };
    Some(Fact::of_small(fact))
}

/// One factor per input of a weight: a dense layer over an image has one channel's factor on all its positions.
fn per_input(v: &Small, dims: &[usize]) -> Small {
    let n = dims[1];
    if dims.len() == 2 && v.len() > 1 && v.len() < n {
        v.rebuild(vec![n], |v| (0..n).map(|i| broadcast(v, i, n)).collect())
    } else {
        v.clone()
    }
}

fn expand(v: &Small, shape: Shape) -> Small {
    if v.len() == 1 {
        return v.clone();
    }
    v.rebuild(vec![shape.len()], |v| (0..shape.len()).map(|i| v[i / shape.area()]).collect())
}

fn slice_of(op: &Op, v: &Small) -> Small {
    let Op::Slice(slice) = op else { panic!("attributes of a slice were expected, not {op:?}") };
    if v.len() == 1 {
        return v.clone();
    }
    let channels: Vec<usize> = (slice.start[0]..slice.end[0]).step_by(slice.step[0]).collect();
    v.rebuild(vec![channels.len()], |v| channels.iter().map(|&c| v[c]).collect())
}

/// Factors after padding: zeros may be scaled by anything, so by one.
fn pad_of(op: &Op, v: &Small) -> Small {
    let Op::Pad(pad) = op else { panic!("attributes of padding were expected, not {op:?}") };
    if v.len() == 1 {
        return v.clone();
    }
    let (before, after) = (pad.before[0], pad.after[0]);
    v.rebuild(vec![before + v.len() + after], |v| {
        let ones = |n| std::iter::repeat_n(1.0, n);
        ones(before).chain(v.iter().copied()).chain(ones(after)).collect()
    })
}

fn unpad_of(op: &Op, v: &Small) -> Small {
    let Op::Pad(pad) = op else { panic!("attributes of padding were expected, not {op:?}") };
    part(v, pad.before[0], v.len().saturating_sub(pad.after[0]))
}

fn part(v: &Small, from: usize, to: usize) -> Small {
    if v.len() == 1 { v.clone() } else { v.rebuild(vec![to - from], |v| v[from..to].to_vec()) }
}

//! Products over a dimension.

use super::arithmetic::product;
use super::linear_map::{LinearMap, vector};
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};

/// Most factors of one product.
const MAX_FACTORS: usize = 16;

/// ReduceProd over one dimension: its slices, multiplied two by two.
pub(super) fn reduce(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let own = x.view.dims().to_vec();
    let axes = cx.ints(node, "axes", 1)?.unwrap_or_default();
    let [axis] = axes[..] else {
        return Err(Reason::Attribute("it multiplies over more than one dimension".into()).into());
    };
    let axis = super::axis(node, axis, own.len())?;
    if own[axis] > MAX_FACTORS {
        return Err(Reason::Attribute(format!(
            "it multiplies {} values, more than {MAX_FACTORS}",
            own[axis]
        ))
        .into());
    }
    let mut kept = own.clone();
    kept[axis] = 1;
    let mut dims = kept.clone();
    if node.int("keepdims", 1)? == 0 {
        dims.remove(axis);
    }
    let seen = |y: Encrypted| {
        let view = y.view.reshape(dims.clone()).ok_or_else(|| node.malformed("has no such extents"))?;
        Ok(y.with_view(view))
    };
    if own[axis] == 1 {
        return seen(x);
    }
    let x = vector(cx, node, x)?;
    let mut factors = Vec::with_capacity(own[axis]);
    for i in 0..own[axis] {
        let map = LinearMap::picks(cx, node, &x, kept.clone(), |at| {
            let mut from = at.to_vec();
            from[axis] = i;
            Some(from)
        })?;
        factors.push(map.apply(cx, node, &x, None)?);
    }
    while factors.len() > 1 {
        let mut next = Vec::with_capacity(factors.len().div_ceil(2));
        for pair in factors.chunks(2) {
            next.push(match pair {
                [a, b] => product(cx, node, a.clone(), b.clone())?,
                _ => pair[0].clone(),
            });
        }
        factors = next;
    }
    seen(factors.swap_remove(0))
}

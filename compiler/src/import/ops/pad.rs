//! Padding: by constants around whole axes, by maps elsewhere.

use fhec_ir::{Op, Pad, Shape};

use super::axis;
use super::channels::joinable;
use super::linear_map::{LinearMap, unflatten};
use crate::import::coefficient::Coefficient;
use crate::import::node::Node;
use crate::import::polynomial::Polynomial;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::view::{Axis, View};

/// Largest padding of a real network.
const MAX_PAD: i64 = 1 << 14;

/// Zeros (or another constant) around a value.
pub(super) fn pad(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = joinable(cx, node, 0)?;
    let mode = node.text("mode", "constant")?;
    if !matches!(mode.as_str(), "constant" | "reflect" | "edge" | "wrap") {
        return Err(Reason::Attribute(format!("it pads by `{mode}`")).into());
    }
    let name = if node.has("paddings") { "paddings" } else { "pads" };
    let pads = cx.ints(node, name, 1)?.ok_or_else(|| node.malformed("has no pads"))?;
    let value = match cx.optional_constant(node, 2, "padding value")? {
        Some(value) => {
            let value = cx.uniform(node, &value)?;
            value.ok_or_else(|| node.malformed("has no single padding value"))?
        }
        None => node.float("value", 0.0)?,
    };
    let rank = x.view.dims().len();
    let along = match cx.ints(node, "axes", 3)? {
        Some(axes) => axes.iter().map(|&a| axis(node, a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * along.len() || pads.iter().any(|p| !(-MAX_PAD..=MAX_PAD).contains(p)) {
        return Err(Reason::Attribute(format!("it pads by {pads:?}")).into());
    }
    if mode != "constant" || pads.iter().any(|p| *p < 0) {
        return mirrored(cx, node, &x, &along, &pads, (mode.as_str(), value));
    }
    let Some(axes) = x.view.dimension_axes() else {
        return mirrored(cx, node, &x, &along, &pads, (mode.as_str(), value));
    };
    let mut pad = Pad { before: [0; 3], after: [0; 3] };
    let mut dims = x.view.dims().to_vec();
    for (i, &at) in along.iter().enumerate() {
        let (before, after) = (pads[i] as usize, pads[along.len() + i] as usize);
        match axes[at] {
            Some(axis) => (pad.before[axis.index()], pad.after[axis.index()]) = (before, after),
            None if before + after == 0 => {}
            None => return Err(Reason::Rearranges("padding of the batch").into()),
        }
        dims[at] += before + after;
    }
    if pad == (Pad { before: [0; 3], after: [0; 3] }) {
        return Ok(x);
    }
    // Zeros around x - v, plus v, are v around x.
    let shifted = x.with_polynomial(x.polynomial.shifted(&Coefficient::Scalar(-value)));
    let operand = cx.node_of(&shifted)?;
    let padded = padded_view(&x.view, dims);
    let y = cx.add(Op::Pad(pad), &[operand], node, padded)?;
    let polynomial: Polynomial = y.polynomial.shifted(&Coefficient::Scalar(value));
    Ok(y.with_polynomial(polynomial))
}

/// Padding by the value's own numbers, or by less than nothing.
fn mirrored(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    along: &[usize],
    pads: &[i64],
    (mode, value): (&str, f64),
) -> Result<Encrypted, OpError> {
    let own = x.view.dims().to_vec();
    let (mut before, mut dims) = (vec![0_i64; own.len()], own.clone());
    for (i, &at) in along.iter().enumerate() {
        before[at] = pads[i];
        let extent =
            usize::try_from(own[at] as i64 + pads[i] + pads[along.len() + i]).ok().filter(|&n| n > 0);
        dims[at] = extent.ok_or_else(|| node.malformed("pads away all of its result"))?;
    }
    let place = |axis: usize, i: usize| -> Option<usize> {
        let (at, extent) = (i as i64 - before[axis], own[axis] as i64);
        let inside = match mode {
            _ if (0..extent).contains(&at) => at,
            "edge" => at.clamp(0, extent - 1),
            "wrap" => at.rem_euclid(extent),
            "reflect" if extent > 1 => {
                let folded = at.rem_euclid(2 * (extent - 1));
                if folded < extent { folded } else { 2 * (extent - 1) - folded }
            }
            _ => return None,
        };
        usize::try_from(inside).ok()
    };
    let map = LinearMap::picks(cx, node, x, dims.clone(), |at| {
        at.iter().enumerate().map(|(axis, &i)| place(axis, i)).collect()
    })?;
    let n = map.n_out();
    let is_outside = |out: usize| {
        let index = unflatten(out, &dims);
        index.iter().enumerate().any(|(axis, &i)| place(axis, i).is_none())
    };
    let bias = (value != 0.0).then(|| (0..n).map(|out| if is_outside(out) { value } else { 0.0 }).collect());
    map.apply(cx, node, x, bias)
}

/// The view of a padded value; an axis of one index may have grown.
fn padded_view(view: &View, dims: Vec<usize>) -> impl FnOnce(Shape) -> View + use<> {
    let axes: Vec<Axis> = view.dimension_axes().unwrap_or_default().into_iter().flatten().collect();
    move |shape| View::new(dims, &axes, shape)
}

//! Average pooling, reductions, and the maximum that cannot be encrypted.

use fhec_ir::{Divisor, Op, Pads, Pool, Shape};

use super::linear_map::{LinearMap, flatten, unflatten};
use super::volume;
use super::window::Window;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::view::{Axis, View};

pub(super) fn average(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    if volume::is_volume(&x) {
        return volume::average(cx, node, x);
    }
    let x = super::image(cx, node)?;
    let pool = pool(node, &x)?;
    let operand = cx.node_of(&x)?;
    cx.add(Op::Pool(pool), &[operand], node, super::image_view(&x.view))
}

fn pool(node: &Node, x: &Encrypted) -> Result<Pool, OpError> {
    let mut window = Window::read_pool(node, x.view.dims().len() - 2, x.view.shape())?;
    let counts_padding = node.int("count_include_pad", 0)? != 0;
    let is_padded = !window.pads.is_none();
    if node.int("ceil_mode", 0)? != 0 {
        let [rows, columns] = window.ceil_excess(x.view.shape());
        if counts_padding && is_padded && (rows > 0 || columns > 0) {
            let text = "it counts padding, and ceil_mode adds windows that reach beyond the padding";
            return Err(Reason::Attribute(text.into()).into());
        }
        window.pads.bottom += rows;
        window.pads.right += columns;
    }
    // What ceil_mode adds is no padding, and never counts.
    let divisor = if (counts_padding && is_padded) || window.pads.is_none() {
        Divisor::Constant((window.kernel[0] * window.kernel[1]) as f64)
    } else {
        Divisor::ExcludePad
    };
    // Windows that lie in the padding only would have nothing to average.
    let [kh, kw] = window.kernel;
    let pads = window.pads;
    if pads.top >= kh || pads.bottom >= kh || pads.left >= kw || pads.right >= kw {
        return Err(node.malformed("pads by as much as its kernel is large").into());
    }
    Ok(Pool { kernel: window.kernel, stride: window.stride, pads, divisor })
}

pub(super) fn global_average(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    if volume::is_volume(&x) {
        let dims = vec![1, x.view.dims()[1], 1, 1, 1];
        return summed(cx, node, &x, &[2, 3, 4], true, dims);
    }
    let x = super::image(cx, node)?;
    let view = super::image_view(&x.view);
    reduced(cx, node, &x, &[Axis::H, Axis::W], true, view)
}

/// ReduceSumSquare: the sum of products with itself.
pub(super) fn squares(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let squared = super::arithmetic::product(cx, node, x.clone(), x)?;
    let squared = cx.committed(squared)?;
    reduced_over(cx, node, squared)
}

/// ReduceMean and ReduceSum: a pool over rows and columns, wherever the exporter keeps them, a map over other dimensions.
pub(super) fn reduce(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    reduced_over(cx, node, x)
}

fn reduced_over(cx: &mut Translator<'_>, node: &Node, x: Encrypted) -> Result<Encrypted, OpError> {
    let rank = x.view.dims().len();
    let listed = cx.ints(node, "axes", 1)?.unwrap_or_default();
    if listed.is_empty() && node.int("noop_with_empty_axes", 0)? != 0 {
        return Ok(x);
    }
    let dims = match listed[..] {
        [] => (0..rank).collect::<Vec<_>>(),
        _ => listed.iter().map(|&a| super::axis(node, a, rank)).collect::<Result<_, _>>()?,
    };
    let keeps = node.int("keepdims", 1)? != 0;
    let mut result_dims = Vec::with_capacity(rank);
    for (i, &extent) in x.view.dims().iter().enumerate() {
        match (dims.contains(&i), keeps) {
            (false, _) => result_dims.push(extent),
            (true, true) => result_dims.push(1),
            (true, false) => {}
        }
    }
    let averages = node.op == "ReduceMean";
    let groups = x.view.groups();
    let axes = groups.map(|groups| dims.iter().flat_map(|&d| groups[d].clone()).collect::<Vec<Axis>>());
    match axes {
        Some(axes) if !axes.contains(&Axis::C) => {
            let order = x.view.order().to_vec();
            reduced(cx, node, &x, &axes, averages, |shape| View::new(result_dims, &order, shape))
        }
        _ => summed(cx, node, &x, &dims, averages, result_dims),
    }
}

/// A sum or mean over any dimensions.
fn summed(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    over: &[usize],
    averages: bool,
    result_dims: Vec<usize>,
) -> Result<Encrypted, OpError> {
    let own = x.view.dims().to_vec();
    let count: usize = over.iter().map(|&d| own[d]).product();
    let weight = if averages { 1.0 / count as f64 } else { 1.0 };
    let kept: Vec<usize> =
        own.iter().enumerate().map(|(i, &d)| if over.contains(&i) { 1 } else { d }).collect();
    let mut map = LinearMap::new(cx, node, x, result_dims)?;
    for input in 0..x.view.shape().len() {
        let mut index = unflatten(input, &own);
        over.iter().for_each(|&d| index[d] = 0);
        map.add(flatten(&index, &kept), input, weight);
    }
    map.apply(cx, node, x, None)
}

/// CumSum: sums of everything up to an index along one dimension.
pub(super) fn cumulative(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let own = x.view.dims().to_vec();
    let axis = match cx.ints(node, "axis", 1)?.as_deref() {
        Some(&[axis]) => super::axis(node, axis, own.len())?,
        _ => return Err(node.malformed("has no single axis").into()),
    };
    let (is_exclusive, is_reverse) = (node.int("exclusive", 0)? != 0, node.int("reverse", 0)? != 0);
    let counts = |from: usize, to: usize| match (from == to, is_reverse) {
        (true, _) => !is_exclusive,
        (false, true) => from > to,
        (false, false) => from < to,
    };
    let mut map = LinearMap::new(cx, node, &x, own.clone())?;
    for out in 0..map.n_out() {
        let mut index = unflatten(out, &own);
        let to = index[axis];
        for from in (0..own[axis]).filter(|&from| counts(from, to)) {
            index[axis] = from;
            map.add(out, flatten(&index, &own), 1.0);
        }
    }
    map.apply(cx, node, &x, None)
}

fn reduced(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    axes: &[Axis],
    averages: bool,
    view: impl FnOnce(Shape) -> View,
) -> Result<Encrypted, OpError> {
    let shape = x.view.shape();
    let extent = |axis: Axis| if axes.contains(&axis) { shape.dims()[axis.index()] } else { 1 };
    let kernel = [extent(Axis::H), extent(Axis::W)];
    let divisor = if averages { (kernel[0] * kernel[1]) as f64 } else { 1.0 };
    let operand = cx.node_of(x)?;
    let pool = Pool { kernel, stride: kernel, pads: Pads::NONE, divisor: Divisor::Constant(divisor) };
    cx.add(Op::Pool(pool), &[operand], node, view)
}

/// Refuses a maximum, and goes on with an average of the same shape.
pub(super) fn refuse_maximum(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let y = if node.op == "MaxPool" { average(cx, node)? } else { global_average(cx, node)? };
    cx.refuse(node, Some(y.view.dims()), Reason::MaxPool);
    Ok(y)
}

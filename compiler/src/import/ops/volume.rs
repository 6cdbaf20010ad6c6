//! Convolutions and average pools over volumes, `[1, c, d, h, w]`.
//!
//! A volume is an image whose channels are the pairs of channel and depth, so a window over depth, rows and columns is a
//! convolution of images: the kernel from one depth to another is the layer's own at their distance, and zero where the window
//! does not reach.

use fhec_ir::{Conv2d, Op, Pads};

use super::linear_map::{self, MAX_WEIGHTS, flatten, unflatten};
use super::window::{bounded, same};
use crate::import::constant::Constant;
use crate::import::limits::product;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::view::View;

/// Whether an operand is a volume.
pub(super) fn is_volume(x: &Encrypted) -> bool {
    matches!(x.view.dims(), [1, _, _, _, _])
}

/// A convolution with a kernel `[out, in / groups, depth, rows, columns]`.
pub(super) fn conv(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    weight: &Constant,
    bias: Option<&Constant>,
) -> Result<Encrypted, OpError> {
    let ([1, c, _, _, _], [out, per_group, kd, kh, kw]) = (x.view.dims(), &weight.dims[..]) else {
        return Err(node.malformed("has a kernel of another rank than its operand").into());
    };
    let (c, out, per_group, kernel) = (*c, *out, *per_group, [*kd, *kh, *kw]);
    let groups = usize::try_from(node.int("group", 1)?).unwrap_or(0);
    if groups == 0 || per_group.checked_mul(groups) != Some(c) || !out.is_multiple_of(groups) {
        return Err(node.malformed(format!("has {groups} groups over {:?}", x.view.dims())).into());
    }
    if bias.is_some_and(|b| b.len() != out) {
        return Err(node.malformed("has a bias of another length than its result").into());
    }
    let window = Window::read(node, kernel, x.view.dims())?;
    let tap = |at: [usize; 5]| weight.get(flatten(&at, &weight.dims));
    let layer = Layer { out, per_group, groups, bias: bias.map(Constant::to_vec) };
    apply(cx, node, x, &window, layer, tap)
}

/// An average over windows.
pub(super) fn average(cx: &mut Translator<'_>, node: &Node, x: Encrypted) -> Result<Encrypted, OpError> {
    let kernel = node.ints("kernel_shape")?.ok_or_else(|| node.malformed("has no kernel_shape"))?;
    let kernel = triple(node, "kernel_shape", Some(kernel), 1)?;
    let window = Window::read(node, kernel, x.view.dims())?;
    let counts_padding = node.int("count_include_pad", 0)? != 0;
    let is_padded = window.axes.iter().any(|axis| axis.before + axis.after > 0);
    if node.int("ceil_mode", 0)? != 0 || (is_padded && !counts_padding) {
        let text = "it averages over a volume with windows of several sizes at its border";
        return Err(Reason::Attribute(text.into()).into());
    }
    let c = x.view.dims()[1];
    let share = 1.0 / kernel.iter().product::<usize>() as f64;
    let layer = Layer { out: c, per_group: 1, groups: c, bias: None };
    apply(cx, node, x, &window, layer, |_| share)
}

/// What a window does to channels.
struct Layer {
    out: usize,
    per_group: usize,
    groups: usize,
    bias: Option<Vec<f64>>,
}

fn apply(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    window: &Window,
    layer: Layer,
    tap: impl Fn([usize; 5]) -> f64,
) -> Result<Encrypted, OpError> {
    let [1, c, d, h, w] = *x.view.dims() else { return Err(Reason::Rank(x.view.dims().len()).into()) };
    let image = x.view.reshape(vec![1, c * d, h, w]).ok_or(Reason::TooLarge)?;
    let x = linear_map::image(cx, node, x.with_view(image))?;
    let [depth, rows, columns] = window.axes;
    let n_depth = depth.n_out(d).ok_or_else(|| node.malformed("has a window larger than its volume"))?;
    let Layer { out, per_group, groups, bias } = layer;
    let dims = vec![out * n_depth, per_group * d, rows.kernel, columns.kernel];
    let refused =
        || Reason::LargeMap { inputs: c * d * rows.kernel * columns.kernel, outputs: out * n_depth };
    let n = product(&dims, MAX_WEIGHTS).ok_or_else(refused)?;
    cx.budget.spend(n).ok_or_else(refused)?;
    let mut kernel = vec![0.0; n];
    for (i, value) in kernel.iter_mut().enumerate() {
        let at = unflatten(i, &dims);
        let (to, from) = (at[0] % n_depth, at[1] % d);
        if let Some(k) = depth.tap(from, to) {
            *value = tap([at[0] / n_depth, at[1] / d, k, at[2], at[3]]);
        }
    }
    let weight = cx.weight(node, &Constant::f64(dims, kernel))?;
    let bias = match bias {
        None => None,
        Some(bias) => {
            let bias: Vec<f64> = bias.iter().flat_map(|&b| std::iter::repeat_n(b, n_depth)).collect();
            Some(cx.weight(node, &Constant::f64(vec![bias.len()], bias))?)
        }
    };
    let pads = Pads { top: rows.before, bottom: rows.after, left: columns.before, right: columns.after };
    let conv = Conv2d {
        weight,
        bias,
        stride: [rows.stride, columns.stride],
        pads,
        dilation: [rows.dilation, columns.dilation],
        groups,
    };
    let operand = cx.node_of(&x)?;
    cx.add(Op::Conv2d(conv), &[operand], node, |made| {
        let view = View::nchw(made);
        view.reshape(vec![1, out, n_depth, made.h, made.w]).unwrap_or(view)
    })
}

/// A window along one axis.
#[derive(Clone, Copy)]
struct Axis {
    kernel: usize,
    stride: usize,
    dilation: usize,
    before: usize,
    after: usize,
}

impl Axis {
    /// Positions of the window over `size` numbers; `None` if it has none.
    fn n_out(self, size: usize) -> Option<usize> {
        let reach = (self.kernel - 1) * self.dilation + 1;
        Some((size + self.before + self.after).checked_sub(reach)? / self.stride + 1)
    }

    /// The cell of the kernel that meets number `from` at position `to`.
    fn tap(self, from: usize, to: usize) -> Option<usize> {
        let distance = (from + self.before).checked_sub(to * self.stride)?;
        let k = distance / self.dilation;
        (distance.is_multiple_of(self.dilation) && k < self.kernel).then_some(k)
    }
}

/// A window over depth, rows and columns.
struct Window {
    axes: [Axis; 3],
}

impl Window {
    /// Reads the attributes of a node over a volume of extents `dims`.
    fn read(node: &Node, kernel: [usize; 3], dims: &[usize]) -> Result<Self, OpError> {
        let stride = triple(node, "strides", node.ints("strides")?, 1)?;
        let dilation = triple(node, "dilations", node.ints("dilations")?, 1)?;
        if stride.contains(&0) || dilation.contains(&0) || kernel.contains(&0) {
            return Err(node.malformed("has a stride, dilation or kernel of zero").into());
        }
        let pads = match node.ints("pads")? {
            None => vec![0; 6],
            Some(values) => bounded(node, "pads", values)?,
        };
        if pads.len() != 6 {
            return Err(node.malformed(format!("has {} pads for a volume", pads.len())).into());
        }
        let mode = node.text("auto_pad", "NOTSET")?;
        let axis = |i: usize| {
            let (before, after) = match mode.as_str() {
                "NOTSET" | "" => (pads[i], pads[i + 3]),
                "VALID" => (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => same(&mode, dims[i + 2], kernel[i], stride[i], dilation[i]),
                other => return Err(node.malformed(format!("has auto_pad {other}"))),
            };
            Ok(Axis { kernel: kernel[i], stride: stride[i], dilation: dilation[i], before, after })
        };
        Ok(Self { axes: [axis(0)?, axis(1)?, axis(2)?] })
    }
}

/// Numbers for depth, rows and columns.
fn triple(node: &Node, name: &str, values: Option<&[i64]>, default: usize) -> Result<[usize; 3], OpError> {
    let Some(values) = values else { return Ok([default; 3]) };
    match bounded(node, name, values)?[..] {
        [depth, rows, columns] => Ok([depth, rows, columns]),
        _ => Err(node.malformed(format!("has {} {name} for a volume", values.len())).into()),
    }
}

//! Operators that move numbers between channels and positions: upsampling, transposed convolution, depth to space.

use super::linear_map::{LinearMap, flatten, unflatten};
use super::window::Window;
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};

/// Blocks of channels as blocks of pixels, or back.
pub(super) fn depth_to_space(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let [n, c, h, w] = *x.view.dims() else { return Err(Reason::Rank(x.view.dims().len()).into()) };
    let block = usize::try_from(node.int("blocksize", 0)?).ok().filter(|&b| (1..=256).contains(&b));
    let b = block.ok_or_else(|| node.malformed("has no blocksize"))?;
    if node.op == "SpaceToDepth" {
        if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
            return Err(node.malformed(format!("has blocks of {b} over {:?}", x.view.dims())).into());
        }
        let map = LinearMap::picks(cx, node, &x, vec![n, c * b * b, h / b, w / b], |at| {
            let (phase, channel) = (at[1] / c, at[1] % c);
            Some(vec![at[0], channel, at[2] * b + phase / b, at[3] * b + phase % b])
        })?;
        return map.apply(cx, node, &x, None);
    }
    if !c.is_multiple_of(b * b) {
        return Err(node.malformed(format!("has blocks of {b} over {:?}", x.view.dims())).into());
    }
    let (out, is_column_row) = (c / (b * b), node.text("mode", "DCR")? == "CRD");
    let map = LinearMap::picks(cx, node, &x, vec![n, out, h * b, w * b], |at| {
        let phase = at[2] % b * b + at[3] % b;
        let channel = if is_column_row { at[1] * b * b + phase } else { phase * out + at[1] };
        Some(vec![at[0], channel, at[2] / b, at[3] / b])
    })?;
    map.apply(cx, node, &x, None)
}

/// A convolution read backwards: every number of the operand adds a kernel to the result.
pub(super) fn conv_transpose(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let weight = cx.constant(node, 1, "weight")?;
    let bias = cx.optional_constant(node, 2, "bias")?;
    let x = cx.encrypted(node, 0)?;
    let is_flat = x.view.dims().len() == 3;
    if x.view.dims().len() > 4 {
        return Err(Reason::Attribute("it is a transposed convolution over volumes".into()).into());
    }
    let ([1, c, h, w], [c2, per_group, kh, kw]) = (as_four(x.view.dims()), as_four(&weight.dims)) else {
        return Err(node.malformed("needs one image").into());
    };
    let groups = usize::try_from(node.int("group", 1)?).unwrap_or(0);
    if c != c2 || weight.dims.len() != x.view.dims().len() || groups == 0 || !c.is_multiple_of(groups) {
        return Err(node.malformed(format!("multiplies {:?} by {:?}", x.view.dims(), weight.dims)).into());
    }
    if !matches!(node.text("auto_pad", "NOTSET")?.as_str(), "NOTSET" | "VALID" | "")
        || node.has("output_shape")
    {
        return Err(Reason::Attribute("its padding follows from its output".into()).into());
    }
    let window = Window::read(node, [kh, kw], x.view.dims().len() - 2, x.view.shape())?;
    let extra = super::window::pair(node, "output_padding", x.view.dims().len() - 2, 0)?.unwrap_or([0, 0]);
    let (s, d, p) = (window.stride, window.dilation, window.pads);
    let size = |n: usize, i: usize, k: usize, pads: usize| {
        ((n - 1) * s[i] + extra[i] + (k - 1) * d[i] + 1).checked_sub(pads).filter(|&n| n > 0)
    };
    let (Some(oh), Some(ow)) = (size(h, 0, kh, p.top + p.bottom), size(w, 1, kw, p.left + p.right)) else {
        return Err(node.malformed("pads away all of its result").into());
    };
    let out = per_group.checked_mul(groups).ok_or(Reason::TooLarge)?;
    if bias.as_ref().is_some_and(|b| b.len() != out) {
        return Err(node.malformed("has a bias of another length than its result").into());
    }
    let full = [1, out, oh, ow];
    let dims = if is_flat { vec![1, out, ow] } else { full.to_vec() };
    cx.budget.take(node, &[c, h, w, per_group, kh, kw])?;
    let mut map = LinearMap::new(cx, node, &x, dims)?;
    for input in 0..c * h * w {
        let at = unflatten(input, &[c, h, w]);
        let first = at[0] / (c / groups) * per_group;
        for tap in 0..per_group * kh * kw {
            let k = unflatten(tap, &[per_group, kh, kw]);
            let row = (at[1] * s[0] + k[1] * d[0]).checked_sub(p.top).filter(|&r| r < oh);
            let column = (at[2] * s[1] + k[2] * d[1]).checked_sub(p.left).filter(|&c| c < ow);
            if let (Some(row), Some(column)) = (row, column) {
                let value = weight.get(flatten(&[at[0], k[0], k[1], k[2]], &[c, per_group, kh, kw]));
                map.add(flatten(&[0, first + k[0], row, column], &full), input, value);
            }
        }
    }
    let bias = bias.map(|b| (0..map.n_out()).map(|i| b.get(i / (oh * ow))).collect());
    map.apply(cx, node, &x, bias)
}

/// `[n, c, w]` with a row of its own.
fn as_four(dims: &[usize]) -> [usize; 4] {
    match *dims {
        [a, b, c, d] => [a, b, c, d],
        [a, b, d] => [a, b, 1, d],
        _ => [0; 4],
    }
}

/// Resize and Upsample, by the nearest number, linearly between neighbours, or by cubic curves through four.
pub(super) fn resize(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let from = x.view.dims().to_vec();
    let (dims, scales) = target(cx, node, &from)?;
    let is_old = node.op == "Upsample" || node.inputs.len() == 2;
    let default = if is_old { "asymmetric" } else { "half_pixel" };
    let transform = Transform::read(node, default)?;
    let mode = node.text("mode", "nearest")?;
    let rounding = node.text("nearest_mode", if is_old { "floor" } else { "round_prefer_floor" })?;
    let refused = |setting: String| Err(OpError::from(Reason::Attribute(setting)));
    if node.int("antialias", 0)? != 0 {
        return refused("it resizes with antialiasing".into());
    }
    if node.int("exclude_outside", 0)? != 0 {
        return refused("it resizes with weights that depend on the border (exclude_outside)".into());
    }
    let policy = node.text("keep_aspect_ratio_policy", "stretch")?;
    if policy != "stretch" {
        return refused(format!("it keeps the ratio of rows and columns by `{policy}`"));
    }
    if !matches!(mode.as_str(), "nearest" | "linear" | "bilinear" | "cubic") {
        return refused(format!("it resizes by `{mode}`"));
    }
    let bend = node.float("cubic_coeff_a", -0.75)?;
    // For every dimension, which numbers of the operand make one of the result, and by which weights.
    let mut sources: Vec<Vec<Vec<(usize, f64)>>> = Vec::with_capacity(from.len());
    for axis in 0..from.len() {
        cx.budget.take(node, &[dims[axis]])?;
        let one = |i: usize| {
            if from[axis] == dims[axis] {
                return vec![(i, 1.0)];
            }
            let at = transform.apply(i, from[axis], dims[axis], scales[axis]);
            let last = from[axis] - 1;
            if mode == "nearest" {
                let rounded = match rounding.as_str() {
                    "floor" => at.floor(),
                    "ceil" => at.ceil(),
                    "round_prefer_ceil" => (at + 0.5).floor(),
                    _ => (at - 0.5).ceil(),
                };
                return vec![(rounded.clamp(0.0, last as f64) as usize, 1.0)];
            }
            let low = at.floor();
            let place = |v: f64| v.clamp(0.0, last as f64) as usize;
            if mode == "cubic" {
                let tap = |k: i32| (place(low + f64::from(k)), cubic((at - low - f64::from(k)).abs(), bend));
                return (-1..=2).map(tap).collect();
            }
            vec![(place(low), 1.0 - (at - low)), (place(low + 1.0), at - low)]
        };
        sources.push((0..dims[axis]).map(one).collect());
    }
    let mut map = LinearMap::new(cx, node, &x, dims.clone())?;
    for out in 0..map.n_out() {
        let index = unflatten(out, &dims);
        let mut terms: Vec<(usize, f64)> = vec![(0, 1.0)];
        for (axis, &i) in index.iter().enumerate() {
            let (of_axis, extent) = (&sources[axis][i], from[axis]);
            let next = terms.iter().flat_map(|&(position, weight)| {
                of_axis.iter().map(move |&(j, factor)| (position * extent + j, weight * factor))
            });
            terms = next.filter(|(_, weight)| *weight != 0.0).collect();
        }
        terms.into_iter().for_each(|(input, weight)| map.add(out, input, weight));
    }
    map.apply(cx, node, &x, None)
}

/// The weight of a neighbour at a distance below two.
fn cubic(distance: f64, a: f64) -> f64 {
    let d = distance;
    match d <= 1.0 {
        true => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        false => ((d - 5.0) * d + 8.0) * d * a - 4.0 * a,
    }
}

/// Where a position of the result lies in the operand.
enum Transform {
    HalfPixel,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
}

impl Transform {
    fn read(node: &Node, default: &str) -> Result<Self, OpError> {
        match node.text("coordinate_transformation_mode", default)?.as_str() {
            "half_pixel" => Ok(Self::HalfPixel),
            "pytorch_half_pixel" => Ok(Self::PytorchHalfPixel),
            "align_corners" => Ok(Self::AlignCorners),
            "asymmetric" => Ok(Self::Asymmetric),
            other => Err(Reason::Attribute(format!("its coordinates are `{other}`")).into()),
        }
    }

    fn apply(&self, i: usize, from: usize, to: usize, scale: f64) -> f64 {
        let at = i as f64;
        match self {
            Self::PytorchHalfPixel if to == 1 => 0.0,
            Self::HalfPixel | Self::PytorchHalfPixel => (at + 0.5) / scale - 0.5,
            Self::AlignCorners if to == 1 => 0.0,
            Self::AlignCorners => at * (from - 1) as f64 / (to - 1) as f64,
            Self::Asymmetric => at / scale,
        }
    }
}

/// Extents of the result, and the factor of every dimension.
fn target(cx: &mut Translator<'_>, node: &Node, from: &[usize]) -> Result<(Vec<usize>, Vec<f64>), OpError> {
    let filled = |constant: Option<Constant>| constant.filter(|c| c.len() > 0);
    let slot = if node.op == "Upsample" || node.inputs.len() == 2 { 1 } else { 2 };
    let scales = match node.floats("scales")? {
        Some(values) => Some(values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>()),
        None => match filled(cx.optional_constant(node, slot, "scales")?) {
            Some(constant) => Some(along(node, from, constant.to_vec(), vec![1.0; from.len()])?),
            None => None,
        },
    };
    let too_large = |v: f64| !(v.is_finite() && (1.0..=1e6).contains(&v));
    if let Some(scales) = scales {
        let sizes: Vec<f64> = from.iter().zip(&scales).map(|(&n, s)| (n as f64 * s).floor()).collect();
        if scales.len() != from.len() || sizes.iter().any(|&v| too_large(v)) {
            return Err(node.malformed(format!("has scales of {scales:?}")).into());
        }
        return Ok((sizes.into_iter().map(|v| v as usize).collect(), scales));
    }
    let sizes = cx.ints(node, "sizes", 3)?.ok_or_else(|| node.malformed("has neither scales nor sizes"))?;
    let sizes = along(node, from, sizes, from.iter().map(|&d| d as i64).collect())?;
    if sizes.len() != from.len() || sizes.iter().any(|&v| too_large(v as f64)) {
        return Err(node.malformed(format!("has sizes of {sizes:?}")).into());
    }
    let scales = sizes.iter().zip(from).map(|(&to, &n)| to as f64 / n as f64).collect();
    Ok((sizes.into_iter().map(|v| v as usize).collect(), scales))
}

/// Numbers for the dimensions that the node names, or for all; others keep theirs.
fn along<T>(node: &Node, from: &[usize], given: Vec<T>, mut all: Vec<T>) -> Result<Vec<T>, OpError> {
    let axes = match node.ints("axes")? {
        Some(axes) => {
            axes.iter().map(|&a| super::axis(node, a, from.len())).collect::<Result<Vec<_>, _>>()?
        }
        None => (0..from.len()).collect(),
    };
    if axes.len() != given.len() {
        return Err(node.malformed("has another number of scales or sizes than dimensions").into());
    }
    axes.into_iter().zip(given).for_each(|(at, value)| all[at] = value);
    Ok(all)
}

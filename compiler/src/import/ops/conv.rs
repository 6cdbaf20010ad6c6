//! Convolution, with the padding node some exporters put in front of it.

use fhec_ir::{Conv2d, NodeId, Op, Pads};

use super::volume;
use super::window::Window;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};

pub(super) fn conv(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let weight = cx.constant(node, 1, "weight")?;
    let bias = cx.optional_constant(node, 2, "bias")?;
    let x = cx.encrypted(node, 0)?;
    if volume::is_volume(&x) {
        return volume::conv(cx, node, x, &weight, bias.as_ref());
    }
    let x = super::image(cx, node)?;
    let (out, per_group, kernel) = match weight.dims[..] {
        [out, per_group, kh, kw] => (out, per_group, [kh, kw]),
        [out, per_group, kw] => (out, per_group, [1, kw]),
        _ => return Err(Reason::Attribute(format!("its kernel has rank {}", weight.dims.len())).into()),
    };
    if weight.dims.len() != x.view.dims().len() {
        return Err(node.malformed("has a kernel of another rank than its operand").into());
    }
    let rank = weight.dims.len() - 2;
    if let Some(shape) = node.ints("kernel_shape")?
        && !shape.iter().eq(weight.dims[2..].iter().map(|&d| d as i64).collect::<Vec<_>>().iter())
    {
        return Err(node.malformed("has a kernel_shape that its weight does not have").into());
    }
    let window = Window::read(node, kernel, rank, x.view.shape())?;
    let groups = usize::try_from(node.int("group", 1)?).unwrap_or(0);
    if groups == 0 || per_group.checked_mul(groups) != Some(x.view.shape().c) || !out.is_multiple_of(groups) {
        return Err(node.malformed(format!("has {groups} groups over {:?}", x.view.dims())).into());
    }
    if bias.as_ref().is_some_and(|b| b.len() != out) {
        return Err(node.malformed("has a bias of another length than its result").into());
    }
    let weight = cx.weight(node, &weight.with_dims(vec![out, per_group, kernel[0], kernel[1]]))?;
    let bias = match bias {
        Some(bias) => Some(cx.weight(node, &bias.with_dims(vec![out]))?),
        None => None,
    };
    let operand = cx.node_of(&x)?;
    let (operand, pads) = without_pad(cx, operand, window.pads);
    let op = Conv2d { weight, bias, stride: window.stride, pads, dilation: window.dilation, groups };
    let mut y = cx.add(Op::Conv2d(op), &[operand], node, super::image_view(&x.view))?;
    y.is_exclusive = true;
    Ok(y)
}

/// Takes the zeros of a padding node over; the node goes away if nobody else reads it.
fn without_pad(cx: &Translator<'_>, operand: NodeId, pads: Pads) -> (NodeId, Pads) {
    let graph = &cx.emitter.graph;
    match graph.op(operand) {
        Op::Pad(pad) if pad.before[0] == 0 && pad.after[0] == 0 => {
            let merged = Pads {
                top: pads.top + pad.before[1],
                left: pads.left + pad.before[2],
                bottom: pads.bottom + pad.after[1],
                right: pads.right + pad.after[2],
            };
            (graph.operands(operand)[0], merged)
        }
        _ => (operand, pads),
    }
}

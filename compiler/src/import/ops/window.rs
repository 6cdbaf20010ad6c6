//! Kernel, stride, dilation and padding of convolutions and pools.

use fhec_ir::{Pads, Shape};

use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::value::OpError;

/// Largest stride, dilation, padding or pooling kernel of a real network.
const MAX_ATTRIBUTE: i64 = 1 << 14;

/// A window that slides over rows and columns; one-dimensional windows have one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) kernel: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) pads: Pads,
}

impl Window {
    /// Reads the attributes of a node whose kernel covers `kernel` of an image; `rank` is one or two.
    pub(super) fn read(node: &Node, kernel: [usize; 2], rank: usize, image: Shape) -> Result<Self, OpError> {
        let stride = pair(node, "strides", rank, 1)?.unwrap_or([1, 1]);
        let dilation = pair(node, "dilations", rank, 1)?.unwrap_or([1, 1]);
        let pads = match node.text("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" | "" => explicit_pads(node, rank)?,
            "VALID" => Pads::NONE,
            mode @ ("SAME_UPPER" | "SAME_LOWER") => same_pads(mode, kernel, stride, dilation, image),
            other => return Err(node.malformed(format!("has auto_pad {other}")).into()),
        };
        if stride.contains(&0) || dilation.contains(&0) || kernel.contains(&0) {
            return Err(node.malformed("has a stride, dilation or kernel of zero").into());
        }
        Ok(Window { kernel, stride, dilation, pads })
    }

    /// The window of a pool, whose kernel is an attribute.
    pub(super) fn read_pool(node: &Node, rank: usize, image: Shape) -> Result<Self, OpError> {
        let kernel =
            pair(node, "kernel_shape", rank, 1)?.ok_or_else(|| node.malformed("has no kernel_shape"))?;
        let window = Window::read(node, kernel, rank, image)?;
        if window.dilation != [1, 1] {
            return Err(Reason::Attribute("it pools with a dilation".into()).into());
        }
        Ok(window)
    }

    /// Rows and columns below and right that `ceil_mode` adds, so that the last window fits.
    pub(super) fn ceil_excess(&self, image: Shape) -> [usize; 2] {
        let excess = |size: usize, before: usize, after: usize, kernel: usize, stride: usize| {
            let padded = size + before + after;
            let rest = padded.saturating_sub(kernel);
            let mut last = rest.div_ceil(stride);
            // A window that starts in the padding behind the image is left out.
            if last * stride >= size + before {
                last -= 1;
            }
            (last * stride + kernel).saturating_sub(padded)
        };
        let Pads { top, left, bottom, right } = self.pads;
        [
            excess(image.h, top, bottom, self.kernel[0], self.stride[0]),
            excess(image.w, left, right, self.kernel[1], self.stride[1]),
        ]
    }
}

/// One number for rows and one for columns; a one-dimensional attribute leaves `other` for the rows.
pub(super) fn pair(
    node: &Node,
    name: &str,
    rank: usize,
    other: usize,
) -> Result<Option<[usize; 2]>, OpError> {
    let Some(values) = node.ints(name)? else { return Ok(None) };
    let values = bounded(node, name, values)?;
    match values[..] {
        [columns] if rank == 1 => Ok(Some([other, columns])),
        [rows, columns] if rank == 2 => Ok(Some([rows, columns])),
        _ => Err(node.malformed(format!("has {} {name} for an image", values.len())).into()),
    }
}

fn explicit_pads(node: &Node, rank: usize) -> Result<Pads, OpError> {
    let Some(values) = node.ints("pads")? else { return Ok(Pads::NONE) };
    let values = bounded(node, "pads", values)?;
    match values[..] {
        [left, right] if rank == 1 => Ok(Pads { left, right, ..Pads::NONE }),
        [top, left, bottom, right] if rank == 2 => Ok(Pads { top, left, bottom, right }),
        _ => Err(node.malformed(format!("has {} pads for an image", values.len())).into()),
    }
}

pub(super) fn bounded(node: &Node, name: &str, values: &[i64]) -> Result<Vec<usize>, OpError> {
    match values.iter().find(|v| !(0..=MAX_ATTRIBUTE).contains(*v)) {
        None => Ok(values.iter().map(|&v| v as usize).collect()),
        Some(v) if *v < 0 && name == "pads" => {
            Err(Reason::Attribute("it pads by a negative amount".into()).into())
        }
        Some(v) => Err(node.malformed(format!("has {v} among its {name}")).into()),
    }
}

fn same_pads(mode: &str, kernel: [usize; 2], stride: [usize; 2], dilation: [usize; 2], image: Shape) -> Pads {
    let along = |size: usize, i: usize| same(mode, size, kernel[i], stride[i], dilation[i]);
    let ((top, bottom), (left, right)) = (along(image.h, 0), along(image.w, 1));
    Pads { top, left, bottom, right }
}

/// Padding before and after that makes the result ⌈size / stride⌉ large; the odd one goes after for SAME_UPPER.
pub(super) fn same(mode: &str, size: usize, kernel: usize, stride: usize, dilation: usize) -> (usize, usize) {
    let reach = kernel.saturating_sub(1) * dilation + 1;
    let positions = size.div_ceil(stride.max(1));
    let total = (positions.saturating_sub(1) * stride + reach).saturating_sub(size);
    if mode == "SAME_UPPER" { (total / 2, total.div_ceil(2)) } else { (total.div_ceil(2), total / 2) }
}

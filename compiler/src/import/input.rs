//! Declares the inputs of the graph: which dimension is the batch, which the channels.

use fhe_bytecode::Port;
use fhec_ir::{NodeId, Op, Shape, Slice};

use super::constant::Constant;
use super::error::{Malformed, Refusal};
use super::limits::{MAX_RANK, MAX_VALUE_LEN, product, written};
use super::model::Declared;
use super::node::Node;
use super::ops::{self, LinearMap};
use super::polynomial::Polynomial;
use super::reason::Reason;
use super::translate::Translator;
use super::value::{Encrypted, OpError, Value};
use super::view::{Axis, View};

/// Most nodes between an input and the first one that tells its layout.
const MAX_PREPROCESSING: usize = 64;
/// Most inputs of a model.
const MAX_INPUTS: usize = fhe_bytecode::program::MAX_PORTS;

/// An input of the imported model.
#[derive(Clone, Debug, PartialEq)]
pub struct InputInfo {
    /// ONNX name.
    pub name: String,
    /// ONNX extents, with a batch of one.
    pub dims: Vec<usize>,
    /// Shape in the graph.
    pub shape: Shape,
    /// For every number of the graph's input, in channel, row, column order, its flat position in the ONNX tensor.
    positions: Option<Vec<usize>>,
    /// Position of its first number in the graph's input.
    pub offset: usize,
}

impl InputInfo {
    /// An input of a graph that comes from no file.
    pub(crate) fn unnamed(shape: Shape) -> Self {
        Self {
            name: String::new(),
            dims: vec![1, shape.c, shape.h, shape.w],
            shape,
            positions: None,
            offset: 0,
        }
    }

    /// Re-orders an input of the graph for the ONNX model.
    ///
    /// # Panics
    /// Panics if `values` does not have as many numbers as the shape.
    pub fn to_onnx_order(&self, values: &[f64]) -> Vec<f64> {
        assert_eq!(values.len(), self.shape.len(), "one number per position of the input");
        let Some(positions) = &self.positions else { return values.to_vec() };
        let mut reordered = vec![0.0; values.len()];
        for (&value, &position) in values.iter().zip(positions) {
            reordered[position] = value;
        }
        reordered
    }

    /// How clients see it.
    #[must_use]
    pub fn port(&self) -> Port {
        let dims = self.dims.iter().map(|&d| written(d)).collect();
        let (channels_last, offset) = (self.is_channels_last(), written(self.offset));
        Port { name: self.name.clone(), dims, channels_last, offset }
    }

    /// Whether the ONNX model wants channels last.
    pub fn is_channels_last(&self) -> bool {
        self.positions.is_some()
    }
}

/// Declares every input of the model. Several become parts of one input of the graph.
pub(super) fn declare_all(cx: &mut Translator<'_>) -> Result<Vec<InputInfo>, Malformed> {
    let mut all = Vec::new();
    let n_inputs = cx.model.inputs.len();
    for declared in &cx.model.inputs {
        let too_many =
            || Reason::Attribute(format!("the model has {n_inputs} inputs, more than {MAX_INPUTS}"));
        let view = if n_inputs > MAX_INPUTS { Err(too_many()) } else { view_of(cx, declared) };
        match view {
            Ok(view) => all.push((declared, view)),
            Err(reason) => refuse(cx, declared, reason),
        }
    }
    let only = all.len() == 1;
    let plane = plane(all.iter().map(|(_, view)| view.shape()));
    let channels = |shape: Shape| shape.len().div_ceil(plane.area());
    let total: usize = all.iter().map(|(_, view)| channels(view.shape())).sum();
    let shape = if only { all[0].1.shape() } else { Shape::new(total, plane.h, plane.w) };
    let name = if only { all[0].0.name.as_str() } else { "inputs" };
    if all.is_empty() || product(&shape.dims(), MAX_VALUE_LEN).is_none_or(|n| n == 0) {
        return Ok(Vec::new());
    }
    let input = match cx.emitter.add(Op::Input { shape }, &[], name) {
        Ok(input) => input,
        Err(_) => return Ok(Vec::new()),
    };
    let (mut infos, mut first) = (Vec::new(), 0);
    for (declared, view) in all {
        let n = channels(view.shape());
        let part = Part { input, first, n, is_whole: only, plane };
        match declare(cx, declared, view, part) {
            Ok(info) => infos.push(info),
            Err(reason) => refuse(cx, declared, reason),
        }
        first += n;
    }
    Ok(infos)
}

fn refuse(cx: &mut Translator<'_>, declared: &Declared, reason: Reason) {
    cx.refuse_end(Refusal { node: declared.name.clone(), op: "graph input".into(), shape: None, reason });
}

/// Height and width of the joined input: those of the largest image.
fn plane(shapes: impl Iterator<Item = Shape>) -> Shape {
    let largest = shapes.max_by_key(|shape| shape.area()).unwrap_or(Shape::vector(1));
    Shape::new(1, largest.h, largest.w)
}

/// Where an input of the model lies in the input of the graph.
#[derive(Clone, Copy)]
struct Part {
    input: NodeId,
    /// First channel.
    first: usize,
    /// Channels.
    n: usize,
    /// Whether it is all of the input.
    is_whole: bool,
    plane: Shape,
}

/// The graph's shape for an ONNX tensor with channels first; `None` if it is no image, volume or vector.
pub(super) fn shape_of(dims: &[usize]) -> Option<Shape> {
    product(dims, MAX_VALUE_LEN).filter(|&n| n > 0)?;
    match *dims {
        [n] | [1, n] => Some(Shape::vector(n)),
        [1, c, w] => Some(Shape::new(c, 1, w)),
        [c, w] => Some(Shape::new(c, 1, w)),
        [c, h, w] | [1, c, h, w] => Some(Shape::new(c, h, w)),
        // A volume is an image for every pair of channel and depth.
        [c, d, h, w] | [1, c, d, h, w] => Some(Shape::new(c * d, h, w)),
        _ => None,
    }
}

/// How the model sees an input.
fn view_of(cx: &mut Translator<'_>, declared: &Declared) -> Result<View, Reason> {
    let has_batch = match declared.dims[..] {
        _ if gets_batch(cx, &declared.name) => false,
        [first, _, _] => first.is_none_or(|d| d == 1),
        ref dims => dims.len() > 1,
    };
    let mut dims = Vec::with_capacity(declared.dims.len());
    for (i, extent) in declared.dims.iter().enumerate() {
        dims.push(match extent {
            _ if i == 0 && has_batch => 1,
            Some(extent) => *extent,
            None => return Err(Reason::SymbolicDimension(i)),
        });
    }
    if has_batch && let Some(batch) = declared.dims[0] {
        cx.batch = batch;
    }
    // A first reshape says what a flat input means; a first transpose, where its channels are.
    let reads_as = reading(cx, &declared.name, &dims);
    Ok(match reads_as {
        Reading::ChannelsFirst(image) => {
            let shape = shape_of(&image).ok_or(Reason::Rank(dims.len()))?;
            View::nchw(shape).reshape(dims.clone()).ok_or(Reason::Rank(dims.len()))?
        }
        Reading::ChannelsLast([h, w, c]) => {
            product(&[h, w, c], MAX_VALUE_LEN).filter(|&n| n > 0).ok_or(Reason::TooLarge)?;
            View::new(dims.clone(), &[Axis::H, Axis::W, Axis::C], Shape::new(c, h, w))
        }
    })
}

/// Gives an input of the model its value: the graph's input, or some of its channels.
fn declare(
    cx: &mut Translator<'_>,
    declared: &Declared,
    view: View,
    part: Part,
) -> Result<InputInfo, Reason> {
    let (shape, dims) = (view.shape(), view.dims().to_vec());
    let positions = match view.is_canonical() {
        true => None,
        false => {
            cx.budget.spend(shape.len()).ok_or(Reason::TooLarge)?;
            Some(view.positions().collect())
        }
    };
    let mut value = match part.is_whole {
        true => Encrypted::new(Polynomial::source(part.input, shape), view, &declared.name),
        false => sliced(cx, declared, view, part)?,
    };
    value.is_float = declared.is_float;
    cx.bind(&declared.name, Value::Encrypted(value))?;
    let offset = part.first * part.plane.area();
    Ok(InputInfo { name: declared.name.clone(), dims, shape, positions, offset })
}

/// Some channels of the joined input, and of these the numbers that belong to the model's.
fn sliced(cx: &mut Translator<'_>, declared: &Declared, view: View, part: Part) -> Result<Encrypted, Reason> {
    let whole = Shape::new(part.n, part.plane.h, part.plane.w);
    let slice =
        Slice { start: [part.first, 0, 0], end: [part.first + part.n, whole.h, whole.w], step: [1; 3] };
    let id = cx.emitter.add(Op::Slice(slice), &[part.input], &declared.name)?;
    if view.shape() == whole {
        return Ok(Encrypted::new(Polynomial::source(id, whole), view, &declared.name));
    }
    let node = Node::end(&declared.name, "graph input");
    let channels = Encrypted::new(Polynomial::source(id, whole), View::nchw(whole), &declared.name);
    let flat = |error| match error {
        OpError::Refused(reason) => reason,
        OpError::Malformed(error) => Reason::Attribute(error.to_string()),
    };
    // What is encrypted is channels first; the model may see it in another order.
    let n = view.shape().len();
    let mut places = vec![0; n];
    for (place, position) in view.positions().enumerate() {
        places[position] = place;
    }
    let vector = ops::vector(cx, &node, channels).map_err(flat)?;
    let wide = View::vector(vec![1, whole.len()]);
    let vector = vector.with_view(wide);
    let map = LinearMap::picks(cx, &node, &vector, vec![1, n], |at| Some(vec![0, places[at[1]]]));
    let picked = map.and_then(|map| map.apply(cx, &node, &vector, None)).map_err(flat)?;
    let seen = picked.view.reshape(view.dims().to_vec()).ok_or(Reason::TooLarge)?;
    Ok(picked.with_view(seen))
}

/// Whether the model was exported for one sample without a batch: it begins by putting a first dimension in front.
fn gets_batch(cx: &Translator<'_>, input: &str) -> bool {
    let mut name = input;
    for _ in 0..MAX_PREPROCESSING {
        let Some(node) = cx.readers.first(name) else { return false };
        let Some(output) = node.outputs.first() else { return false };
        match node.op.as_str() {
            "Unsqueeze" => {
                let of = |name: &str| cx.model.constants.get(name).or_else(|| literal(cx, name));
                let operand = node.input(1).and_then(of).and_then(Constant::as_ints);
                let axes = node.ints("axes").ok().flatten().or(operand);
                return axes == Some(&[0]);
            }
            "Identity" | "Cast" | "Dropout" | "Add" | "Sub" | "Mul" | "Div" | "Neg" => name = output,
            _ => return false,
        }
    }
    false
}

/// What a node of the model holds as a constant.
fn literal<'m>(cx: &Translator<'m>, name: &str) -> Option<&'m Constant> {
    let made = |node: &&Node| node.op == "Constant" && node.outputs.iter().any(|output| output == name);
    cx.model.nodes.iter().find(made)?.tensor("value")
}

enum Reading {
    /// Extents with channels first.
    ChannelsFirst(Vec<usize>),
    /// Height, width, channels.
    ChannelsLast([usize; 3]),
}

/// Follows the input to the first node that is neither arithmetic nor a mere copy.
fn reading(cx: &Translator<'_>, input: &str, dims: &[usize]) -> Reading {
    let (mut name, mut dims) = (input, dims.to_vec());
    for _ in 0..MAX_PREPROCESSING {
        let Some(node) = cx.readers.first(name) else { break };
        let Some(output) = node.outputs.first() else { break };
        match node.op.as_str() {
            "Transpose" => {
                if let (Ok(Some([0, 3, 1, 2])), [1, h, w, c]) = (node.ints("perm"), &dims[..]) {
                    return Reading::ChannelsLast([*h, *w, *c]);
                }
                break;
            }
            "Reshape" => {
                let shape = node.input(1).and_then(|s| cx.model.constants.get(s)).and_then(|c| c.as_ints());
                match shape.and_then(|s| reshaped(&dims, s)) {
                    Some(image) if image.len() == 4 && image[0] == 1 => dims = image,
                    _ => break,
                }
            }
            "Identity" | "Cast" | "Dropout" | "Add" | "Sub" | "Mul" | "Div" | "Neg" | "Pad" => {}
            _ => break,
        }
        name = output;
    }
    Reading::ChannelsFirst(dims)
}

/// The extents an ONNX reshape gives a tensor of extents `dims`: -1 is what is left, 0 keeps the old extent.
pub(super) fn reshaped(dims: &[usize], target: &[i64]) -> Option<Vec<usize>> {
    if target.len() > MAX_RANK {
        return None;
    }
    let len: usize = product(dims, usize::MAX)?;
    let kept = |i: usize, d: i64| match d {
        0 => dims.get(i).copied(),
        _ => usize::try_from(d).ok(),
    };
    let known = target.iter().enumerate().filter(|(_, d)| **d != -1).map(|(i, &d)| kept(i, d));
    let known = product(&known.collect::<Option<Vec<_>>>()?, usize::MAX)?;
    let is_open = target.contains(&-1);
    if target.iter().filter(|d| **d == -1).count() > 1
        || (is_open && (known == 0 || !len.is_multiple_of(known)))
    {
        return None;
    }
    let result =
        target.iter().enumerate().map(|(i, &d)| if d == -1 { Some(len / known) } else { kept(i, d) });
    let result = result.collect::<Option<Vec<usize>>>()?;
    (product(&result, usize::MAX)? == len).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshape_targets_follow_the_standard() {
        assert_eq!(reshaped(&[1, 2, 3], &[0, -1]), Some(vec![1, 6]));
        assert_eq!(reshaped(&[1, 6], &[-1, 2, 3]), Some(vec![1, 2, 3]));
        assert_eq!(reshaped(&[1, 6], &[-1, -1]), None);
        assert_eq!(reshaped(&[1, 6], &[4, -1]), None);
        assert_eq!(reshaped(&[1, 6], &[7]), None);
        assert_eq!(reshaped(&[6], &[i64::MAX, i64::MAX]), None);
    }
}

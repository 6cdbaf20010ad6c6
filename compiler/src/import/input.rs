//! Declares the inputs of the graph: which dimension is the batch, which the channels.

use fhec_ir::{Op, Shape};

use super::error::{Malformed, Refusal};
use super::limits::{MAX_RANK, MAX_VALUE_LEN, product};
use super::model::Declared;
use super::polynomial::Polynomial;
use super::reason::Reason;
use super::translate::Translator;
use super::value::{Encrypted, Value};
use super::view::{Axis, View};

/// Most nodes between an input and the first one that tells its layout.
const MAX_PREPROCESSING: usize = 64;

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
}

impl InputInfo {
    /// An input of a graph that comes from no file.
    pub(crate) fn unnamed(shape: Shape) -> Self {
        Self { name: String::new(), dims: vec![1, shape.c, shape.h, shape.w], shape, positions: None }
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

    /// Whether the ONNX model wants channels last.
    pub fn is_channels_last(&self) -> bool {
        self.positions.is_some()
    }
}

/// Declares every input of the model.
pub(super) fn declare_all(cx: &mut Translator<'_>) -> Result<Vec<InputInfo>, Malformed> {
    let mut infos = Vec::new();
    for declared in &cx.model.inputs {
        match declare(cx, declared) {
            Ok(info) => infos.push(info),
            Err(reason) => {
                let refusal =
                    Refusal { node: declared.name.clone(), op: "graph input".into(), shape: None, reason };
                cx.refuse_end(refusal);
            }
        }
    }
    Ok(infos)
}

/// The graph's shape for an ONNX tensor with channels first; `None` if it is neither an image nor a vector.
pub(super) fn shape_of(dims: &[usize]) -> Option<Shape> {
    product(dims, MAX_VALUE_LEN).filter(|&n| n > 0)?;
    match *dims {
        [n] | [1, n] => Some(Shape::vector(n)),
        [1, c, w] => Some(Shape::new(c, 1, w)),
        [c, h, w] | [1, c, h, w] => Some(Shape::new(c, h, w)),
        _ => None,
    }
}

fn declare(cx: &mut Translator<'_>, declared: &Declared) -> Result<InputInfo, Reason> {
    let has_batch = match declared.dims[..] {
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
    let view = match reads_as {
        Reading::ChannelsFirst(image) => {
            let shape = shape_of(&image).ok_or(Reason::Rank(dims.len()))?;
            View::nchw(shape).reshape(dims.clone()).ok_or(Reason::Rank(dims.len()))?
        }
        Reading::ChannelsLast([h, w, c]) => {
            product(&[h, w, c], MAX_VALUE_LEN).filter(|&n| n > 0).ok_or(Reason::TooLarge)?;
            View::new(dims.clone(), &[Axis::H, Axis::W, Axis::C], Shape::new(c, h, w))
        }
    };
    let shape = view.shape();
    let id = cx.emitter.add(Op::Input { shape }, &[], &declared.name)?;
    let positions = match view.is_canonical() {
        true => None,
        false => {
            cx.budget.spend(shape.len()).ok_or(Reason::TooLarge)?;
            Some(view.positions().collect())
        }
    };
    let mut value = Encrypted::new(Polynomial::source(id, shape), view, &declared.name);
    value.is_float = declared.is_float;
    cx.bind(&declared.name, Value::Encrypted(value))?;
    Ok(InputInfo { name: declared.name.clone(), dims, shape, positions })
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

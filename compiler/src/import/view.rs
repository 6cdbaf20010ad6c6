//! How an ONNX tensor lies over a value of the graph.
//!
//! A value of the graph is always channel, row, column. ONNX tensors name the same numbers in other ways: with a batch
//! dimension, channels last, or flattened. A view keeps the ONNX extents and the order in which channel, row and column
//! vary, outermost first; reshaping changes the extents, transposing the order, and neither costs anything.

use fhec_ir::Shape;

/// An axis of a value of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Channel.
    C,
    /// Row.
    H,
    /// Column.
    W,
}

impl Axis {
    /// Position in channel, row, column order.
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// ONNX extents over a value of the graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    dims: Vec<usize>,
    /// Axes of more than one index, outermost first.
    order: Vec<Axis>,
    shape: Shape,
}

impl View {
    /// The view of extents `dims` whose numbers run through the axes in the given order.
    pub(super) fn new(dims: Vec<usize>, order: &[Axis], shape: Shape) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), shape.len());
        let order = order.iter().copied().filter(|a| shape.dims()[a.index()] > 1).collect();
        View { dims, order, shape }
    }

    /// `[1, c, h, w]`.
    pub(super) fn nchw(shape: Shape) -> Self {
        View::new(vec![1, shape.c, shape.h, shape.w], &[Axis::C, Axis::H, Axis::W], shape)
    }

    /// A vector with extents `dims`.
    pub(super) fn vector(dims: Vec<usize>) -> Self {
        let shape = Shape::vector(dims.iter().product());
        View::new(dims, &[Axis::C], shape)
    }

    /// ONNX extents.
    pub(super) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The value's shape in the graph.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Axes of more than one index, outermost first.
    pub(super) fn order(&self) -> &[Axis] {
        &self.order
    }

    /// Whether the numbers run through channel, row, column in this order.
    pub(super) fn is_canonical(&self) -> bool {
        self.order.is_sorted_by_key(|a| a.index())
    }

    /// Whether all dimensions but one have extent one.
    pub(super) fn is_flat(&self) -> bool {
        self.dims.iter().filter(|&&d| d > 1).count() <= 1
    }

    /// Whether the numbers of both run through the same axes in the same order.
    pub(super) fn is_like(&self, other: &View) -> bool {
        self.shape == other.shape && self.order == other.order
    }

    /// Whether this is `[1, c, h, w]` (or `[1, c, w]`) of the value.
    pub(super) fn is_image(&self) -> bool {
        let Shape { c, h, w } = self.shape;
        self.is_canonical() && (self.dims == [1, c, h, w] || (h == 1 && self.dims == [1, c, w]))
    }

    /// The same numbers with other extents, if their product is right.
    pub(super) fn reshape(&self, dims: Vec<usize>) -> Option<View> {
        let len = dims.iter().try_fold(1_usize, |n, &d| n.checked_mul(d))?;
        (len == self.shape.len()).then(|| View { dims, order: self.order.clone(), shape: self.shape })
    }

    /// The axes each dimension consists of; `None` if a dimension holds a part of an axis.
    pub(super) fn groups(&self) -> Option<Vec<Vec<Axis>>> {
        let mut rest = self.order.iter().copied();
        let mut groups = Vec::with_capacity(self.dims.len());
        for &dim in &self.dims {
            let (mut group, mut size) = (Vec::new(), 1);
            while size < dim {
                let axis = rest.next()?;
                size *= self.shape.dims()[axis.index()];
                group.push(axis);
            }
            if size != dim {
                return None;
            }
            groups.push(group);
        }
        Some(groups)
    }

    /// Permutes the dimensions, if each consists of whole axes.
    pub(super) fn transpose(&self, permutation: &[usize]) -> Option<View> {
        let groups = self.groups()?;
        let dims = permutation.iter().map(|&p| self.dims[p]).collect();
        let order = permutation.iter().flat_map(|&p| groups[p].clone()).collect();
        Some(View { dims, order, shape: self.shape })
    }

    /// The axes of the dimensions of an image-like tensor: which of channel, row, column each one is.
    ///
    /// Dimensions of extent one take the axes nobody else has, in order, after the batch.
    pub(super) fn dimension_axes(&self) -> Option<Vec<Option<Axis>>> {
        let groups = self.groups()?;
        let mut unit = [Axis::C, Axis::H, Axis::W].into_iter().filter(|a| !self.order.contains(a));
        let mut spare_units = self.dims.len().saturating_sub(self.order.len() + unit.clone().count()).max(1);
        let mut axes = Vec::with_capacity(groups.len());
        for group in groups {
            axes.push(match group[..] {
                [axis] => Some(axis),
                [] if spare_units > 0 => {
                    spare_units -= 1;
                    None
                }
                [] => unit.next(),
                _ => return None,
            });
        }
        Some(axes)
    }

    /// For every number of the value in channel, row, column order, its flat position in the ONNX tensor.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        let extents = self.shape.dims();
        let mut strides = [0; 3];
        let mut stride = 1;
        for axis in self.order.iter().rev() {
            strides[axis.index()] = stride;
            stride *= extents[axis.index()];
        }
        let [c, h, w] = extents;
        (0..c).flat_map(move |i| {
            (0..h).flat_map(move |j| (0..w).map(move |k| i * strides[0] + j * strides[1] + k * strides[2]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_last_and_flattened_still_knows_where_every_number_is() {
        let nchw = View::nchw(Shape::new(2, 1, 3));
        let nhwc = nchw.transpose(&[0, 2, 3, 1]).unwrap();
        assert_eq!(nhwc.dims(), [1, 1, 3, 2]);
        assert!(!nhwc.is_canonical());
        let flat = nhwc.reshape(vec![1, 6]).unwrap();
        assert_eq!(flat.positions().collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        assert!(flat.is_flat() && flat.groups().is_some());
        assert_eq!(nhwc.transpose(&[0, 3, 1, 2]), Some(nchw));
    }

    #[test]
    fn a_split_axis_cannot_be_transposed() {
        let view = View::nchw(Shape::new(4, 2, 2)).reshape(vec![1, 2, 2, 2, 2]).unwrap();
        assert_eq!(view.transpose(&[0, 2, 1, 3, 4]), None);
        assert!(view.is_canonical());
    }

    #[test]
    fn unit_dimensions_take_the_axes_that_are_left() {
        let view = View::nchw(Shape::new(5, 1, 7));
        assert_eq!(view.dimension_axes().unwrap(), [None, Some(Axis::C), Some(Axis::H), Some(Axis::W)]);
        let vector = View::vector(vec![1, 5]);
        assert_eq!(vector.dimension_axes().unwrap(), [None, Some(Axis::C)]);
    }
}

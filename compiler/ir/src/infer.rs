//! Shape inference: the extent of a node's value from its operation, operands and constants.
//!
//! Every fact an operation asks of its operands and constants is checked here and nowhere else; the verifier re-runs it.

use crate::op::bivar_degree;
use crate::{Conv2d, Linear, Op, Pads, Pool, Shape, TensorId, Weights};

/// Why an operation does not fit its operands or constants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Wrong number of operands.
    #[error("{op} takes {expected} operand(s), not {actual}")]
    Arity {
        /// Mnemonic of the operation.
        op: &'static str,
        /// Operands it takes.
        expected: usize,
        /// Operands it got.
        actual: usize,
    },
    /// Two operands must agree and do not.
    #[error("{op} needs operands of one shape, not {left} and {right}")]
    Mismatch {
        /// Mnemonic of the operation.
        op: &'static str,
        /// First shape.
        left: Shape,
        /// Second shape.
        right: Shape,
    },
    /// A constant has the wrong extents.
    #[error("{op} over {operand} cannot use a {what} of extents {dims:?}")]
    Constant {
        /// Mnemonic of the operation.
        op: &'static str,
        /// Which constant.
        what: &'static str,
        /// Its extents.
        dims: Vec<usize>,
        /// Shape of the operand.
        operand: Shape,
    },
    /// A constant is not in the weight table.
    #[error("constant {0} does not exist")]
    NoSuchTensor(TensorId),
    /// A stride, kernel, step or group count of zero, or groups that do not divide the channels.
    #[error("{op} has an invalid {what}")]
    Attribute {
        /// Mnemonic of the operation.
        op: &'static str,
        /// Which attribute.
        what: &'static str,
    },
    /// The result would hold nothing.
    #[error("{op} over {operand} has an empty result")]
    Empty {
        /// Mnemonic of the operation.
        op: &'static str,
        /// Shape of the operand.
        operand: Shape,
    },
}

/// The extent of the value `op` computes from operands of the given shapes.
///
/// # Errors
/// When something does not fit.
pub fn infer(op: &Op, operands: &[Shape], weights: &Weights) -> Result<Shape, ShapeError> {
    for id in op.tensors() {
        if !weights.contains(id) {
            return Err(ShapeError::NoSuchTensor(id));
        }
    }
    let name = op.mnemonic();
    let one = || match operands {
        [x] => Ok(*x),
        _ => Err(ShapeError::Arity { op: name, expected: 1, actual: operands.len() }),
    };
    let two = || match operands {
        [x, y] if x == y => Ok(*x),
        [x, y] => Err(ShapeError::Mismatch { op: name, left: *x, right: *y }),
        _ => Err(ShapeError::Arity { op: name, expected: 2, actual: operands.len() }),
    };
    let constant = |id: TensorId, what, operand: Shape, fits: &dyn Fn(&[usize]) -> bool| {
        let dims = weights.get(id).dims();
        if fits(dims) {
            Ok(())
        } else {
            Err(ShapeError::Constant { op: name, what, dims: dims.to_vec(), operand })
        }
    };
    let shape = match op {
        Op::Input { shape } => match operands {
            [] => *shape,
            _ => return Err(ShapeError::Arity { op: name, expected: 0, actual: operands.len() }),
        },
        Op::Conv2d(conv) => {
            let x = one()?;
            let y = conv_shape(conv, x, weights)?;
            if let Some(bias) = conv.bias {
                constant(bias, "bias", x, &|d| *d == [y.c] || *d == y.dims())?;
            }
            y
        }
        Op::Linear(Linear { weight, bias }) => {
            let x = one()?;
            constant(*weight, "weight", x, &|d| d.len() == 2 && d[1] == x.len())?;
            let out = weights.get(*weight).dims()[0];
            if let Some(bias) = bias {
                constant(*bias, "bias", x, &|d| *d == [out])?;
            }
            Shape::vector(out)
        }
        Op::BatchNorm { scale, shift } => {
            let x = one()?;
            constant(*scale, "scale", x, &|d| per_channel(d, x))?;
            constant(*shift, "shift", x, &|d| per_channel(d, x))?;
            x
        }
        Op::Pool(pool) => pool_shape(pool, one()?)?,
        Op::Poly { coeffs } => {
            let x = one()?;
            constant(*coeffs, "coefficient table", x, &|d| {
                d.len() == 2 && d[0] > 0 && per_channel(&d[1..], x)
            })?;
            x
        }
        Op::Bivar { coeffs } => {
            let x = two()?;
            constant(*coeffs, "coefficient table", x, &|d| {
                d.len() == 2 && bivar_degree(d[0]).is_some() && per_channel(&d[1..], x)
            })?;
            x
        }
        Op::Scale { factor } => {
            let x = one()?;
            constant(*factor, "factor", x, &|d| per_channel(d, x))?;
            x
        }
        Op::AddConst { value } => {
            let x = one()?;
            constant(*value, "value", x, &|d| per_channel(d, x) || *d == x.dims())?;
            x
        }
        Op::Add | Op::Mul => two()?,
        Op::Concat => concat_shape(operands)?,
        Op::Slice(slice) => {
            let x = one()?;
            let mut dims = [0; 3];
            for (axis, extent) in x.dims().into_iter().enumerate() {
                let (start, end, step) = (slice.start[axis], slice.end[axis], slice.step[axis]);
                if step == 0 || end > extent {
                    return Err(ShapeError::Attribute { op: name, what: "range" });
                }
                dims[axis] = end.saturating_sub(start).div_ceil(step);
            }
            Shape::new(dims[0], dims[1], dims[2])
        }
        Op::Pad(pad) => {
            let x = one()?.dims();
            let padded = |axis: usize| x[axis] + pad.before[axis] + pad.after[axis];
            Shape::new(padded(0), padded(1), padded(2))
        }
        Op::Flatten => Shape::vector(one()?.len()),
        Op::Output => one()?,
    };
    if shape.is_empty() {
        return Err(ShapeError::Empty { op: name, operand: operands.first().copied().unwrap_or(shape) });
    }
    Ok(shape)
}

fn per_channel(dims: &[usize], x: Shape) -> bool {
    *dims == [1] || *dims == [x.c]
}

fn conv_shape(conv: &Conv2d, x: Shape, weights: &Weights) -> Result<Shape, ShapeError> {
    let op = "conv2d";
    let dims = weights.get(conv.weight).dims();
    let [out, per_group, kh, kw] = *dims else {
        return Err(ShapeError::Constant { op, what: "weight", dims: dims.to_vec(), operand: x });
    };
    if conv.groups == 0 || !out.is_multiple_of(conv.groups) || !x.c.is_multiple_of(conv.groups) {
        return Err(ShapeError::Attribute { op, what: "group count" });
    }
    if per_group != x.c / conv.groups {
        return Err(ShapeError::Constant { op, what: "weight", dims: dims.to_vec(), operand: x });
    }
    if conv.dilation.contains(&0) || kh == 0 || kw == 0 {
        return Err(ShapeError::Attribute { op, what: "dilation or kernel" });
    }
    let reach = [(kh - 1) * conv.dilation[0] + 1, (kw - 1) * conv.dilation[1] + 1];
    let [h, w] = windows(op, x, reach, conv.stride, conv.pads)?;
    Ok(Shape::new(out, h, w))
}

fn pool_shape(pool: &Pool, x: Shape) -> Result<Shape, ShapeError> {
    if pool.kernel.contains(&0) {
        return Err(ShapeError::Attribute { op: "pool", what: "kernel" });
    }
    let [h, w] = windows("pool", x, pool.kernel, pool.stride, pool.pads)?;
    Ok(Shape::new(x.c, h, w))
}

/// Number of window positions per axis.
fn windows(
    op: &'static str,
    x: Shape,
    reach: [usize; 2],
    stride: [usize; 2],
    pads: Pads,
) -> Result<[usize; 2], ShapeError> {
    if stride.contains(&0) {
        return Err(ShapeError::Attribute { op, what: "stride" });
    }
    let padded = [x.h + pads.top + pads.bottom, x.w + pads.left + pads.right];
    if padded[0] < reach[0] || padded[1] < reach[1] {
        return Err(ShapeError::Empty { op, operand: x });
    }
    Ok([(padded[0] - reach[0]) / stride[0] + 1, (padded[1] - reach[1]) / stride[1] + 1])
}

fn concat_shape(operands: &[Shape]) -> Result<Shape, ShapeError> {
    let Some(first) = operands.first() else {
        return Err(ShapeError::Arity { op: "concat", expected: 1, actual: 0 });
    };
    for x in operands {
        if (x.h, x.w) != (first.h, first.w) {
            return Err(ShapeError::Mismatch { op: "concat", left: *first, right: *x });
        }
    }
    Ok(Shape::new(operands.iter().map(|x| x.c).sum(), first.h, first.w))
}

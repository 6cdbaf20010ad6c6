//! Coefficients of element-wise polynomials: one number, one per channel, or one per position.

use fhec_ir::Shape;

use super::constant::Constant;
use super::view::View;

/// A constant that multiplies or joins an encrypted value number by number, in its smallest form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Coefficient {
    /// The same everywhere.
    Scalar(f64),
    /// One per channel.
    Channel(Vec<f64>),
    /// One per position, in channel, row, column order.
    Full(Vec<f64>),
}

impl Coefficient {
    /// Zero.
    pub(super) const ZERO: Self = Coefficient::Scalar(0.0);
    /// One.
    pub(super) const ONE: Self = Coefficient::Scalar(1.0);

    /// A constant tensor as it meets a value seen through `view`; `None` if it does not broadcast to it.
    pub(super) fn from_constant(constant: &Constant, view: &View) -> Option<Self> {
        if let Some(value) = constant.uniform() {
            return Some(Coefficient::Scalar(value));
        }
        let dims = view.dims();
        let skip = dims.len().checked_sub(constant.dims.len())?;
        let mut strides = vec![0; dims.len()];
        let mut stride = 1;
        for (i, &extent) in constant.dims.iter().enumerate().rev() {
            if extent != 1 {
                if extent != dims[i + skip] {
                    return None;
                }
                strides[i + skip] = stride;
            }
            stride *= extent;
        }
        let values = view.positions().map(|mut position| {
            let mut at = 0;
            for (&extent, stride) in dims.iter().zip(&strides).rev() {
                at += position % extent * stride;
                position /= extent;
            }
            constant.get(at)
        });
        Some(Coefficient::Full(values.collect()).reduced(view.shape()))
    }

    /// The smallest form of the same numbers.
    pub(super) fn reduced(self, shape: Shape) -> Self {
        let is_uniform = |values: &[f64]| values.iter().all(|v| *v == values[0]);
        match self {
            Coefficient::Full(values) if !shape.is_empty() && values.chunks(shape.area()).all(is_uniform) => {
                Coefficient::Channel(values.iter().copied().step_by(shape.area()).collect()).reduced(shape)
            }
            Coefficient::Channel(values) if !values.is_empty() && is_uniform(&values) => {
                Coefficient::Scalar(values[0])
            }
            other => other,
        }
    }

    /// Whether every number is exactly `value`.
    pub(super) fn is_all(&self, value: f64) -> bool {
        self.values().iter().all(|&v| v == value)
    }

    /// The stored numbers.
    pub(super) fn values(&self) -> &[f64] {
        match self {
            Coefficient::Scalar(v) => std::slice::from_ref(v),
            Coefficient::Channel(v) | Coefficient::Full(v) => v,
        }
    }

    /// Number by number.
    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let apply = |values: &[f64]| values.iter().map(|&v| f(v)).collect();
        match self {
            Coefficient::Scalar(v) => Coefficient::Scalar(f(*v)),
            Coefficient::Channel(v) => Coefficient::Channel(apply(v)),
            Coefficient::Full(v) => Coefficient::Full(apply(v)),
        }
    }

    /// Number by number over two coefficients of values of one shape.
    pub(super) fn zip(&self, other: &Self, shape: Shape, f: impl Fn(f64, f64) -> f64) -> Self {
        use Coefficient::{Channel, Full, Scalar};
        match (self, other) {
            (Scalar(a), Scalar(b)) => Scalar(f(*a, *b)),
            (Full(_), _) | (_, Full(_)) => {
                let area = shape.area();
                Full((0..shape.len()).map(|i| f(self.at(i, area), other.at(i, area))).collect())
                    .reduced(shape)
            }
            (Channel(_), _) | (_, Channel(_)) => {
                Channel((0..shape.c).map(|c| f(self.at(c, 1), other.at(c, 1))).collect()).reduced(shape)
            }
        }
    }

    fn at(&self, position: usize, area: usize) -> f64 {
        match self {
            Coefficient::Scalar(v) => *v,
            Coefficient::Channel(v) => v[position / area],
            Coefficient::Full(v) => v[position],
        }
    }

    /// Whether both agree to a few units in the last place.
    pub(super) fn is_close(&self, other: &Self, shape: Shape) -> bool {
        let close = self.zip(other, shape, |a, b| f64::from((a - b).abs() <= 1e-12 * (a.abs() + b.abs())));
        close.is_all(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_last_constants_become_one_number_per_channel() {
        let view = View::nchw(Shape::new(2, 2, 3)).transpose(&[0, 2, 3, 1]).unwrap();
        let constant = Constant::f64(vec![2], vec![5.0, 7.0]);
        let found = Coefficient::from_constant(&constant, &view);
        assert_eq!(found, Some(Coefficient::Channel(vec![5.0, 7.0])));
    }

    #[test]
    fn constants_over_rows_stay_positional() {
        let view = View::nchw(Shape::new(1, 2, 2));
        let constant = Constant::f64(vec![2, 1], vec![5.0, 7.0]);
        let found = Coefficient::from_constant(&constant, &view);
        assert_eq!(found, Some(Coefficient::Full(vec![5.0, 5.0, 7.0, 7.0])));
        assert_eq!(Coefficient::from_constant(&Constant::f64(vec![3], vec![1.0, 2.0, 3.0]), &view), None);
    }
}

//! The numbers of random layers: how large they are is what tells ordinary networks from wild ones.

use super::blocks::Builder;
use super::{Op, Poly, Temper, ValueIdx};

impl Builder {
    /// Rows of normal numbers, those of a wild layer of different sizes.
    pub(super) fn weights(&mut self, out: usize, per_output: usize) -> Vec<f32> {
        let is_uneven = self.is_wild() && self.random.below(3) == 0;
        let mut weights = Vec::with_capacity(out * per_output);
        for _ in 0..out {
            let size = if is_uneven { 10f32.powf(self.random.uniform(-1.5, 0.0)) } else { 1.0 };
            weights.extend(self.random.normals(per_output, size));
        }
        weights
    }

    /// Biases in units of the largest product before them.
    pub(super) fn bias(&mut self, out: usize) -> Vec<f32> {
        let size = match (self.temper, self.random.below(3)) {
            (Temper::Wild, 0) => 4.0,
            (Temper::Wild, 1) => 1e-3,
            _ => 0.4,
        };
        (0..out).map(|_| self.random.uniform(-size, size)).collect()
    }

    /// A polynomial made for the range of its operand; the operand itself if no depth is left for one.
    pub(super) fn activation(&mut self, x: ValueIdx) -> ValueIdx {
        let degrees: Vec<usize> =
            [2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8].into_iter().filter(|&d| cost(d) <= self.depth).collect();
        if degrees.is_empty() {
            return x;
        }
        let degree = degrees[self.random.below(degrees.len())];
        self.depth -= cost(degree);
        let range = self.peak(x).max(1e-6);
        let result = match self.temper {
            Temper::Ordinary => f64::from(self.random.uniform(0.5, 2.0)),
            Temper::Wild => 10f64.powf(f64::from(self.random.uniform(-2.0, 2.0))),
        };
        let channels = if self.random.below(5) < 2 { self.extents(x)[0] } else { 1 };
        let is_odd_one = self.is_wild() && self.random.below(2) == 0;
        let remark = match (channels, is_odd_one) {
            (1, false) => "",
            (1, true) => "small leading coefficient",
            (_, false) => "per channel",
            (_, true) => "per channel, some leading coefficients tiny or zero",
        };
        let mut rows = vec![Vec::with_capacity(channels); degree + 1];
        for c in 0..channels {
            for (power, row) in rows.iter_mut().enumerate() {
                let mut shape = self.shape(power, degree);
                if power == degree && is_odd_one {
                    shape *= self.lead(channels, c);
                }
                row.push((f64::from(shape) * result / range.powi(power as i32)) as f32);
            }
        }
        let spelling = self.random.below(4);
        self.push(Op::Poly(Poly { coefficients: rows, spelling, remark }), &[x])
    }

    /// A coefficient for arguments from minus one to one.
    pub(super) fn shape(&mut self, power: usize, degree: usize) -> f32 {
        let sign = if self.random.below(4) == 0 { -1.0 } else { 1.0 };
        match power {
            0 => self.random.uniform(-0.3, 0.3),
            _ if power == degree => sign * self.random.uniform(0.15, 1.0),
            1 => sign * self.random.uniform(0.2, 1.0),
            _ => self.random.normal(0.3),
        }
    }

    /// What becomes of a leading coefficient: a factor.
    pub(super) fn lead(&mut self, channels: usize, channel: usize) -> f32 {
        match self.random.below(5) {
            0 => 1e-3,
            1 => 1e-6,
            2 if channels > 1 => 0.0,
            3 if channel > 0 => 1e-9,
            _ => 1.0,
        }
    }

    pub(super) fn is_wild(&self) -> bool {
        self.temper == Temper::Wild
    }

    /// The largest result of a layer in front of an activation.
    pub(super) fn range(&mut self) -> f64 {
        f64::from(match self.temper {
            Temper::Ordinary => self.random.uniform(1.0, 4.0),
            // Powers of ranges become coefficients, and those are single precision.
            Temper::Wild => 10f32.powf(self.random.uniform(-3.0, 3.0)),
        })
    }

    /// The largest score.
    pub(super) fn score_range(&mut self) -> f64 {
        match self.temper {
            Temper::Ordinary => f64::from(self.random.uniform(1.0, 20.0)),
            Temper::Wild => self.range(),
        }
    }

    /// What a branch has of the size of what it is added to.
    pub(super) fn share(&mut self) -> f64 {
        f64::from(match self.temper {
            Temper::Ordinary => self.random.uniform(0.3, 1.0),
            Temper::Wild => 10f32.powf(self.random.uniform(-2.0, 1.0)),
        })
    }
}

/// Multiplications of an activation and the layer before it.
fn cost(degree: usize) -> usize {
    degree.next_power_of_two().trailing_zeros() as usize + 1
}

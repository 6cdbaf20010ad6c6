//! The one linear map of a circuit: a convolution.
//!
//! Dense layers are convolutions whose kernel covers the operand, shortcuts with a stride and padded channels are
//! convolutions of size one, and so on. Output row `o` reads rows `o·stride + k·dilation + offset` of the operand for the
//! kernel rows k; rows outside the operand are zero. The same holds for columns.

use fhe_bytecode::clear::rows::{Reading, Rows, Summand};
use fhec_ir::{MemberIdx, Shape, Tensor};

use super::constant::Constant;

/// Channels of a result whose summands are written out at a time.
const CHANNELS: usize = 8;

/// A convolution without bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    /// `[out, in/groups, kh, kw]`.
    pub weight: Constant,
    /// Rows, columns.
    pub stride: [usize; 2],
    /// Rows, columns.
    pub dilation: [usize; 2],
    /// Operand row and column that the first kernel cell of the first output reads; negative where zeros are padded.
    pub offset: [i64; 2],
    /// Channel groups that do not see each other.
    pub groups: usize,
    /// Extent of the operand.
    pub input: Shape,
    /// Extent of the result.
    pub output: Shape,
}

/// A row of multiply-adds with one weight: output `out + i` reads operand `input + i·step`, for `i < len`.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// First output, as a flat position.
    pub out: usize,
    /// First operand, as a flat position.
    pub input: usize,
    /// Distance between operands.
    pub step: usize,
    /// Number of multiply-adds.
    pub len: usize,
    /// The weight.
    pub weight: f64,
}

impl Conv {
    /// Rows and columns of the kernel.
    #[must_use]
    pub fn kernel(&self) -> [usize; 2] {
        let dims = self.weight.dims();
        [dims[2], dims[3]]
    }

    /// Whether every output reads every number of the operand through its own weight.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.output.is_vector()
            && self.groups == 1
            && self.offset == [0, 0]
            && self.dilation == [1, 1]
            && self.kernel() == [self.input.h, self.input.w]
    }

    /// Visits every multiply-add with a non-zero weight.
    pub fn for_each_run(&self, member: MemberIdx, mut visit: impl FnMut(Run)) {
        let weight = self.weight.of(member).to_f64();
        let [kh, kw] = self.kernel();
        let per_group = self.weight.dims()[1];
        let outs_per_group = self.output.c / self.groups;
        for oc in 0..self.output.c {
            let first_channel = oc / outs_per_group * per_group;
            for ic in 0..per_group {
                for ky in 0..kh {
                    for kx in 0..kw {
                        let w = weight[((oc * per_group + ic) * kh + ky) * kw + kx];
                        if w != 0.0 {
                            self.tap_runs(oc, first_channel + ic, [ky, kx], w, &mut visit);
                        }
                    }
                }
            }
        }
    }

    /// The summands of every number of an output channel, with the channels of the operand.
    fn summands(&self, weight: &[f64], oc: usize) -> Vec<Summand> {
        let ([kh, kw], per_group) = (self.kernel(), self.weight.dims()[1]);
        let first = oc / (self.output.c / self.groups) * per_group;
        let distance = |axis: usize, tap: usize| (tap * self.dilation[axis]) as i64 + self.offset[axis];
        let mut summands = Vec::with_capacity(per_group * kh * kw);
        let mut at = oc * per_group * kh * kw;
        for channel in first..first + per_group {
            for ky in 0..kh {
                for kx in 0..kw {
                    let (weight, dy, dx) = (weight[at], distance(0, ky), distance(1, kx));
                    if weight != 0.0 {
                        summands.push(Summand { channel, dy, dx, weight });
                    }
                    at += 1;
                }
            }
        }
        summands
    }

    /// How outputs read rows (axis 0) or columns (axis 1) of the operand.
    fn reading(&self, axis: usize) -> Reading {
        let (n_in, n_out) = ([self.input.h, self.input.w][axis], [self.output.h, self.output.w][axis]);
        let last = (self.kernel()[axis].saturating_sub(1) * self.dilation[axis]) as i64;
        let reach = [self.offset[axis], self.offset[axis] + last];
        Reading { n_in, n_out, stride: self.stride[axis], reach }
    }

    /// The runs of one kernel cell between one output and one operand channel.
    fn tap_runs(&self, oc: usize, ic: usize, tap: [usize; 2], weight: f64, visit: &mut impl FnMut(Run)) {
        let rows = self.outputs_inside(0, tap[0]);
        let columns = self.outputs_inside(1, tap[1]);
        if columns.is_empty() {
            return;
        }
        for oy in rows {
            let iy = self.reads(0, oy, tap[0]);
            let ix = self.reads(1, columns.start, tap[1]);
            visit(Run {
                out: (oc * self.output.h + oy) * self.output.w + columns.start,
                input: (ic * self.input.h + iy) * self.input.w + ix,
                step: self.stride[1],
                len: columns.len(),
                weight,
            });
        }
    }

    /// The operand row (axis 0) or column (axis 1) behind an output; the caller knows that it is inside.
    fn reads(&self, axis: usize, output: usize, tap: usize) -> usize {
        let at = (output * self.stride[axis] + tap * self.dilation[axis]) as i64 + self.offset[axis];
        usize::try_from(at).unwrap_or(0)
    }

    /// The outputs along an axis whose operand at a kernel cell lies inside the operand.
    fn outputs_inside(&self, axis: usize, tap: usize) -> std::ops::Range<usize> {
        let (n_in, n_out) =
            ([self.input.h, self.input.w][axis] as i64, [self.output.h, self.output.w][axis] as i64);
        let stride = self.stride[axis] as i64;
        let first = (tap * self.dilation[axis]) as i64 + self.offset[axis];
        let start = (-first).max(0).div_euclid(stride) + i64::from((-first).max(0).rem_euclid(stride) > 0);
        let end = if first >= n_in { 0 } else { ((n_in - 1 - first).div_euclid(stride) + 1).clamp(0, n_out) };
        start.min(end) as usize..end as usize
    }

    /// Adds the map of `operand` to `result`.
    pub fn apply(&self, member: MemberIdx, operand: &[f64], result: &mut [f64]) {
        if self.is_dense() {
            let weight = self.weight.of(member).to_f64();
            for (row, y) in weight.chunks_exact(operand.len().max(1)).zip(result) {
                let products = row.iter().zip(operand).filter(|(w, _)| **w != 0.0);
                *y = products.fold(*y, |y, (w, x)| y + w * x);
            }
            return;
        }
        let rows = Rows::new(operand, self.reading(0), self.reading(1));
        let weight = self.weight.of(member).to_f64();
        let channels = result.chunks_mut(CHANNELS * self.output.area().max(1));
        for (result, first) in channels.zip((0..self.output.c).step_by(CHANNELS)) {
            let channels = first..self.output.c.min(first + CHANNELS);
            let summands: Vec<Vec<Summand>> = channels.map(|oc| self.summands(&weight, oc)).collect();
            rows.add_to_each(result, &summands);
        }
    }

    /// The sum of the squared weights of every output.
    #[must_use]
    pub fn energies(&self, member: MemberIdx) -> Vec<f64> {
        let mut sums = vec![0.0; self.output.len()];
        self.for_each_run(member, |run| {
            sums[run.out..run.out + run.len].iter_mut().for_each(|sum| *sum += run.weight * run.weight);
        });
        sums
    }

    /// The sum of what every output reads with a weight other than zero.
    #[must_use]
    pub fn reached(&self, member: MemberIdx, operand: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.output.len()];
        if self.weight.of(member).to_f64().contains(&0.0) {
            self.for_each_run(member, |run| {
                let inputs = operand[run.input..].iter().step_by(run.step);
                sums[run.out..run.out + run.len].iter_mut().zip(inputs).for_each(|(y, x)| *y += x);
            });
            return sums;
        }
        // Outputs of a group read the same: first all channels, then the cells of the kernel.
        let ([kh, kw], area) = (self.kernel(), self.input.area());
        let (per_group, outs) = (self.weight.dims()[1], self.output.c / self.groups * self.output.area());
        for (group, sums) in sums.chunks_mut(outs.max(1)).enumerate() {
            let mut plane = vec![0.0; area];
            for channel in operand[group * per_group * area..].chunks(area.max(1)).take(per_group) {
                plane.iter_mut().zip(channel).for_each(|(sum, x)| *sum += x);
            }
            let (first, others) = sums.split_at_mut(self.output.area());
            for tap in (0..kh).flat_map(|ky| (0..kw).map(move |kx| [ky, kx])) {
                self.tap_runs(0, 0, tap, 1.0, &mut |run| {
                    let inputs = plane[run.input..].iter().step_by(run.step);
                    first[run.out..run.out + run.len].iter_mut().zip(inputs).for_each(|(y, x)| *y += x);
                });
            }
            others.chunks_mut(first.len().max(1)).for_each(|other| other.copy_from_slice(first));
        }
        sums
    }

    /// The sum of the squared weights of an output, averaged over the outputs and members.
    #[must_use]
    pub fn mean_energy(&self) -> f64 {
        let n_members = self.weight.members().len();
        let mut total = 0.0;
        for member in 0..n_members {
            self.for_each_run(MemberIdx(member as u32), |run| {
                total += run.weight * run.weight * run.len as f64
            });
        }
        total / (n_members * self.output.len().max(1)) as f64
    }
}

/// The same numbers with other extents.
pub(super) fn reshaped(constant: &Constant, dims: &[usize]) -> Constant {
    let tensor = |t: &Tensor| Tensor::new(dims.to_vec(), t.data().clone()).expect("equal number of values");
    Constant::new(constant.members().iter().map(tensor).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conv(offset: [i64; 2], stride: usize, dilation: usize, output: Shape) -> Conv {
        let weight = Tensor::from_f64(vec![2, 1, 2, 3], (1..=12).map(f64::from).collect::<Vec<_>>()).unwrap();
        Conv {
            weight: Constant::new(vec![weight]),
            stride: [stride; 2],
            dilation: [dilation; 2],
            offset,
            groups: 2,
            input: Shape::new(2, 5, 6),
            output,
        }
    }

    /// The definition, number by number.
    fn reference(conv: &Conv, x: &[f64]) -> Vec<f64> {
        let [kh, kw] = conv.kernel();
        let (i, o) = (conv.input, conv.output);
        let mut y = vec![0.0; o.len()];
        for (flat, value) in y.iter_mut().enumerate() {
            let (c, oy, ox) = (flat / o.area(), flat % o.area() / o.w, flat % o.w);
            for ky in 0..kh {
                for kx in 0..kw {
                    let iy = (oy * conv.stride[0] + ky * conv.dilation[0]) as i64 + conv.offset[0];
                    let ix = (ox * conv.stride[1] + kx * conv.dilation[1]) as i64 + conv.offset[1];
                    if (0..i.h as i64).contains(&iy) && (0..i.w as i64).contains(&ix) {
                        let w = conv.weight.of(MemberIdx::FIRST).get((c * kh + ky) * kw + kx);
                        *value += w * x[(c * i.h + iy as usize) * i.w + ix as usize];
                    }
                }
            }
        }
        y
    }

    #[test]
    fn runs_cover_the_definition() {
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 11) - 4.0).collect();
        for (offset, stride, dilation, h, w) in [
            ([0, 0], 1, 1, 4, 4),
            ([-1, -1], 1, 1, 6, 6),
            ([-3, -1], 2, 1, 5, 3),
            ([2, 1], 1, 2, 4, 4),
            ([-1, 0], 3, 2, 2, 2),
        ] {
            let conv = conv(offset, stride, dilation, Shape::new(2, h, w));
            let mut y = vec![0.0; conv.output.len()];
            conv.apply(MemberIdx::FIRST, &x, &mut y);
            assert_eq!(y, reference(&conv, &x), "offset {offset:?} stride {stride} dilation {dilation}");
        }
    }

    #[test]
    fn rows_are_those_of_the_definition() {
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 11)).collect();
        for zero in [false, true] {
            let mut conv = conv([-1, -2], 2, 1, Shape::new(2, 3, 4));
            if zero {
                conv.weight = conv
                    .weight
                    .map(&[2, 1, 2, 3], |t| t.iter().map(|w| if w == 5.0 { 0.0 } else { w }).collect());
            }
            let with = |f: &dyn Fn(f64) -> f64, x: &[f64]| {
                let weight = conv.weight.map(&[2, 1, 2, 3], |t| t.iter().map(f).collect());
                reference(&Conv { weight, ..conv.clone() }, x)
            };
            assert_eq!(conv.energies(MemberIdx::FIRST), with(&|w| w * w, &[1.0; 60]));
            assert_eq!(conv.reached(MemberIdx::FIRST, &x), with(&|w| if w == 0.0 { 0.0 } else { 1.0 }, &x));
        }
    }

    #[test]
    fn transposed_map_is_the_adjoint() {
        let conv = conv([-1, -2], 2, 1, Shape::new(2, 3, 4));
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * 5 % 13)).collect();
        let z: Vec<f64> = (0..24).map(|i| f64::from(i * 3 % 7) - 3.0).collect();
        let (mut y, mut xt) = (vec![0.0; 24], [vec![0.0; 60]]);
        conv.apply(MemberIdx::FIRST, &x, &mut y);
        conv.apply_transposed(MemberIdx::FIRST, &[&z], &mut xt);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(p, q)| p * q).sum::<f64>();
        assert_eq!(dot(&y, &z), dot(&x, &xt[0]));
    }
}

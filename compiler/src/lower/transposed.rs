//! The transposed map of a convolution: it takes what results depend on back to the operand.
//!
//! Numbers of the operand that are a stride apart, those of a phase, read the result as neighbors do, through every
//! stride-th cell of the kernel. So every phase is a convolution of the result that has no stride.

use fhe_bytecode::clear::rows::{Reading, Rows, Summand};
use fhec_ir::MemberIdx;

use super::conv::Conv;

/// Rows or columns of the operand that are a stride apart.
struct Phase {
    /// The first of them.
    first: usize,
    /// For every row or column of the kernel, how far from the first of them it reads the result, if it does.
    distances: Vec<Option<i64>>,
}

impl Conv {
    /// Adds the transposed map of every result to its operand.
    pub fn apply_transposed(&self, member: MemberIdx, results: &[&[f64]], operands: &mut [Vec<f64>]) {
        let weight = self.weight.of(member).to_f64();
        if self.is_dense() {
            for (result, operand) in results.iter().zip(operands) {
                let rows = weight.chunks_exact(operand.len().max(1)).zip(*result).filter(|(_, y)| **y != 0.0);
                for (row, y) in rows {
                    operand.iter_mut().zip(row).for_each(|(x, w)| *x += w * y);
                }
            }
            return;
        }
        let [ys, xs] = [0, 1].map(|axis| self.phases(axis));
        let (rows, columns) = (self.reading_back(0, &ys), self.reading_back(1, &xs));
        let results: Vec<Rows<'_>> = results.iter().map(|result| Rows::new(result, rows, columns)).collect();
        let area = rows.n_out * columns.n_out;
        let has_phases = self.stride != [1, 1];
        let mut planes = vec![0.0; if has_phases { self.input.c * area } else { 0 }];
        for (y, x) in ys.iter().flat_map(|y| xs.iter().map(move |x| (y, x))) {
            let by_channel = self.summands_back(&weight, y, x);
            for (results, operand) in results.iter().zip(operands.iter_mut()) {
                if !has_phases {
                    results.add_to_each(operand, &by_channel);
                    continue;
                }
                let mut of_planes = |planes: &mut [f64], visit: fn(&mut f64, &mut f64)| {
                    let channels = operand.chunks_exact_mut(self.input.area().max(1));
                    for (channel, plane) in channels.zip(planes.chunks_exact_mut(area.max(1))) {
                        self.for_each_of_phase(channel, plane, [y, x], visit);
                    }
                };
                of_planes(&mut planes, |x, own| *own = *x);
                results.add_to_each(&mut planes, &by_channel);
                of_planes(&mut planes, |x, own| *x = *own);
            }
        }
    }

    /// The phases of rows (axis 0) or columns (axis 1).
    fn phases(&self, axis: usize) -> Vec<Phase> {
        let stride = self.stride[axis] as i64;
        let distance = |first: usize, tap: usize| {
            let away = first as i64 - (tap * self.dilation[axis]) as i64 - self.offset[axis];
            (away.rem_euclid(stride) == 0).then_some(away.div_euclid(stride))
        };
        let phase = |first: usize| {
            let distances = (0..self.kernel()[axis]).map(|tap| distance(first, tap)).collect();
            Phase { first, distances }
        };
        let n = [self.input.h, self.input.w][axis];
        (0..self.stride[axis].min(n)).map(phase).collect()
    }

    /// How all phases read the result; the last number of some may lie beyond the operand.
    fn reading_back(&self, axis: usize, phases: &[Phase]) -> Reading {
        let all = || phases.iter().flat_map(|phase| &phase.distances).flatten().copied();
        let reach = [all().min().unwrap_or(0), all().max().unwrap_or(0)];
        let (n_in, n_out) = ([self.output.h, self.output.w][axis], [self.input.h, self.input.w][axis]);
        Reading { n_in, n_out: n_out.div_ceil(self.stride[axis]), stride: 1, reach }
    }

    /// For every channel of the operand what the numbers of a phase read, in the order of the result's channels.
    fn summands_back(&self, weight: &[f64], y: &Phase, x: &Phase) -> Vec<Vec<Summand>> {
        let ([kh, kw], per_group) = (self.kernel(), self.weight.dims()[1]);
        let per_channel = self.output.c / self.groups * kh * kw / (self.stride[0] * self.stride[1]).max(1);
        let mut by_channel: Vec<Vec<Summand>> =
            (0..self.input.c).map(|_| Vec::with_capacity(per_channel)).collect();
        for (channel, weight) in weight.chunks_exact((per_group * kh * kw).max(1)).enumerate() {
            let first = channel / (self.output.c / self.groups) * per_group;
            for (own, weight) in by_channel[first..].iter_mut().zip(weight.chunks_exact(kh * kw)) {
                for (dy, weight) in y.distances.iter().zip(weight.chunks_exact(kw)) {
                    let Some(dy) = *dy else { continue };
                    for (dx, &weight) in x.distances.iter().zip(weight) {
                        if let (Some(dx), true) = (*dx, weight != 0.0) {
                            own.push(Summand { channel, dy, dx, weight });
                        }
                    }
                }
            }
        }
        by_channel
    }

    /// Visits the numbers of a phase of an operand's channel, each with the number of a plane that has no others.
    fn for_each_of_phase(
        &self,
        channel: &mut [f64],
        plane: &mut [f64],
        [y, x]: [&Phase; 2],
        visit: impl Fn(&mut f64, &mut f64),
    ) {
        let width = self.input.w.div_ceil(self.stride[1]);
        let rows = channel.chunks_exact_mut(self.input.w).skip(y.first).step_by(self.stride[0]);
        for (row, own) in rows.zip(plane.chunks_exact_mut(width)) {
            let numbers = row.iter_mut().skip(x.first).step_by(self.stride[1]);
            numbers.zip(own).for_each(|(x, own)| visit(x, own));
        }
    }
}

#[cfg(test)]
mod tests {
    use fhec_ir::{Shape, Tensor};

    use super::*;
    use crate::lower::Constant;

    fn numbers(n: usize, factor: usize, modulus: usize) -> Vec<f64> {
        (0..n).map(|i| (i * factor % modulus) as f64 / 7.0 - 1.0).collect()
    }

    /// As the runs say it: every operand gets its summands in the order of weights.
    fn reference(conv: &Conv, result: &[f64], operand: &mut [f64]) {
        conv.for_each_run(MemberIdx::FIRST, |run| {
            let outputs = &result[run.out..run.out + run.len];
            let inputs = operand[run.input..].iter_mut().step_by(run.step);
            outputs.iter().zip(inputs).for_each(|(y, x)| *x += run.weight * y);
        });
    }

    #[test]
    fn gradients_have_the_bits_of_the_definition() {
        for stride in [[1, 1], [2, 2], [1, 3], [3, 2], [7, 9]] {
            for (offset, dilation, kernel) in
                [([0, 0], [1, 1], [2, 3]), ([-1, -2], [1, 2], [3, 3]), ([2, 1], [2, 1], [1, 4])]
            {
                for groups in [1, 2] {
                    let extent = |axis: usize, n: usize| n.div_ceil(stride[axis]);
                    let dims = vec![4, 2 / groups, kernel[0], kernel[1]];
                    let mut weight = numbers(dims.iter().product(), 5, 13);
                    weight[3] = 0.0;
                    let conv = Conv {
                        weight: Constant::new(vec![Tensor::from_f64(dims, weight).unwrap()]),
                        stride,
                        dilation,
                        offset,
                        groups,
                        input: Shape::new(2, 7, 8),
                        output: Shape::new(4, extent(0, 7), extent(1, 8)),
                    };
                    let result = numbers(conv.output.len(), 3, 11);
                    let found = numbers(conv.input.len(), 2, 5);
                    let mut expected = found.clone();
                    let mut found = [found];
                    conv.apply_transposed(MemberIdx::FIRST, &[&result], &mut found);
                    let [found] = found;
                    reference(&conv, &result, &mut expected);
                    assert_eq!(found, expected, "{stride:?} {offset:?} {dilation:?} {kernel:?} {groups}");
                }
            }
        }
    }
}

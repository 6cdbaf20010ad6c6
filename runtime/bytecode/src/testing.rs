//! Slow and obvious oracles for the tests of this crate.

use crate::constants::Constants;
use crate::layout::Layout;
use crate::linear::{DiagonalId, Diagonals, LinearOp};
use crate::rotation::Rotation;

/// A small seeded generator (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF0)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }

    /// Uniform in [-1, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// `rot(x, r)[s] = x[s + r]`.
pub(crate) fn rotate(x: &[f64], r: Rotation) -> Vec<f64> {
    (0..x.len()).map(|s| x[(s + r.left(x.len())) % x.len()]).collect()
}

/// y = Σ d·rot(x, r), then the folds.
pub(crate) fn apply_diagonals(diagonals: &Diagonals, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let slots = diagonals.slots();
    let mut outputs = vec![vec![0.0; slots]; diagonals.n_outputs()];
    let mut vector = vec![0.0; diagonals.period()];
    for (id, diagonal) in diagonals.list().iter().enumerate() {
        diagonals.write(DiagonalId(id as u32), Rotation::ZERO, &mut vector);
        let rotated = rotate(&inputs[diagonal.input as usize], diagonal.rotation);
        for (slot, y) in outputs[diagonal.output as usize].iter_mut().enumerate() {
            *y += vector[slot % vector.len()] * rotated[slot];
        }
    }
    for y in &mut outputs {
        for &fold in diagonals.folds() {
            let rotated = rotate(y, fold);
            y.iter_mut().zip(rotated).for_each(|(a, b)| *a += b);
        }
    }
    outputs
}

/// Direct evaluation of an operation, straight from its definition.
pub(crate) fn naive(
    op: &LinearOp,
    input: &Layout,
    output: &Layout,
    constants: &Constants,
    tensor: &[f64],
) -> Vec<f64> {
    let (from, to) = (input.shape(), output.shape());
    let most = input.members().max(output.members());
    let mut result = vec![0.0; output.members() * to.len()];
    let read = |m: usize, c: i64, y: i64, x: i64| {
        let inside = c >= 0
            && c < i64::from(from.channels)
            && y >= 0
            && y < i64::from(from.height)
            && x >= 0
            && x < i64::from(from.width);
        let at = || {
            ((m as i64 * i64::from(from.channels) + c) * i64::from(from.height) + y) * i64::from(from.width)
                + x
        };
        if inside { tensor[at() as usize] } else { 0.0 }
    };
    for m in 0..most {
        let (m_in, m_out) = (m.min(input.members() - 1), m.min(output.members() - 1));
        for c in 0..to.channels as usize {
            for y in 0..to.height as usize {
                for x in 0..to.width as usize {
                    let value = element(op, constants, from, m, (c, y as i64, x as i64), &|c, y, x| {
                        read(m_in, c, y, x)
                    });
                    let at =
                        ((m_out * to.channels as usize + c) * to.height as usize + y) * to.width as usize + x;
                    result[at] += value;
                }
            }
        }
    }
    result
}

fn element(
    op: &LinearOp,
    constants: &Constants,
    from: crate::layout::Shape,
    m: usize,
    (c, y, x): (usize, i64, i64),
    read: &dyn Fn(i64, i64, i64) -> f64,
) -> f64 {
    let mut sum = 0.0;
    match op {
        LinearOp::Conv2d { weight, stride, pads, dilation, groups } => {
            let w = constants.values(*weight).unwrap();
            let [out, in_group, rows, columns] = w.shape[..] else { unreachable!() };
            let group = c / (out / *groups as usize);
            for i in 0..in_group {
                for ky in 0..rows {
                    for kx in 0..columns {
                        let at = ((c * in_group + i) * rows + ky) * columns + kx;
                        let iy = y * i64::from(stride[0]) + ky as i64 * i64::from(dilation[0])
                            - i64::from(pads[0]);
                        let ix = x * i64::from(stride[1]) + kx as i64 * i64::from(dilation[1])
                            - i64::from(pads[1]);
                        sum += w.data[m * w.member_step() + at] * read((group * in_group + i) as i64, iy, ix);
                    }
                }
            }
        }
        LinearOp::Dense { weight } => {
            let w = constants.values(*weight).unwrap();
            let mut at = m * w.member_step() + c * from.len();
            for i in 0..i64::from(from.channels) {
                for iy in 0..i64::from(from.height) {
                    for ix in 0..i64::from(from.width) {
                        sum += w.data[at] * read(i, iy, ix);
                        at += 1;
                    }
                }
            }
        }
        LinearOp::SumPool { kernel, stride, pads, factor } => {
            for ky in 0..i64::from(kernel[0]) {
                for kx in 0..i64::from(kernel[1]) {
                    let iy = y * i64::from(stride[0]) + ky - i64::from(pads[0]);
                    sum += factor * read(c as i64, iy, x * i64::from(stride[1]) + kx - i64::from(pads[1]));
                }
            }
        }
        LinearOp::Pick { factors, channel_offset, stride, pads } => {
            let iy = y * i64::from(stride[0]) - i64::from(pads[0]);
            let ix = x * i64::from(stride[1]) - i64::from(pads[1]);
            let factor = factors.map_or(1.0, |id| {
                let w = constants.values(id).unwrap();
                w.data[m * w.member_step() + if w.len() == 1 { 0 } else { c }]
            });
            sum = factor * read(c as i64 - i64::from(*channel_offset), iy, ix);
        }
    }
    sum
}

//! Sums of weighted rows: what a convolution in the clear comes down to.
//!
//! Tensors are padded with zeros, so that no sum has to look where a row ends, and a block of numbers is summed at a time, so
//! that their sums stay in registers. What neighbors of a row read with a stride lies side by side: the columns of a row are
//! stored by their remainder. A zero that is added changes no sum, so results have the bits that they would have without; so
//! they have with the widest vectors that the CPU has, since no product is fused with its sum. Where there would be many more
//! zeros than numbers, as with strides that leap over the tensor, sums look.

use pulp::{Arch, Simd, WithSimd};

use crate::linear::valid_range;

/// Columns that are summed at a time, where rows are made up of so many.
const WIDE: usize = 32;
/// The same for other rows that are not narrow.
const MIDDLE: usize = 16;
/// The same for narrow results.
const NARROW: usize = 8;
/// Channels that read the tensor together.
const TOGETHER: usize = 4;
/// Most numbers and zeros for a number of the tensor or of a channel of the result.
const MOST_ZEROS: usize = 16;

/// The rows of a tensor, for results that read around them.
#[derive(Debug)]
pub struct Rows<'a> {
    tensor: &'a [f64],
    /// All rows of all channels with zeros on all sides, if these are not too many; columns by their remainder.
    padded: Option<Vec<f64>>,
    rows: Axis,
    columns: Axis,
    /// Columns that are summed at a time.
    block: usize,
}

/// One direction of a tensor that is padded.
#[derive(Clone, Copy, Debug)]
struct Axis {
    reading: Reading,
    /// Zeros before the first number.
    before: usize,
    /// Numbers and zeros.
    padded: usize,
}

/// How results read a tensor in one direction: result i reads at `i·stride` and some distance from there.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Numbers of the tensor.
    pub n_in: usize,
    /// Numbers of the result.
    pub n_out: usize,
    /// Step between two results.
    pub stride: usize,
    /// Smallest and largest distance.
    pub reach: [i64; 2],
}

/// One summand of a channel: `weight` times what a channel of the tensor has at these distances, or nothing if that is outside.
#[derive(Clone, Copy, Debug)]
pub struct Summand {
    /// Channel of the tensor.
    pub channel: usize,
    /// Distance of rows.
    pub dy: i64,
    /// Distance of columns.
    pub dx: i64,
    /// The factor.
    pub weight: f64,
}

impl Axis {
    /// Zeros for so many results, as far as some of them read the tensor.
    fn new(reading: Reading, n_padded: usize) -> Self {
        let Reading { n_in, n_out, stride, reach: [first, last] } = reading;
        let before = (-first).clamp(0, n_out.saturating_mul(stride) as i64) as usize;
        let end = n_padded.saturating_sub(1).saturating_mul(stride) + last.clamp(0, n_in as i64) as usize + 1;
        Self { reading, before, padded: before + n_in.max(end) }
    }

    /// The same with as many numbers and zeros of every remainder.
    fn in_turns(self) -> Self {
        let stride = self.reading.stride.max(1);
        Self { padded: self.padded.div_ceil(stride).saturating_mul(stride), ..self }
    }

    /// Where a number is stored that is so far from the first zero, if numbers of a remainder are side by side.
    fn turned(&self, at: usize) -> usize {
        match self.reading.stride {
            0 | 1 => at,
            stride => at % stride * (self.padded / stride) + at / stride,
        }
    }

    /// Where the first result reads; nothing if no result reads the tensor at this distance.
    fn at(&self, distance: i64) -> Option<usize> {
        let at = usize::try_from(self.before as i64 + distance).ok()?;
        (at < self.before + self.reading.n_in).then_some(at)
    }
}

impl<'a> Rows<'a> {
    /// The rows of a tensor in (channel, y, x) order, for results that read it so.
    #[must_use]
    pub fn new(tensor: &'a [f64], rows: Reading, columns: Reading) -> Self {
        let block = match columns.n_out {
            n if n.is_multiple_of(WIDE) => WIDE,
            n if n < MIDDLE => NARROW,
            _ => MIDDLE,
        };
        let n_numbers = tensor.len().max(rows.n_out * columns.n_out);
        let (rows, columns) = (
            Axis::new(rows, rows.n_out),
            Axis::new(columns, columns.n_out.next_multiple_of(block)).in_turns(),
        );
        let area = rows.reading.n_in * columns.reading.n_in;
        let mut all = Self { tensor, padded: None, rows, columns, block };
        let n_padded =
            (tensor.len() / area.max(1)).saturating_mul(rows.padded).saturating_mul(columns.padded);
        if area > 0 && n_padded <= MOST_ZEROS.saturating_mul(n_numbers) {
            all.padded = Some(all.with_zeros(n_padded));
        }
        all
    }

    fn with_zeros(&self, n_padded: usize) -> Vec<f64> {
        let Self { tensor, rows, columns, .. } = self;
        let (height, width) = (rows.reading.n_in, columns.reading.n_in);
        let mut padded = vec![0.0; n_padded];
        let channels = padded.chunks_exact_mut(rows.padded * columns.padded);
        for (channel, padded) in tensor.chunks_exact(height * width).zip(channels) {
            let padded = padded.chunks_exact_mut(columns.padded).skip(rows.before);
            for (row, padded) in channel.chunks_exact(width).zip(padded) {
                if columns.reading.stride <= 1 {
                    padded[columns.before..columns.before + width].copy_from_slice(row);
                } else {
                    row.iter().zip(columns.before..).for_each(|(x, at)| padded[columns.turned(at)] = *x);
                }
            }
        }
        padded
    }

    /// Adds all summands to a channel of the result; every number gets them in their order.
    ///
    /// # Panics
    /// When a summand names a channel that the tensor does not have, or is beyond the reach.
    pub fn add_to(&self, result: &mut [f64], summands: &[Summand]) {
        self.add_to_each(result, &[summands]);
    }

    /// The same for consecutive channels of the result. Those that read the same numbers read them together.
    ///
    /// # Panics
    /// As [`Rows::add_to`].
    pub fn add_to_each<S: AsRef<[Summand]>>(&self, result: &mut [f64], summands: &[S]) {
        let area = (self.rows.reading.n_out * self.columns.reading.n_out).max(1);
        let Some(padded) = &self.padded else {
            for (result, summands) in result.chunks_exact_mut(area).zip(summands) {
                summands.as_ref().iter().for_each(|summand| self.add_inside(result, *summand));
            }
            return;
        };
        let mut sources = Vec::new();
        for (result, summands) in result.chunks_mut(TOGETHER * area).zip(summands.chunks(TOGETHER)) {
            match summands {
                [first, others @ ..]
                    if others.len() + 1 == TOGETHER
                        && others.iter().all(|other| are_alike(first.as_ref(), other.as_ref())) =>
                {
                    self.add_padded::<TOGETHER, S>(padded, result, summands, &mut sources);
                }
                _ => {
                    for (result, summands) in result.chunks_exact_mut(area).zip(summands) {
                        let summands = std::slice::from_ref(summands);
                        self.add_padded::<1, S>(padded, result, summands, &mut sources);
                    }
                }
            }
        }
    }

    fn add_padded<const C: usize, S: AsRef<[Summand]>>(
        &self,
        padded: &[f64],
        result: &mut [f64],
        summands: &[S],
        sources: &mut Vec<(usize, [f64; TOGETHER])>,
    ) {
        let Self { rows, columns, .. } = self;
        // Where the first number of a result reads every summand.
        let source = |(i, summand): (usize, &Summand)| {
            let column = columns.turned(columns.at(summand.dx)?);
            let at = (summand.channel * rows.padded + rows.at(summand.dy)?) * columns.padded + column;
            let mut weights = [summand.weight; TOGETHER];
            for (weight, summands) in weights.iter_mut().zip(summands) {
                *weight = summands.as_ref()[i].weight;
            }
            Some((at, weights))
        };
        sources.clear();
        sources.extend(summands[0].as_ref().iter().enumerate().filter_map(source));
        let step = rows.reading.stride * columns.padded;
        let (height, width) = (rows.reading.n_out, columns.reading.n_out.max(1));
        let add = Add { sources, from: padded, step, result, height, width };
        match self.block {
            WIDE => Arch::new().dispatch(Blocks::<C, 1, WIDE>(add)),
            MIDDLE => Arch::new().dispatch(Blocks::<C, 2, MIDDLE>(add)),
            _ => Arch::new().dispatch(Blocks::<C, 4, NARROW>(add)),
        }
    }

    /// Adds a summand where it is inside the tensor.
    fn add_inside(&self, result: &mut [f64], summand: Summand) {
        let (rows, columns) = (self.rows.reading, self.columns.reading);
        let inside = |axis: Reading, distance| valid_range(axis.n_out, axis.n_in, axis.stride, distance);
        let xs = inside(columns, summand.dx);
        if xs.is_empty() {
            return;
        }
        let first = ((xs.start * columns.stride) as i64 + summand.dx) as usize;
        for y in inside(rows, summand.dy) {
            let row = summand.channel * rows.n_in + ((y * rows.stride) as i64 + summand.dy) as usize;
            let from = &self.tensor[row * columns.n_in..][first..columns.n_in];
            let result = &mut result[y * columns.n_out..][xs.clone()];
            add_apart(&[(0, summand.weight)], from, columns.stride, result);
        }
    }
}

/// Whether two channels read the same numbers.
fn are_alike(a: &[Summand], b: &[Summand]) -> bool {
    let place = |summand: &Summand| (summand.channel, summand.dy, summand.dx);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| place(a) == place(b))
}

/// Channels of the result and what is added to them.
struct Add<'a> {
    /// Where the first number of the result reads every summand, and the factor of every channel.
    sources: &'a [(usize, [f64; TOGETHER])],
    from: &'a [f64],
    /// Numbers from what a row reads to what the next one reads.
    step: usize,
    result: &'a mut [f64],
    /// Rows of a channel.
    height: usize,
    /// Numbers of a row.
    width: usize,
}

/// The addition to so many channels in blocks of so many rows and columns, which are as many numbers as registers hold.
struct Blocks<'a, const C: usize, const ROWS: usize, const N: usize>(Add<'a>);

impl<const C: usize, const ROWS: usize, const N: usize> WithSimd for Blocks<'_, C, ROWS, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut add = self.0;
        let whole = add.height - add.height % ROWS;
        // Narrow vectors have too few registers for several channels.
        if C == 1 || N / S::F64_LANES <= 4 {
            (0..whole).step_by(ROWS).for_each(|y| add.add_rows::<S, C, ROWS, N>(simd, 0, y));
            (whole..add.height).for_each(|y| add.add_rows::<S, C, 1, N>(simd, 0, y));
            return;
        }
        for channel in 0..C {
            (0..whole).step_by(ROWS).for_each(|y| add.add_rows::<S, 1, ROWS, N>(simd, channel, y));
            (whole..add.height).for_each(|y| add.add_rows::<S, 1, 1, N>(simd, channel, y));
        }
    }
}

impl Add<'_> {
    /// Adds all sources to so many rows of so many channels, from the first of both.
    #[inline(always)]
    fn add_rows<S: Simd, const C: usize, const ROWS: usize, const N: usize>(
        &mut self,
        simd: S,
        channel: usize,
        y: usize,
    ) {
        let Self { sources, step, height, width, .. } = *self;
        let from = &self.from[(y * step).min(self.from.len())..];
        let n_vectors = N / S::F64_LANES;
        let row = |c: usize, r: usize| ((channel + c) * height + y + r) * width;
        for x in (0..width).step_by(N) {
            let n = N.min(width - x);
            let mut block = [[[0.0; N]; ROWS]; C];
            // There are as many vectors as numbers where a vector is one number.
            let mut sums = [[[simd.splat_f64s(0.0); N]; ROWS]; C];
            for c in 0..C {
                for r in 0..ROWS {
                    block[c][r][..n].copy_from_slice(&self.result[row(c, r) + x..][..n]);
                    let (vectors, _) = S::as_simd_f64s(&block[c][r]);
                    (0..n_vectors).for_each(|i| sums[c][r][i] = vectors[i]);
                }
            }
            for (at, weights) in sources {
                for r in 0..ROWS {
                    let numbers: &[f64; N] =
                        from[at + x + r * step..].first_chunk().expect("rows are padded to whole blocks");
                    let (vectors, _) = S::as_simd_f64s(numbers);
                    for c in 0..C {
                        let weight = simd.splat_f64s(weights[(channel + c) % TOGETHER]);
                        for i in 0..n_vectors {
                            sums[c][r][i] = simd.add_f64s(sums[c][r][i], simd.mul_f64s(weight, vectors[i]));
                        }
                    }
                }
            }
            for c in 0..C {
                for r in 0..ROWS {
                    let (vectors, _) = S::as_mut_simd_f64s(&mut block[c][r]);
                    (0..n_vectors).for_each(|i| vectors[i] = sums[c][r][i]);
                    self.result[row(c, r) + x..][..n].copy_from_slice(&block[c][r][..n]);
                }
            }
        }
    }
}

fn add_apart(sources: &[(usize, f64)], from: &[f64], stride: usize, row: &mut [f64]) {
    for &(at, weight) in sources {
        row.iter_mut().zip(from[at..].iter().step_by(stride)).for_each(|(sum, x)| *sum += weight * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, summand by summand.
    fn check(extent: [usize; 2], stride: [usize; 2], result: [usize; 2], distances: &[[i64; 2]]) {
        let n_channels = 2;
        let tensor: Vec<f64> =
            (0..n_channels * extent[0] * extent[1]).map(|i| 1.0 / (i as f64 + 3.0) - 0.1).collect();
        let summands: Vec<Summand> = (distances.iter().enumerate())
            .map(|(i, &[dy, dx])| Summand { channel: i % 2, dy, dx, weight: 0.7 - i as f64 / 3.0 })
            .collect();
        let mut expected: Vec<f64> = (0..result[0] * result[1]).map(|i| i as f64 / 7.0).collect();
        let mut found = expected.clone();
        for (at, sum) in expected.iter_mut().enumerate() {
            let [y, x] = [at / result[1], at % result[1]].map(|n| n as i64);
            for summand in &summands {
                let row = y * stride[0] as i64 + summand.dy;
                let column = x * stride[1] as i64 + summand.dx;
                if (0..extent[0] as i64).contains(&row) && (0..extent[1] as i64).contains(&column) {
                    let row = summand.channel * extent[0] + row as usize;
                    *sum += summand.weight * tensor[row * extent[1] + column as usize];
                }
            }
        }
        let reading = |axis: usize| Reading {
            n_in: extent[axis],
            n_out: result[axis],
            stride: stride[axis],
            reach: [-1, 1]
                .map(|sign| sign * distances.iter().map(|distance| sign * distance[axis]).max().unwrap_or(0)),
        };
        Rows::new(&tensor, reading(0), reading(1)).add_to(&mut found, &summands);
        let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&expected), "{extent:?} by {stride:?} to {result:?}");
    }

    #[test]
    fn sums_have_the_bits_of_the_definition() {
        let kernel: Vec<[i64; 2]> = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| [dy, dx])).collect();
        let far: Vec<[i64; 2]> = (-9..=9).flat_map(|dy| (-40..=40).map(move |dx| [dy, dx])).collect();
        for distances in [&kernel, &far] {
            for width in [1, 3, 7, 8, 9, 16, 21, 32, 64] {
                check([5, width], [1, 1], [5, width], distances);
                check([5, width], [2, 2], [3, width.div_ceil(2)], distances);
                check([5, width], [1, 3], [4, width], distances);
                check([4, 6], [1, 1], [7, width], distances);
            }
        }
    }

    #[test]
    fn tensors_are_not_padded_with_more_than_a_few_zeros() {
        let kernel = [[-1, 0], [0, 0], [1, -1]];
        check([4, 6], [1 << 14, 1 << 16], [3, 5], &kernel);
        check([1, 1], [1, 1], [1, 1 << 10], &[[0, -(1 << 9)], [0, 0]]);
        let leap = |n_out: usize| Reading { n_in: 4, n_out, stride: 1 << 16, reach: [-(1 << 16), 1 << 32] };
        let rows = Rows::new(&[1.0; 16], leap(1 << 12), leap(1 << 12));
        assert!(rows.padded.is_none());
    }
}

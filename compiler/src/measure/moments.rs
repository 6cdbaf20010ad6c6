//! How one evaluation answers to noise: sizes of the values and gains of errors in them.

use std::collections::BTreeMap;

use fhe_bytecode::noise::Row;
use fhec_ir::MemberIdx;

use super::rows::{Key, ReadRows};
use crate::lower::eval::{self, Trace};
use crate::lower::{Circuit, ValueId};

/// Seeds whose gradients are held at a time.
const TOGETHER: usize = 12;

/// Sizes and gains of every value, for one result and input or averaged over some.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// Variance of a result per variance of the value.
    pub gain: Vec<f64>,
    /// Mean square.
    pub energy: Vec<f64>,
    /// For every summand the sums over its rows, each times what noise in its number does to a result.
    rows: BTreeMap<Key, Row>,
    /// The share of every channel in the gain, summed over its numbers.
    channels: Vec<Vec<f64>>,
    /// For every summand the squared weights of a row, whatever results depend on.
    weights: BTreeMap<Key, f64>,
}

impl Moments {
    /// The mean squared weights of the rows of a summand: what noise in its source becomes.
    #[must_use]
    pub fn weights(&self, value: ValueId, source: ValueId, in_place: bool) -> f64 {
        self.weights.get(&(value, source, in_place)).copied().unwrap_or(0.0)
    }

    /// The row that a result depends on: the mean over those of a summand, weighted by what noise in them does to the
    /// result. Nothing where no noise does anything.
    #[must_use]
    pub fn row(&self, value: ValueId, source: ValueId, in_place: bool) -> Option<Row> {
        let gain = self.gain[value.index()];
        let sum = self.rows.get(&(value, source, in_place)).filter(|_| gain > 0.0)?;
        Some(scaled(*sum, gain.recip()))
    }

    /// What noise in every channel of a value does to a result.
    #[must_use]
    pub fn channels(&self, value: ValueId) -> &[f64] {
        &self.channels[value.index()]
    }

    /// The moments of every seed times the results of an evaluation.
    pub(super) fn of_each(
        circuit: &Circuit,
        trace: &Trace,
        read: &ReadRows<'_>,
        seeds: &[Vec<f64>],
        member: MemberIdx,
    ) -> Vec<Self> {
        let energy = energies(trace);
        let together = |seeds| Self::of_some(circuit, trace, (read, &energy), seeds, member);
        seeds.chunks(TOGETHER).flat_map(together).collect()
    }

    fn of_some(
        circuit: &Circuit,
        trace: &Trace,
        (read, energy): (&ReadRows<'_>, &[f64]),
        seeds: &[Vec<f64>],
        member: MemberIdx,
    ) -> Vec<Self> {
        let grads = eval::gradients(circuit, trace, seeds, member);
        let acting = read.acting(&grads);
        let of_seed = |(seed, rows): (usize, BTreeMap<Key, Row>)| {
            let of_channels = |id: ValueId| {
                let n = circuit.value(id).shape.c;
                let grads = &grads[id.index()][seed];
                squares(grads.chunks((grads.len() / n.max(1)).max(1)))
            };
            let channels = circuit.ids().map(of_channels).collect();
            let gain = squares(grads.iter().map(|of_value| &of_value[seed][..]));
            Self { gain, energy: energy.to_vec(), rows, channels, weights: read.weights() }
        };
        acting.into_iter().enumerate().map(of_seed).collect()
    }

    /// The mean of some moments of one circuit.
    pub(super) fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let n = all.clone().count().max(1) as f64;
        let mut mean = all.clone().next().cloned().unwrap_or_default();
        for (v, gain) in mean.gain.iter_mut().enumerate() {
            *gain = all.clone().map(|m| m.gain[v]).sum::<f64>() / n;
        }
        for (v, energy) in mean.energy.iter_mut().enumerate() {
            *energy = all.clone().map(|m| m.energy[v]).sum::<f64>() / n;
        }
        for (v, channels) in mean.channels.iter_mut().enumerate() {
            for (c, gain) in channels.iter_mut().enumerate() {
                *gain = all.clone().map(|m| m.channels[v][c]).sum::<f64>() / n;
            }
        }
        for (key, row) in &mut mean.rows {
            let sum = all.clone().filter_map(|m| m.rows.get(key)).copied().fold(Row::default(), added);
            *row = scaled(sum, n.recip());
        }
        mean
    }

    /// All gains times a factor.
    pub(super) fn amplified(mut self, factor: f64) -> Self {
        self.gain.iter_mut().for_each(|gain| *gain *= factor);
        self.rows.values_mut().for_each(|row| *row = scaled(*row, factor));
        self
    }

    /// A merged result sums over the members, whose noise is independent; its own noise arises once, and its rows are those
    /// of all members.
    pub(super) fn merged(self, circuit: &Circuit) -> Self {
        let n = circuit.n_members as f64;
        let mut merged = self.amplified(n);
        for output in &circuit.outputs {
            merged.gain[output.index()] /= n;
            merged.energy[output.index()] *= n * n;
        }
        merged
    }
}

pub(super) fn added(a: Row, b: Row) -> Row {
    Row {
        weight_energy: a.weight_energy + b.weight_energy,
        shared_energy: a.shared_energy + b.shared_energy,
        reads: a.reads + b.reads,
        squares: a.squares + b.squares,
    }
}

fn scaled(row: Row, factor: f64) -> Row {
    Row {
        weight_energy: row.weight_energy * factor,
        shared_energy: row.shared_energy * factor,
        reads: row.reads * factor,
        squares: row.squares * factor,
    }
}

/// Mean squares of all values.
pub(super) fn energies(trace: &Trace) -> Vec<f64> {
    let sums = squares(trace.values.iter().map(Vec::as_slice));
    sums.into_iter().zip(&trace.values).map(|(sum, v)| sum / v.len().max(1) as f64).collect()
}

/// Sums of the squares of some vectors. A sum waits for its last addition, so four of equal length take turns.
fn squares<'a>(vectors: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let all: Vec<&[f64]> = vectors.collect();
    let mut sums = Vec::with_capacity(all.len());
    for some in all.chunks(4) {
        match *some {
            [a, b, c, d] if [b, c, d].iter().all(|other| other.len() == a.len()) => {
                let mut four = [0.0; 4];
                for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
                    four[0] += a * a;
                    four[1] += b * b;
                    four[2] += c * c;
                    four[3] += d * d;
                }
                sums.extend(four);
            }
            _ => sums.extend(some.iter().map(|v| v.iter().map(|x| x * x).sum::<f64>())),
        }
    }
    sums
}

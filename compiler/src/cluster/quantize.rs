//! Weights to codebooks and indices.

use fhe_bytecode::Codebook;
use fhec_ir::Tensor;
use rayon::prelude::*;

use super::kmeans::kmeans;
use super::{ClusterOptions, Method};
use crate::lower::{Codes, Constant};

/// A clustered weight.
pub(super) struct Quantized {
    /// The entries that stand for the weights, per member.
    pub(super) members: Vec<Tensor>,
    /// The same as codebooks and indices.
    pub(super) codes: Codes,
    /// Norm of the difference over the norm of the weights.
    pub(super) relative_error: f64,
}

impl Quantized {
    pub(super) fn into_constant(self) -> Constant {
        Constant::new(self.members).with_codes(self.codes)
    }
}

/// Clusters weights `[out, in, rows, columns]`, each with one tensor per member or one for all.
pub(super) fn quantize(weights: &[&[Tensor]], options: ClusterOptions) -> Vec<Quantized> {
    let k = options.centroids.max(1) as usize;
    match options.method {
        Method::Full => {
            // A codebook for all needs rows of one length: what members share is repeated for each.
            let dim = weights.iter().map(|members| members.len()).max().unwrap_or(1);
            let tables: Vec<Table> = weights.iter().map(|members| Table::new(members, dim)).collect();
            let rows: Vec<&[f32]> = tables.iter().flat_map(Table::rows).collect();
            let (book, mut indices) = codebook(&rows, dim, k, options.seed);
            let parts: Vec<Vec<u16>> = tables
                .iter()
                .map(|table| {
                    let rest = indices.split_off(table.n_rows());
                    std::mem::replace(&mut indices, rest)
                })
                .collect();
            let finish = |(table, indices): (Table, Vec<u16>)| table.finish(vec![book.clone()], indices);
            tables.into_iter().zip(parts).map(finish).collect()
        }
        Method::Slice => weights
            .par_iter()
            .enumerate()
            .map(|(layer, members)| {
                let table = Table::new(members, members.len());
                let columns = table.columns();
                let slices: Vec<(Codebook, Vec<u16>)> = (0..columns)
                    .into_par_iter()
                    .map(|column| {
                        let rows: Vec<&[f32]> = table.rows().skip(column).step_by(columns).collect();
                        let seed = options.seed.wrapping_add((layer * columns + column) as u64);
                        codebook(&rows, table.dim, k, seed)
                    })
                    .collect();
                let indices = (0..table.n_rows()).map(|row| slices[row % columns].1[row / columns]).collect();
                table.finish(slices.into_iter().map(|(book, _)| book).collect(), indices)
            })
            .collect(),
    }
}

/// A codebook of at most `k` centroids for some rows, and their indices. Zeros get an entry of their own beyond that.
fn codebook(rows: &[&[f32]], dim: usize, k: usize, seed: u64) -> (Codebook, Vec<u16>) {
    let is_zero = |row: &[f32]| row.iter().all(|&v| v == 0.0);
    let points: Vec<f32> =
        rows.iter().filter(|row| !is_zero(row)).flat_map(|row| row.iter().copied()).collect();
    let clusters = kmeans(&points, dim, k, seed);
    let mut values = clusters.centroids;
    let zero = (values.len() / dim) as u16;
    if points.len() < rows.len() * dim {
        values.extend(std::iter::repeat_n(0.0, dim));
    }
    let mut next = clusters.indices.into_iter();
    let index = |row: &&[f32]| if is_zero(row) { zero } else { next.next().unwrap_or(zero) };
    let indices = rows.iter().map(index).collect();
    (Codebook { members: dim as u32, values }, indices)
}

/// Weights of all members side by side, rounded as a program stores them.
struct Table {
    dims: Vec<usize>,
    dim: usize,
    values: Vec<f32>,
}

impl Table {
    fn new(members: &[Tensor], dim: usize) -> Self {
        let dims = members[0].dims().to_vec();
        let of = |member: usize| -> Vec<f32> {
            members.get(member).unwrap_or(&members[0]).iter().map(|w| w as f32).collect()
        };
        let members: Vec<Vec<f32>> = (0..dim).map(of).collect();
        let n = members[0].len();
        let values = (0..n).flat_map(|i| members.iter().map(move |m| m[i])).collect();
        Self { dims, dim, values }
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }

    fn n_rows(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Kernel columns: the last axis.
    fn columns(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    fn finish(self, codebooks: Vec<Codebook>, indices: Vec<u16>) -> Quantized {
        let entry = |row: usize| {
            let book = &codebooks[row % codebooks.len()];
            &book.values[usize::from(indices[row]) * self.dim..][..self.dim]
        };
        let (mut lost, mut total) = (0.0, 0.0);
        for (row, weights) in self.rows().enumerate() {
            for (&weight, &value) in weights.iter().zip(entry(row)) {
                lost += (f64::from(weight) - f64::from(value)).powi(2);
                total += f64::from(weight).powi(2);
            }
        }
        let member = |m: usize| {
            let values: Vec<f32> = (0..self.n_rows()).map(|row| entry(row)[m]).collect();
            Tensor::from_f32(self.dims.clone(), values).expect("one value per weight")
        };
        let members = (0..self.dim).map(member).collect();
        let relative_error = if total > 0.0 { (lost / total).sqrt() } else { 0.0 };
        Quantized { members, codes: Codes { codebooks, indices }, relative_error }
    }
}

//! Linear maps whose diagonals are shared (paper §5.2): y_o = Σ_p d_p · Σ rot(x_i, b) over the terms that share d_p.
//!
//! Without giant steps a map is one list of rotated inputs, and every output a list of diagonals, each with the inputs
//! it multiplies. Inputs are added first and multiplied once. The work goes tower by tower and, inside a tower, piece by
//! piece of the transform: a piece of all rotated inputs is computed from the digits, used by every output, and
//! forgotten, so it never leaves the cache. An automorphism maps aligned pieces to aligned pieces, which makes that possible.

mod job;
mod piece;

use std::collections::HashMap;

use fhe_bytecode::{Level, Scale};
use fhe_ring::parallel::*;

use super::inner::check_basis;
use super::{Diagonal, LinearPlan, PlaintextSource};
use crate::key_switch::{Digits, Halves, decompose};
use crate::{Ciphertext, CkksError, Context, GaloisKeys, Rotation};
use fhe_ring::shared::{STRIP, SharedKernel};
use fhe_ring::{Buffer, Ring};
use job::Job;
use piece::{Input, PieceWork, Scratch, Spare, Step};

/// Bytes of a piece of all rotated inputs; more would leave the second cache.
const ROWS_BYTES: usize = 1 << 19;

/// Coefficients of a piece, at least and at most.
const PIECE: [usize; 2] = [64, 512];

/// Whether the kernels for this exist for all primes of a level.
pub(super) fn is_supported(context: &Context, level: Level) -> bool {
    let (ring, basis) = (context.ring(), context.key_basis(level));
    ring.n() >= STRIP && (0..basis.len()).all(|i| ring.tower(basis, i).shared.is_some())
}

/// The sums of a plan without giant steps, one per group, and the scale of the products.
pub(super) fn inner_sums(
    context: &Context,
    level: Level,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &GaloisKeys,
) -> Result<(Vec<Halves>, Scale), CkksError> {
    let (ring, basis) = (context.ring(), context.key_basis(level));
    let n = ring.n();
    let job = Job::new(plan);
    let diagonals =
        job.diagonals.par_iter().map(|&d| source.diagonal(d)).collect::<Result<Vec<Diagonal>, _>>()?;
    let scale = common_scale(context, level, inputs, plan, &job, &diagonals)?;
    let digits: Vec<Option<Digits<'_>>> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| job.rotates(i).then(|| decompose(context, level, &input.polys[1])))
        .collect();
    let step = |&rotation: &Rotation| {
        let automorphism = context.automorphism(rotation.galois_element(n));
        Ok((keys.get(rotation, level)?, automorphism))
    };
    let steps = job.steps.iter().map(step).collect::<Result<Vec<_>, CkksError>>()?;

    let mut sums: Vec<Halves> = plan.groups.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
    let piece = piece_size(n, job.rows.len());
    let n_pieces = n / piece;
    // For every piece of every tower, where its results go: both halves of every sum.
    let mut targets: Vec<Vec<&mut [u64]>> = (0..basis.len() * n_pieces).map(|_| Vec::new()).collect();
    for half in sums.iter_mut().flatten() {
        let pieces = half.data_mut().chunks_exact_mut(piece);
        targets.iter_mut().zip(pieces).for_each(|(target, piece)| target.push(piece));
    }
    let n_digits = context.params().n_digits(level);
    let mut buffers: Vec<Buffer> = inputs.iter().map(|_| Buffer::unset((1 + n_digits) * n)).collect();
    let mut words = Words::new(&diagonals);
    let spare = Spare::default();
    for (i, targets) in targets.chunks_exact_mut(n_pieces).enumerate() {
        let tower = ring.tower(basis, i);
        let kernel = tower.shared.as_ref().ok_or(CkksError::Plan("no kernel for shared diagonals"))?;
        let index = ring.tower_index(basis, i);
        let plains = words.of_tower(&diagonals, ring, index, kernel);
        let inputs: Vec<Input<'_>> = inputs
            .par_iter()
            .zip(&digits)
            .zip(&mut buffers)
            .map(|((ciphertext, digits), buffer)| {
                let (first, rest) = buffer.split_at_mut(n);
                let is_tower = i < basis.n_q();
                if is_tower {
                    first.copy_from_slice(ciphertext.polys[0].tower(i));
                    tower.kernels.mul_scalar_assign(first, context.p(index));
                }
                let digits =
                    digits.as_ref().map_or_else(Vec::new, |digits| digits.transform(context, i, rest));
                Input { ciphertext, first: is_tower.then_some(first), digits }
            })
            .collect();
        let steps: Vec<Step<'_>> = steps
            .iter()
            .map(|(key, automorphism)| Step {
                keys: (0..n_digits).map(|digit| key.tower(context, digit, level, i)).collect(),
                automorphism,
            })
            .collect();
        let work = PieceWork {
            context,
            i,
            index,
            tower,
            kernel,
            job: &job,
            inputs: &inputs,
            steps: &steps,
            plains: &plains,
            n_sums: plan.groups.len(),
            size: piece,
        };
        targets.par_iter_mut().enumerate().for_each(|(at, target)| {
            let mut scratch = spare.take().unwrap_or_else(|| Scratch::new(&work));
            work.fill(at, &mut scratch);
            work.sum(&mut scratch, target);
            spare.put(scratch);
        });
    }
    Ok((sums, scale))
}

/// Coefficients of a piece: the largest power of two for which both halves of all rows fit.
fn piece_size(n: usize, n_rows: usize) -> usize {
    let fitting = ROWS_BYTES / (2 * size_of::<u64>() * n_rows.max(1));
    let power = 1 << fitting.max(1).ilog2();
    power.clamp(PIECE[0], PIECE[1]).min(n)
}

fn common_scale(
    context: &Context,
    level: Level,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    job: &Job,
    diagonals: &[Diagonal],
) -> Result<Scale, CkksError> {
    let scales: HashMap<usize, Scale> =
        job.diagonals.iter().zip(diagonals).map(|(&name, diagonal)| (name, diagonal.scale())).collect();
    let mut scale: Option<Scale> = None;
    for term in plan.groups.iter().flat_map(|group| &group.terms) {
        let product = inputs[term.input].scale.times(scales[&term.diagonal]);
        let expected = *scale.get_or_insert(product);
        if !expected.agrees(product) {
            return Err(CkksError::ScaleMismatch { left: expected, right: product });
        }
    }
    diagonals.iter().try_for_each(|diagonal| check_basis(context, level, diagonal))?;
    scale.ok_or(CkksError::Plan("no term"))
}

/// The residues of all diagonals in one tower, one of each run of equal ones, as strips hold them.
struct Words {
    /// Where each diagonal begins, and the end of the last.
    places: Vec<usize>,
    /// Used for one tower after the other: fresh memory costs as many page faults as it has pages.
    words: Buffer,
}

impl Words {
    fn new(diagonals: &[Diagonal]) -> Self {
        let mut places = vec![0];
        for diagonal in diagonals {
            let len = match diagonal {
                Diagonal::Encoding(encoding) => encoding.coeffs.len(),
                Diagonal::Plaintext(plain) => plain.poly.tower(0).len(),
            };
            places.push(places[places.len() - 1] + len);
        }
        let words = Buffer::unset(places[places.len() - 1]);
        Self { places, words }
    }

    /// Fills in the tower with index `index`.
    fn of_tower(
        &mut self,
        diagonals: &[Diagonal],
        ring: &Ring,
        index: usize,
        kernel: &SharedKernel,
    ) -> Vec<&[u64]> {
        let mut rest: &mut [u64] = &mut self.words;
        let mut parts = Vec::with_capacity(diagonals.len());
        for ends in self.places.windows(2) {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(ends[1] - ends[0]);
            parts.push(part);
            rest = after;
        }
        diagonals.par_iter().zip(parts).for_each(|(diagonal, out)| {
            match diagonal {
                Diagonal::Encoding(encoding) => encoding.transform_tower(&ring.towers()[index], out),
                Diagonal::Plaintext(plain) => out.copy_from_slice(ring.residues(&plain.poly, index)),
            }
            kernel.to_words(out);
        });
        self.places.windows(2).map(|ends| &self.words[ends[0]..ends[1]]).collect()
    }
}

//! Linear maps whose diagonals are shared (paper §5.2): y_o = Σ_p d_p · Σ rot(x_i, b) over the terms that share d_p.
//!
//! Without giant steps a map is one list of rotated inputs, and every output a list of diagonals, each with the inputs
//! it multiplies. Inputs are added first and multiplied once. The work goes tower by tower and, inside a tower, piece by
//! piece of the transform: a piece of all rotated inputs is computed from the digits, used by every output, and
//! forgotten, so it never leaves the cache. An automorphism maps aligned pieces to aligned pieces, which makes that possible.

mod piece;

use fhe_bytecode::{Level, Scale};
use rayon::prelude::*;

use super::inner::check_basis;
use super::{Diagonal, LinearPlan, LinearTerm, PlaintextSource};
use crate::ckks::key_switch::{Digits, Halves, decompose};
use crate::ckks::{Ciphertext, CkksError, Context, Rotation, RotationKeys};
use crate::ring::shared::{STRIP, SharedEntry, SharedKernel, SharedList};
use crate::ring::{Basis, Buffer, Tower};
use piece::{PieceWork, Row, Scratch, Spare, Step};

/// Coefficients of a piece.
const PIECE: usize = 512;

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
    keys: &RotationKeys,
) -> Result<(Vec<Halves>, Scale), CkksError> {
    let (ring, basis) = (context.ring(), context.key_basis(level));
    let job = Job::new(plan);
    let diagonals =
        job.diagonals.par_iter().map(|&d| source.diagonal(d)).collect::<Result<Vec<Diagonal>, _>>()?;
    let scale = common_scale(context, level, inputs, plan, &job, &diagonals)?;
    let is_rotated = |input: usize| job.rows.iter().any(|row| row.0 == input && !row.1.is_zero());
    let digits: Vec<Option<Digits<'_>>> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| is_rotated(i).then(|| decompose(context, level, &input.polys[1])))
        .collect();
    let steps = steps(context, level, &job, keys)?;
    let row = |&(input, rotation): &(usize, Rotation)| Row {
        number: input,
        input: &inputs[input],
        step: steps.iter().position(|step| step.rotation == rotation),
    };
    let rows: Vec<Row<'_>> = job.rows.iter().map(row).collect();

    let mut sums: Vec<Halves> = plan.groups.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
    let piece = PIECE.min(ring.n());
    let n_pieces = ring.n() / piece;
    // For every piece of every tower, where its results go: both halves of every sum.
    let mut targets: Vec<Vec<&mut [u64]>> = (0..basis.len() * n_pieces).map(|_| Vec::new()).collect();
    for half in sums.iter_mut().flatten() {
        let pieces = half.data_mut().chunks_exact_mut(piece);
        targets.iter_mut().zip(pieces).for_each(|(target, piece)| target.push(piece));
    }
    let n_digits = context.params().n_digits(level);
    let mut transforms: Vec<Buffer> = inputs.iter().map(|_| Buffer::unset(n_digits * ring.n())).collect();
    let spare = Spare::default();
    for (i, targets) in targets.chunks_exact_mut(n_pieces).enumerate() {
        let tower = ring.tower(basis, i);
        let kernel = tower.shared.as_ref().ok_or(CkksError::Plan("no kernel for shared diagonals"))?;
        let plains: Vec<Vec<u64>> =
            diagonals.par_iter().map(|d| balanced(d, basis, i, tower, kernel)).collect();
        let digits: Vec<Vec<(&[u64], bool)>> = digits
            .par_iter()
            .zip(&mut transforms)
            .map(|(digits, buffer)| {
                digits.as_ref().map_or_else(Vec::new, |digits| digits.transform(context, i, buffer))
            })
            .collect();
        let work = PieceWork {
            context,
            level,
            i,
            tower,
            kernel,
            rows: &rows,
            steps: &steps,
            plains: &plains,
            digits: &digits,
            size: piece,
            list: SharedList::diagonal(n_digits),
        };
        targets.par_iter_mut().enumerate().for_each(|(at, target)| {
            let mut scratch = spare.take().unwrap_or_else(|| Scratch::new(&work));
            work.fill(at, &mut scratch);
            work.sum(&job.lists, &scratch, target);
            spare.put(scratch);
        });
    }
    Ok((sums, scale))
}

/// A plan as rows and lists: what is added, and what each sum of rows is multiplied by.
struct Job {
    /// Distinct rotated inputs, in the order of first use.
    rows: Vec<(usize, Rotation)>,
    /// Distinct diagonals, ascending.
    diagonals: Vec<usize>,
    /// One list per group; rows and diagonals by position.
    lists: Vec<SharedList>,
}

impl Job {
    fn new(plan: &LinearPlan) -> Self {
        let terms = || plan.groups.iter().flat_map(|group| &group.terms);
        let mut rows: Vec<(usize, Rotation)> = terms().map(|term| (term.input, term.baby)).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut diagonals: Vec<usize> = terms().map(|term| term.diagonal).collect();
        diagonals.sort_unstable();
        diagonals.dedup();
        let list = |terms: &[LinearTerm]| {
            let place = |term: &LinearTerm| {
                let row = rows.binary_search(&(term.input, term.baby)).expect("every row is listed");
                let plain = diagonals.binary_search(&term.diagonal).expect("every diagonal is listed");
                (plain as u32, row as u32)
            };
            let mut pairs: Vec<(u32, u32)> = terms.iter().map(place).collect();
            pairs.sort_unstable();
            let mut list = SharedList::default();
            for same in pairs.chunk_by(|a, b| a.0 == b.0) {
                let start = list.rows.len() as u32;
                list.rows.extend(same.iter().map(|pair| pair.1));
                list.entries.push(SharedEntry { plain: same[0].0, start, end: list.rows.len() as u32 });
            }
            list
        };
        let lists = plan.groups.iter().map(|group| list(&group.terms)).collect();
        Self { rows, diagonals, lists }
    }
}

fn common_scale(
    context: &Context,
    level: Level,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    job: &Job,
    diagonals: &[Diagonal],
) -> Result<Scale, CkksError> {
    let mut scale: Option<Scale> = None;
    for term in plan.groups.iter().flat_map(|group| &group.terms) {
        let at = job.diagonals.binary_search(&term.diagonal).expect("every diagonal is listed");
        let product = inputs[term.input].scale.times(diagonals[at].scale());
        let expected = *scale.get_or_insert(product);
        if !expected.agrees(product) {
            return Err(CkksError::ScaleMismatch { left: expected, right: product });
        }
    }
    diagonals.iter().try_for_each(|diagonal| check_basis(context, level, diagonal))?;
    scale.ok_or(CkksError::Plan("no term"))
}

/// The residues of a diagonal in tower `i` of `basis`, one of each run of equal ones, balanced.
fn balanced(diagonal: &Diagonal, basis: Basis, i: usize, tower: &Tower, kernel: &SharedKernel) -> Vec<u64> {
    let balance = |residues: &[u64]| residues.iter().map(|&x| kernel.balanced(x)).collect();
    match diagonal {
        Diagonal::Encoding(encoding) => {
            let mut residues = vec![0; encoding.coeffs.len()];
            encoding.transform_tower(tower, &mut residues);
            balance(&residues)
        }
        Diagonal::Plaintext(plain) => {
            let above = plain.basis().n_q - basis.n_q;
            balance(plain.poly.tower(if i < basis.n_q { i } else { i + above }))
        }
    }
}

/// The rotations other than zero, with their keys and permutations.
fn steps<'a>(
    context: &Context,
    level: Level,
    job: &Job,
    keys: &'a RotationKeys,
) -> Result<Vec<Step<'a>>, CkksError> {
    let mut rotations: Vec<Rotation> = job.rows.iter().map(|row| row.1).filter(|r| !r.is_zero()).collect();
    rotations.sort_unstable();
    rotations.dedup();
    let step = |rotation: Rotation| {
        let automorphism = context.automorphism(rotation.galois_element(context.ring().n()));
        Ok(Step { rotation, key: keys.get(rotation, level)?, automorphism })
    };
    rotations.into_iter().map(step).collect()
}

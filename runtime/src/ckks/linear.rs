//! Linear maps between ciphertexts, by diagonals.
//!
//! y_o = Σ_g rot(Σ_(i,b) d·rot(x_i, b), g): baby steps b, giant steps g, one plaintext d per term. The babies of an
//! input share one decomposition and are kept over the key basis, multiplied by P; products are summed there.
//! Each giant step divides only its second half by P before its key switch, and each output is divided
//! once at the end (double hoisting). Costs no level; the scale is multiplied by that of the diagonals.

use std::collections::BTreeSet;
use std::sync::Arc;

use fhe_bytecode::{Level, Scale};
use rayon::prelude::*;

use super::ciphertext::{Ciphertext, Encoding, Plaintext};
use super::key_switch::{decompose, mod_down, multiply};
use super::keys::RotationKeys;
pub use super::parts::Parts;
use super::parts::take_apart;
use super::{CkksError, Context, Evaluator, Rotation};
use crate::ring::scalar::{Mode, Term};
use crate::ring::{Buffer, NttForm, Poly};

/// What to compute; rotations and diagonals only, no values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearPlan {
    /// Number of sums; as many outputs, unless the parts of a sum are two of them.
    pub n_outputs: usize,
    /// The sums inside the giant steps; several groups may serve one output.
    pub groups: Vec<LinearGroup>,
    /// What the imaginary parts of the sums are.
    pub parts: Parts,
    /// Afterwards, for each of these in order: y ← y + rot(y, fold), on every output.
    pub fold: Vec<Rotation>,
}

/// One giant step of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearGroup {
    /// Output that the group is added to.
    pub output: usize,
    /// Rotation of the sum.
    pub giant: Rotation,
    /// The summands.
    pub terms: Vec<LinearTerm>,
}

/// One product: diagonal times rotated input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearTerm {
    /// Input ciphertext.
    pub input: usize,
    /// Rotation of the input.
    pub baby: Rotation,
    /// The plaintext, by the name its source knows. It must already be rotated back by the giant step.
    pub diagonal: usize,
}

/// One diagonal as its source has it.
#[derive(Clone, Debug)]
pub enum Diagonal {
    /// Coefficients; the executor transforms them tower by tower, and keeps nothing.
    Encoding(Arc<Encoding>),
    /// Residues over the key basis of the inputs' level (or one of a higher level).
    Plaintext(Arc<Plaintext>),
}

impl Diagonal {
    fn scale(&self) -> Scale {
        match self {
            Self::Encoding(encoding) => encoding.scale(),
            Self::Plaintext(plain) => plain.scale(),
        }
    }
}

/// Gives diagonals on demand; asked from many threads, once per term.
pub trait PlaintextSource: Sync {
    /// The diagonal with this name. All diagonals of an input have one scale.
    ///
    /// # Errors
    /// When there is no such diagonal or it cannot be encoded.
    fn diagonal(&self, diagonal: usize) -> Result<Diagonal, CkksError>;
}

/// Evaluates a plan on ciphertexts of one level; the scale of an input times that of its diagonals is the same for all.
///
/// # Errors
/// When inputs disagree, the plan names an input or output that does not exist or leaves an output empty, a
/// rotation key is missing, or the source fails.
pub fn evaluate(
    evaluator: &Evaluator<'_>,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &RotationKeys,
) -> Result<Vec<Ciphertext>, CkksError> {
    let context = evaluator.context();
    let level = check(inputs, plan, keys)?;
    let (sums, scale) = inner_sums(context, level, inputs, plan, source, keys)?;
    let mut outputs = outer_sums(context, level, plan, sums, keys)?
        .into_iter()
        .map(|halves| Ciphertext {
            polys: halves.iter().map(|half| mod_down(context, level, half)).collect(),
            level,
            scale,
        })
        .collect::<Vec<_>>();
    outputs = take_apart(evaluator, outputs, plan.parts, keys)?;
    for &fold in &plan.fold {
        for output in &mut outputs {
            let rotated = evaluator.rotate(output, fold, keys)?;
            evaluator.add_assign(output, &rotated)?;
        }
    }
    Ok(outputs)
}

/// Transformed diagonals that meet one inner product; more would leave the second cache.
const BATCH: usize = 4;

/// Both halves of a ciphertext over the key basis, multiplied by P.
type Halves = [Poly<NttForm>; 2];

fn check(inputs: &[Ciphertext], plan: &LinearPlan, keys: &RotationKeys) -> Result<Level, CkksError> {
    let first = inputs.first().ok_or(CkksError::Plan("no input"))?;
    for input in inputs {
        input.check_degree(2)?;
        if input.level != first.level {
            return Err(CkksError::LevelMismatch { left: first.level, right: input.level });
        }
    }
    let mut served = vec![false; plan.n_outputs];
    for group in &plan.groups {
        *served
            .get_mut(group.output)
            .ok_or(CkksError::Plan("a group names an output that does not exist"))? = true;
        if group.terms.is_empty() {
            return Err(CkksError::Plan("a group has no terms"));
        }
        if group.terms.iter().any(|term| term.input >= inputs.len()) {
            return Err(CkksError::Plan("a term names an input that does not exist"));
        }
        for rotation in group.terms.iter().map(|term| term.baby).chain([group.giant]) {
            if !rotation.is_zero() {
                keys.get(rotation, first.level)?;
            }
        }
    }
    if served.contains(&false) {
        return Err(CkksError::Plan("an output has no terms"));
    }
    Ok(first.level)
}

/// The sums inside the giant steps, one per group, and the scale of the products.
fn inner_sums(
    context: &Context,
    level: Level,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &RotationKeys,
) -> Result<(Vec<Halves>, Scale), CkksError> {
    let basis = context.key_basis(level);
    let mut sums: Vec<Halves> =
        plan.groups.iter().map(|_| [context.ring().zero(basis), context.ring().zero(basis)]).collect();
    let mut scale: Option<Scale> = None;
    for (input, ciphertext) in inputs.iter().enumerate() {
        let terms = |group: &LinearGroup| -> Vec<LinearTerm> {
            group.terms.iter().copied().filter(|term| term.input == input).collect()
        };
        let work: Vec<(usize, Vec<LinearTerm>)> =
            plan.groups.iter().map(terms).enumerate().filter(|(_, terms)| !terms.is_empty()).collect();
        let steps: BTreeSet<Rotation> =
            work.iter().flat_map(|(_, terms)| terms).map(|term| term.baby).collect();
        let steps: Vec<Rotation> = steps.into_iter().collect();
        let babies = baby_steps(context, ciphertext, &steps, keys)?;
        for (group, terms) in work {
            let diagonals = terms
                .par_iter()
                .map(|term| source.diagonal(term.diagonal))
                .collect::<Result<Vec<Diagonal>, _>>()?;
            for diagonal in &diagonals {
                let product = ciphertext.scale.times(diagonal.scale());
                let expected = *scale.get_or_insert(product);
                if !expected.agrees(product) {
                    return Err(CkksError::ScaleMismatch { left: expected, right: product });
                }
                check_basis(context, level, diagonal)?;
            }
            let factors: Vec<&Halves> = terms
                .iter()
                .map(|term| &babies[steps.binary_search(&term.baby).expect("every baby step was computed")])
                .collect();
            multiply_accumulate(context, level, &mut sums[group], &diagonals, &factors);
        }
    }
    Ok((sums, scale.ok_or(CkksError::Plan("no term"))?))
}

fn check_basis(context: &Context, level: Level, diagonal: &Diagonal) -> Result<(), CkksError> {
    let (expected, found) = match diagonal {
        Diagonal::Encoding(_) => return Ok(()),
        Diagonal::Plaintext(plain) => (context.key_basis(level), plain.basis()),
    };
    let fits = found.n_q >= expected.n_q && found.n_special == expected.n_special;
    if fits {
        Ok(())
    } else {
        Err(CkksError::PlaintextBasis { expected: expected.len(), found: found.len() })
    }
}

/// Rotations of one input over the key basis, times P; they share one decomposition.
fn baby_steps(
    context: &Context,
    input: &Ciphertext,
    steps: &[Rotation],
    keys: &RotationKeys,
) -> Result<Vec<Halves>, CkksError> {
    let (ring, level) = (context.ring(), input.level);
    let basis = context.key_basis(level);
    let scaled = |poly: &Poly<NttForm>| {
        let mut out: Poly<NttForm> = ring.zero(basis);
        ring.for_each_tower(&mut out, |tower, i, out| {
            if i < basis.n_q {
                out.copy_from_slice(poly.tower(i));
                tower.kernels.mul_scalar_assign(out, context.p(i));
            }
        });
        out
    };
    let halves = [scaled(&input.polys[0]), scaled(&input.polys[1])];
    let digits = steps.iter().any(|step| !step.is_zero()).then(|| decompose(context, level, &input.polys[1]));
    steps
        .iter()
        .map(|&step| {
            let Some(digits) = digits.as_ref().filter(|_| !step.is_zero()) else { return Ok(halves.clone()) };
            let sums = multiply(context, digits, keys.get(step, level)?, Some(halves[0].clone()));
            Ok(rotate_halves(context, &sums, step))
        })
        .collect()
}

fn rotate_halves(context: &Context, halves: &Halves, step: Rotation) -> Halves {
    let automorphism = context.automorphism(step.galois_element(context.ring().n()));
    let evaluator = Evaluator::new(context);
    [evaluator.permute(&halves[0], &automorphism), evaluator.permute(&halves[1], &automorphism)]
}

/// sums ← sums + Σ diagonal·factor, tower by tower.
fn multiply_accumulate(
    context: &Context,
    level: Level,
    sums: &mut Halves,
    diagonals: &[Diagonal],
    factors: &[&Halves],
) {
    let ring = context.ring();
    let n = ring.n();
    let basis = context.key_basis(level);
    let [first, second] = sums;
    first
        .data_mut()
        .par_chunks_exact_mut(n)
        .zip(second.data_mut().par_chunks_exact_mut(n))
        .enumerate()
        .for_each(|(i, (first, second))| {
            let tower = ring.tower(basis, i);
            let mut scratch = Buffer::unset(BATCH * n);
            for (diagonals, factors) in diagonals.chunks(BATCH).zip(factors.chunks(BATCH)) {
                for (diagonal, out) in diagonals.iter().zip(scratch.chunks_exact_mut(n)) {
                    if let Diagonal::Encoding(encoding) = diagonal {
                        encoding.transform_tower(tower, &mut out[..encoding.coeffs.len()]);
                    }
                }
                let terms: Vec<Term<'_>> = diagonals
                    .iter()
                    .zip(scratch.chunks_exact(n))
                    .zip(factors)
                    .map(|((diagonal, scratch), factor)| Term {
                        x: match diagonal {
                            Diagonal::Encoding(encoding) => &scratch[..encoding.coeffs.len()],
                            Diagonal::Plaintext(plain) => {
                                let above = plain.basis().n_q - basis.n_q;
                                plain.poly.tower(if i < basis.n_q { i } else { i + above })
                            }
                        },
                        y: [factor[0].tower(i), factor[1].tower(i)],
                    })
                    .collect();
                tower.kernels.dot2([&mut *first, &mut *second], &terms, Mode::Add);
            }
        });
}

/// Rotates the inner sums by their giant steps and adds them up, per output.
fn outer_sums(
    context: &Context,
    level: Level,
    plan: &LinearPlan,
    sums: Vec<Halves>,
    keys: &RotationKeys,
) -> Result<Vec<Halves>, CkksError> {
    let ring = context.ring();
    let mut outputs: Vec<Option<Halves>> = vec![None; plan.n_outputs];
    for (group, [first, second]) in plan.groups.iter().zip(sums) {
        let rotated = if group.giant.is_zero() {
            [first, second]
        } else {
            let digits = decompose(context, level, &mod_down(context, level, &second));
            let switched = multiply(context, &digits, keys.get(group.giant, level)?, Some(first));
            rotate_halves(context, &switched, group.giant)
        };
        match &mut outputs[group.output] {
            Some(total) => {
                total.iter_mut().zip(&rotated).for_each(|(total, half)| ring.add_assign(total, half))
            }
            empty => *empty = Some(rotated),
        }
    }
    outputs.into_iter().map(|output| output.ok_or(CkksError::Plan("an output has no terms"))).collect()
}

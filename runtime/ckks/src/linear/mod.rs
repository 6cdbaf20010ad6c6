//! Linear maps between ciphertexts, by diagonals.
//!
//! y_o = Σ_g rot(Σ_(i,b) d·rot(x_i, b), g): baby steps b, giant steps g, one plaintext d per term. A sum comes to its giant
//! step in one rotation or in several, together with those that it meets on the way ([`Hop`]). The babies of an input share one
//! decomposition and are kept over the key basis, multiplied by P; products are summed there.
//! Each giant step divides only its second half by P before its key switch, and so do the steps after it that take complex
//! sums apart and fold replicas; each output is divided once at the end (double hoisting). Costs no level; the scale is
//! multiplied by that of the diagonals.

mod babies;
mod inner;
mod outer;
mod parts;
mod shared;

use std::sync::Arc;

use fhe_bytecode::{Level, Scale};
pub use parts::Parts;
use parts::take_apart;

use self::inner::inner_sums;
use self::outer::{add_assign, moved, outer_sums};
use super::ciphertext::{Ciphertext, Encoding, Plaintext};
use super::key_switch::{Halves, mod_down};
use super::keys::GaloisKeys;
use super::{CkksError, Context, Evaluator, Rotation};

/// What to compute; rotations and diagonals only, no values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearPlan {
    /// Number of sums; as many outputs, unless the parts of a sum are two of them.
    pub n_outputs: usize,
    /// The sums inside the giant steps; several groups may serve one output.
    pub groups: Vec<LinearGroup>,
    /// The rotations that bring every group to its output, in order.
    pub hops: Vec<Hop>,
    /// What the imaginary parts of the sums are.
    pub parts: Parts,
    /// Afterwards, for each of these in order: y ← y + rot(y, fold), on every output.
    pub fold: Vec<Rotation>,
}

impl LinearPlan {
    /// Whether terms that share a diagonal are added before they are multiplied: there are no giant steps, and
    /// diagonals serve more than two terms each.
    pub fn adds_first(&self) -> bool {
        let mut diagonals: Vec<usize> =
            self.groups.iter().flat_map(|group| group.terms.iter().map(|term| term.diagonal)).collect();
        let n_terms = diagonals.len();
        diagonals.sort_unstable();
        diagonals.dedup();
        2 * diagonals.len() < n_terms && self.groups.iter().all(|group| group.giant.is_zero())
    }
}

/// A rotation of all that has come to a giant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The giant step it has come to.
    pub from: Rotation,
    /// The one that it goes to; zero is the output.
    pub to: Rotation,
    /// The rotation between both.
    pub by: Rotation,
}

impl Hop {
    /// From a giant step to the output at once.
    pub fn direct(giant: Rotation) -> Self {
        Self { from: giant, to: Rotation::ZERO, by: giant }
    }
}

/// One giant step of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearGroup {
    /// Output that the group is added to.
    pub output: usize,
    /// Rotation of the sum, as the hops make it.
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
/// As [`evaluate_batch`].
pub fn evaluate(
    evaluator: &Evaluator<'_>,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &GaloisKeys,
) -> Result<Vec<Ciphertext>, CkksError> {
    let mut results = evaluate_batch(evaluator, &[inputs], plan, source, keys)?;
    Ok(results.pop().expect("one sample gives one result"))
}

/// Evaluates a plan on the ciphertexts of several samples, all of one level; the scale of an input times that of its diagonals
/// is the same for all. Samples share the transforms of plaintexts, and get the bits that they would get alone.
///
/// # Errors
/// When inputs disagree, the plan names an input or output that does not exist or leaves an output empty, a
/// rotation key is missing, or the source fails.
pub fn evaluate_batch(
    evaluator: &Evaluator<'_>,
    samples: &[&[Ciphertext]],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &GaloisKeys,
) -> Result<Vec<Vec<Ciphertext>>, CkksError> {
    let context = evaluator.context();
    let level = check(samples, plan, keys)?;
    let (sums, scale) = if plan.adds_first() && shared::is_supported(context, level) {
        let each =
            samples.iter().map(|inputs| shared::inner_sums(context, level, inputs, plan, source, keys));
        let (sums, scales): (Vec<_>, Vec<_>) = each.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        (sums, *scales.first().ok_or(NO_SAMPLE)?)
    } else {
        inner_sums(context, level, samples, plan, source, keys)?
    };
    let finish = |sums: Vec<Halves>| finished(context, level, scale, plan, sums, keys);
    sums.into_iter().map(finish).collect()
}

/// The outputs of one sample from its inner sums.
fn finished(
    context: &Context,
    level: Level,
    scale: Scale,
    plan: &LinearPlan,
    sums: Vec<Halves>,
    keys: &GaloisKeys,
) -> Result<Vec<Ciphertext>, CkksError> {
    let mut outputs = outer_sums(context, level, plan, sums, keys)?;
    outputs = take_apart(context, level, outputs, plan.parts, keys)?;
    for output in &mut outputs {
        for &fold in &plan.fold {
            let rotated = match fold.is_zero() {
                true => output.clone(),
                false => moved(context, level, output, fold.into(), keys)?,
            };
            add_assign(context, output, &rotated);
        }
    }
    let divided = |halves: Halves| halves.iter().map(|half| mod_down(context, level, half)).collect();
    let scale = scale.times(plan.parts.factor());
    let ciphertext = |halves: Halves| Ciphertext { polys: divided(halves), level, scale };
    Ok(outputs.into_iter().map(ciphertext).collect())
}

const NO_SAMPLE: CkksError = CkksError::Plan("no sample");

fn check(samples: &[&[Ciphertext]], plan: &LinearPlan, keys: &GaloisKeys) -> Result<Level, CkksError> {
    let inputs = *samples.first().ok_or(NO_SAMPLE)?;
    let first = inputs.first().ok_or(CkksError::Plan("no input"))?;
    for sample in samples {
        if sample.len() != inputs.len() {
            return Err(CkksError::Plan("samples have different numbers of inputs"));
        }
        for (input, like) in sample.iter().zip(inputs) {
            input.check_degree(2)?;
            if input.level != first.level {
                return Err(CkksError::LevelMismatch { left: first.level, right: input.level });
            }
            if !input.scale.agrees(like.scale) {
                return Err(CkksError::ScaleMismatch { left: like.scale, right: input.scale });
            }
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
        for rotation in group.terms.iter().map(|term| term.baby).filter(|baby| !baby.is_zero()) {
            keys.get(rotation, first.level)?;
        }
        if !group.giant.is_zero() && plan.hops.iter().all(|hop| hop.from != group.giant) {
            return Err(CkksError::Plan("a group never comes to its output"));
        }
    }
    for hop in &plan.hops {
        keys.get(hop.by, first.level)?;
    }
    if served.contains(&false) {
        return Err(CkksError::Plan("an output has no terms"));
    }
    Ok(first.level)
}

//! Lower segments: ciphertexts that go down into a smaller ring.
//!
//! A ciphertext of degree N under s becomes one under s'(Y), Y = X^k, by a key switch, and its coefficients of powers of Y alone
//! are a ciphertext of degree N/k under s': products with s'(Y) never mix powers of Y with others. Content that repeats every
//! N/(2k) slots is a polynomial in Y, so it stays what it was; slots that differ would be averaged. Where the ring stays the
//! same only the names of the towers change.

use std::sync::Arc;

use fhe_bytecode::{Level, Lower};
use fhe_ring::kernels::Instructions;
use fhe_ring::{NttForm, Poly};

use super::key_switch::{First, KeySwitch, Switch, decompose};
use super::{Ciphertext, CkksError, Context, EvaluationKeys, KeySwitchKey};

/// The tables of a segment below the first.
#[derive(Debug)]
pub struct Segment {
    context: Arc<Context>,
    entry: Option<Arc<Context>>,
}

impl Segment {
    pub(super) fn new(lower: &Lower, instructions: Instructions) -> Result<Self, CkksError> {
        let tables = |params: &fhe_bytecode::Params| Context::with_instructions(params.clone(), instructions);
        Ok(Self { context: tables(lower.params())?, entry: lower.entry().map(tables).transpose()? })
    }

    /// Of the segment itself.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Of the key that leads into its ring; none where the ring is that above.
    pub fn entry(&self) -> Option<&Context> {
        self.entry.as_deref()
    }
}

/// Brings a ciphertext that was computed in the segment of the level `from` into the segment of its own level.
///
/// # Errors
/// When a key for that is missing or too low, or the ciphertext was not relinearized.
pub fn descend(
    context: &Context,
    from: Level,
    mut a: Ciphertext,
    keys: &EvaluationKeys,
) -> Result<Ciphertext, CkksError> {
    let (first, last) = (context.params().segment(from), context.params().segment(a.level));
    for index in first + 1..=last {
        let segment = &context.lower()[index - 1];
        a = match segment.entry() {
            None => renamed(a, segment.context()),
            Some(entry) => {
                let key = keys.segment(index).and_then(|keys| keys.entry()).ok_or(CkksError::MissingEntry)?;
                let switched = switched(entry, &renamed(a, entry), key)?;
                kept(entry, segment.context(), switched)
            }
        };
    }
    Ok(a)
}

/// The ciphertext with its towers named as `context` does.
fn renamed(a: Ciphertext, context: &Context) -> Ciphertext {
    let basis = context.basis(a.level);
    Ciphertext { polys: a.polys.into_iter().map(|poly| poly.renamed(basis)).collect(), ..a }
}

/// The same under another secret.
fn switched(context: &Context, a: &Ciphertext, key: &KeySwitchKey) -> Result<Ciphertext, CkksError> {
    a.check_degree(2)?;
    key.check_level(a.level)?;
    let digits = decompose(context, a.level, &a.polys[1]);
    let switches = [Switch { key, permute: None }];
    let first = First::TimesP(&a.polys[0]);
    let switch = KeySwitch { context, digits: &digits, first, switches: &switches };
    let halves = switch.divided().pop().expect("one key gives one result");
    Ok(Ciphertext { polys: halves.into(), level: a.level, scale: a.scale })
}

/// Every k-th coefficient, in a ring of a k-th of the degree.
fn kept(from: &Context, to: &Context, a: Ciphertext) -> Ciphertext {
    let stride = from.ring().n() / to.ring().n();
    let basis = to.basis(a.level);
    let half = |poly: Poly<NttForm>| {
        let coefficients = from.ring().inverse(poly);
        let mut out = to.ring().unset(basis);
        to.ring().for_each_tower(&mut out, |_, i, out| {
            let all = coefficients.tower(i).iter().step_by(stride);
            out.iter_mut().zip(all).for_each(|(out, &x)| *out = x);
        });
        to.ring().forward(out)
    };
    Ciphertext { polys: a.polys.into_iter().map(half).collect(), ..a }
}

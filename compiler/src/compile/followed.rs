//! The deviation of the worst score of the worst input, followed through the finished program.
//!
//! A search predicts it from gains of numbers, and counts noise of copies as if it were all alike or all apart, whichever is
//! worse, layer by layer. That is for choosing; what is stated is what the program itself does with every copy. Where following
//! every score of every input takes too long, those with the largest gains are followed, as long as others may be worse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fhe_bytecode::clear::InputError;
use rayon::prelude::*;

use crate::carried::{Carried, Evaluated};
use crate::measure::Case;
use crate::pipeline::Built;
use crate::schedule::covering;

/// Products of slots and diagonals that may be spent on all scores.
const BUDGET: f64 = 4e9;
/// Numbers that may be held for every score that is followed.
const MOST_NUMBERS: usize = 1 << 23;
/// Scores that are followed between two looks at what is left.
const CHUNK: usize = 32;
/// How many times the variance that gains tell may be that of copies of their own.
const APART: f64 = 16.0;

/// The deviation of the error that the bound of a program is for; nothing where following it takes too long.
pub(super) fn deviation(built: &Built) -> Result<Option<f64>, InputError> {
    // An input of a batch is measured alone, and its scores are those of every lane.
    if built.program.batch() > 1 {
        return Ok(None);
    }
    // Large networks are measured on few scores of every input, and on means over all.
    if built.stats.cases.iter().any(|case| case.result.is_none()) {
        return Ok(None);
    }
    let carried = Carried::new(&built.program);
    if carried.numbers() > MOST_NUMBERS {
        return Ok(None);
    }
    let mut left = BUDGET / carried.work();
    let usual = worst(&carried, built, &built.stats.cases, 0.0, &mut left)?;
    let Some(usual) = usual else { return Ok(None) };
    let stray = worst(&carried, built, &built.stats.strays, usual, &mut left)?;
    Ok(stray.map(|stray| covering(usual, stray).sqrt()))
}

/// The largest variance of some cases, if that is more than a least one; nothing where there are too many to tell.
fn worst(
    carried: &Carried<'_>,
    built: &Built,
    cases: &[Case],
    least: f64,
    left: &mut f64,
) -> Result<Option<f64>, InputError> {
    let cases = ordered(built, cases);
    let mut worst = least;
    for chunk in cases.chunks(CHUNK) {
        if chunk[0].gained * APART <= worst {
            break;
        }
        *left -= chunk.len() as f64;
        if *left < 0.0 {
            return Ok(None);
        }
        // Scores of one input share its evaluation.
        let mut of_inputs: BTreeMap<*const f64, Vec<&Followed<'_>>> = BTreeMap::new();
        chunk.iter().for_each(|case| of_inputs.entry(case.input.as_ptr()).or_default().push(case));
        let of_inputs: Vec<Vec<&Followed<'_>>> = of_inputs.into_values().collect();
        let evaluated: Vec<Evaluated> =
            of_inputs.par_iter().map(|cases| carried.evaluated(cases[0].input)).collect::<Result<_, _>>()?;
        let cases = of_inputs.iter().zip(&evaluated);
        let cases: Vec<(&Followed<'_>, &Evaluated)> =
            cases.flat_map(|(cases, evaluated)| cases.iter().map(move |case| (*case, evaluated))).collect();
        let of_case =
            |(case, evaluated): &(&Followed<'_>, &Evaluated)| carried.variance(evaluated, case.result);
        let found = cases.par_iter().map(of_case).reduce(|| 0.0, f64::max);
        worst = worst.max(found);
    }
    Ok(Some(worst))
}

/// A score of an input.
struct Followed<'a> {
    input: &'a [f64],
    result: usize,
    /// Variance of its error, as far as gains tell.
    gained: f64,
}

/// The scores, those with the largest gains first. Means over several scores are no larger than the largest.
fn ordered<'a>(built: &Built, cases: &'a [Case]) -> Vec<Followed<'a>> {
    let schedule = built.schedule();
    let gained = |case: &Case| -> f64 {
        let of_value = |c: &crate::schedule::noise::Contribution| {
            let (own, mean) = (case.moments.gain[c.value.index()], built.stats.mean.gain[c.value.index()]);
            if mean > 0.0 { c.variance(&schedule.chain) * own / mean } else { 0.0 }
        };
        schedule.contributions.iter().map(of_value).sum()
    };
    // Members of an ensemble have one score together.
    let mut known: BTreeSet<(*const f64, usize)> = BTreeSet::new();
    let followed = |case: &'a Case| {
        let result = case.result?;
        let is_new = known.insert((Arc::as_ptr(&case.input).cast(), result));
        is_new.then(|| Followed { input: &case.input, result, gained: gained(case) })
    };
    let mut all: Vec<Followed<'a>> = cases.iter().filter_map(followed).collect();
    all.sort_by(|a, b| b.gained.total_cmp(&a.gained));
    all
}

//! The precision that a program needs to keep what it promises.
//!
//! Schedules predict errors to first order. Where noise meets a steep polynomial, or is as large as what it is added to, errors
//! are larger; a simulation shows that. So no program states a bound that its own simulation contradicts: one that does is
//! built again with more precision, states what was seen, or is refused.

use crate::emit::Labels;
use crate::pipeline::{BuildOptions, Built, ParamsChoice, Prepared};
use crate::predict::ERROR_DEVIATIONS;
use crate::simulate::{Simulator, Summary, Until, noisiest_layer};

use super::survey::{SelfCheck, Survey};
use super::{CompileError, Observer, Request, Stage, followed};

/// How much more time than the first program one may take whose noise changes fewer classes.
const CLASS_PREMIUM: f64 = 1.1;
/// How many times the largest simulated error a bound is at least.
const BEYOND_SIMULATED: f64 = 1.5;
/// A bit of precision has to bring an error that is beyond its bound so much nearer to it, or the prediction is what is wrong.
const NEARER: f64 = 0.8;
/// Bits of precision that are added at most.
const MOST_RAISES: usize = 16;

/// The first program, or where nobody fixed its precision the first whose errors are as predicted and whose noise leaves every
/// class of the calibration inputs as it is. Classes are worth a little time, a bound that holds whatever it takes.
pub(super) fn until_kept(
    request: &Request,
    options: &mut BuildOptions,
    prepared: &Prepared,
    labels: &Labels,
    survey: &Survey<'_>,
    observer: &mut dyn Observer,
) -> Result<(Built, SelfCheck), CompileError> {
    let is_free = request.precision.is_none() && options.params == ParamsChoice::Search;
    let keeps_classes = is_free && survey.calibration.is_real();
    let mut built = prepared.build(options, labels.clone())?;
    let affordable = CLASS_PREMIUM * built.seconds();
    if is_free {
        // A ring that is too small for the least precision is too small for more.
        options.log_n = built.schedule().params.log_n()..=*options.log_n.end();
    }
    let checked = |simulator: &Simulator<'_>, until: Until, observer: &mut dyn Observer| {
        observer.stage(Stage::Simulate);
        survey.run(simulator, until, &mut |done, of| observer.fraction(done, of))
    };
    let mut before: Option<f64> = None;
    for raises in 0.. {
        let chosen = survey.chosen(&built.program, built.schedule().headroom);
        let simulator = chosen.simulator(&built.program)?;
        let check = checked(&simulator, if keeps_classes { Until::Fault } else { Until::End }, observer)?;
        let beyond = check.summary.max_abs_error / built.bound();
        let is_contradicted = beyond > 1.0 && raises < MOST_RAISES && helped(before.replace(beyond), beyond);
        let is_changed = keeps_classes && check.summary.changed_classes > 0;
        if !is_free || !(is_changed || is_contradicted) {
            let check = if beyond > 1.0 { checked(&simulator, Until::End, observer)? } else { check };
            drop(simulator);
            return honest(built, check, survey);
        }
        let more = built.schedule().precision + 1.0;
        options.precision = more..=more;
        observer.stage(Stage::Schedule { precision: Some(more) });
        match prepared.build(options, labels.clone()) {
            Ok(better) if is_contradicted || better.seconds() <= affordable => {
                drop(simulator);
                built = better;
            }
            Err(error) if !error.is_schedule() => return Err(error.into()),
            Ok(_) | Err(_) => {
                let check = checked(&simulator, Until::End, observer)?;
                drop(simulator);
                return honest(built, check, survey);
            }
        }
    }
    unreachable!("there is a last raise")
}

/// Whether another bit of precision may bring an error that is so many times its bound below it, where one was so many times
/// its bound before.
fn helped(before: Option<f64>, beyond: f64) -> bool {
    before.is_none_or(|before| before.is_infinite() || beyond < NEARER * before)
}

/// The program with the bound that its noise asks for, beyond everything that was simulated; none where that leaves nothing of
/// the scores.
fn honest(built: Built, check: SelfCheck, survey: &Survey<'_>) -> Result<(Built, SelfCheck), CompileError> {
    let Summary { max_abs_error: error, max_abs_result: score, .. } = check.summary;
    let predicted = built.bound();
    if !is_enough(predicted, error, score) {
        let layer = noisiest_layer(&built.program, survey.calibration)?;
        return Err(CompileError::Drowned { layer, error, score });
    }
    let followed = followed::deviation(&built)?.map(|deviation| ERROR_DEVIATIONS * deviation);
    let bound = stated(followed.unwrap_or(predicted), error);
    let check = SelfCheck { undecided: survey.undecided(bound), ..check };
    Ok((Built { program: built.program.with_bound(bound), ..built }, check))
}

/// Whether errors that were simulated leave something of scores up to a size. What is as imprecise as predicted is what was asked
/// for.
fn is_enough(predicted: f64, error: f64, score: f64) -> bool {
    error <= predicted || stated(predicted, error) < score
}

/// The bound that is stated where another one is expected and errors were simulated.
fn stated(expected: f64, error: f64) -> f64 {
    expected.max(BEYOND_SIMULATED * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_added_as_long_as_it_helps() {
        assert!(helped(None, 3.0) && helped(Some(3.0), 1.5) && helped(Some(f64::INFINITY), 1e9));
        // Error and bound become smaller alike: more of that never ends.
        assert!(!helped(Some(3.0), 2.9));
    }

    #[test]
    fn bounds_are_beyond_what_was_simulated() {
        assert_eq!(stated(1.0, 0.5), 1.0);
        assert_eq!(stated(1.0, 0.8), 1.5 * 0.8);
        assert!(is_enough(1.0, 0.8, 10.0) && is_enough(1.0, 4.0, 10.0));
        assert!(!is_enough(1.0, 8.0, 10.0) && !is_enough(1.0, f64::INFINITY, 10.0));
        // Whoever asks for hardly any precision gets that.
        assert!(is_enough(20.0, 15.0, 10.0));
    }
}

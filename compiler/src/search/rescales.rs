//! Where the rescales are.

use super::placement::Front;
use crate::emit::Labels;
use crate::pipeline::{BuildError, Built, ParamsChoice};
use crate::timed::{Positions, Step};

/// How much faster than rescales where levels end rescales inside levels must be.
const INSIDE_PREMIUM: f64 = 1.05;

/// The cheapest program over the ways to place the rescales.
///
/// They follow the last multiplication and every l-th before it. A product squares the scale it finds, so a rescale before it
/// makes the levels take fewer bits for one more rounding: that may fit a smaller ring, or be faster. Levels stay as many.
pub(crate) fn cheapest(front: Front<'_>, labels: &Labels) -> Result<Built, BuildError> {
    let plain = front.timed.positions();
    let mut best = front.build_any(labels.clone());
    if front.options.params != ParamsChoice::Search {
        return best;
    }
    let mut tried = vec![plain.clone()];
    let after: [fn(Step) -> bool; 2] = [|step| step == Step::Product, |_| true];
    for is_after in after {
        let positions: Positions = plain.rescaled_before_products(is_after);
        if tried.contains(&positions) {
            continue;
        }
        let timed = front.timed.with_positions(positions.clone());
        if let Ok(built) = (Front { timed: &timed, ..front }).build_any(labels.clone())
            && best.as_ref().map_or(true, |best| {
                let ((ring, seconds), (best_ring, best_seconds)) = (built.rank(), best.rank());
                (ring, seconds * INSIDE_PREMIUM) < (best_ring, best_seconds)
            })
        {
            best = Ok(built);
        }
        tried.push(positions);
    }
    best
}

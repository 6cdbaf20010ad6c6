//! Where the rescales are.

use super::placement::Front;
use crate::emit::Labels;
use crate::pipeline::{BuildError, Built, ParamsChoice};
use crate::timed::{Positions, Step};

/// The cheapest program over the ways to place the rescales.
///
/// They follow the last multiplication and every l-th before it. A product squares the scale it finds, so a rescale before it
/// makes the levels take fewer bits for one more tower: that may fit a smaller ring. Where a level still takes more than a
/// prime, or nothing fits, a last level that is short is tried too, which costs one level and changes how all stretches end.
pub(crate) fn cheapest(front: Front<'_>, labels: &Labels) -> Result<Built, BuildError> {
    let plain = front.timed.positions();
    let after_products = |positions: &Positions| positions.rescaled_before_products(|s| s == Step::Product);
    let first = front.build_any(labels.clone());
    let wide_level = first.as_ref().ok().and_then(Built::widest_level);
    let mut tried = vec![plain.clone()];
    let mut best = first;
    let mut attempt = |positions: Positions, best: &mut Result<Built, BuildError>| {
        if tried.contains(&positions) {
            return;
        }
        if let Ok(built) = (Front { timed: &front.timed.with_positions(positions.clone()), ..front })
            .build_any(labels.clone())
            && best.as_ref().map_or(true, |best| built.rank() < best.rank())
        {
            *best = Ok(built);
        }
        tried.push(positions);
    };
    if front.options.params == ParamsChoice::Search {
        attempt(after_products(plain), &mut best);
        attempt(plain.rescaled_before_products(|_| true), &mut best);
        let is_schedule = |error: &BuildError| matches!(error, BuildError::Schedule(_));
        if best.as_ref().map_or_else(is_schedule, |built| built.widest_level().is_some()) {
            for shift in 1..plain.sublevels() {
                attempt(plain.shifted(shift), &mut best);
                attempt(after_products(&plain.shifted(shift)), &mut best);
            }
        }
    }
    best.map(|built| Built { wide_level, ..built })
}

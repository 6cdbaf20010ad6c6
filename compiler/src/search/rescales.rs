//! Where the rescales are.

use super::placement::Front;
use crate::emit::Labels;
use crate::pipeline::{BuildError, BuildOptions, Built, ParamsChoice};
use crate::timed::{Positions, Step};

/// The program with a rescale for every level, or one in a smaller ring.
///
/// Rescales follow the last multiplication and every l-th before it. A product squares the scale it finds, so a rescale
/// before it makes the levels take fewer bits for one more rounding: where that fits a smaller ring, or only that fits, levels
/// have rescales inside. They stay as many.
pub(crate) fn cheapest(front: Front<'_>, labels: &Labels) -> Result<Built, BuildError> {
    let plain = front.timed.positions();
    let mut best = front.build_any(labels.clone());
    if !matches!(front.options.params, ParamsChoice::Search | ParamsChoice::Like(_)) {
        return best;
    }
    let mut tried = vec![plain.clone()];
    let after: [fn(Step) -> bool; 2] = [|step| step == Step::Product, |_| true];
    for is_after in after {
        let positions: Positions = plain.rescaled_before_products(is_after);
        let rings = &front.options.log_n;
        let last = best.as_ref().map_or(*rings.end(), |built| built.program.params().log_n() - 1);
        if tried.contains(&positions) || last < *rings.start() {
            continue;
        }
        let options = BuildOptions { log_n: *rings.start()..=last, ..front.options.clone() };
        let timed = front.timed.with_positions(positions.clone());
        if let Ok(built) = (Front { timed: &timed, options: &options, ..front }).build_any(labels.clone()) {
            best = Ok(built);
        }
        tried.push(positions);
    }
    best
}

//! The scheduled circuit: moduli, the level and the exact scale of every value, and how each of its maps is evaluated.

use std::sync::Arc;

use fhe_bytecode::{Interval, Level, Params, Plan, Scale};

use super::chain::Chain;
use super::noise::Contribution;
use crate::layout::{Part, Placed, PlacedMap};
use crate::lower::ValueId;
use crate::measure::Extent;

/// A schedule: parameters, scales and what they are expected to do.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Bits between the largest result and the deviation of its error that were asked for.
    pub precision: f64,
    /// The checked parameters.
    pub params: Params,
    /// Scales of all positions.
    pub chain: Chain,
    /// Predicted standard deviation of the error of a result, over all results and samples.
    pub error: f64,
    /// The same for the result and the sample with the largest.
    pub worst_error: f64,
    /// Bits free between every value and half its modulus.
    pub headroom: f64,
    /// What the error is made of.
    pub contributions: Vec<Contribution>,
    /// Predicted seconds on one core, encodings left out.
    pub seconds: f64,
}

/// A linear map with the way it is evaluated.
#[derive(Clone, Debug)]
pub struct PlannedMap {
    /// The map.
    pub map: Arc<PlacedMap>,
    /// How its rotations are split.
    pub plan: Plan,
}

/// The parts of every value, with plans.
pub type PlannedParts = Vec<Vec<Part<PlannedMap>>>;

/// A value with everything that an evaluation has to know.
#[derive(Clone, Debug)]
pub struct ScheduledValue {
    /// The level that its multiplications happen at.
    pub working: Level,
    /// Its scale after them.
    pub raw: Scale,
    /// Its level.
    pub level: Level,
    /// Its scale.
    pub scale: Scale,
    /// What is multiplied and added up before the rescale.
    pub parts: Vec<Part<PlannedMap>>,
    /// Largest number seen, partial sums included.
    pub peak: f64,
    /// What its own noise does to the results, as a deviation.
    pub error: f64,
}

/// A placed circuit with its schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The circuit in slots.
    pub placed: Arc<Placed>,
    /// Parameters, scales and what is expected of them.
    pub schedule: Arc<Schedule>,
    /// Numbers of the input that were seen.
    pub input_range: Interval,
    /// Numbers of the results that were seen.
    pub output_range: Interval,
    pub(super) values: Vec<ScheduledValue>,
}

impl Scheduled {
    /// A circuit with its schedule and its plans.
    #[must_use]
    pub fn new(placed: Arc<Placed>, schedule: Arc<Schedule>, extent: &Extent, parts: PlannedParts) -> Self {
        let errors = errors(&placed, &schedule);
        let chain = &schedule.chain;
        let mut values = Vec::with_capacity(parts.len());
        for ((id, parts), error) in placed.circuit().ids().zip(parts).zip(errors) {
            let time = placed.timed.time(id);
            values.push(ScheduledValue {
                working: chain.level(time.working),
                raw: chain.raw(time.position),
                level: chain.level(time.rung),
                scale: chain.scale(time.position),
                parts,
                peak: extent.peak[id.index()],
                error,
            });
        }
        let interval = |[low, high]: [f64; 2]| Interval { low, high };
        let (input_range, output_range) = (interval(extent.input), interval(extent.output));
        Self { placed, schedule, input_range, output_range, values }
    }

    /// A value with its schedule.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &ScheduledValue {
        &self.values[id.index()]
    }
}

/// What the noise of every value alone does to the results, as a deviation.
fn errors(placed: &Placed, schedule: &Schedule) -> Vec<f64> {
    let mut variances = vec![0.0; placed.circuit().values.len()];
    for contribution in &schedule.contributions {
        variances[contribution.value.index()] += contribution.variance(&schedule.chain);
    }
    variances.into_iter().map(f64::sqrt).collect()
}

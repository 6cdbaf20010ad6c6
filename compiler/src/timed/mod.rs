//! The timed circuit: when every value is computed, how many rescales it still has before it, and which values share a
//! scale (paper §4.3).
//!
//! Every value has a [`Time`] of its own. Positions number the multiplications in order, and name scales: values at one
//! position share one, whose number the schedule finds. What holds ([`Timed::judge`]):
//!
//! 1. inputs are at position 0, and results have no level and no rescale before them;
//! 2. both factors of a product are one position before it, under the modulus that it is computed with;
//! 3. a summand that is not multiplied is at the position of its sum; one that is multiplied comes before it, with at least
//!    as many rescales still to come;
//! 4. one rescale at most lies between the multiplication of a value and the value;
//! 5. values at one position have one level, one sublevel and one number of rescales to come.
//!
//! Levels are facts of values, not counts of what is left: a stage that lifts a value back to a higher level (a
//! bootstrapping) would change the times of what reads it and nothing else here.

mod judge;
mod latest;
mod positions;
mod text;

use std::sync::Arc;

use crate::lower::{Circuit, CircuitOp, Map, Term, ValueId};

pub use latest::with_lifted_factors;
pub use positions::{Positions, Rung, Step};

#[cfg(test)]
pub(crate) use positions::tests::chain as positions_of;

/// When a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Multiplications before it; values at one position share a scale.
    pub position: u32,
    /// Rescales still to come when its multiplication happens.
    pub working: Rung,
    /// Rescales still to come for the value itself.
    pub rung: Rung,
    /// Levels still to come: rescales inside a level do not count.
    pub level: u32,
    /// Which multiplication of its level comes next, from one.
    pub sublevel: u32,
}

impl Time {
    /// Whether a rescale lies between the multiplication of the value and the value.
    #[must_use]
    pub fn is_boundary(&self) -> bool {
        self.working > self.rung
    }

    /// Level and sublevel, as `L5.1`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("L{}.{}", self.level, self.sublevel)
    }
}

/// A circuit whose values have times.
#[derive(Clone, Debug)]
pub struct Timed {
    circuit: Arc<Circuit>,
    positions: Positions,
    times: Vec<Time>,
}

impl Timed {
    /// Every value as late as its readers allow, with `sublevels` multiplications per level.
    #[must_use]
    pub fn new(circuit: Arc<Circuit>, sublevels: u32) -> Self {
        let of_value = latest::latest(&circuit);
        let depth = of_value.iter().copied().max().unwrap_or(0);
        let mut steps = vec![Step::Linear; depth as usize];
        for (value, &position) in circuit.values.iter().zip(&of_value) {
            if matches!(value.op, CircuitOp::Product(_)) {
                steps[position as usize - 1] = Step::Product;
            }
        }
        let positions = Positions::new(steps, sublevels);
        let times = of_value.into_iter().map(|position| time(&positions, position)).collect();
        Self { circuit, positions, times }
    }

    /// The same order of multiplications with other rescales between them.
    #[must_use]
    pub fn with_positions(&self, positions: Positions) -> Self {
        let times = self.times.iter().map(|t| time(&positions, t.position)).collect();
        Self { circuit: Arc::clone(&self.circuit), positions, times }
    }

    /// The same times for a circuit that differs in its constants only.
    #[must_use]
    pub fn with_constants(&self, circuit: Arc<Circuit>) -> Self {
        Self { circuit, ..self.clone() }
    }

    /// The circuit.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The multiplications in order.
    #[must_use]
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// When a value is computed.
    #[must_use]
    pub fn time(&self, id: ValueId) -> Time {
        self.times[id.index()]
    }

    /// The position of a value.
    #[must_use]
    pub fn position(&self, id: ValueId) -> u32 {
        self.time(id).position
    }

    /// Whether a summand reaches its sum without a multiplication: it is neither changed nor computed earlier.
    #[must_use]
    pub fn is_still(&self, term: &Term, sum: ValueId) -> bool {
        matches!(term.map, Map::Identity) && self.position(term.source) == self.position(sum)
    }
}

fn time(positions: &Positions, position: u32) -> Time {
    let mark = positions.mark(position);
    Time {
        position,
        working: positions.working_rung(position),
        rung: mark.rung,
        level: mark.level,
        sublevel: mark.sublevel,
    }
}

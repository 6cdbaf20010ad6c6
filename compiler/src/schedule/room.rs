//! What a modulus has to hold: the values at a scale, with a sign, and bits to spare.
//!
//! Inputs that nobody calibrated with may lead to larger values, and a value beyond half its modulus comes back as another
//! one. Only sums and products before a rescale, and the result, have to fit, since everything else is exact modulo any
//! number; all of them are held to it, so that a value can be looked at anywhere.

use std::collections::BTreeMap;

use crate::lower::{CircuitOp, ValueId};
use crate::measure::Stats;
use crate::timed::{Rung, Timed};

/// Bits that are free above every value, whatever is asked for.
pub const LEAST_HEADROOM: f64 = 1.5;
/// Bits that are free above every value where they cost nothing.
pub const WANTED_HEADROOM: f64 = 3.0;

/// The values at one position, under the modulus of one rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Where the values are computed.
    pub position: u32,
    /// Whether they are still to be rescaled.
    pub raw: bool,
    /// The modulus.
    pub rung: Rung,
    /// Bits of the largest value.
    pub log2_peak: f64,
}

impl Room {
    /// Bits of the values with their sign and some to spare. A modulus holds its scale, however small the values are.
    #[must_use]
    pub fn bits(&self, headroom: f64) -> f64 {
        (self.log2_peak + 1.0 + headroom).max(1.0)
    }
}

/// All rooms of a circuit.
#[must_use]
pub(crate) fn rooms(timed: &Timed, stats: &Stats) -> Vec<Room> {
    let mut peaks: BTreeMap<(u32, bool, u16), f64> = BTreeMap::new();
    let mut hold = |id: ValueId, raw: bool, rung: Rung| {
        let peak = peaks.entry((timed.position(id), raw, rung.0)).or_insert(0.0);
        *peak = peak.max(stats.extent.peak[id.index()]);
    };
    for id in timed.circuit().ids() {
        let time = timed.time(id);
        hold(id, true, time.working);
        hold(id, false, time.rung);
        if let CircuitOp::Affine(affine) = &timed.circuit().value(id).op {
            // Operands that are ready early are read with fewer towers.
            for term in affine.terms.iter().filter(|term| !timed.is_still(term, id)) {
                hold(term.source, false, time.working);
            }
        }
    }
    let room = |((position, raw, rung), peak): ((u32, bool, u16), f64)| Room {
        position,
        raw,
        rung: Rung(rung),
        log2_peak: peak.max(f64::MIN_POSITIVE).log2(),
    };
    peaks.into_iter().map(room).collect()
}

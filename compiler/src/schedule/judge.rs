//! The judge of scheduled circuits.

use fhe_bytecode::Scale;

use super::LEAST_HEADROOM;
use super::scheduled::Scheduled;
use crate::layout::Part;
use crate::lower::{CircuitOp, ValueId};
use crate::stages::{Judge, StageErrors, StageKind};

/// More than sums of logarithms are off by, in bits.
const ROUNDING_BITS: f64 = 1e-6;

impl Scheduled {
    /// Checks what holds of every scheduled circuit; the module says it in prose.
    ///
    /// # Errors
    /// Everything that does not hold.
    pub fn judge(&self) -> Result<(), StageErrors> {
        let mut judge = Judge::new();
        let circuit = self.placed.circuit();
        judge.whole(self.values.len() == circuit.values.len(), || {
            format!("{} of {} values are scheduled", self.values.len(), circuit.values.len())
        });
        if judge.is_content() {
            for id in circuit.ids() {
                self.judge_level(id, &mut judge);
                self.judge_scale(id, &mut judge);
                self.judge_parts(id, &mut judge);
            }
        }
        judge.verdict(StageKind::Scheduled, |id| self.line(id))
    }

    fn judge_level(&self, id: ValueId, judge: &mut Judge) {
        let value = self.value(id);
        let (from, to, max) = (value.working, value.level, self.schedule.params.max_level());
        judge.value(id, to <= from && from <= max, || format!("at {from} and then at {to}"));
        if self.placed.is_rescaled(id) {
            let is_next = from.lower() == Some(to);
            judge.value(id, is_next, || format!("a rescale from {from} to {to}"));
        }
        let period = self.placed.layout(id).period();
        for level in [from, to] {
            let slots = self.schedule.params.at(level).slots();
            judge.value(id, period <= slots, || {
                format!("a period of {period} among {slots} slots at {level}")
            });
        }
        let modulus = self.schedule.params.log2_q_at(value.level);
        let free = modulus - value.scale.log2() - value.peak.max(f64::MIN_POSITIVE).log2() - 1.0;
        judge.value(id, free > LEAST_HEADROOM - ROUNDING_BITS, || format!("{free:.2} bits above its values"));
    }

    fn judge_scale(&self, id: ValueId, judge: &mut Judge) {
        let value = self.value(id);
        let params = &self.schedule.params;
        let division = params.rescale(value.working, value.level).filter(|_| self.placed.is_rescaled(id));
        let rescaled = division.map_or(value.scale, |d| d.rescaled(params.towers(), value.raw));
        let is_exact = rescaled.agrees(value.scale);
        judge.value(id, is_exact, || format!("a scale of {} that becomes {rescaled}", value.scale));
        match &self.placed.circuit().value(id).op {
            CircuitOp::Input => {}
            CircuitOp::Product([a, b]) => {
                let product = self.value(*a).scale.times(self.value(*b).scale);
                judge.value(id, product.agrees(value.raw), || format!("factors of scale {product} together"));
                let same = [a, b].iter().all(|&&factor| self.value(factor).level == value.working);
                judge.value(id, same, || "a factor at another level".to_owned());
            }
            CircuitOp::Affine(_) => {
                for &source in &self.placed.value(id).still {
                    let of = self.value(source);
                    let same = of.level == value.level && of.scale.agrees(value.scale);
                    judge.value(id, same, || format!("{source} is added at another level or scale"));
                }
            }
        }
    }

    fn judge_parts(&self, id: ValueId, judge: &mut Judge) {
        let value = self.value(id);
        for part in &value.parts {
            let sources = match part {
                Part::Scalar { source } | Part::Plain { source, .. } => vec![*source],
                Part::Map(planned) => {
                    let fits = planned.plan.fits(&planned.map.diagonals);
                    judge.value(id, fits.is_ok(), || match fits {
                        Err(error) => format!("a plan of another map: {error}"),
                        Ok(()) => String::new(),
                    });
                    planned.map.sources().collect()
                }
            };
            for source in sources {
                let of = self.value(source);
                judge.value(id, of.level >= value.working, || format!("{source} has too few towers"));
                let plain = value.raw.over(of.scale);
                judge.value(id, plain >= Scale::ONE, || format!("plaintexts of scale {plain}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fhe_bytecode::Level;

    use super::*;

    fn refused(change: impl FnOnce(&mut Scheduled), expected: &str) {
        let mut scheduled = crate::stages::tests::scheduled();
        scheduled.judge().unwrap();
        change(&mut scheduled);
        let errors = scheduled.judge().unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    }

    /// The first value that fits.
    fn first(scheduled: &Scheduled, fits: impl Fn(ValueId) -> bool) -> ValueId {
        scheduled.placed.circuit().ids().find(|&id| fits(id)).unwrap()
    }

    fn is_product(scheduled: &Scheduled, id: ValueId) -> bool {
        matches!(scheduled.placed.circuit().value(id).op, CircuitOp::Product(_))
    }

    fn has_map(scheduled: &Scheduled, id: ValueId) -> bool {
        scheduled.value(id).parts.iter().any(|part| matches!(part, Part::Map(_)))
    }

    #[test]
    fn every_value_is_scheduled() {
        refused(|scheduled| scheduled.values.truncate(2), "2 of");
    }

    #[test]
    fn levels_go_down() {
        refused(|s| s.values[0].working = Level(0), "at L0 and then at");
        refused(
            |s| {
                let id = first(s, |id| s.placed.is_rescaled(id));
                let value = &mut s.values[id.index()];
                value.level = value.working;
            },
            "a rescale from",
        );
    }

    #[test]
    fn scales_follow_from_each_other() {
        refused(
            |s| {
                let id = first(s, |id| s.placed.is_rescaled(id));
                s.values[id.index()].scale = Scale::from_log2(13.0);
            },
            "a scale of 2^13.0000 that becomes",
        );
        refused(
            |s| {
                let id = first(s, |id| is_product(s, id));
                s.values[id.index()].raw = Scale::from_log2(13.0);
            },
            "together",
        );
    }

    #[test]
    fn factors_and_summands_meet_at_one_level() {
        refused(
            |s| {
                let id = first(s, |id| is_product(s, id));
                s.values[id.index()].working = Level(0);
            },
            "a factor at another level",
        );
        refused(
            |s| {
                let id = first(s, |id| !s.placed.value(id).still.is_empty());
                let still = s.placed.value(id).still[0];
                s.values[still.index()].level = Level(0);
            },
            "is added at another level or scale",
        );
    }

    #[test]
    fn operands_have_the_towers_and_weights_a_scale() {
        refused(
            |s| {
                let id = first(s, |id| has_map(s, id));
                s.values[id.index()].working = Level(40);
            },
            "has too few towers",
        );
        refused(
            |s| {
                let id = first(s, |id| has_map(s, id));
                s.values[id.index()].raw = Scale::ONE;
            },
            "plaintexts of scale",
        );
    }

    #[test]
    fn plans_belong_to_their_maps() {
        refused(
            |s| {
                let id = first(s, |id| has_map(s, id));
                for part in &mut s.values[id.index()].parts {
                    if let Part::Map(planned) = part {
                        planned.plan.splits.pop();
                    }
                }
            },
            "a plan of another map: no split for rotation",
        );
    }

    #[test]
    fn values_lie_below_half_their_modulus() {
        refused(|s| s.values[0].peak = 1e30, "bits above its values");
    }
}

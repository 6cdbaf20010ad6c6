//! The text form of scheduled circuits: parameters, then every value with levels, scales and plans.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use super::scheduled::{PlannedMap, Scheduled};
use crate::layout::{end_lines, map_line, part_line};
use crate::lower::ValueId;

impl Display for Scheduled {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let params = &self.schedule.params;
        let bits = |primes: &[u64]| {
            let shown: Vec<String> = primes.iter().map(|&q| format!("{:.1}", (q as f64).log2())).collect();
            shown.join(" ")
        };
        writeln!(f, "N = {}, towers of {} bits", params.n(), bits(params.towers()))?;
        let special = bits(params.special_primes());
        writeln!(f, "special primes of {special} bits, {} towers per digit", params.digit_size())?;
        for segment in params.segments().skip(1) {
            let (level, special) = (segment.max_level(), bits(segment.special_primes()));
            let (n, size) = (segment.n(), segment.digit_size());
            writeln!(
                f,
                "from {level} on N = {n}, special primes of {special} bits, {size} towers per digit"
            )?;
        }
        for id in self.placed.circuit().ids() {
            writeln!(f, "{}", self.line(id))?;
            for part in &self.value(id).parts {
                writeln!(f, "  {}", part_line(part, plan_line))?;
            }
            end_lines(&self.placed, id, f)?;
        }
        Ok(())
    }
}

impl Scheduled {
    /// The line of a value.
    #[must_use]
    pub fn line(&self, id: ValueId) -> String {
        let value = self.value(id);
        let line = self.placed.timed.line(id);
        let (code, name) = line.split_once("  // ").unwrap_or((&line, ""));
        let before = match self.placed.is_rescaled(id) {
            false => String::new(),
            true => format!("{} 2^{:.2} > ", value.working, value.raw.log2()),
        };
        format!("{code} | {before}{} 2^{:.2}  // {name}", value.level, value.scale.log2())
    }
}

/// What a map is, and how it is evaluated.
fn plan_line(planned: &PlannedMap) -> String {
    let diagonals = &planned.map.diagonals;
    let splits = &planned.plan.splits;
    let babies: BTreeSet<_> = splits.iter().map(|split| split.baby).collect();
    let giants: BTreeSet<_> = splits.iter().map(|split| split.giant(diagonals)).collect();
    format!("{}, {} baby and {} giant steps", map_line(&planned.map), babies.len(), giants.len())
}

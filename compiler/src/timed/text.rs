//! The text form of timed circuits: the line of a value, its level, its rescales and the name of its scale.

use std::fmt::{self, Display, Formatter};

use super::{Time, Timed};
use crate::lower::ValueId;

impl Display for Timed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let positions = self.positions();
        writeln!(
            f,
            "{} multiplications, {} levels, {} rescales",
            positions.depth(),
            positions.n_levels(),
            positions.n_rescales()
        )?;
        self.circuit().ids().try_for_each(|id| writeln!(f, "{}", self.line(id)))
    }
}

impl Timed {
    /// The line of a value.
    #[must_use]
    pub fn line(&self, id: ValueId) -> String {
        let line = self.circuit().line(id);
        let (code, name) = line.split_once("  // ").unwrap_or((&line, ""));
        format!("{code} {}  // {name}", self.time(id))
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "@{} s{} {}", self.label(), self.position, self.working)?;
        if self.is_boundary() { write!(f, ">{}", self.rung) } else { Ok(()) }
    }
}

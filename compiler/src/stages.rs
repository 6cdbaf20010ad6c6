//! The stages between an optimized graph and a program, by name, and what their judges find.
//!
//! ```text
//! circuit ─▶ timed ─▶ placed ─▶ scheduled ─▶ program
//! ```
//!
//! A stage is a type that holds the one before it and adds what that did not know. Its module says in prose what holds, its
//! judge checks that, and its text form is what `fhec build --print-after` shows and what snapshots keep. A fault is a bug of
//! this crate: no model and no option leads to one.

use std::fmt;

use crate::lower::ValueId;

/// A stage of the back end, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StageKind {
    /// Sums of linear maps, and products.
    Circuit,
    /// When values are computed: levels, and which values share a scale.
    Timed,
    /// Where values live: layouts, and maps as diagonals.
    Placed,
    /// Moduli, exact scales, and how every map is evaluated.
    Scheduled,
    /// The instructions.
    Program,
}

impl StageKind {
    /// The name on the command line and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Circuit => "circuit",
            Self::Timed => "timed",
            Self::Placed => "placed",
            Self::Scheduled => "scheduled",
            Self::Program => "program",
        }
    }
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The value it was found at; nothing where it concerns the whole stage.
    pub value: Option<ValueId>,
    /// What does not hold.
    pub what: String,
}

/// Everything that a judge found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct StageErrors {
    /// The stage.
    pub stage: StageKind,
    /// The faults, each with the printed line of its value.
    pub faults: Vec<(Fault, String)>,
}

impl fmt::Display for StageErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} circuit is faulty", self.stage.name())?;
        for (fault, line) in &self.faults {
            write!(f, "; {}", fault.what)?;
            if !line.is_empty() {
                write!(f, ", at `{line}`")?;
            }
        }
        Ok(())
    }
}

/// Collects what does not hold of a stage.
pub(crate) struct Judge {
    faults: Vec<Fault>,
}

impl Judge {
    pub(crate) fn new() -> Self {
        Self { faults: Vec::new() }
    }

    /// Notes a fault of a value unless `holds`; `what` says what was asked for.
    pub(crate) fn value(&mut self, id: ValueId, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(Fault { value: Some(id), what: what() });
        }
    }

    /// Notes a fault of the whole stage unless `holds`.
    pub(crate) fn whole(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(Fault { value: None, what: what() });
        }
    }

    /// Whether nothing was found up to now; what comes later may rely on it.
    pub(crate) fn is_content(&self) -> bool {
        self.faults.is_empty()
    }

    /// The verdict, with the lines that the stage prints for its values.
    pub(crate) fn verdict(
        self,
        stage: StageKind,
        line: impl Fn(ValueId) -> String,
    ) -> Result<(), StageErrors> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let with_line = |fault: Fault| {
            let text = fault.value.map_or_else(String::new, &line);
            (fault, text)
        };
        Err(StageErrors { stage, faults: self.faults.into_iter().map(with_line).collect() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fhec_ir::spec::GraphSpec;

    use crate::pipeline::LayoutChoice;
    use crate::schedule::Scheduled;
    use crate::{Model, Request, compile};

    /// A network with a product, a shortcut and two layouts, for judges to look at.
    pub(crate) fn scheduled() -> Scheduled {
        let nodes = r#"(nodes: [
            (name: "x", op: Input(2, 8, 8)),
            (name: "c", of: ["x"], op: Conv2d(weight: Between([2, 2, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([2], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
            (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.1, 0.2, 1.0]))),
            (name: "a", of: ["q", "x"], op: Add),
            (name: "d", of: ["a"], op: Conv2d(weight: Between([4, 2, 3, 3], 3, -0.4, 0.4), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
            (name: "o", of: ["d"], op: Output),
        ])"#;
        let spec: GraphSpec = ron::from_str(nodes).unwrap();
        let model = Model::graph("network", spec.build().unwrap());
        let (log_n, layout) = (Some(9..=9), LayoutChoice::Packed);
        let request = Request { toy: true, log_n, layout, ..Request::new(model) };
        compile(&request, &mut ()).unwrap().built.scheduled
    }
}

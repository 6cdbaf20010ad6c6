//! Weight redistribution (paper §4.2): leading coefficients and divisors become one, neighbors hold the factor.
//!
//! Before: verified tensor graph. After: same outputs, every donor on the longest path normalized where a receiver exists.
//! Saves one level per polynomial, batch normalization and pooling.

use fhec_ir::Graph;

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::{egraph, rules};

/// The pass, with the directions it may use.
pub struct Redistribute {
    /// Donors give to the layers after them.
    pub forward: bool,
    /// Donors give to the layers before them.
    pub backward: bool,
}

impl Pass for Redistribute {
    fn name(&self) -> &'static str {
        "redistribute"
    }

    fn summary(&self) -> &'static str {
        "make leading coefficients and divisors one by moving factors into other layers (paper §4.2)"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let rules = rules::redistribution(self.forward, self.backward);
        egraph::saturate(graph, &rules, self.name(), cx)
    }
}

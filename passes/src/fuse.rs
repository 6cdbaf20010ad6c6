//! Node fusing (paper §4.1): batch normalizations disappear in the layers around them.
//!
//! Before: verified tensor graph. After: same outputs, no batch normalization next to a layer that can hold it. Saves one
//! level each.

use fhec_ir::Graph;

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::{egraph, rules};

/// The pass.
pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn summary(&self) -> &'static str {
        "merge batch normalizations into the convolutions, polynomials and joins around them (paper §4.1)"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        egraph::saturate(graph, &rules::fusing(), self.name(), cx)
    }
}

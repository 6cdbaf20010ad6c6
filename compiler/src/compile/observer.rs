//! Who watches a compilation: what it is at, what every pass did, and how far a long stage is.

use fhec_ir::Graph;
use fhec_passes::{Pass, PassRun};

use crate::import::Imported;
use crate::lower::Circuit;

/// A stage of a compilation, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stage<'a> {
    /// A model is read.
    Import {
        /// Its name.
        model: &'a str,
    },
    /// Polynomials are fitted to functions that are none.
    Approximate,
    /// The passes run.
    Passes,
    /// Values are measured on the calibration inputs.
    Calibrate,
    /// Layout, levels, scales and primes are searched.
    Schedule {
        /// Bits of precision, where the classes of the calibration inputs asked for more than at first.
        precision: Option<f64>,
    },
    /// The program is evaluated on the calibration inputs with simulated noise.
    Simulate,
}

/// Watches a compilation. Every method has an empty default.
pub trait Observer {
    /// A stage begins.
    fn stage(&mut self, _stage: Stage<'_>) {}

    /// So many of the inputs of this stage are done.
    fn fraction(&mut self, _done: usize, _of: usize) {}

    /// All models were read; an ensemble is one graph.
    fn imported(&mut self, _model: &Imported) {}

    /// A pass ran and left a graph behind.
    fn passed(&mut self, _pass: &dyn Pass, _run: &PassRun, _graph: &Graph) {}

    /// All passes ran.
    fn optimized(&mut self, _graph: &Graph) {}

    /// The graph became a circuit.
    fn lowered(&mut self, _circuit: &Circuit) {}
}

/// Watches nothing.
impl Observer for () {}

/// Whoever is lent watches all the same.
impl<O: Observer + ?Sized> Observer for &mut O {
    fn stage(&mut self, stage: Stage<'_>) {
        (**self).stage(stage);
    }

    fn fraction(&mut self, done: usize, of: usize) {
        (**self).fraction(done, of);
    }

    fn imported(&mut self, model: &Imported) {
        (**self).imported(model);
    }

    fn passed(&mut self, pass: &dyn Pass, run: &PassRun, graph: &Graph) {
        (**self).passed(pass, run, graph);
    }

    fn optimized(&mut self, graph: &Graph) {
        (**self).optimized(graph);
    }

    fn lowered(&mut self, circuit: &Circuit) {
        (**self).lowered(circuit);
    }
}

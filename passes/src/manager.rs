//! Runs passes in order, checks what each leaves behind, and reports what it did.

use std::time::{Duration, Instant};

use fhec_ir::cost::{Work, depths, work};
use fhec_ir::spec::Uniform;
use fhec_ir::{Graph, evaluate, verify};

use crate::pass::{Changed, Pass, PassCx, PassError, Report};

/// Relative error up to which two outputs are the same.
pub const SAME_OUTPUT: f64 = 1e-9;

/// How passes are run.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// Run the verifier after every pass. Off for benches only.
    pub verify: bool,
    /// Compare the clear evaluator before and after every pass on this many random inputs.
    pub compare: usize,
    /// Print the graph after these passes.
    pub print_after: Vec<String>,
    /// Stop after this pass.
    pub stop_after: Option<String>,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self { verify: true, compare: 0, print_after: Vec::new(), stop_after: None }
    }
}

/// What one pass did.
#[derive(Clone, Debug)]
pub struct PassRun {
    /// The pass.
    pub name: &'static str,
    /// Whether it changed the graph.
    pub changed: Changed,
    /// Its counters and remarks.
    pub report: Report,
    /// How long it took, without the checks.
    pub elapsed: Duration,
    /// Depth of the graph afterwards.
    pub depth: u32,
    /// Work of the graph afterwards.
    pub work: Work,
    /// Nodes of the graph afterwards.
    pub n_nodes: usize,
    /// The graph afterwards, if it was asked for.
    pub printed: Option<String>,
}

/// A list of passes and how to run them.
pub struct Manager {
    passes: Vec<Box<dyn Pass>>,
    options: ManagerOptions,
}

impl Manager {
    /// A manager of the passes, in this order.
    ///
    /// # Errors
    /// When an option names a pass that is not in the list.
    pub fn new(passes: Vec<Box<dyn Pass>>, options: ManagerOptions) -> Result<Self, PassError> {
        for name in options.print_after.iter().chain(&options.stop_after) {
            if !passes.iter().any(|pass| pass.name() == name) {
                return Err(PassError::NoSuchPass { name: name.clone() });
            }
        }
        Ok(Self { passes, options })
    }

    /// Runs the passes.
    ///
    /// # Errors
    /// When a pass fails, leaves a broken graph, or changes what the graph computes.
    pub fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Vec<PassRun>, PassError> {
        self.run_observed(graph, cx, &mut |_, _, _| ())
    }

    /// Runs the passes and shows each one, what it did and the graph it left behind.
    ///
    /// # Errors
    /// As [`Manager::run`].
    pub fn run_observed(
        &self,
        graph: &mut Graph,
        cx: &mut PassCx,
        observe: &mut dyn FnMut(&dyn Pass, &PassRun, &Graph),
    ) -> Result<Vec<PassRun>, PassError> {
        let mut runs = Vec::new();
        for pass in &self.passes {
            let before = (self.options.compare > 0).then(|| graph.clone());
            let start = Instant::now();
            let changed = pass.run(graph, cx)?;
            let elapsed = start.elapsed();
            let name = pass.name();
            if self.options.verify {
                verify(graph).map_err(|source| PassError::Verify { pass: name, source })?;
            }
            if let Some(before) = before {
                compare(&before, graph, self.options.compare, name)?;
            }
            let run = PassRun {
                name,
                changed,
                report: cx.take_report(),
                elapsed,
                depth: depths(graph).total(),
                work: work(graph),
                n_nodes: graph.len(),
                printed: self.options.print_after.iter().any(|n| n == name).then(|| graph.to_string()),
            };
            observe(pass.as_ref(), &run, graph);
            runs.push(run);
            if self.options.stop_after.as_deref() == Some(name) {
                break;
            }
        }
        Ok(runs)
    }
}

/// Compares two graphs on random inputs, for every member.
fn compare(before: &Graph, after: &Graph, n_inputs: usize, pass: &'static str) -> Result<(), PassError> {
    for seed in 0..n_inputs as u64 {
        let mut stream = Uniform::new(seed);
        let mut random = |n: usize| -> Vec<f64> { (0..n).map(|_| stream.between(-1.0, 1.0)).collect() };
        let inputs: Vec<Vec<f64>> =
            before.inputs().iter().map(|&id| random(before.shape(id).len())).collect();
        let slices: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        for member in before.members() {
            let expected = evaluate(before, &slices, member)?;
            let actual = evaluate(after, &slices, member)?;
            for (output, (e, a)) in expected.iter().zip(&actual).enumerate() {
                let range = e.data.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
                let worst = e.data.iter().zip(&a.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                let error = worst / range;
                if error.is_nan() || error > SAME_OUTPUT {
                    return Err(PassError::Meaning { pass, output, error });
                }
            }
        }
    }
    Ok(())
}

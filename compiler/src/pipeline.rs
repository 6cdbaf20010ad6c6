//! The back end in order: optimized graph, circuit, layouts, schedule, program.

use std::collections::BTreeSet;

use fhe_bytecode::params::{LOG_N_RANGE, security_cap};
use fhe_bytecode::{
    CheckErrors, CheckedProgram, CostModel, LayoutError, LinearError, Packing, Params, ParamsSpec, Plan, plan,
};
use fhec_ir::Verified;

use crate::emit::{self, Labels};
use crate::layout::{self, Placed};
use crate::lower::{self, Circuit};
use crate::schedule::noise::MapFacts;
use crate::schedule::search::Problem;
use crate::schedule::{self, Positions, Request, Schedule, ScheduleError, Stats};

/// Samples made up where no calibration data is given.
const RANDOM_SAMPLES: usize = 4;

/// What the user asks of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// How channels share ciphertexts.
    pub packing: Packing,
    /// Multiplications per level.
    pub sublevels: u32,
    /// Bits between the largest result and the deviation of its error.
    pub precision: f64,
    /// Ring degrees that may be used, as log2.
    pub log_n: std::ops::RangeInclusive<u32>,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
    /// Model inputs that values and errors are measured on.
    pub calibration: Vec<Vec<f64>>,
    /// Calibrated cost constants.
    pub costs: CostModel,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            packing: Packing::Packed,
            sublevels: 2,
            precision: 6.0,
            log_n: LOG_N_RANGE,
            insecure: false,
            calibration: Vec::new(),
            costs: CostModel::default(),
        }
    }
}

/// A program with the stages it came from.
#[derive(Clone, Debug)]
pub struct Built {
    /// The circuit in slots.
    pub placed: Placed,
    /// Where everything is computed.
    pub positions: Positions,
    /// Sizes and gains of the values.
    pub stats: Stats,
    /// Parameters, scales and predictions.
    pub schedule: Schedule,
    /// The checked program.
    pub program: CheckedProgram,
}

/// Why a graph cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A program has one encrypted input and one output.
    #[error("the model has {inputs} inputs and {outputs} outputs, a program has one of each")]
    Arity {
        /// Inputs of the model.
        inputs: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// No multiplication at all, or no sublevel.
    #[error("nothing to schedule: depth {depth} with {sublevels} sublevels")]
    Empty {
        /// Multiplications on the longest path.
        depth: u32,
        /// Multiplications per level asked for.
        sublevels: u32,
    },
    /// Layouts do not exist.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Moduli or scales do not exist.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A map does not fit its layouts: a bug.
    #[error("a linear map does not fit its layouts")]
    Linear(#[from] LinearError),
    /// The checker refused the program: a bug.
    #[error("the emitted program is faulty")]
    Check(#[from] CheckErrors),
}

/// Compiles an optimized graph.
///
/// # Errors
/// When the graph does not fit the request; says why and by how much.
pub fn build(graph: Verified<'_>, options: &BuildOptions, labels: Labels) -> Result<Built, BuildError> {
    let (inputs, outputs) = (graph.inputs().len(), graph.outputs().len());
    if (inputs, outputs) != (1, 1) {
        return Err(BuildError::Arity { inputs, outputs });
    }
    let circuit = schedule::with_lifted_factors(lower::lower(graph));
    let positions = Positions::new(&circuit, options.sublevels.max(1));
    if positions.depth() == 0 || options.sublevels == 0 {
        return Err(BuildError::Empty { depth: positions.depth(), sublevels: options.sublevels });
    }
    let random;
    let samples = if options.calibration.is_empty() {
        random = schedule::random_samples(&circuit, RANDOM_SAMPLES);
        &random
    } else {
        &options.calibration
    };
    let stats = Stats::measure(&circuit, samples);
    let (placed, schedule) = smallest_ring(&circuit, &positions, &stats, options)?;
    let plans = emit::plans(&placed, &positions, &schedule, &options.costs);
    let program = emit::emit(&placed, &positions, &schedule, plans, labels)?;
    Ok(Built { placed, positions, stats, schedule, program })
}

/// Layouts and schedule at the smallest ring degree that has one.
fn smallest_ring(
    circuit: &Circuit,
    positions: &Positions,
    stats: &Stats,
    options: &BuildOptions,
) -> Result<(Placed, Schedule), BuildError> {
    let mut last: Option<BuildError> = None;
    for log_n in options.log_n.clone() {
        // A level has at least the smallest prime: no layout is needed to see that a chain is too long.
        let least = f64::from(positions.n_levels()) * f64::from(log_n + 4);
        if security_cap(log_n).is_some_and(|cap| least > f64::from(cap))
            && !options.insecure
            && log_n < *options.log_n.end()
        {
            continue;
        }
        match at_ring(circuit, positions, stats, options, log_n) {
            Ok(found) => return Ok(found),
            Err(error @ (BuildError::Layout(_) | BuildError::Schedule(_))) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or(BuildError::Empty { depth: positions.depth(), sublevels: positions.sublevels() }))
}

fn at_ring(
    circuit: &Circuit,
    positions: &Positions,
    stats: &Stats,
    options: &BuildOptions,
    log_n: u32,
) -> Result<(Placed, Schedule), BuildError> {
    let layouts = layout::assign(circuit, options.packing, 1 << (log_n - 1))?;
    let placed = Placed::new(circuit, positions, layouts)?;
    let facts = map_facts(&placed, positions, log_n, &options.costs)?;
    let problem = Problem { placed: &placed, facts: &facts, positions, stats, log_n };
    let request = Request { precision: options.precision, insecure: options.insecure };
    let schedule = schedule::schedule(problem, request, &options.costs)?;
    Ok((placed, schedule))
}

/// Facts of every linear map, with plans for middling parameters.
fn map_facts(
    placed: &Placed,
    positions: &Positions,
    log_n: u32,
    costs: &CostModel,
) -> Result<Vec<MapFacts>, ScheduleError> {
    let params = middling_params(positions, log_n)?;
    let mut known = BTreeSet::new();
    let facts = placed.maps().map(|(id, map)| {
        let level = positions.working_level(positions.of(id));
        let plan: Plan = plan::plan(&map.diagonals, &costs.at(&params, level), &known);
        known.extend(plan.rotations(&map.diagonals));
        let counts = plan.expand(&map.diagonals).map(|p| p.counts()).unwrap_or_default();
        MapFacts::new(id, map, counts)
    });
    Ok(facts.collect())
}

fn middling_params(positions: &Positions, log_n: u32) -> Result<Params, ScheduleError> {
    let n_towers = positions.n_levels() as usize + 1;
    let search = |bits, count| {
        fhe_bytecode::params::ntt_primes_below(bits, log_n, count, &[]).map_err(schedule::ChainError::from)
    };
    let spec = ParamsSpec {
        log_n,
        towers: search(42, n_towers)?,
        special_primes: search(50, 3)?,
        digit_size: 3.min(n_towers),
        insecure: true,
        toy: true,
    };
    Ok(Params::new(spec)?)
}

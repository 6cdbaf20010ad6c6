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
use crate::predict;
use crate::schedule::noise::MapFacts;
use crate::schedule::{self, ChainError, Positions, Problem, Request, Schedule, ScheduleError, Stats};

pub use crate::schedule::given::ParamsChoice;

/// Samples made up where no calibration data is given.
const RANDOM_SAMPLES: usize = 4;
/// How much more time a more precise schedule may take than the cheapest.
const PRECISION_PREMIUM: f64 = 1.15;
/// Channels of the widest value up to which `auto` tries one ciphertext per channel.
const AUTO_HW_CHANNELS: usize = 32;

/// What the user asks of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// How channels share ciphertexts.
    pub layout: LayoutChoice,
    /// Multiplications per level.
    pub sublevels: u32,
    /// Bits between the largest result and the deviation of its error: the least, and what is tried first.
    pub precision: std::ops::RangeInclusive<f64>,
    /// Where the parameters come from.
    pub params: ParamsChoice,
    /// Ring degrees that may be used, as log2.
    pub log_n: std::ops::RangeInclusive<u32>,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
    /// Bytes that an evaluation may take.
    pub memory: u64,
    /// Model inputs that values and errors are measured on.
    pub calibration: Vec<Vec<f64>>,
    /// Calibrated cost constants.
    pub costs: CostModel,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            layout: LayoutChoice::Packed,
            sublevels: 2,
            precision: 6.0..=9.0,
            params: ParamsChoice::Search,
            log_n: LOG_N_RANGE,
            insecure: false,
            memory: u64::MAX,
            calibration: Vec::new(),
            costs: CostModel::default(),
        }
    }
}

/// How channels share ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LayoutChoice {
    /// One channel per ciphertext (paper §5.1)
    Hw,
    /// Several channels per ciphertext
    Packed,
    /// Whichever is predicted to be faster within the memory
    Auto,
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
    /// The members of an ensemble cannot be averaged.
    #[error("an ensemble needs a dense last layer to average its members in")]
    NotMerged,
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
    /// Keys and ciphertexts alone take too much.
    #[error(
        "an evaluation needs at least {needed} bytes for keys and ciphertexts, {budget} are allowed; layer {layer} needs most"
    )]
    Memory {
        /// Bytes of keys and ciphertexts.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
        /// The layer with most rotations.
        layer: String,
    },
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
    if circuit.n_members > 1 && !circuit.merged {
        return Err(BuildError::NotMerged);
    }
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
    let mut shift = 0;
    loop {
        let shifted = positions.shifted(shift);
        let front = Front { circuit: &circuit, positions: &shifted, stats: &stats, options };
        shift += 1;
        match front.build_any(labels.clone()) {
            // Products at the end of a stretch square its weight scale; another level is the price of avoiding that.
            Err(BuildError::Schedule(ScheduleError::Chain(ChainError::PrimeTooLarge { .. })))
                if shift < options.sublevels => {}
            other => return other,
        }
    }
}

impl Built {
    /// Predicted seconds on one core, plaintexts cached.
    fn seconds(&self) -> f64 {
        self.program.spec().prediction.seconds
    }
}

/// What does not depend on the layout.
#[derive(Clone, Copy)]
struct Front<'a> {
    circuit: &'a Circuit,
    positions: &'a Positions,
    stats: &'a Stats,
    options: &'a BuildOptions,
}

impl Front<'_> {
    /// Builds with the layout that the options ask for.
    fn build_any(self, labels: Labels) -> Result<Built, BuildError> {
        match self.options.layout {
            LayoutChoice::Hw => self.build(Packing::Hw, labels),
            LayoutChoice::Packed => self.build(Packing::Packed, labels),
            LayoutChoice::Auto => {
                let packed = self.build(Packing::Packed, labels.clone());
                // One ciphertext per channel only pays where channels are few.
                let n_channels = self.circuit.values.iter().map(|v| v.shape.c).max().unwrap_or(0);
                if packed.is_ok() && n_channels > AUTO_HW_CHANNELS {
                    return packed;
                }
                match (packed, self.build(Packing::Hw, labels)) {
                    (Ok(a), Ok(b)) => Ok(if b.seconds() < a.seconds() { b } else { a }),
                    (Ok(a), Err(_)) => Ok(a),
                    (Err(_), Ok(b)) => Ok(b),
                    (Err(a), Err(_)) => Err(a),
                }
            }
        }
    }

    fn build(self, packing: Packing, mut labels: Labels) -> Result<Built, BuildError> {
        let Self { positions, stats, options, .. } = self;
        let (placed, schedule) = self.smallest_ring(packing)?;
        labels.origin.packing = match packing {
            Packing::Hw => "hw".to_owned(),
            Packing::Packed => "packed".to_owned(),
        };
        let plans = emit::plans(&placed, positions, &schedule, &options.costs);
        let mut program = emit::emit(&placed, positions, &schedule, plans, labels)?;
        predict::predict(&mut program, &schedule, &layer_errors(self.circuit, &schedule), &options.costs);
        let prediction = &program.spec().prediction;
        let needed = prediction.key_bytes + prediction.ciphertext_bytes;
        if needed > options.memory {
            let slowest = program.spec().layers.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let layer = slowest.map_or_else(String::new, |l| l.name.clone());
            return Err(BuildError::Memory { needed, budget: options.memory, layer });
        }
        Ok(Built { placed, positions: positions.clone(), stats: stats.clone(), schedule, program })
    }

    /// Layouts and schedule at the smallest ring degree that has one.
    fn smallest_ring(self, packing: Packing) -> Result<(Placed, Schedule), BuildError> {
        let Self { positions, options, .. } = self;
        let fixed = options.params.fixed_log_n(positions.n_levels())?;
        let range = fixed.map_or(options.log_n.clone(), |log_n| log_n..=log_n);
        let mut last: Option<BuildError> = None;
        for log_n in range.clone() {
            // A level has at least the smallest prime: no layout is needed to see that a chain is too long.
            let least = f64::from(positions.n_levels()) * f64::from(log_n + 4);
            let too_long = security_cap(log_n).is_some_and(|cap| least > f64::from(cap)) && !options.insecure;
            if too_long && log_n < *range.end() {
                continue;
            }
            match self.at_ring(packing, log_n) {
                Ok(found) => return Ok(found),
                Err(error @ (BuildError::Layout(_) | BuildError::Schedule(_))) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(BuildError::Empty { depth: positions.depth(), sublevels: positions.sublevels() }))
    }

    /// The most precise schedule that costs little more than the cheapest one, among whole bits of precision from the
    /// wanted one down to the least.
    fn most_precise(self, problem: Problem<'_>) -> Result<Schedule, ScheduleError> {
        let (least, wanted) = (*self.options.precision.start(), *self.options.precision.end());
        let mut found: Vec<Schedule> = Vec::new();
        let mut precision = wanted;
        loop {
            let request = Request { precision, insecure: self.options.insecure };
            match schedule::schedule(problem, request, &self.options.costs) {
                Ok(schedule) => found.push(schedule),
                Err(ScheduleError::DoesNotFit { .. }) if precision > least || !found.is_empty() => {}
                Err(error) => return Err(error),
            }
            if precision <= least {
                break;
            }
            precision = (precision - 1.0).max(least);
        }
        let cheapest = found.iter().map(|s| s.seconds).fold(f64::INFINITY, f64::min);
        let affordable = |s: &Schedule| s.seconds <= cheapest * PRECISION_PREMIUM;
        Ok(found.into_iter().find(affordable).expect("the cheapest one is affordable"))
    }

    fn at_ring(self, packing: Packing, log_n: u32) -> Result<(Placed, Schedule), BuildError> {
        let Self { circuit, positions, stats, options } = self;
        let layouts = layout::assign(circuit, packing, 1 << (log_n - 1))?;
        let placed = Placed::new(circuit, positions, layouts)?;
        let facts = map_facts(&placed, positions, log_n, &options.costs)?;
        let problem = Problem { placed: &placed, facts: &facts, positions, stats, log_n };
        let schedule = match options.params.given(&problem, options.insecure)? {
            Some((spec, sizes)) => schedule::search::schedule_with(problem, spec, &sizes, &options.costs)?,
            None => self.most_precise(problem)?,
        };
        Ok((placed, schedule))
    }
}

/// What the noise of every value alone does to the results, as a deviation.
fn layer_errors(circuit: &Circuit, schedule: &Schedule) -> Vec<f64> {
    let mut variances = vec![0.0; circuit.values.len()];
    for contribution in &schedule.contributions {
        variances[contribution.value.index()] += contribution.variance(&schedule.chain);
    }
    variances.into_iter().map(f64::sqrt).collect()
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
        let n_numbers = placed.circuit.value(id).shape.len() * placed.layouts[id.index()].members();
        MapFacts::new(id, map, n_numbers, counts)
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

//! What a model costs in levels, pass by pass: the numbers behind `fhec levels`.
//!
//! Every number comes from running the passes on the graph and measuring what they leave behind. Levels without tower
//! reuse are the multiplicative depth; with it, two multiplications share a level (paper §4.3). The last row is counted on
//! the circuit that a build schedules.

mod degree;
mod render;
mod verify;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fhec_ir::cost::{depths, node_work, operand_costs, work};
use fhec_ir::{Graph, Op, verify};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, PassError, PassRun, pipeline};
use indexmap::IndexMap;
use serde::Serialize;

use crate::lower::lower;
use crate::report::Estimate;
use crate::timed::Timed;

pub use degree::with_degree;
pub use render::{Format, Shown, render};
pub use verify::{Agreement, OpenOriginal, Original, OriginalError, agreement};

/// Multiplications that share one level under tower reuse.
pub const SUBLEVELS: u32 = 2;

/// What to run and to show.
#[derive(Clone, Debug)]
pub struct LevelsOptions {
    /// Rewrites that may run; every configuration is cut down to them.
    pub allowed: Config,
    /// Only passes of these names run; all if empty.
    pub only: Vec<String>,
    /// Print the graph after these passes of the last configuration.
    pub print_after: Vec<String>,
    /// Stop the last configuration after this pass.
    pub stop_after: Option<String>,
    /// Compare the graph before and after every pass on this many random inputs.
    pub compare: usize,
}

impl Default for LevelsOptions {
    fn default() -> Self {
        LevelsOptions {
            allowed: Config::ALL,
            only: Vec::new(),
            print_after: Vec::new(),
            stop_after: None,
            compare: 0,
        }
    }
}

/// The levels of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelLevels {
    /// Name of the file.
    pub model: String,
    /// Highest degree of an activation.
    pub degree: usize,
    /// Levels by configuration: none, F, R, FR, FRT.
    pub levels: IndexMap<&'static str, u32>,
    /// The same rows with what else was measured.
    pub configurations: Vec<Row>,
    /// The nodes of the last configuration's graph.
    pub nodes: Vec<NodeRow>,
    /// Graphs that were asked for, by pass.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub printed: IndexMap<&'static str, String>,
    /// How long the passes of the last configuration took, in milliseconds.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub timings: IndexMap<&'static str, f64>,
    /// What the program costs, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<ModelCost>,
    /// How far the graph is from the original model, if that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// What a model costs once it is built, with default options and made-up inputs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelCost {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Levels of the chain.
    pub levels: u32,
    /// Seconds, bytes and memory.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// One configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// none, F, R, FR or FRT.
    pub name: &'static str,
    /// Rescaling primes.
    pub levels: u32,
    /// Multiplications on the longest path.
    pub depth: u32,
    /// Products of two encrypted numbers.
    pub ct_mults: u64,
    /// Products of an encrypted and a plain number.
    pub pt_mults: u64,
    /// Nodes of the graph.
    pub nodes: usize,
}

/// One node of the final graph.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    /// Its line in the printed graph.
    pub text: String,
    /// What it adds to the depth of its first operand.
    pub cost: u32,
    /// Multiplications on the longest path up to and including it.
    pub depth: u32,
    /// Products of two encrypted numbers.
    pub ct_mults: u64,
    /// Products of an encrypted and a plain number.
    pub pt_mults: u64,
    /// Nodes of the model it stands for.
    pub origins: Vec<String>,
    /// Passes that touched it.
    pub passes: Vec<&'static str>,
}

/// The final graph and the report about it.
#[derive(Debug)]
pub struct Analysis {
    /// The report.
    pub report: ModelLevels,
    /// The graph the last configuration leaves behind.
    pub graph: Graph,
}

/// Runs every configuration on a copy of the graph.
///
/// # Errors
/// When a pass fails or an option names a pass that does not exist.
pub fn analyze(model: &str, graph: &Graph, options: &LevelsOptions) -> Result<Analysis, PassError> {
    check_names(options)?;
    let mut rows = partial_rows(graph, options)?;
    let mut last = graph.clone();
    let manager_options = ManagerOptions {
        compare: options.compare,
        print_after: options.print_after.clone(),
        stop_after: options.stop_after.clone(),
        ..ManagerOptions::default()
    };
    let (runs, elapsed) = run(&mut last, Config::ALL, options, manager_options)?;
    rows.push(last_row(&last));
    let report = ModelLevels {
        model: model.to_owned(),
        degree: degree::highest(graph),
        levels: rows.iter().map(|r| (r.name, r.levels)).collect(),
        configurations: rows,
        nodes: node_rows(&last),
        printed: runs.iter().filter_map(|r| Some((r.name, r.printed.clone()?))).collect(),
        timings: runs
            .iter()
            .map(|r| (r.name, r.elapsed))
            .chain([("all, with checks", elapsed)])
            .map(|(name, t)| (name, t.as_secs_f64() * 1e3))
            .collect(),
        cost: None,
        agreement: None,
    };
    Ok(Analysis { report, graph: last })
}

/// The configurations that leave something out, each run on a copy of the graph.
///
/// # Errors
/// When a pass fails.
pub fn partial_rows(graph: &Graph, options: &LevelsOptions) -> Result<Vec<Row>, PassError> {
    let mut rows = Vec::new();
    for (name, config) in [("none", Config::NONE), ("F", Config::F), ("R", Config::R), ("FR", Config::FR)] {
        let mut copy = graph.clone();
        let manager_options = ManagerOptions { compare: options.compare, ..ManagerOptions::default() };
        run(&mut copy, config, options, manager_options)?;
        let depth = depths(&copy).total();
        rows.push(row(name, &copy, depth));
    }
    Ok(rows)
}

/// The row of a graph that all passes ran on, with tower reuse: the levels of the circuit that a build schedules.
///
/// # Panics
/// When the graph is not valid; passes leave a valid one behind.
#[must_use]
pub fn last_row(graph: &Graph) -> Row {
    let verified = verify(graph).expect("the manager verifies what passes leave behind");
    let timed = Timed::new(Arc::new(lower(verified)), SUBLEVELS);
    let positions = timed.positions();
    Row { depth: positions.depth(), ..row("FRT", graph, positions.n_levels()) }
}

/// The passes of the full pipeline with their summaries.
pub fn pass_list() -> Vec<(&'static str, &'static str)> {
    pipeline(Config::ALL).iter().map(|pass| (pass.name(), pass.summary())).collect()
}

fn check_names(options: &LevelsOptions) -> Result<(), PassError> {
    let names = pass_list();
    let asked = options.only.iter().chain(&options.print_after).chain(&options.stop_after);
    match asked.into_iter().find(|name| names.iter().all(|(known, _)| known != name)) {
        Some(name) => Err(PassError::NoSuchPass { name: name.clone() }),
        None => Ok(()),
    }
}

fn run(
    graph: &mut Graph,
    config: Config,
    options: &LevelsOptions,
    mut manager_options: ManagerOptions,
) -> Result<(Vec<PassRun>, Duration), PassError> {
    let allowed = options.allowed;
    let config = Config {
        fuse: config.fuse && allowed.fuse,
        forward: config.forward && allowed.forward,
        backward: config.backward && allowed.backward,
        finish: config.finish && allowed.finish,
    };
    let mut passes = pipeline(config);
    passes.retain(|pass| options.only.is_empty() || options.only.iter().any(|name| name == pass.name()));
    // A pass that is switched off cannot be printed or stopped after.
    let runs = |name: &String| passes.iter().any(|pass| pass.name() == name);
    manager_options.print_after.retain(runs);
    manager_options.stop_after = manager_options.stop_after.filter(runs);
    let start = Instant::now();
    let done = Manager::new(passes, manager_options)?.run(graph, &mut PassCx::default())?;
    Ok((done, start.elapsed()))
}

fn row(name: &'static str, graph: &Graph, levels: u32) -> Row {
    let work = work(graph);
    Row {
        name,
        levels,
        depth: depths(graph).total(),
        ct_mults: work.ct_mults,
        pt_mults: work.pt_mults,
        nodes: graph.len(),
    }
}

fn node_rows(graph: &Graph) -> Vec<NodeRow> {
    let depths = depths(graph);
    let text = fhec_ir::print(graph, fhec_ir::PrintOptions::default());
    graph
        .topo_order()
        .into_iter()
        .zip(text.lines())
        .filter(|(id, _)| !matches!(graph.op(*id), Op::Input { .. } | Op::Output))
        .map(|(id, line)| {
            let (node, work) = (graph.node(id), node_work(graph, id));
            NodeRow {
                text: line.to_owned(),
                cost: operand_costs(&node.op, graph.weights()).max(),
                depth: depths.of(id),
                ct_mults: work.ct_mults,
                pt_mults: work.pt_mults,
                origins: node.origins.clone(),
                passes: node.history.clone(),
            }
        })
        .collect()
}

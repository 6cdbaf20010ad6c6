//! Equality saturation over tensor graphs: build an e-graph, run rules until nothing new appears, take the cheapest graph.
//!
//! Before: a verified graph. After: a graph with the same outputs, never deeper. The e-graph holds factors as explicit
//! scale nodes, so redistribution is a set of local rules and the cheapest term is the global answer (ours).

mod build;
mod constants;
mod cost;
mod extract;
mod facts;
pub(crate) mod functions;
mod language;
mod select;

use std::time::Duration;

use egg::{Runner, SimpleScheduler, StopReason};
use fhec_ir::Graph;

use crate::pass::{Changed, PassCx, PassError, Saturation, Stop};
use crate::rules::Rule;

pub(crate) use facts::{EGraph, Facts};
pub(crate) use language::Lang;

/// Rounds after which saturation stops. Factors move one operation a round, so this bounds how far they travel.
const ITERATION_LIMIT: usize = 40;

/// E-nodes per node of the graph after which saturation stops; what was found until then is sound. Networks of layers
/// saturate at about fifteen; webs of joins without layers between them would go on.
const NODES_PER_NODE: usize = 40;

/// Replaces the graph by the cheapest one the rules can reach.
///
/// # Errors
/// When egg stops for a reason that would make the result depend on the machine.
pub(crate) fn saturate(
    graph: &mut Graph,
    rules: &[Rule],
    pass: &'static str,
    cx: &mut PassCx,
) -> Result<Changed, PassError> {
    let (egraph, root) = build::build(graph);
    let rewrites: Vec<_> = rules.iter().map(Rule::compile).collect();
    let runner: Runner<Lang, Facts> = Runner::new(Facts::default())
        .with_egraph(egraph)
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(ITERATION_LIMIT)
        .with_node_limit(1000 + NODES_PER_NODE * graph.len())
        .with_time_limit(Duration::from_secs(u64::MAX / 4))
        .run(&rewrites);
    let stop = match runner.stop_reason {
        Some(StopReason::Saturated) => Stop::Saturated,
        Some(StopReason::IterationLimit(_)) => Stop::RoundLimit,
        Some(StopReason::NodeLimit(_)) => Stop::NodeLimit,
        Some(StopReason::TimeLimit(_) | StopReason::Other(_)) | None => {
            return Err(PassError::SaturationStopped { pass });
        }
    };
    let n_nodes = runner.egraph.total_number_of_nodes();
    cx.saturated(Saturation { stop, rounds: runner.iterations.len(), n_nodes });
    cx.count("e-nodes", n_nodes as u64);
    for iteration in &runner.iterations {
        for (rule, n) in &iteration.applied {
            cx.count(rule.as_str(), *n as u64);
        }
    }
    let selection = select::Selection::new(&runner.egraph, root);
    let rebuilt = extract::extract(graph, &runner.egraph, &selection, root, pass)?;
    let changed = if is_same(graph, &rebuilt) { Changed::No } else { Changed::Yes };
    *graph = rebuilt;
    Ok(changed)
}

/// Whether two graphs over one weight table have the same nodes; a rebuilt graph keeps the ids of constants it does not
/// change.
fn is_same(a: &Graph, b: &Graph) -> bool {
    let ops = |graph: &Graph| -> Vec<fhec_ir::Op> {
        graph.topo_order().into_iter().map(|id| graph.op(id).clone()).collect()
    };
    ops(a) == ops(b)
}

//! The passes of a build as they ran: what each left behind, and how its graph is drawn.

use fhec_ir::Graph;
use fhec_ir::cost::depths;
use fhec_passes::{Changed, PassRun};

use super::drawing::Drawing;
use super::tensor_drawing;
use crate::levels::Row;

/// A model on its way through the passes.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// The model as imported, then the graph after every pass.
    pub stages: Vec<Stage>,
    /// Levels by configuration, as `fhec levels` counts them.
    pub configurations: Vec<Row>,
}

/// The graph at one point.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the pass, or what the stage is.
    pub name: String,
    /// What the pass does, or the stage is.
    pub summary: String,
    /// Multiplications on the longest path.
    pub depth: u32,
    /// Nodes.
    pub n_nodes: usize,
    /// Whether the pass changed the graph.
    pub changed: bool,
    /// What the pass counted, by name.
    pub counters: Vec<(String, u64)>,
    pub(super) drawing: Drawing,
}

impl Stages {
    /// Begins with a graph as imported.
    #[must_use]
    pub fn imported(graph: &Graph) -> Self {
        let stage = Stage {
            name: "imported".to_owned(),
            summary: "the model as read from its file".to_owned(),
            depth: depths(graph).total(),
            n_nodes: graph.len(),
            changed: false,
            counters: Vec::new(),
            drawing: tensor_drawing::draw(graph, None),
        };
        Self { stages: vec![stage], configurations: Vec::new() }
    }

    /// Notes what a pass did.
    pub fn push(&mut self, run: &PassRun, summary: &str, graph: &Graph) {
        self.stages.push(Stage {
            name: run.name.to_owned(),
            summary: summary.to_owned(),
            depth: run.depth,
            n_nodes: run.n_nodes,
            changed: run.changed == Changed::Yes,
            counters: run.report.counters.iter().map(|(name, n)| (name.clone(), *n)).collect(),
            drawing: tensor_drawing::draw(graph, Some(run.name)),
        });
    }
}

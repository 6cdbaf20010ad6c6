//! A model with its functions left open, led through by inputs: exactly, or with polynomials in their place.

use fhe_bytecode::Classes;
use fhec_ir::eval::{self, Value};
use fhec_ir::{Graph, MemberIdx, NodeId, Op};
use rayon::prelude::*;

use crate::import::{Fitted, Function, Gap, Imported};

/// What is applied at one gap.
#[derive(Clone, Copy)]
pub(super) enum Applied<'a> {
    /// The function itself.
    Function(&'a Function),
    /// A polynomial.
    Polynomial(&'a Fitted),
}

impl Applied<'_> {
    fn eval(self, channel: usize, x: f64) -> f64 {
        match self {
            Self::Function(function) => function.eval(x),
            Self::Polynomial(fitted) => fitted.eval(channel, x),
        }
    }
}

/// Numbers that reached one function.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerSeen {
    /// Some of them, from the same places for every run on the same inputs.
    pub(super) x: Vec<f64>,
    /// The channel of each.
    pub(super) channel: Vec<usize>,
    /// The smallest and the largest of all, channel by channel.
    pub(super) ranges: Vec<(f64, f64)>,
}

impl LayerSeen {
    /// Numbers of one channel that are all there are.
    #[cfg(test)]
    pub(super) fn of(x: &[f64]) -> Self {
        Self { x: x.to_vec(), channel: vec![0; x.len()], ranges: vec![range(x)] }
    }

    /// About `count` of a value's numbers, other ones for every `turn`.
    fn some(value: &Value, count: usize, turn: usize) -> Self {
        let area = value.shape.area().max(1);
        let step = value.data.len().div_ceil(count.max(value.shape.c)).max(1);
        let places: Vec<usize> = (turn % step..value.data.len()).step_by(step).collect();
        Self {
            x: places.iter().map(|&place| value.data[place]).collect(),
            channel: places.iter().map(|place| place / area).collect(),
            ranges: value.data.chunks(area).map(range).collect(),
        }
    }

    /// The smallest and the largest of all.
    pub(super) fn range(&self) -> (f64, f64) {
        self.ranges.iter().copied().reduce(wider).unwrap_or_default()
    }

    fn join(mut self, other: Self) -> Self {
        if self.ranges.is_empty() {
            return other;
        }
        self.x.extend(other.x);
        self.channel.extend(other.channel);
        self.widen(&other.ranges);
        self
    }

    /// Ranges that hold others too.
    pub(super) fn widen(&mut self, others: &[(f64, f64)]) {
        self.ranges.iter_mut().zip(others).for_each(|(own, &other)| *own = wider(*own, other));
    }
}

fn range(x: &[f64]) -> (f64, f64) {
    x.iter().map(|&x| (x, x)).reduce(wider).unwrap_or_default()
}

fn wider(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// What some inputs led to.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) layers: Vec<LayerSeen>,
    pub(super) scores: Vec<Vec<f64>>,
}

/// A graph with gaps.
pub(super) struct Network<'a> {
    graph: &'a Graph,
    gaps: &'a [Gap],
    order: Vec<NodeId>,
    input: NodeId,
    output: NodeId,
    classes: Classes,
}

impl<'a> Network<'a> {
    /// The network of a model that was read with its functions open.
    pub(super) fn new(open: &'a Imported) -> Self {
        let graph = &open.graph;
        // Nodes are made operands first, and what stands behind a gap after what stands before it.
        let mut order: Vec<NodeId> = graph.ids().collect();
        order.sort_unstable();
        let is_gap = |id: &NodeId| {
            let operand = graph.operands(*id)[0];
            open.gaps.iter().any(|gap| gap.before == operand)
        };
        let outputs = graph.outputs();
        let output = outputs.iter().copied().rfind(|id| !is_gap(id));
        let output = output.or(outputs.last().copied()).expect("an imported graph has an output");
        let (gaps, input) = (&open.gaps, graph.inputs()[0]);
        let classes = Classes::new(crate::layout::shape(graph.shape(output)), &open.ports, &open.tails);
        Self { graph, gaps, order, input, output, classes }
    }

    /// Which of the scores are those of classes.
    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The functions, in the order of the model.
    pub(super) fn functions(&self) -> impl Iterator<Item = &'a Function> {
        self.gaps.iter().map(|gap| &gap.function)
    }

    /// The gaps.
    pub(super) fn gaps(&self) -> &'a [Gap] {
        self.gaps
    }

    /// Every function itself.
    pub(super) fn exact(&self) -> Vec<Applied<'a>> {
        self.functions().map(Applied::Function).collect()
    }

    /// Polynomials for the first functions, the others as they are.
    pub(super) fn replaced<'b>(&'b self, polynomials: &'b [Fitted]) -> Vec<Applied<'b>> {
        let rest = self.functions().skip(polynomials.len()).map(Applied::Function);
        polynomials.iter().map(Applied::Polynomial).chain(rest).collect()
    }

    /// Scores with polynomials.
    pub(super) fn scores(&self, inputs: &[Vec<f64>], polynomials: &[Fitted]) -> Vec<Vec<f64>> {
        let applied = self.replaced(polynomials);
        inputs.par_iter().map(|input| self.run(input, &applied, usize::MAX, |_, _| {})).collect()
    }

    /// What reaches every function, at about `numbers` places of each.
    pub(super) fn observe(&self, inputs: &[Vec<f64>], applied: &[Applied<'_>], numbers: usize) -> Seen {
        self.observed(inputs, applied, numbers, usize::MAX)
    }

    /// What reaches one function behind polynomials.
    pub(super) fn observe_layer(
        &self,
        inputs: &[Vec<f64>],
        polynomials: &[Fitted],
        layer: usize,
        numbers: usize,
    ) -> LayerSeen {
        let applied = self.replaced(polynomials);
        self.observed(inputs, &applied, numbers, layer).layers.swap_remove(layer)
    }

    fn observed(&self, inputs: &[Vec<f64>], applied: &[Applied<'_>], numbers: usize, last: usize) -> Seen {
        let per_input = (numbers / inputs.len().max(1)).max(1);
        let of_input = |(i, input): (usize, &Vec<f64>)| {
            let mut layers = vec![LayerSeen::default(); self.gaps.len()];
            // Other places for every input, so that all positions count.
            let scores = self.run(input, applied, last, |layer, value| {
                layers[layer] = LayerSeen::some(value, per_input, i);
            });
            Seen { layers, scores: vec![scores] }
        };
        let all: Vec<Seen> = inputs.par_iter().enumerate().map(of_input).collect();
        all.into_iter().reduce(joined).unwrap_or_default()
    }

    /// Leads one input through the network, up to the gap `last`, and shows what reaches every function.
    fn run(
        &self,
        input: &[f64],
        applied: &[Applied<'_>],
        last: usize,
        mut see: impl FnMut(usize, &Value),
    ) -> Vec<f64> {
        let graph = self.graph;
        let mut values: Vec<Option<Value>> = vec![None; graph.bound()];
        for &id in &self.order {
            let gap = self.gaps.iter().position(|gap| gap.after == id);
            let value = match (graph.op(id), gap) {
                (_, Some(layer)) => {
                    let before = values[self.gaps[layer].before.index()].as_ref();
                    let before = before.expect("what stands before a gap is made before it");
                    see(layer, before);
                    if layer == last {
                        return Vec::new();
                    }
                    let area = before.shape.area().max(1);
                    let eval = |(place, &x): (usize, &f64)| applied[layer].eval(place / area, x);
                    let data = before.data.iter().enumerate().map(eval).collect();
                    Value { shape: before.shape, data }
                }
                (Op::Input { .. }, None) => {
                    let data = if id == self.input { input.to_vec() } else { Vec::new() };
                    Value { shape: graph.shape(id), data }
                }
                _ => {
                    let operands: Vec<&Value> = graph
                        .operands(id)
                        .iter()
                        .map(|o| values[o.index()].as_ref().expect("operands come first"))
                        .collect();
                    eval::apply(graph, id, &operands, MemberIdx::FIRST)
                }
            };
            values[id.index()] = Some(value);
        }
        values[self.output.index()].take().map_or_else(Vec::new, |value| value.data)
    }
}

fn joined(a: Seen, b: Seen) -> Seen {
    let layers = a.layers.into_iter().zip(b.layers).map(|(a, b)| a.join(b)).collect();
    let mut scores = a.scores;
    scores.extend(b.scores);
    Seen { layers, scores }
}

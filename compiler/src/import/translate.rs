//! Walks the model once, operands first, and builds the graph.
//!
//! Before: a [`Model`] whose values all have a maker. After: a graph with one output per distinct result, or every reason
//! why there is none. A refused node is replaced by a stand-in of its shape, so that one run finds all of them.

use std::collections::{HashMap, HashSet};

use fhe_bytecode::{Port, Tail};
use fhec_ir::{Graph, NodeId, Op, Shape};

use super::coefficient::Coefficient;
use super::constant::Constant;
use super::emit::Emitter;
use super::error::{Malformed, Refusal};
use super::limits::{Budget, MAX_NODES, MAX_RANK, MAX_VALUE_LEN, product};
use super::model::Model;
use super::node::Node;
use super::polynomial::Polynomial;
use super::readers::Readers;
use super::reason::Reason;
use super::region::{self, Region, Regions};
use super::value::{Encrypted, OpError, Scores, Value};
use super::view::View;
use super::{Functions, Gap, ImportOptions, Note, fold, gap, input, ops, output, tail};

/// What the translation of a model gives.
pub(super) struct Translated {
    pub(super) graph: Graph,
    pub(super) inputs: Vec<super::InputInfo>,
    /// ONNX names of the values behind the graph's outputs.
    pub(super) outputs: Vec<String>,
    /// How the model sees the numbers of the graph's output.
    pub(super) ports: Vec<Port>,
    /// What a client computes from them.
    pub(super) tails: Vec<Tail>,
    pub(super) gaps: Vec<Gap>,
    pub(super) notes: Vec<Note>,
    pub(super) refusals: Vec<Refusal>,
}

/// Translates a model.
pub(super) fn translate(
    model: &Model,
    budget: Budget,
    options: &ImportOptions,
) -> Result<Translated, Malformed> {
    let mut cx = Translator {
        model,
        options,
        emitter: Emitter::default(),
        budget,
        batch: 1,
        values: HashMap::new(),
        readers: Readers::new(model),
        notes: Vec::new(),
        refusals: Vec::new(),
        refused_inner: HashSet::new(),
        gaps: Vec::new(),
    };
    let inputs = input::declare_all(&mut cx)?;
    let regions = match options.functions {
        Functions::Refused => Regions::default(),
        _ => region::find(model, |node| node.op == "Sigmoid" && tail::is_behind(&cx, node))?,
    };
    for (i, node) in model.nodes.iter().enumerate() {
        if regions.is_inner(i) {
            continue;
        }
        let translated = match regions.ending_at(i) {
            None => cx.translate_node(node),
            Some(region) => cx.translate_region(node, region),
        };
        match translated {
            // What stands in for a refused node has its shape only where the file tells it: the refusals are what is certain.
            Err(_) if !cx.refusals.is_empty() => break,
            translated => translated?,
        }
        if cx.emitter.graph.len() > MAX_NODES {
            return Err(node.malformed(format!(
                "is where the network has more than {MAX_NODES} operations, too many to be optimized as one; build it in parts"
            )));
        }
        cx.release(node);
    }
    let (outputs, ports, tails) = output::declare_all(&mut cx);
    let mut graph = cx.emitter.graph;
    graph.remove_dead();
    Ok(Translated {
        graph,
        inputs,
        outputs,
        ports,
        tails,
        gaps: cx.gaps,
        notes: cx.notes,
        refusals: cx.refusals,
    })
}

/// The state of a translation.
pub(super) struct Translator<'m> {
    pub(super) model: &'m Model,
    pub(super) options: &'m ImportOptions,
    pub(super) emitter: Emitter,
    pub(super) budget: Budget,
    /// Batch size the model was exported with; the translation always uses one.
    pub(super) batch: usize,
    values: HashMap<String, Value>,
    pub(super) readers: Readers<'m>,
    pub(super) notes: Vec<Note>,
    /// Functions that the graph leaves open.
    pub(super) gaps: Vec<Gap>,
    refusals: Vec<Refusal>,
    /// Nodes behind the scores whose result goes on into the network, and were refused for it.
    refused_inner: HashSet<String>,
}

impl Translator<'_> {
    /// Gives a name its value. A value that something else than arithmetic reads becomes a node.
    pub(super) fn bind(&mut self, name: &str, value: Value) -> Result<(), Reason> {
        let value = match value {
            Value::Encrypted(mut x) => {
                x.is_exclusive &= self.readers.count(name) == 1;
                Value::Encrypted(if self.readers.is_structural(name) { self.committed(x)? } else { x })
            }
            other => other,
        };
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// The value of an operand; `None` if it is left out.
    pub(super) fn operand(&self, node: &Node, slot: usize) -> Option<Value> {
        self.value(node.input(slot)?)
    }

    /// An operand that must be there and encrypted.
    pub(super) fn encrypted(&self, node: &Node, slot: usize) -> Result<Encrypted, OpError> {
        match self.operand(node, slot) {
            Some(Value::Encrypted(x)) if !x.is_float => Err(Reason::Integers.into()),
            Some(Value::Encrypted(x)) => Ok(x),
            Some(_) => Err(Reason::NotConstant("other operand").into()),
            None => Err(node.malformed(format!("has no operand {slot}")).into()),
        }
    }

    /// An operand that must be constant if it is there.
    pub(super) fn optional_constant(
        &self,
        node: &Node,
        slot: usize,
        what: &'static str,
    ) -> Result<Option<Constant>, OpError> {
        match self.operand(node, slot) {
            None => Ok(None),
            Some(Value::Constant(constant)) => Ok(Some(constant)),
            Some(Value::Text(_)) => Err(node.malformed(format!("has strings for its {what}")).into()),
            Some(_) => Err(Reason::NotConstant(what).into()),
        }
    }

    /// An operand that must be there and constant.
    pub(super) fn constant(&self, node: &Node, slot: usize, what: &'static str) -> Result<Constant, OpError> {
        let found = self.optional_constant(node, slot, what)?;
        found.ok_or_else(|| node.malformed(format!("has no {what}")).into())
    }

    /// Integers from an attribute (older operator sets) or a constant operand (newer ones).
    pub(super) fn ints(
        &self,
        node: &Node,
        attribute: &str,
        slot: usize,
    ) -> Result<Option<Vec<i64>>, OpError> {
        if let Some(values) = node.ints(attribute)? {
            return Ok(Some(values.to_vec()));
        }
        let Some(constant) = self.optional_constant(node, slot, "list of integers")? else { return Ok(None) };
        let values =
            constant.as_ints().ok_or_else(|| node.malformed("has a list of integers that holds none"))?;
        // Two numbers per dimension, or one per result, is the most that any operator takes.
        if values.len() > (2 * MAX_RANK).max(node.outputs.len()) {
            return Err(node.malformed(format!("has a list of {} integers", values.len())).into());
        }
        Ok(Some(values.to_vec()))
    }

    /// The node of a value, made now if need be.
    pub(super) fn node_of(&mut self, x: &Encrypted) -> Result<NodeId, Reason> {
        match x.polynomial.as_source() {
            Some(id) => Ok(id),
            None => {
                self.budget.spend(x.polynomial.len()).ok_or(Reason::TooManyConstants)?;
                self.emitter.emit(&x.polynomial, &x.origin)
            }
        }
    }

    /// The same value as a node of its own.
    pub(super) fn committed(&mut self, x: Encrypted) -> Result<Encrypted, Reason> {
        if x.polynomial.as_source().is_some() {
            return Ok(x);
        }
        let id = self.node_of(&x)?;
        Ok(x.with_polynomial(Polynomial::source(id, x.view.shape())))
    }

    /// The value that all elements of a constant share.
    pub(super) fn uniform(&mut self, node: &Node, constant: &Constant) -> Result<Option<f64>, Malformed> {
        self.budget.take(node, &constant.dims)?;
        Ok(constant.uniform())
    }

    /// Charges the numbers of a polynomial's coefficients that `node` computes.
    pub(super) fn charge(&mut self, node: &Node, numbers: usize) -> Result<(), Malformed> {
        self.budget.take(node, &[numbers]).map(drop)
    }

    /// A constant as it meets a value seen through `view`; `None` if it does not broadcast to it.
    pub(super) fn coefficient(
        &mut self,
        node: &Node,
        constant: &Constant,
        view: &View,
    ) -> Result<Option<Coefficient>, Malformed> {
        if let Some(value) = self.uniform(node, constant)? {
            return Ok(Some(Coefficient::Scalar(value)));
        }
        self.budget.take(node, view.dims())?;
        Ok(Coefficient::from_constant(constant, view))
    }

    /// Adds a node and returns its value as an ONNX tensor seen through `view(shape)`.
    pub(super) fn add(
        &mut self,
        op: Op,
        operands: &[NodeId],
        node: &Node,
        view: impl FnOnce(Shape) -> View,
    ) -> Result<Encrypted, OpError> {
        let id = self.emitter.add(op, operands, &node.name)?;
        let shape = self.emitter.graph.shape(id);
        if product(&shape.dims(), MAX_VALUE_LEN).is_none() {
            return Err(Reason::TooLarge.into());
        }
        Ok(Encrypted::new(Polynomial::source(id, shape), view(shape), &node.name))
    }

    /// A weight for the graph.
    pub(super) fn weight(&mut self, node: &Node, constant: &Constant) -> Result<fhec_ir::TensorId, OpError> {
        self.budget.take(node, &constant.dims)?;
        let tensor = constant.to_tensor().filter(fhec_ir::Tensor::is_finite);
        let tensor = tensor.ok_or_else(|| node.malformed("has weights that are not finite numbers"))?;
        Ok(self.emitter.graph.add_tensor(tensor))
    }

    /// Notes a node that cannot be encrypted.
    pub(super) fn refuse(&mut self, node: &Node, shape: Option<&[usize]>, reason: Reason) {
        let noted = || node.outputs.first().and_then(|o| self.model.noted_shapes.get(o)).cloned();
        let shape = shape.map(<[usize]>::to_vec).or_else(noted);
        self.refusals.push(Refusal { node: node.name.clone(), op: node.op.clone(), shape, reason });
    }

    /// Notes an input or output that cannot be encrypted; what depends on it is not known.
    pub(super) fn refuse_end(&mut self, refusal: Refusal) {
        self.values.insert(refusal.node.clone(), Value::Unknown);
        self.refusals.push(refusal);
    }

    /// What a name stands for.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let initializer = || self.model.constants.get(name).cloned().map(Value::Constant);
        let text = || self.model.texts.get(name).cloned().map(Value::Text);
        self.values.get(name).cloned().or_else(initializer).or_else(text)
    }

    /// Translates a node as if other values stood for its operands.
    pub(super) fn translate_on(
        &mut self,
        node: &Node,
        operands: &[(String, Value)],
    ) -> Result<Vec<Value>, OpError> {
        let exchange = |cx: &mut Self, all: &[(String, Value)]| -> Vec<(String, Value)> {
            let put = |(name, value): &(String, Value)| {
                Some((name.clone(), cx.values.insert(name.clone(), value.clone())?))
            };
            all.iter().filter_map(put).collect()
        };
        let before = exchange(self, operands);
        let translated = ops::translate(self, node);
        exchange(self, &before);
        translated
    }

    /// Notes a softmax whose result goes on into the network, once.
    pub(super) fn refuse_inner(&mut self, scores: &Scores) {
        if self.refused_inner.insert(scores.node.clone()) {
            let (node, op) = (scores.node.clone(), scores.op.clone());
            let shape = Some(scores.value.view.dims().to_vec());
            self.refusals.push(Refusal { node, op, shape, reason: Reason::InnerSoftmax });
        }
    }

    /// Nothing is known of a value any more.
    pub(super) fn forget(&mut self, name: &str) {
        self.values.insert(name.to_owned(), Value::Unknown);
    }

    /// Translates a function of several nodes at once; node by node where it is of a constant.
    fn translate_region(&mut self, node: &Node, region: &Region) -> Result<(), Malformed> {
        if !gap::translate(self, node, region)? {
            for &i in &region.nodes {
                self.translate_node(&self.model.nodes[i])?;
            }
        }
        for &i in region.nodes.iter().filter(|&&i| !std::ptr::eq(&self.model.nodes[i], node)) {
            self.release(&self.model.nodes[i]);
        }
        Ok(())
    }

    fn translate_node(&mut self, node: &Node) -> Result<(), Malformed> {
        let values = match self.results(node) {
            Ok(values) => values,
            Err(OpError::Malformed(error)) => return Err(error),
            Err(OpError::Refused(reason)) => {
                self.refuse(node, None, reason);
                vec![self.stand_in(node)]
            }
        };
        for (name, mut value) in node.outputs.iter().zip(values).filter(|(name, _)| !name.is_empty()) {
            if let Value::Encrypted(x) = &mut value {
                x.origin.clone_from(&node.name);
            }
            if let Err(reason) = self.bind(name, value) {
                self.refuse(node, None, reason);
                self.values.insert(name.clone(), Value::Unknown);
            }
        }
        // Results nobody gave a value, such as the mask of a dropout, are not known.
        for name in &node.outputs {
            self.values.entry(name.clone()).or_insert(Value::Unknown);
        }
        Ok(())
    }

    /// Forgets values that nobody reads any more.
    fn release(&mut self, node: &Node) {
        for name in &node.inputs {
            if self.readers.done(name) {
                self.values.remove(name);
            }
        }
    }

    fn results(&mut self, node: &Node) -> Result<Vec<Value>, OpError> {
        let operands: Vec<Value> =
            (0..node.inputs.len()).filter_map(|slot| self.operand(node, slot)).collect();
        if operands.iter().all(|v| matches!(v, Value::Constant(_))) {
            let constants = (0..node.inputs.len()).map(|slot| match self.operand(node, slot) {
                Some(Value::Constant(constant)) => Some(constant),
                _ => None,
            });
            return fold::fold(node, &constants.collect::<Vec<_>>(), &mut self.budget);
        }
        if let Some(values) = tail::results(self, node, &operands)? {
            return Ok(values);
        }
        if operands.iter().any(|v| matches!(v, Value::Text(_))) {
            return match node.op.as_str() {
                "ArrayFeatureExtractor" | "Gather" | "Where" | "ZipMap" => {
                    Err(Reason::Learned("it chooses labels by an encrypted number").into())
                }
                _ => Err(node.malformed("reads strings where numbers are meant").into()),
            };
        }
        if operands.iter().any(|v| matches!(v, Value::Unknown)) {
            if let Some(reason) = ops::known_refusal(self, node) {
                self.refuse(node, None, reason);
            }
            return Ok(vec![self.stand_in(node)]);
        }
        ops::translate(self, node)
    }

    /// Something of the right shape in place of a refused node; the graph is not used any more, only checked further.
    fn stand_in(&mut self, node: &Node) -> Value {
        let noted = node.outputs.first().and_then(|name| self.model.noted_shapes.get(name));
        let Some(shape) = noted.and_then(|dims| input::shape_of(dims)) else { return Value::Unknown };
        match self.emitter.add(Op::Input { shape }, &[], &node.name) {
            Ok(id) => {
                let view = View::nchw(shape).reshape(noted.cloned().unwrap_or_default());
                let view = view.unwrap_or_else(|| View::nchw(shape));
                Value::Encrypted(Encrypted::new(Polynomial::source(id, shape), view, &node.name))
            }
            Err(_) => Value::Unknown,
        }
    }
}

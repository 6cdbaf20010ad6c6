//! The model as read: nodes in topological order, constants, declared inputs and outputs.
//!
//! What holds after [`read`]: every value a live node reads is a constant, an input or made by an earlier node; no value is
//! made twice; nodes no output depends on are gone; constants match their extents.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fhec_onnx::{DataType, DimensionValue, TensorType, TypeValue, ValueInfoProto};

use super::constant::Constant;
use super::error::Malformed;
use super::external::ExternalData;
use super::limits::Budget;
use super::node::Node;
use super::proto;
use super::tensor::{self, Read};

/// An ONNX model, read and checked.
#[derive(Debug)]
pub(super) struct Model {
    /// Live nodes, operands first.
    pub(super) nodes: Vec<Node>,
    /// Initializers by name.
    pub(super) constants: HashMap<String, Constant>,
    /// Initializers that hold strings, by name.
    pub(super) texts: HashMap<String, Arc<[String]>>,
    /// Inputs that are not initializers.
    pub(super) inputs: Vec<Declared>,
    /// Names of the outputs.
    pub(super) outputs: Vec<String>,
    /// Shapes the exporter noted, for messages.
    pub(super) noted_shapes: HashMap<String, Vec<usize>>,
    /// Metadata lines.
    pub(super) metadata: BTreeMap<String, String>,
    /// Version of the standard operator set.
    pub(super) opset: i64,
    /// The exporter.
    pub(super) producer: String,
}

/// A declared input.
#[derive(Debug)]
pub(super) struct Declared {
    /// Its name.
    pub(super) name: String,
    /// Its extents; `None` where symbolic.
    pub(super) dims: Vec<Option<usize>>,
    /// Whether its elements are floating point.
    pub(super) is_float: bool,
}

/// Decodes and checks a model.
pub(super) fn read(
    bytes: Vec<u8>,
    external: &mut ExternalData,
    budget: &mut Budget,
) -> Result<Model, Malformed> {
    let proto = proto::decode(&bytes)?;
    drop(bytes);
    let graph = proto.graph.ok_or(Malformed::NoGraph)?;
    let (mut constants, mut texts) = (HashMap::new(), HashMap::new());
    for initializer in graph.initializer {
        let name = initializer.name.clone();
        let is_new = match tensor::read(initializer, external, budget)? {
            Read::Numbers(constant) => {
                constants.insert(name.clone(), constant).is_none() && !texts.contains_key(&name)
            }
            Read::Text(strings) => {
                texts.insert(name.clone(), strings.into()).is_none() && !constants.contains_key(&name)
            }
        };
        if !is_new {
            return Err(Malformed::MadeTwice(name));
        }
    }
    if let Some(sparse) = graph.sparse_initializer.first() {
        let name = sparse.values.as_ref().map(|t| t.name.clone()).unwrap_or_default();
        return Err(Malformed::Tensor { tensor: name, problem: "is sparse, which is not supported".into() });
    }
    let noted = graph.value_info.iter().chain(&graph.output);
    let noted_shapes = noted.filter_map(|info| Some((info.name.clone(), noted_shape(info)?))).collect();
    let is_initializer = |name: &String| constants.contains_key(name) || texts.contains_key(name);
    let inputs: Vec<Declared> =
        graph.input.iter().filter(|i| !is_initializer(&i.name)).map(declared).collect();
    let outputs: Vec<String> = graph.output.into_iter().map(|o| o.name).collect();
    if inputs.is_empty() {
        return Err(Malformed::NoSuchEnd("input"));
    }
    if outputs.is_empty() {
        return Err(Malformed::NoSuchEnd("output"));
    }
    let nodes =
        graph.node.into_iter().map(|n| Node::read(n, external, budget)).collect::<Result<Vec<_>, _>>()?;
    let given: HashSet<&str> = inputs
        .iter()
        .map(|i| &i.name)
        .chain(constants.keys())
        .chain(texts.keys())
        .map(String::as_str)
        .collect();
    let nodes = sorted(nodes, &given)?;
    let made = nodes.iter().flat_map(|n| &n.outputs).map(String::as_str);
    let known: HashSet<&str> = made.chain(given).collect();
    if let Some(missing) = outputs.iter().find(|o| !known.contains(o.as_str())) {
        return Err(Malformed::Dangling { node: "graph output".into(), value: missing.clone() });
    }
    let opset = proto.opset_import.iter().find(|o| o.domain.is_empty() || o.domain == "ai.onnx");
    Ok(Model {
        nodes,
        constants,
        texts,
        inputs,
        outputs,
        noted_shapes,
        metadata: proto.metadata_props.into_iter().map(|e| (e.key, e.value)).collect(),
        opset: opset.map_or(1, |o| o.version),
        producer: proto.producer_name,
    })
}

impl Model {
    /// Leaves the outputs of these names, if there are any, and the nodes that outputs depend on.
    ///
    /// # Errors
    /// A name that no output has.
    pub(super) fn keep(&mut self, names: &[String]) -> Result<(), String> {
        if let Some(unknown) = names.iter().find(|name| !self.outputs.contains(name)) {
            return Err(unknown.clone());
        }
        if !names.is_empty() {
            self.outputs.retain(|output| names.contains(output));
        }
        let mut needed: HashSet<String> = self.outputs.iter().cloned().collect();
        let mut is_live = vec![false; self.nodes.len()];
        for (node, is_live) in self.nodes.iter().zip(&mut is_live).rev() {
            *is_live = node.outputs.iter().any(|output| needed.contains(output));
            if *is_live {
                needed.extend(node.inputs.iter().cloned());
            }
        }
        let mut live = is_live.into_iter();
        self.nodes.retain(|_| live.next().unwrap_or(false));
        if !names.is_empty() {
            // An input that nothing asks for any more is not asked for either.
            self.inputs.retain(|input| needed.contains(&input.name));
        }
        Ok(())
    }

    /// Outputs that none of some nodes and values is needed for.
    pub(super) fn outputs_without(
        &self,
        is_in: impl Fn(&Node) -> bool,
        values: &HashSet<&str>,
    ) -> Vec<String> {
        let mut depends: HashSet<&str> = values.clone();
        for node in &self.nodes {
            if is_in(node) || node.inputs.iter().any(|input| depends.contains(input.as_str())) {
                depends.extend(node.outputs.iter().map(String::as_str));
            }
        }
        self.outputs.iter().filter(|output| !depends.contains(output.as_str())).cloned().collect()
    }
}

/// Operands first; nodes that are ready keep the order of the file.
fn sorted(nodes: Vec<Node>, given: &HashSet<&str>) -> Result<Vec<Node>, Malformed> {
    let makers: HashMap<&str, usize> =
        nodes.iter().enumerate().flat_map(|(i, n)| n.outputs.iter().map(move |o| (o.as_str(), i))).collect();
    let mut missing = vec![0_usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        for value in node.inputs.iter().filter(|v| !v.is_empty()) {
            if let Some(&maker) = makers.get(value.as_str()) {
                missing[i] += 1;
                readers[maker].push(i);
            } else if !given.contains(value.as_str()) {
                return Err(Malformed::Dangling { node: node.name.clone(), value: value.clone() });
            }
        }
    }
    let mut ready: VecDeque<usize> = (0..nodes.len()).filter(|&i| missing[i] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(i) = ready.pop_front() {
        order.push(i);
        for &reader in &readers[i] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.push_back(reader);
            }
        }
    }
    if let Some(stuck) = (0..nodes.len()).find(|&i| missing[i] > 0) {
        return Err(Malformed::Cycle(nodes[stuck].name.clone()));
    }
    let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| slots[i].take()).collect())
}

fn declared(info: &ValueInfoProto) -> Declared {
    let tensor = tensor_type(info);
    let kind = tensor.and_then(|t| DataType::try_from(t.elem_type).ok());
    let is_float = matches!(
        kind,
        Some(
            DataType::Float | DataType::Double | DataType::Float16 | DataType::Bfloat16 | DataType::Undefined
        ) | None
    );
    Declared { name: info.name.clone(), dims: tensor.map(dims).unwrap_or_default(), is_float }
}

fn noted_shape(info: &ValueInfoProto) -> Option<Vec<usize>> {
    let dims = Some(dims(tensor_type(info)?)).filter(|d| !d.is_empty())?;
    // Only the batch may be symbolic; it is one here.
    dims.iter().enumerate().map(|(i, d)| d.or((i == 0).then_some(1))).collect()
}

fn tensor_type(info: &ValueInfoProto) -> Option<&TensorType> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::TensorType(tensor) => Some(tensor),
    }
}

fn dims(tensor: &TensorType) -> Vec<Option<usize>> {
    let dims = tensor.shape.iter().flat_map(|s| &s.dim);
    dims.map(|d| match d.value {
        Some(DimensionValue::DimValue(v)) => usize::try_from(v).ok().filter(|&v| v > 0),
        _ => None,
    })
    .collect()
}

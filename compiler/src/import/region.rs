//! Where a model applies a function of one number that is no polynomial, in however many nodes it spells it.
//!
//! From a node such as Sigmoid or Erf a region grows over element-wise nodes whose operands are constants, each other, or one
//! value, its root. Of all such regions with one way out the largest is taken, so that `x * sigmoid(x)` is one function of x.

use std::collections::{HashMap, HashSet};

use super::error::Malformed;
use super::function::{Function, Kind, Operand};
use super::model::Model;
use super::node::Node;

/// Most nodes of a region.
const MAX_NODES: usize = 24;
/// Most nodes in front of the first function that are part of its region.
const MAX_BEFORE: usize = 6;

/// A function of one value of the model.
pub(super) struct Region {
    /// The value.
    pub(super) root: String,
    /// Its nodes, by position in the model; the last one makes the result.
    pub(super) nodes: Vec<usize>,
    /// The node that messages name.
    pub(super) name: String,
    /// What it computes.
    pub(super) function: Function,
}

/// All regions of a model.
#[derive(Default)]
pub(super) struct Regions {
    by_end: HashMap<usize, Region>,
    inner: HashSet<usize>,
}

impl Regions {
    /// The region that ends with a node.
    pub(super) fn ending_at(&self, node: usize) -> Option<&Region> {
        self.by_end.get(&node)
    }

    /// Whether a node is part of a region that ends later.
    pub(super) fn is_inner(&self, node: usize) -> bool {
        self.inner.contains(&node)
    }
}

/// Finds the regions of a model; nodes that are the client's are left to it.
pub(super) fn find(model: &Model, is_client: impl Fn(&Node) -> bool) -> Result<Regions, Malformed> {
    let facts = Facts::new(model)?;
    let mut regions = Regions::default();
    for (i, node) in model.nodes.iter().enumerate() {
        let is_known = regions.inner.contains(&i) || regions.by_end.contains_key(&i);
        let is_function = facts.kinds[i].as_ref().is_some_and(|kind| !kind.is_arithmetic());
        if is_known || !is_function || is_client(node) {
            continue;
        }
        let is_free = |region: &Region| {
            region.nodes.iter().all(|n| !regions.inner.contains(n) && !regions.by_end.contains_key(n))
        };
        let found = facts.roots(i).into_iter().rev().filter_map(|root| facts.grown(root, i)).find(is_free);
        if let Some(region) = found {
            let (&end, inner) = region.nodes.split_last().expect("a region has a node");
            regions.inner.extend(inner);
            regions.by_end.insert(end, region);
        }
    }
    Ok(regions)
}

struct Facts<'m> {
    model: &'m Model,
    scalars: HashMap<&'m str, f64>,
    kinds: Vec<Option<Kind>>,
    makers: HashMap<&'m str, usize>,
    readers: HashMap<&'m str, Vec<usize>>,
    outputs: HashSet<&'m str>,
}

impl<'m> Facts<'m> {
    fn new(model: &'m Model) -> Result<Self, Malformed> {
        let single = |constant: &super::constant::Constant| (constant.len() == 1).then(|| constant.get(0));
        let initializers = model.constants.iter().filter_map(|(name, c)| Some((name.as_str(), single(c)?)));
        let nodes = model.nodes.iter().filter(|node| node.op == "Constant").filter_map(|node| {
            Some((node.outputs.first()?.as_str(), node.tensor("value").and_then(single)?))
        });
        let scalars: HashMap<&str, f64> = initializers.chain(nodes).collect();
        let kinds = model.nodes.iter().map(|node| Kind::of(node, &scalars)).collect::<Result<Vec<_>, _>>()?;
        let (mut makers, mut readers) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
        for (i, node) in model.nodes.iter().enumerate() {
            makers.extend(node.outputs.iter().map(|name| (name.as_str(), i)));
            node.inputs.iter().for_each(|name| readers.entry(name.as_str()).or_default().push(i));
        }
        let outputs = model.outputs.iter().map(String::as_str).collect();
        Ok(Self { model, scalars, kinds, makers, readers, outputs })
    }

    /// The operands of a node that are no constants.
    fn data(&self, node: usize) -> impl Iterator<Item = &'m str> {
        let n = self.kinds[node].as_ref().map_or(0, |kind| kind.n_operands(&self.model.nodes[node]));
        let inputs = self.model.nodes[node].inputs.iter().take(n).map(String::as_str);
        inputs.filter(|name| !self.scalars.contains_key(name))
    }

    /// Values that a region around a node may be a function of, the nearest first.
    fn roots(&self, node: usize) -> Vec<&'m str> {
        let mut roots: Vec<&str> = Vec::new();
        let mut at = node;
        while roots.len() < MAX_BEFORE {
            let Some(root) = self.data(at).next() else { break };
            roots.push(root);
            match self.makers.get(root) {
                Some(&maker) if self.kinds[maker].as_ref().is_some_and(Kind::is_arithmetic) => at = maker,
                _ => break,
            }
        }
        roots
    }

    /// The largest region of a root that holds a node and has one way out.
    fn grown(&self, root: &'m str, node: usize) -> Option<Region> {
        let first = self.makers.get(root).map_or(0, |maker| maker + 1);
        let mut known: HashMap<&str, Operand> = HashMap::from([(root, Operand::X)]);
        let mut members: Vec<usize> = Vec::new();
        for i in first..self.model.nodes.len() {
            let is_member = self.kinds[i].is_some()
                && self.data(i).next().is_some()
                && self.data(i).all(|name| known.contains_key(name));
            if is_member {
                known.insert(self.model.nodes[i].outputs[0].as_str(), Operand::Step(members.len()));
                members.push(i);
            }
            if members.len() == MAX_NODES {
                break;
            }
        }
        let ends = members.iter().rev().copied();
        ends.filter_map(|end| self.closed(end, &members)).find(|nodes| nodes.contains(&node)).map(|nodes| {
            let of = |i: &usize| self.kinds[*i].as_ref().is_some_and(|kind| !kind.is_arithmetic());
            let named = nodes.iter().find(|i| of(i)).copied().unwrap_or(node);
            let name = self.model.nodes[named].name.clone();
            Region { root: root.to_owned(), function: self.function(root, &nodes), name, nodes }
        })
    }

    /// The members that an end depends on, if nothing else reads any of them.
    fn closed(&self, end: usize, members: &[usize]) -> Option<Vec<usize>> {
        let mut nodes = HashSet::from([end]);
        for &i in members.iter().rev() {
            let output = self.model.nodes[i].outputs[0].as_str();
            let read_by = self.readers.get(output).map_or(&[][..], Vec::as_slice);
            if i != end && read_by.iter().any(|reader| nodes.contains(reader)) {
                if self.outputs.contains(output) || !read_by.iter().all(|reader| nodes.contains(reader)) {
                    return None;
                }
                nodes.insert(i);
            }
        }
        let mut nodes: Vec<usize> = nodes.into_iter().collect();
        nodes.sort_unstable();
        Some(nodes)
    }

    fn function(&self, root: &str, nodes: &[usize]) -> Function {
        let mut known: HashMap<&str, Operand> = HashMap::from([(root, Operand::X)]);
        let mut steps = Vec::with_capacity(nodes.len());
        for (step, &i) in nodes.iter().enumerate() {
            let node = &self.model.nodes[i];
            let Some(kind) = self.kinds[i].clone() else { continue };
            let operand = |name: &String| match self.scalars.get(name.as_str()) {
                Some(&value) => Operand::Constant(value),
                None => known.get(name.as_str()).copied().unwrap_or(Operand::X),
            };
            let operands = node.inputs.iter().take(kind.n_operands(node)).map(operand).collect();
            steps.push((kind, operands));
            known.insert(node.outputs[0].as_str(), Operand::Step(step));
        }
        Function::new(steps)
    }
}

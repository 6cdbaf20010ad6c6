//! The circuit between the tensor graph and the scheduled program.
//!
//! A circuit has three kinds of values: inputs, sums of linear maps of earlier values plus a constant, and products of two
//! values. Everything a tensor graph can say is spelled with them. What holds ([`Circuit::judge`]):
//!
//! 1. a value comes after its operands, and there is a result;
//! 2. factors have the extent of their product; summands that keep their place have that of their sum;
//! 3. a convolution reads the extent of its operand and gives that of its sum;
//! 4. factors per channel or element and constants have `[C]` or `[C,H,W]`; every constant has one tensor for all members
//!    or one for each;
//! 5. a sum has a summand.

use fhec_ir::{NodeId, Shape};

use super::constant::Constant;
use super::conv::Conv;

/// A value of a [`Circuit`]; printed `v3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// Position in the circuit.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for ValueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// What a value is computed from.
#[derive(Clone, Debug)]
pub enum CircuitOp {
    /// An encrypted input.
    Input,
    /// A sum of linear maps and a constant.
    Affine(Affine),
    /// The product of two values, number by number.
    Product([ValueId; 2]),
}

/// A sum of linear maps and a constant.
#[derive(Clone, Debug, Default)]
pub struct Affine {
    /// The summands.
    pub terms: Vec<Term>,
    /// The constant, `[C]` or `[C,H,W]`.
    pub bias: Option<Constant>,
}

/// A linear map of a value.
#[derive(Clone, Debug)]
pub struct Term {
    /// The operand.
    pub source: ValueId,
    /// What happens to it.
    pub map: Map,
}

/// A linear map.
#[derive(Clone, Debug)]
pub enum Map {
    /// The value itself.
    Identity,
    /// A factor per channel (`[C]`) or per element (`[C,H,W]`).
    Diagonal(Constant),
    /// A convolution.
    Conv(Conv),
}

/// A value with its extent and origin.
#[derive(Clone, Debug)]
pub struct Value {
    /// What computes it.
    pub op: CircuitOp,
    /// Its extent.
    pub shape: Shape,
    /// The graph node it stands for.
    pub node: NodeId,
    /// Name of the layer, for messages and profiles.
    pub name: String,
}

/// Values in order of computation, and which of them are the results.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    /// All values; operands first.
    pub values: Vec<Value>,
    /// The results, in the order of the graph's outputs.
    pub outputs: Vec<ValueId>,
    /// Models that share the circuit, each with its own constants.
    pub n_members: usize,
    /// Whether the results are sums over the members, one tensor for all, instead of one per member.
    pub merged: bool,
}

impl Map {
    /// Multiplications the map puts on the path of its operand.
    #[must_use]
    pub fn depth(&self) -> u32 {
        match self {
            Self::Identity => 0,
            Self::Diagonal(_) | Self::Conv(_) => 1,
        }
    }
}

impl CircuitOp {
    /// The operands, in order and with repetitions.
    #[must_use]
    pub fn sources(&self) -> Vec<ValueId> {
        match self {
            Self::Input => Vec::new(),
            Self::Affine(affine) => affine.terms.iter().map(|t| t.source).collect(),
            Self::Product(factors) => factors.to_vec(),
        }
    }

    /// The operands with the multiplications that lie between each and the result.
    #[must_use]
    pub fn sources_with_depth(&self) -> Vec<(ValueId, u32)> {
        match self {
            Self::Input => Vec::new(),
            Self::Affine(affine) => affine.terms.iter().map(|t| (t.source, t.map.depth())).collect(),
            Self::Product(factors) => factors.iter().map(|&f| (f, 1)).collect(),
        }
    }

    /// Lets the operation read other values.
    pub fn rename(&mut self, mut to: impl FnMut(ValueId) -> ValueId) {
        match self {
            Self::Input => {}
            Self::Affine(affine) => affine.terms.iter_mut().for_each(|t| t.source = to(t.source)),
            Self::Product(factors) => *factors = factors.map(&mut to),
        }
    }
}

impl Circuit {
    /// Appends a value.
    pub fn push(&mut self, value: Value) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        id
    }

    /// A value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// All ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// The inputs in order.
    #[must_use]
    pub fn inputs(&self) -> Vec<ValueId> {
        self.ids().filter(|&id| matches!(self.value(id).op, CircuitOp::Input)).collect()
    }

    /// The same circuit for many evaluations: weights are converted once and not in each of them.
    #[must_use]
    pub(crate) fn at_hand(&self) -> Self {
        let mut circuit = self.clone();
        for value in &mut circuit.values {
            if let CircuitOp::Affine(affine) = &mut value.op {
                for term in &mut affine.terms {
                    match &mut term.map {
                        Map::Identity => {}
                        Map::Diagonal(factor) => *factor = factor.at_hand(),
                        Map::Conv(conv) => conv.weight = conv.weight.at_hand(),
                    }
                }
            }
        }
        circuit
    }

    /// Whether some weights are entries of codebooks.
    #[must_use]
    pub fn is_clustered(&self) -> bool {
        let clustered = |t: &Term| matches!(&t.map, Map::Conv(conv) if conv.weight.codes().is_some());
        self.values
            .iter()
            .any(|v| matches!(&v.op, CircuitOp::Affine(affine) if affine.terms.iter().any(clustered)))
    }

    /// How often each value is read, results included.
    #[must_use]
    pub fn use_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.values.len()];
        let sources = self.values.iter().flat_map(|v| v.op.sources());
        sources.chain(self.outputs.iter().copied()).for_each(|s| counts[s.index()] += 1);
        counts
    }
}

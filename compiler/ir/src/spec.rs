//! Unchecked descriptions of small graphs, for fixtures: weights are given by values or by extents and a seed.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{
    Conv2d, Divisor, Graph, Linear, NodeId, Op, Pad, Pads, Pool, Shape, ShapeError, Slice, Tensor, TensorId,
    TensorSizeError,
};

/// A graph as a list of nodes, operands before consumers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphSpec {
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
}

/// One node of a [`GraphSpec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name other nodes refer to.
    pub name: String,
    /// Names of the operands in order.
    #[serde(default)]
    pub of: Vec<String>,
    /// The operation.
    pub op: OpSpec,
}

/// An operation with its constants spelled out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum OpSpec {
    Input(usize, usize, usize),
    Conv2d {
        weight: TensorSpec,
        #[serde(default)]
        bias: Option<TensorSpec>,
        #[serde(default = "ones")]
        stride: [usize; 2],
        #[serde(default)]
        pads: Pads,
        #[serde(default = "ones")]
        dilation: [usize; 2],
        #[serde(default = "one")]
        groups: usize,
    },
    Linear {
        weight: TensorSpec,
        #[serde(default)]
        bias: Option<TensorSpec>,
    },
    BatchNorm {
        scale: TensorSpec,
        shift: TensorSpec,
    },
    /// Average pooling; without a divisor, cells outside the operand are not counted.
    Pool {
        kernel: [usize; 2],
        stride: [usize; 2],
        #[serde(default)]
        pads: Pads,
        #[serde(default)]
        divisor: Option<f64>,
    },
    Poly(TensorSpec),
    Bivar(TensorSpec),
    Scale(TensorSpec),
    AddConst(TensorSpec),
    Add,
    Mul,
    Concat,
    Slice(Slice),
    Pad(Pad),
    Flatten,
    Output,
}

/// A constant of a fixture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TensorSpec {
    /// The numbers of a vector.
    Vector(Vec<f64>),
    /// Extents and numbers.
    Values(Vec<usize>, Vec<f64>),
    /// Extents and a seed; numbers are uniform in [-1, 1).
    Seed(Vec<usize>, u64),
    /// Extents, a seed and bounds; numbers are uniform between them.
    Between(Vec<usize>, u64, f64, f64),
}

/// Why a description is not a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A constant is wrong.
    #[error("node {node}: {source}")]
    Tensor {
        /// Name of the node.
        node: String,
        /// What is wrong.
        source: TensorSizeError,
    },
    /// An operand has no node before it.
    #[error("node {node} refers to {operand}, which does not come before it")]
    Unknown {
        /// Name of the node.
        node: String,
        /// Name of the operand.
        operand: String,
    },
    /// Operands do not fit.
    #[error("node {node}: {source}")]
    Shape {
        /// Name of the node.
        node: String,
        /// What is wrong.
        source: ShapeError,
    },
}

impl GraphSpec {
    /// Builds the graph.
    ///
    /// # Errors
    /// When the description does not fit together.
    pub fn build(&self) -> Result<Graph, SpecError> {
        let mut graph = Graph::new();
        let mut ids: IndexMap<&str, NodeId> = IndexMap::new();
        for node in &self.nodes {
            let mut operands = Vec::new();
            for operand in &node.of {
                let unknown = || SpecError::Unknown { node: node.name.clone(), operand: operand.clone() };
                operands.push(*ids.get(operand.as_str()).ok_or_else(unknown)?);
            }
            let op = build_op(&node.op, &mut graph)
                .map_err(|source| SpecError::Tensor { node: node.name.clone(), source })?;
            let id = graph
                .add(op, &operands, &node.name)
                .map_err(|source| SpecError::Shape { node: node.name.clone(), source })?;
            ids.insert(&node.name, id);
        }
        Ok(graph)
    }
}

impl TensorSpec {
    /// The constant.
    ///
    /// # Errors
    /// When the number of values does not match the extents.
    pub fn build(&self) -> Result<Tensor, TensorSizeError> {
        match self {
            Self::Vector(values) => Ok(Tensor::vector(values.clone())),
            Self::Values(dims, values) => Tensor::from_f64(dims.clone(), values.clone()),
            Self::Seed(dims, seed) => uniform(dims, *seed, -1.0, 1.0),
            Self::Between(dims, seed, lo, hi) => uniform(dims, *seed, *lo, *hi),
        }
    }
}

/// A stream of uniform numbers in [0, 1) that is the same everywhere (SplitMix64). For fixtures, never for keys.
#[derive(Clone, Debug)]
pub struct Uniform(u64);

impl Uniform {
    /// A stream that depends on the seed only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A whole number in `0..n`, for n of at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % n as u64) as usize
    }

    /// A number in `[lo, hi)`.
    #[inline]
    pub fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn uniform(dims: &[usize], seed: u64, lo: f64, hi: f64) -> Result<Tensor, TensorSizeError> {
    let mut stream = Uniform::new(seed);
    let n = dims.iter().product();
    Tensor::from_f64(dims.to_vec(), (0..n).map(|_| stream.between(lo, hi)).collect::<Vec<_>>())
}

fn build_op(spec: &OpSpec, graph: &mut Graph) -> Result<Op, TensorSizeError> {
    let mut tensor =
        |spec: &TensorSpec| -> Result<TensorId, TensorSizeError> { Ok(graph.add_tensor(spec.build()?)) };
    Ok(match spec {
        OpSpec::Input(c, h, w) => Op::Input { shape: Shape::new(*c, *h, *w) },
        OpSpec::Conv2d { weight, bias, stride, pads, dilation, groups } => Op::Conv2d(Conv2d {
            weight: tensor(weight)?,
            bias: bias.as_ref().map(&mut tensor).transpose()?,
            stride: *stride,
            pads: *pads,
            dilation: *dilation,
            groups: *groups,
        }),
        OpSpec::Linear { weight, bias } => {
            Op::Linear(Linear { weight: tensor(weight)?, bias: bias.as_ref().map(&mut tensor).transpose()? })
        }
        OpSpec::BatchNorm { scale, shift } => Op::BatchNorm { scale: tensor(scale)?, shift: tensor(shift)? },
        OpSpec::Pool { kernel, stride, pads, divisor } => Op::Pool(Pool {
            kernel: *kernel,
            stride: *stride,
            pads: *pads,
            divisor: divisor.map_or(Divisor::ExcludePad, Divisor::Constant),
        }),
        OpSpec::Poly(coeffs) => Op::Poly { coeffs: tensor(coeffs)? },
        OpSpec::Bivar(coeffs) => Op::Bivar { coeffs: tensor(coeffs)? },
        OpSpec::Scale(factor) => Op::Scale { factor: tensor(factor)? },
        OpSpec::AddConst(value) => Op::AddConst { value: tensor(value)? },
        OpSpec::Add => Op::Add,
        OpSpec::Mul => Op::Mul,
        OpSpec::Concat => Op::Concat,
        OpSpec::Slice(slice) => Op::Slice(*slice),
        OpSpec::Pad(pad) => Op::Pad(*pad),
        OpSpec::Flatten => Op::Flatten,
        OpSpec::Output => Op::Output,
    })
}

fn ones() -> [usize; 2] {
    [1, 1]
}

fn one() -> usize {
    1
}

//! Random networks for the differential test: a network is data, so that it can be drawn from a seed (`draw`), evaluated in
//! double precision without any of the compiler's code (`evaluate`), written as ONNX the way exporters write it (`write`),
//! told in words, and changed into another one that computes the same (`metamorphic`).

mod blocks;
mod draw;
mod evaluate;
pub mod metamorphic;
mod numbers;
mod spell;
mod words;
mod write;

pub use draw::{Drawn, Limits, Temper, draw};
pub use evaluate::Tensor;

/// Channels, rows and columns.
pub type Extents = [usize; 3];

/// How an ONNX model declares a tensor of three extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// `[batch, channels]`.
    Vector,
    /// `[batch, channels, columns]`.
    Signal,
    /// `[batch, channels, rows, columns]`.
    Image,
}

/// A value of a network: the input, or the result of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueIdx(pub usize);

impl ValueIdx {
    /// The input of the network.
    pub const INPUT: ValueIdx = ValueIdx(0);
}

/// A network with its weights.
#[derive(Clone, Debug)]
pub struct Network {
    /// How its input is declared.
    pub rank: Rank,
    /// Extents of the input.
    pub input: Extents,
    /// Layer `i` makes value `i + 1` from earlier ones; the last makes the scores.
    pub layers: Vec<Layer>,
}

/// One layer.
#[derive(Clone, Debug)]
pub struct Layer {
    /// What it computes.
    pub op: Op,
    /// From which values.
    pub of: Vec<ValueIdx>,
}

/// What a layer computes.
#[derive(Clone, Debug)]
pub enum Op {
    /// A convolution.
    Conv(Conv),
    /// A dense layer over a vector.
    Dense {
        /// `[out, in]`.
        weight: Vec<f32>,
        /// One number per output.
        bias: Option<Vec<f32>>,
        /// MatMul and Add instead of Gemm.
        as_matmul: bool,
    },
    /// Batch normalization with its statistics.
    BatchNorm {
        /// Gamma.
        scale: Vec<f32>,
        /// Beta.
        shift: Vec<f32>,
        /// Means of the operand in training.
        mean: Vec<f32>,
        /// Variances of the operand in training.
        variance: Vec<f32>,
    },
    /// A polynomial of every number.
    Poly(Poly),
    /// Averages over windows.
    AveragePool {
        /// Rows and columns of a window.
        kernel: [usize; 2],
        /// Steps between windows.
        stride: [usize; 2],
    },
    /// The average of every channel.
    GlobalPool,
    /// A vector of all numbers.
    Flatten,
    /// The sum of two values.
    Add,
    /// The channels of two values.
    Concat,
}

/// A convolution.
#[derive(Clone, Debug)]
pub struct Conv {
    /// `[out, in / groups, rows, columns]`.
    pub weight: Vec<f32>,
    /// One number per output channel.
    pub bias: Option<Vec<f32>>,
    /// Output channels.
    pub out: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Steps.
    pub stride: [usize; 2],
    /// Zeros on either side of rows and of columns.
    pub pad: [usize; 2],
    /// Groups of channels.
    pub groups: usize,
}

/// A polynomial whose coefficients may differ from channel to channel.
#[derive(Clone, Debug)]
pub struct Poly {
    /// From the constant term up; each with one number for all channels, or with one for each.
    pub coefficients: Vec<Vec<f32>>,
    /// How its arithmetic is written; any number.
    pub spelling: usize,
    /// What is special about its coefficients, in words.
    pub remark: &'static str,
}

impl Poly {
    /// The highest power that is written.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// A coefficient of a channel.
    #[must_use]
    pub fn coefficient(&self, power: usize, channel: usize) -> f32 {
        let row = &self.coefficients[power];
        row[channel % row.len()]
    }
}

impl Network {
    /// Numbers of an input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.input.iter().product()
    }

    /// Extents of every value, from the input on.
    #[must_use]
    pub fn extents(&self) -> Vec<Extents> {
        let zeros = Tensor::zeros(self.input);
        self.evaluate(&zeros.data).iter().map(|value| value.extents).collect()
    }

    /// The activations: position of the layer, and the polynomial.
    pub fn activations(&self) -> impl Iterator<Item = (usize, &Poly)> {
        self.layers.iter().enumerate().filter_map(|(i, layer)| match &layer.op {
            Op::Poly(poly) => Some((i, poly)),
            _ => None,
        })
    }
}

//! Why a node cannot be encrypted, and what its owner can do about it.

/// Why a node cannot be evaluated on encrypted data.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// ReLU and its relatives.
    #[error("{0} is not a polynomial")]
    Activation(&'static str),
    /// A function that has no replacement either.
    #[error("{0} is not a polynomial")]
    Function(&'static str),
    /// Max pooling.
    #[error("a maximum is not a polynomial")]
    MaxPool,
    /// Softmax or argmax whose result is used inside the network.
    #[error("its result is used inside the network, where it is not a polynomial")]
    InnerSoftmax,
    /// Clip that changes values.
    #[error("it limits values {limits}, which is not a polynomial", limits = limits(*min, *max))]
    Clip {
        /// Lower limit.
        min: f64,
        /// Upper limit.
        max: f64,
    },
    /// If, Loop, Scan.
    #[error("control flow would depend on encrypted values")]
    ControlFlow,
    /// An operator of another domain or a local function.
    #[error("operator domain `{0}` is not ONNX")]
    Domain(String),
    /// An operator without a translation.
    #[error("this operator has no encrypted form here")]
    Operator,
    /// A weight that is not constant.
    #[error("its {0} is computed from the input, but must be a constant")]
    NotConstant(&'static str),
    /// An attribute value outside what can be translated.
    #[error("{0}")]
    Attribute(String),
    /// Exponent that is not a small non-negative integer.
    #[error("exponent {0} is not an integer from 0 to {max}", max = super::limits::MAX_EXPONENT)]
    Exponent(f64),
    /// Division by an encrypted value.
    #[error("it divides by an encrypted value")]
    DivisionByEncrypted,
    /// A factor per pixel.
    #[error("it multiplies every position by another constant")]
    PositionalFactor,
    /// Encrypted operands whose shapes differ.
    #[error("it combines encrypted values of shapes {left:?} and {right:?}")]
    Broadcast {
        /// Left shape.
        left: Vec<usize>,
        /// Right shape.
        right: Vec<usize>,
    },
    /// A re-arrangement that is more than a view.
    #[error("it re-arranges encrypted values in a way that needs {0}")]
    Rearranges(&'static str),
    /// A linear map with too many weights.
    #[error("as a linear map it would take {inputs} x {outputs} weights, more than {max}", max = super::ops::MAX_WEIGHTS)]
    LargeMap {
        /// Numbers of the operand.
        inputs: usize,
        /// Numbers of the result.
        outputs: usize,
    },
    /// A reduction or concatenation over something else than expected.
    #[error("it works along {0}")]
    WrongAxis(&'static str),
    /// Integer arithmetic on the input.
    #[error("it computes with integers, which round")]
    Integers,
    /// A dimension whose size is not known.
    #[error("dimension {0} of the input has no fixed size")]
    SymbolicDimension(usize),
    /// An input that is no image and no vector.
    #[error("an input of rank {0} is neither an image nor a vector")]
    Rank(usize),
    /// A value too large to be a network's.
    #[error("its result would hold more than {max} numbers", max = super::limits::MAX_VALUE_LEN)]
    TooLarge,
    /// More constants than a file of its size may ask for.
    #[error("it needs more constants than a model of this size may compute with")]
    TooManyConstants,
    /// A normalization by statistics of the value itself.
    #[error("it divides by statistics of the encrypted value")]
    Statistics,
    /// A length of many numbers.
    #[error("a norm or a logarithm of a sum is not a polynomial")]
    Norm,
    /// A look-up by an encrypted number.
    #[error("it looks up by an encrypted number")]
    EncryptedIndex,
    /// A division of every row by its length.
    #[error("it divides every row by a norm of the row")]
    RowNorm,
    /// Batch normalization that computes its statistics.
    #[error("it computes its statistics from the batch")]
    TrainingMode,
    /// The larger or smaller of two numbers.
    #[error("the larger or smaller of two numbers is not a polynomial")]
    Maximum,
    /// A comparison.
    #[error("it compares encrypted values")]
    Comparison,
    /// A model of another kind than sums and products.
    #[error("{0}, which is not a polynomial")]
    Learned(&'static str),
    /// A product of two encrypted matrices.
    #[error("its second matrix is computed from the input, as in attention")]
    EncryptedMatrices,
    /// A recurrent layer.
    #[error("its steps go through sigmoids and tangents, which are not polynomials")]
    Recurrent,
    /// Quantization to integers.
    #[error("it rounds to integers, which is not a polynomial")]
    Quantized,
    /// The requested replacement cannot be fitted.
    #[error("the replacement cannot be fitted: {0}")]
    Fit(crate::fit::FitError),
}

/// Words for limits; the largest numbers of single precision are none.
fn limits(min: f64, max: f64) -> String {
    match (min > f64::from(f32::MIN), max < f64::from(f32::MAX)) {
        (true, false) => format!("to at least {min:?}"),
        (false, true) => format!("to at most {max:?}"),
        _ => format!("to [{min}, {max}]"),
    }
}

impl Reason {
    /// What the owner of the model can do.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Activation(_) => {
                "add `--approximate --calibrate IMAGES`, which fits a polynomial to every layer, or retrain with a polynomial activation"
            }
            Self::Function(_) => {
                "add `--approximate --calibrate IMAGES` if it is an activation, or retrain with a polynomial in its place"
            }
            Self::MaxPool => "use average pooling and retrain; the two agree on where a feature is",
            Self::Maximum => {
                "add `--approximate --calibrate IMAGES` if one of the two is a constant, or use their mean and retrain"
            }
            Self::InnerSoftmax => {
                "train without it (products of encrypted matrices are fine), or end the exported model before it"
            }
            Self::Clip { min, .. } if *min == 0.0 => {
                "add `--approximate --calibrate IMAGES`, which fits a polynomial, or keep values in range by training"
            }
            Self::Clip { .. } => {
                "remove the limits and keep values in range by training, or add `--approximate --calibrate IMAGES`"
            }
            Self::ControlFlow => {
                "export the model for one fixed input shape, which unrolls loops and branches"
            }
            Self::Domain(_) => "export with standard ONNX operators only and functions inlined",
            Self::Operator => "rewrite the layer with convolutions, dense layers, pooling and polynomials",
            Self::NotConstant(_) => "export the trained model in inference mode, with its weights inside",
            Self::Attribute(_) => "change the layer's setting and export again",
            Self::Exponent(_) => "use an integer power",
            Self::DivisionByEncrypted => "divide by constants only",
            Self::PositionalFactor => "use one factor per channel, or a dense layer",
            Self::Broadcast { .. } => "give both operands one shape",
            Self::Rearranges(_) => {
                "keep images as channel, row, column until the dense layers, and flatten only in front of them"
            }
            Self::LargeMap { .. } => {
                "apply it to fewer channels or a smaller image, or use convolutions, pools and flattening, which cost less"
            }
            Self::WrongAxis(_) => "pool over rows and columns, concatenate channels",
            Self::Integers => "convert the input to floating point first",
            Self::SymbolicDimension(_) => "export with a fixed input size; only the batch may be symbolic",
            Self::Rank(_) => "use inputs of shape [batch, features] or [batch, channels, height, width]",
            Self::TooManyConstants => "fold constants before exporting, so that the file holds them",
            Self::TooLarge => "use a smaller input or fewer channels",
            Self::Statistics => "use batch normalization, whose statistics are constants after training",
            Self::Norm => "use the sum of squares in its place, and retrain",
            Self::EncryptedIndex => "give one-hot vectors, and use a dense layer in its place",
            Self::RowNorm => {
                "use StandardScaler or MinMaxScaler, whose statistics are constants after training"
            }
            Self::TrainingMode => "export the model in inference mode",
            Self::Comparison => {
                "add `--approximate --calibrate IMAGES` if it compares one value with a constant, or use conditions that are constants"
            }
            Self::Learned(_) => {
                "use a linear model, PolynomialFeatures before one, an SVM with a polynomial kernel, or an MLP"
            }
            Self::EncryptedMatrices => {
                "use convolutions or dense layers, whose weights are constants, in its place"
            }
            Self::Recurrent => "use Conv1d over the sequence in its place",
            Self::Quantized => {
                "export the model as it is before it is quantized, or leave the rounding out and retrain"
            }
            Self::Fit(_) => "choose other values of c and b in `--relu quadratic,c=…,b=…`",
        }
    }
}

//! The operators with an encrypted form, and the reasons of those that have none.

mod activation;
mod arithmetic;
mod channels;
mod choose;
mod contract;
mod conv;
mod dense;
mod expand;
mod learned;
mod linear_map;
mod moved;
mod normalization;
mod pad;
mod pool;
mod products;
mod resample;
mod slices;
mod vectors;
mod views;
mod volume;
mod window;

use std::collections::HashMap;

use super::constant::Constant;
use super::function::Kind;
use super::node::Node;
use super::reason::Reason;
use super::tail;
use super::translate::Translator;
use super::value::{Encrypted, OpError, Value};
use super::view::View;

pub(super) use linear_map::{LinearMap, MAX_WEIGHTS, identity, vector};
pub(super) use slices::Range;

/// Values for the outputs of a node, of whose operands at least one is encrypted and all are known.
pub(super) fn translate(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let one = |x: Encrypted| vec![Value::Encrypted(x)];
    if !node.domain.is_empty() {
        return match (node.domain.as_str(), node.op.as_str()) {
            ("ai.onnx.ml", "Scaler") => normalization::scaler(cx, node).map(one),
            ("ai.onnx.ml", "LinearClassifier") => learned::linear_classifier(cx, node),
            ("ai.onnx.ml", "LinearRegressor") => learned::linear_regressor(cx, node).map(one),
            ("ai.onnx.ml", "SVMClassifier") => vectors::classifier(cx, node),
            ("ai.onnx.ml", "SVMRegressor") => vectors::regressor(cx, node).map(one),
            ("ai.onnx.ml", "ZipMap") => tail::begin(cx, node),
            ("ai.onnx.ml", "ArrayFeatureExtractor") => expand::features(cx, node).map(one),
            ("ai.onnx.ml", op) => Err(learned::refusal(op).into()),
            _ => Err(Reason::Domain(node.domain.clone()).into()),
        };
    }
    match node.op.as_str() {
        "Conv" => conv::conv(cx, node).map(one),
        "BatchNormalization" => normalization::batch_norm(cx, node).map(one),
        "Gemm" => dense::gemm(cx, node).map(one),
        "MatMul" => dense::matmul(cx, node).map(one),
        "Einsum" => dense::einsum(cx, node).map(one),
        "ConvTranspose" => resample::conv_transpose(cx, node).map(one),
        "DepthToSpace" | "SpaceToDepth" => resample::depth_to_space(cx, node).map(one),
        "Resize" | "Upsample" => resample::resize(cx, node).map(one),
        "Expand" => expand::expand(cx, node).map(one),
        "Tile" => expand::tile(cx, node).map(one),
        "Gather" => expand::gather(cx, node).map(one),
        "GatherElements" | "GatherND" | "Trilu" | "ReverseSequence" | "Compress" | "CenterCropPad" => {
            moved::moved(cx, node, None).map(one)
        }
        "ScatterElements" | "Scatter" | "ScatterND" => moved::moved(cx, node, Some(2)).map(one),
        "AveragePool" => pool::average(cx, node).map(one),
        "GlobalAveragePool" => pool::global_average(cx, node).map(one),
        "ReduceMean" | "ReduceSum" => pool::reduce(cx, node).map(one),
        "ReduceSumSquare" => pool::squares(cx, node).map(one),
        "CumSum" => pool::cumulative(cx, node).map(one),
        "Where" => choose::choose(cx, node).map(one),
        "ReduceProd" => products::reduce(cx, node).map(one),
        "MaxPool" | "GlobalMaxPool" => pool::refuse_maximum(cx, node).map(one),
        "Add" | "Sub" | "Mul" | "Div" | "Sum" | "Mean" => arithmetic::combine(cx, node).map(one),
        "Neg" => arithmetic::negate(cx, node).map(one),
        "Pow" => arithmetic::power(cx, node).map(one),
        "Concat" => channels::concat(cx, node).map(one),
        "Slice" => slices::slice(cx, node).map(one),
        "Split" => slices::split(cx, node),
        "Pad" => pad::pad(cx, node).map(one),
        "Flatten" => views::flatten(cx, node).map(one),
        "Reshape" => views::reshape(cx, node).map(one),
        "Squeeze" => views::squeeze(cx, node).map(one),
        "Unsqueeze" => views::unsqueeze(cx, node).map(one),
        "Transpose" => views::transpose(cx, node).map(one),
        "Identity" | "Dropout" => views::identity(cx, node).map(one),
        "Cast" | "CastLike" => views::cast(cx, node),
        "Shape" | "Size" => views::shape(cx, node).map(|c: Constant| vec![Value::Constant(c)]),
        "Clip" => activation::clip(cx, node).map(one),
        "Softmax" | "LogSoftmax" | "Hardmax" | "ArgMax" | "TopK" => tail::begin(cx, node),
        "Sigmoid" if tail::is_behind(cx, node) => tail::begin(cx, node),
        _ => match activation::function(node)? {
            Some(_) => activation::replace(cx, node).map(one),
            None => Err(unsupported(node).into()),
        },
    }
}

/// Why a node is refused whatever its operands are, if it is.
pub(super) fn known_refusal(cx: &Translator<'_>, node: &Node) -> Option<Reason> {
    if !node.domain.is_empty() {
        return match node.domain.as_str() {
            "ai.onnx.ml" => None,
            _ => Some(Reason::Domain(node.domain.clone())),
        };
    }
    match (node.op.as_str(), activation::function(node)) {
        ("Sigmoid", _) if tail::is_behind(cx, node) => None,
        ("MaxPool" | "GlobalMaxPool", _) => Some(Reason::MaxPool),
        (_, Ok(Some(kind))) => {
            cx.options.relu.is_none().then(|| Reason::Activation(kind.name().unwrap_or("this function")))
        }
        _ => match unsupported(node) {
            Reason::Operator => None,
            reason => Some(reason),
        },
    }
}

/// The reason for an operator without a translation.
fn unsupported(node: &Node) -> Reason {
    match node.op.as_str() {
        "If" | "Loop" | "Scan" => Reason::ControlFlow,
        "LSTM" | "GRU" | "RNN" => Reason::Recurrent,
        "QuantizeLinear"
        | "DequantizeLinear"
        | "DynamicQuantizeLinear"
        | "ConvInteger"
        | "MatMulInteger"
        | "QLinearConv"
        | "QLinearMatMul"
        | "Round"
        | "Floor"
        | "Ceil" => Reason::Quantized,
        "LayerNormalization"
        | "RMSNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "LRN"
        | "LpNormalization"
        | "MeanVarianceNormalization" => Reason::Statistics,
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "LpPool" | "GlobalLpPool" => {
            Reason::Norm
        }
        "Max" | "Min" => Reason::Maximum,
        "ReduceMax" | "ReduceMin" => Reason::MaxPool,
        "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "Equal" | "Not" | "And" | "Or" => {
            Reason::Comparison
        }
        _ => match Kind::of(node, &HashMap::new()) {
            Ok(Some(kind)) => kind.name().map_or(Reason::Operator, Reason::Function),
            _ => Reason::Operator,
        },
    }
}

/// An operand as the image that ONNX convolutions and pools want.
fn image(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    linear_map::image(cx, node, x)
}

/// The view of an image with as many dimensions as `like`.
fn image_view(like: &View) -> impl FnOnce(fhec_ir::Shape) -> View + use<> {
    let rank = like.dims().len();
    move |shape| {
        let view = View::nchw(shape);
        if rank == 3 { view.reshape(vec![1, shape.c, shape.w]).unwrap_or(view) } else { view }
    }
}

/// An axis counted from the end if negative; an error if it is out of range.
pub(super) fn axis(node: &Node, axis: i64, rank: usize) -> Result<usize, OpError> {
    let resolved = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let resolved = resolved.and_then(|a| usize::try_from(a).ok()).filter(|&a| a < rank);
    resolved.ok_or_else(|| node.malformed(format!("has axis {axis} for a tensor of rank {rank}")).into())
}

"""One model for every operator of ONNX, made node by node, with what onnxruntime computes.

    pip install onnx onnxruntime
    python operators.py

`NAME.onnx` is a model whose input meets the operator; `cards.json` holds for each what docs/models.md says of the operator,
with the fields of the zoo (see ../zoo/common.py). A version of ONNX with an operator that is not here stops the script.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = Path(__file__).parent
SAMPLES, MORE = 2, 30
ML = "ai.onnx.ml"
VECTOR, IMAGE, ROWS = (6,), (2, 4, 4), (3, 4)
# These multiply nothing, and a program that multiplies nothing is refused: a factor stands behind them.
FREE = {"Add", "Sub", "Cast", "CastLike", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

cards = {}
random = np.random.default_rng(20)


def numbers(*shape):
    """Weights without a pattern."""
    return random.normal(size=shape).astype("float32").round(3)


def rounded(array):
    return [float(f"{x:.7g}") for x in np.asarray(array, dtype=np.float64).flatten()]


def answers(model, x):
    """What the original runtime gives; the reference of ONNX where it has no kernel."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString())
        found = session.run(None, {"x": x})
        names = [output.name for output in session.get_outputs()]
    except Exception:
        session = ReferenceEvaluator(model)
        found, names = session.run(None, {"x": x}), session.output_names
    # A sequence of dictionaries is one row of their values.
    plain = [np.array([list(row.values()) for row in f]) if isinstance(f, list) else f for f in found]
    return dict(zip(names, plain))


def op(name, shape=VECTOR, *constants, domain="", opset=18, outputs=1, before=None, kind=TensorProto.FLOAT, at=0, note="", like=None, **attributes):
    """A model with the operator that works; `before` is the name of an operator between the input and it.

    The input is the operand `at`, and `constants` are the others, in order."""
    return build(name, shape, constants, domain, opset, outputs, before, kind, at, {"expect": "works", "condition": note}, attributes)


def near(name, shape=VECTOR, *constants, domain="", opset=18, outputs=1, before=None, note="", **attributes):
    """One that works with `--approximate`."""
    return build(name, shape, constants, domain, opset, outputs, before, TensorProto.FLOAT, 0, {"expect": "approximated", "condition": note}, attributes)


def no(name, because, remedy, shape=VECTOR, *constants, domain="", opset=18, outputs=1, before=None, kind=TensorProto.FLOAT, at=0, **attributes):
    """One that is refused."""
    return build(name, shape, constants, domain, opset, outputs, before, kind, at, {"expect": "refused", "because": because, "remedy": remedy}, attributes)


def build(name, shape, constants, domain, opset, outputs, before, kind, at, card, attributes):
    nodes, first = [], "x"
    if before:
        nodes.append(helper.make_node(before, ["x"], ["h"]))
        first = "h"
    operands = [None if c is None else c if isinstance(c, str) else f"c{i}" for i, c in enumerate(constants)]
    operands.insert(at, first)
    kept = [numpy_helper.from_array(np.asarray(c), f"c{i}") for i, c in enumerate(constants) if c is not None and not isinstance(c, str)]
    results = [f"y{i}" if outputs > 1 else "y" for i in range(outputs)]
    made_by = ["t"] if name in FREE else results
    nodes.append(helper.make_node(name, ["" if o is None else o for o in operands], made_by, domain=domain, **attributes))
    if name in FREE:
        kind_of = np.float64 if name.startswith("Cast") else np.float32
        kept.append(numpy_helper.from_array(np.asarray(0.5, kind_of), "half"))
        nodes.append(helper.make_node("Mul", ["t", "half"], results))
    save(name, nodes, kept, shape, results, domain, opset, kind, card)


def save(name, nodes, kept, shape, results, domain, opset, kind, card, given=None):
    values = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in results]
    for value in values:
        value.ClearField("type")
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, (1, *shape))], values, kept)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 5 if domain == ML else 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=10, producer_name="")
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:
        pass
    for value in model.graph.output:
        if not value.type.WhichOneof("value"):
            value.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    del model.graph.value_info[:]
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())
    x = random.normal(size=(SAMPLES, 1, *shape)).astype("float32") if given is None else given
    x = {TensorProto.UINT8: lambda: (x * 50 + 100).astype("uint8"), TensorProto.INT64: lambda: (x * 3).astype("int64"),
         TensorProto.BOOL: lambda: x > 0, TensorProto.STRING: lambda: x.astype(str).astype(object)}.get(kind, lambda: x)()
    plain = x if kind in (TensorProto.FLOAT, TensorProto.UINT8) else np.zeros_like(x, dtype="float32")
    card = {"operator": f"{domain} {name}".strip(), **{k: v for k, v in card.items() if v}}
    card["inputs"] = {"x": {"samples": [rounded(sample) for sample in plain]}}
    card["outputs"] = {}
    if card["expect"] != "refused":
        found = [answers(model, sample) for sample in x]
        for y in results:
            first = np.asarray(found[0][y])
            is_label = first.dtype.kind in "iuUSO" and card.get("labels", True) and name not in ("Shape", "Size")
            card["outputs"][y] = [[str(v) for v in np.asarray(f[y]).flatten()] if is_label else rounded(f[y]) for f in found]
    if card["expect"] == "approximated":
        card["calibrate"] = {"x": [rounded(v) for v in random.normal(size=(MORE, *shape)).astype("float32")]}
    cards[name] = card


def i64(*values):
    return np.array(values, dtype="int64")


POLYNOMIAL = "add `--approximate`, or use a polynomial in its place"
NUMBERS = "use sums, products and polynomials in its place"
BEFORE = "compute it before encryption, or leave it out"
CONSTANT = "of constants"
BATCH_NORM = "use batch normalization"
LINEAR = "use a linear model, a polynomial kernel, or an MLP"


def activations():
    for name in ("Abs", "Celu", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu", "Softplus", "Softsign", "Tanh",
                 "ThresholdedRelu", "Sin", "Cos", "Atan", "Asinh", "Sinh", "Cosh", "Swish", "Shrink"):
        near(name, opset={"Gelu": 20, "HardSwish": 14, "Swish": 24}.get(name, 18))
    near("Clip", VECTOR, np.float32(0), np.float32(6))
    near("PRelu", VECTOR, np.full(1, 0.2, "float32"))
    near("Max", VECTOR, np.zeros(1, "float32"), note="of one value and constants")
    near("Min", VECTOR, np.ones(1, "float32"), note="of one value and constants")
    # Functions that are not defined everywhere stand behind one that keeps to where they are.
    for name, inner in (("Sqrt", "Softplus"), ("Log", "Softplus"), ("Reciprocal", "Exp"), ("Acos", "Tanh"), ("Asin", "Tanh"), ("Tan", "Tanh"), ("Acosh", "Cosh"), ("Atanh", "Sin")):
        near(name, VECTOR, before=inner, note="behind a function whose values it is defined for")


def linear():
    for name in ("Add", "Sub", "Mul"):
        op(name, VECTOR, numbers(6))
    op("Div", VECTOR, numbers(6), note="by a constant")
    op("Sum", VECTOR, "x", numbers(6))
    op("Mean", VECTOR, "x", numbers(6))
    op("Neg")
    op("Pow", VECTOR, np.float32(3), note="to a small whole power")
    op("Gemm", VECTOR, numbers(6, 3), numbers(3))
    op("MatMul", ROWS, numbers(4, 2))
    op("Einsum", ROWS, "x", equation="bij,bkj->bik", note="of one operand or two")
    op("Conv", IMAGE, numbers(3, 2, 2, 2), numbers(3))
    op("ConvTranspose", IMAGE, numbers(2, 1, 2, 2), strides=[2, 2], note="over sequences and images")
    op("AveragePool", IMAGE, kernel_shape=[2, 2], strides=[2, 2])
    op("GlobalAveragePool", IMAGE)
    op("BatchNormalization", IMAGE, numbers(2), numbers(2), numbers(2), np.array([0.7, 1.2], "float32"))
    op("ReduceSum", IMAGE, i64(1, 3))
    op("ReduceMean", IMAGE, i64(2))
    op("ReduceSumSquare", ROWS, i64(2))
    op("ReduceProd", (3,), i64(1), note="of a few numbers")
    op("CumSum", ROWS, np.int64(2))
    op("Concat", ROWS, numbers(1, 3, 4), axis=1)
    op("Split", VECTOR, i64(2, 4), outputs=2, axis=1)
    op("Slice", ROWS, i64(3), i64(-9), i64(2), i64(-2))
    op("Gather", ROWS, i64(2, 0), axis=1, note="by constant indices")
    op("GatherElements", ROWS, i64(*[[[0, 2, 1, 1]]]), axis=1, note="by constant indices")
    op("GatherND", ROWS, i64(*[[0, 2, 1], [0, 0, 3]]), note="by constant indices")
    for name in ("ScatterElements", "Scatter"):
        op(name, ROWS, i64(*[[[0, 2, 1, 1]]]), numbers(1, 1, 4), axis=1, opset=10 if name == "Scatter" else 18, note="by constant indices")
    op("ScatterND", ROWS, i64(*[[0, 2, 1], [0, 0, 3]]), numbers(2), note="by constant indices")
    op("Transpose", IMAGE, perm=[0, 2, 3, 1])
    op("Reshape", IMAGE, i64(1, 8, 4))
    op("Flatten", IMAGE)
    op("Squeeze", (1, 4), i64(1))
    op("Unsqueeze", VECTOR, i64(1))
    op("Expand", (1, 3), i64(1, 2, 3))
    op("Tile", VECTOR, i64(1, 2))
    op("Pad", VECTOR, i64(0, 1, 0, 2), np.float32(0.5))
    op("Where", VECTOR, np.array([True, False, True, True, False, False]), numbers(6), at=1, note="by a constant condition; another with `--approximate`")
    op("Identity")
    op("Dropout")
    op("Cast", to=TensorProto.DOUBLE, note="to floating point")
    op("CastLike", VECTOR, np.zeros(1, "float64"), note="to floating point")
    op("DepthToSpace", (4, 2, 2), blocksize=2)
    op("SpaceToDepth", IMAGE, blocksize=2)
    op("Resize", IMAGE, None, np.array([1, 1, 2, 2], "float32"), mode="linear", note="without antialiasing")
    op("Upsample", IMAGE, np.array([1, 1, 2, 2], "float32"), opset=9)
    op("Trilu", ROWS)
    op("ReverseSequence", ROWS, i64(2), batch_axis=0, time_axis=1)
    op("Compress", VECTOR, np.array([True, False, True, False, False, True]), axis=1, note="by a constant condition")
    op("CenterCropPad", IMAGE, i64(2, 6), axes=[2, 3])


def made(name, node, *kept, results=("y",), opset=18, domain="", weights=None, shape=VECTOR, **card):
    """A model of a dense layer to `h` and the given nodes."""
    weights = numbers(shape[-1], 3) if weights is None else weights
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), *node]
    constants = [numpy_helper.from_array(np.asarray(value), key) for key, value in (("w", weights), *kept)]
    save(name, nodes, constants, shape, list(results), domain, opset, TensorProto.FLOAT, {"expect": "works", **card})


def node(name, inputs, outputs, **attributes):
    return helper.make_node(name, inputs, outputs, **attributes)


def tails():
    """What clients compute from scores."""
    client = "at the end of a model, where clients compute it"
    for name in ("Softmax", "LogSoftmax"):
        made(name, [node(name, ["h"], ["y"])], condition=client)
    made("Sigmoid", [node("Sigmoid", ["h"], ["y"])], condition=client + "; elsewhere with `--approximate`")
    made("ArgMax", [node("ArgMax", ["h"], ["y"], axis=1)], condition=client)
    made("ZipMap", [node("Softmax", ["h"], ["p"]), node("ZipMap", ["p"], ["y"], domain=ML, classlabels_strings=["a", "b", "c"])], domain=ML, condition=client)
    made("LpNormalization", [node("Sigmoid", ["h"], ["p"]), node("LpNormalization", ["p"], ["y"], p=1)], condition="of order 1 behind a sigmoid or softmax at the end")
    made("Normalizer", [node("Sigmoid", ["h"], ["p"]), node("Normalizer", ["p"], ["y"], domain=ML, norm="L1")], domain=ML, condition="L1 behind a sigmoid or softmax at the end")
    made("LabelEncoder", [node("ArgMax", ["h"], ["i"], axis=1, keepdims=0), node("LabelEncoder", ["i"], ["y"], domain=ML, keys_int64s=[0, 1, 2], values_strings=["a", "b", "c"])], domain=ML, condition="behind an argmax at the end")
    made("ArrayFeatureExtractor", [node("ArrayFeatureExtractor", ["h", "i"], ["y"], domain=ML)], ("i", i64(2, 0)), domain=ML, condition="by constant indices")


    # For these clients have no words: they get the scores themselves.
    for name, results, attributes in (("TopK", ["y", "i"], {}), ("Hardmax", ["y"], {})):
        weights = numbers(6, 3)
        count = [("k", i64(2))] if name == "TopK" else []
        made(name, [node(name, ["h"] + [key for key, _ in count], results, **attributes)], *count, results=results, weights=weights,
             condition="at the end of a model: the scores come out, and clients do the rest")
        samples = np.array([s for s in cards[name]["inputs"]["x"]["samples"]])
        cards[name]["outputs"] = {"h": [rounded(row) for row in samples @ weights]}


def constants():
    """Operators that models apply to constants: shapes, masks, weights."""
    def of(name, inputs, *kept, then="Mul", opset=18, **attributes):
        made(name, [node(name, inputs, ["k"], **attributes), node(then, ["h", "k"], ["y"])], *kept, condition=CONSTANT, opset=opset)

    of("Constant", [], value=numpy_helper.from_array(numbers(3), ""))
    of("ConstantOfShape", ["s"], ("s", i64(3)), value=numpy_helper.from_array(np.array([0.5], "float32"), ""))
    of("DequantizeLinear", ["q", "scale"], ("q", np.array([3, -5, 7], "int8")), ("scale", np.float32(0.1)))
    of("Range", ["a", "b", "c"], ("a", np.float32(0.5)), ("b", np.float32(2)), ("c", np.float32(0.5)))
    for name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        made(name, [node(name, ["a", "b"], ["k"]), node("Cast", ["k"], ["f"], to=1), node("Add", ["h", "f"], ["y"])], ("a", np.array([1, 2, 3], "float32")), ("b", np.float32(2)),
             condition=CONSTANT + ("" if name == "Equal" else "; of one value and a constant with `--approximate`"))
    for name in ("And", "Or", "Xor"):
        made(name, [node(name, ["a", "b"], ["k"]), node("Cast", ["k"], ["f"], to=1), node("Add", ["h", "f"], ["y"])], ("a", np.array([True, False, True])), ("b", np.array([True, True, False])), condition=CONSTANT)
    made("Not", [node("Not", ["a"], ["k"]), node("Cast", ["k"], ["f"], to=1), node("Add", ["h", "f"], ["y"])], ("a", np.array([True, False, True])), condition=CONSTANT)
    made("Shape", [node("Shape", ["h"], ["s"]), node("Cast", ["s"], ["f"], to=1), node("ReduceMax", ["f"], ["k"], keepdims=0), node("Div", ["h", "k"], ["y"])])
    made("Size", [node("Size", ["h"], ["s"]), node("Cast", ["s"], ["f"], to=1), node("Div", ["h", "f"], ["y"])])
    made("ReduceMax", [node("ReduceMax", ["k"], ["m"], keepdims=0), node("Mul", ["h", "m"], ["y"])], ("k", numbers(3)), condition=CONSTANT)
    made("ReduceMin", [node("ReduceMin", ["k"], ["m"], keepdims=0), node("Mul", ["h", "m"], ["y"])], ("k", numbers(3)), condition=CONSTANT)
    made("ReduceL1", [node("ReduceL1", ["k"], ["m"], keepdims=0), node("Mul", ["h", "m"], ["y"])], ("k", numbers(3)), condition=CONSTANT)
    made("ReduceL2", [node("ReduceL2", ["k"], ["m"], keepdims=0), node("Mul", ["h", "m"], ["y"])], ("k", numbers(3)), condition=CONSTANT)


def learned():
    """Operators of scikit-learn's models."""
    op("Scaler", (3,), domain=ML, offset=[0.1, 0.2, 0.3], scale=[1.0, 2.0, 0.5])
    op("LinearRegressor", (3,), domain=ML, coefficients=[0.5, -0.4, 0.3], intercepts=[0.2])
    op("LinearClassifier", (3,), domain=ML, outputs=2, coefficients=[0.5, -0.4, 0.3, -0.2, 0.1, 0.6], intercepts=[0.2, -0.1], classlabels_ints=[4, 7], post_transform="SOFTMAX")
    vectors = [0.5, -0.4, 0.3, -0.2, 0.1, 0.6, 0.3, 0.9, -0.7]
    kernel = {"kernel_type": "POLY", "kernel_params": [0.5, 1.0, 2.0], "support_vectors": vectors}
    op("SVMRegressor", (3,), domain=ML, coefficients=[0.7, -0.5, 0.4], rho=[0.1], n_supports=3, note="with a linear or polynomial kernel", **kernel)
    op("SVMClassifier", (3,), domain=ML, outputs=2, coefficients=[0.7, -0.5, -0.4], rho=[0.1], vectors_per_class=[1, 2], classlabels_ints=[4, 7],
       note="with a linear or polynomial kernel", **kernel)
    tree = "a decision tree compares"
    trees = dict(nodes_falsenodeids=[2, 0, 0], nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids=[0, 1, 2], nodes_treeids=[0, 0, 0],
                 nodes_truenodeids=[1, 0, 0], nodes_values=[0.5, 0.0, 0.0])
    no("TreeEnsembleRegressor", tree, LINEAR, (3,), domain=ML, n_targets=1, target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[0.1, 0.9], **trees)
    no("TreeEnsembleClassifier", tree, LINEAR, (3,), domain=ML, outputs=2, classlabels_int64s=[0, 1], class_ids=[0, 1], class_nodeids=[1, 2], class_treeids=[0, 0], class_weights=[1.0, 1.0], **trees)
    no("TreeEnsemble", tree, LINEAR, (3,), domain=ML)
    no("Binarizer", "a category is compared", LINEAR, (3,), domain=ML)
    no("OneHotEncoder", "a category is compared", BEFORE, (3,), domain=ML, cats_int64s=[0, 1])
    no("Imputer", "a missing value is compared", BEFORE, (3,), domain=ML, imputed_value_floats=[0.0])
    for name in ("CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer"):
        no(name, "", BEFORE, (3,), domain=ML)


def refused():
    """Operators that are refused, each for its reason."""
    maximum = "a maximum is not a polynomial"
    no("MaxPool", maximum, "use average pooling and retrain", IMAGE, kernel_shape=[2, 2])
    no("GlobalMaxPool", maximum, "use average pooling and retrain", IMAGE)
    for name in ("LayerNormalization", "RMSNormalization"):
        no(name, "statistics of the encrypted value", BATCH_NORM, VECTOR, np.ones(6, "float32"), opset=23)
    no("InstanceNormalization", "statistics of the encrypted value", BATCH_NORM, IMAGE, np.ones(2, "float32"), np.zeros(2, "float32"))
    no("GroupNormalization", "statistics of the encrypted value", BATCH_NORM, IMAGE, np.ones(2, "float32"), np.zeros(2, "float32"), opset=21, num_groups=1)
    no("MeanVarianceNormalization", "statistics of the encrypted value", BATCH_NORM, IMAGE)
    no("LRN", "statistics of the encrypted value", BATCH_NORM, IMAGE, size=3)
    for name in ("ReduceLogSum", "ReduceLogSumExp"):
        no(name, "a norm or a logarithm", "use the sum in its place, and retrain", VECTOR, i64(1))
    no("LpPool", "a norm or a logarithm", "use average pooling and retrain", IMAGE, kernel_shape=[2, 2])
    no("GlobalLpPool", "a norm or a logarithm", "use average pooling and retrain", IMAGE)
    recurrent = "sigmoids and tangents"
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        no(name, recurrent, "use Conv1d in its place", (2, 3), numbers(1, gates * 2, 3), numbers(1, gates * 2, 2), outputs=2, hidden_size=2)
    no("QuantizeLinear", "it rounds to integers", "export the model before it is quantized", VECTOR, np.float32(0.1))
    no("DynamicQuantizeLinear", "it rounds to integers", "export the model before it is quantized", VECTOR, outputs=3)
    for name in ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"):
        no(name, "it rounds to integers", "export the model before it is quantized", IMAGE, np.ones((2, 2, 2, 2), "uint8"))
    no("ArgMin", "no encrypted form", "negate the scores and use ArgMax")
    no("Sign", "a sign is not a polynomial", "use a smooth function, or `--approximate` where it is part of one")
    for name in ("Round", "Floor", "Ceil"):
        no(name, "it rounds to integers", "leave it out, and retrain")
    for name in ("If", "Loop", "Scan"):
        no(name, "control flow", "export for one fixed shape, which unrolls it")
    other = "no encrypted form"
    layers = "use convolutions, dense layers, pooling and polynomials"
    for name in ("AffineGrid", "Attention", "Bernoulli", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "CausalConvWithState", "Col2Im", "CumProd",
                 "ConcatFromSequence", "DFT", "DeformConv", "Det", "EyeLike", "GridSample", "HammingWindow", "HannWindow", "ImageDecoder", "IsInf", "IsNaN", "LinearAttention", "MaxRoiPool", "MaxUnpool",
                 "MelWeightMatrix", "Mod", "Multinomial", "NegativeLogLikelihoodLoss", "NonMaxSuppression", "NonZero", "OneHot", "Optional", "OptionalGetElement", "OptionalHasElement", "RandomNormal",
                 "RandomNormalLike", "RandomUniform", "RandomUniformLike", "RegexFullMatch", "RoiAlign", "RotaryEmbedding", "STFT", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
                 "SequenceInsert", "SequenceLength", "SequenceMap", "SoftmaxCrossEntropyLoss", "SplitToSequence", "StringConcat", "StringNormalizer", "StringSplit", "SwiGLU", "TensorScatter",
                 "TfIdfVectorizer", "Unique"):
        no(name, other, layers)


def main():
    activations()
    linear()
    tails()
    constants()
    learned()
    refused()


if __name__ == "__main__":
    main()
    (HERE / "cards.json").write_text(json.dumps(cards, indent=0, sort_keys=True, separators=(",", ":")) + "\n")
    known = {s.name for s in onnx.defs.get_all_schemas() if s.domain in ("", ML)}
    print("missing:", *sorted(known - set(cards)))
    print("unknown:", *sorted(set(cards) - known))

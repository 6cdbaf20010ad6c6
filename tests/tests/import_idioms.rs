//! Every ONNX idiom of the importer against tract's evaluation of the same model.

mod common;

use common::{accepted, check, refused};
use fhe_bytecode::TailStep;
use fhec::import::Reason;
use fhec_tests::onnx::{Attr, OnnxWriter};

fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

/// Distinct, small, of both signs.
fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 + 11) % 29) as f32 / 29.0 - 0.45).collect()
}

/// A model over an image input with one chain of nodes.
fn image(dims: [i64; 3], body: impl FnOnce(&mut OnnxWriter, String) -> String) -> Vec<u8> {
    let mut w = OnnxWriter::new("image");
    let x = w.input("x", &[None, Some(dims[0]), Some(dims[1]), Some(dims[2])]);
    let y = body(&mut w, x);
    w.finish(&y, &[])
}

/// A model over a vector input with one chain of nodes.
fn vector(n: i64, body: impl FnOnce(&mut OnnxWriter, String) -> String) -> Vec<u8> {
    let mut w = OnnxWriter::new("vector");
    let x = w.input("x", &[None, Some(n)]);
    let y = body(&mut w, x);
    w.finish(&y, &[])
}

fn conv(w: &mut OnnxWriter, x: &str, dims: &[usize], attrs: &[(&str, Attr)]) -> String {
    let name = w.fresh("w");
    let weight = w.tensor(&name, dims, &ramp(dims.iter().product()));
    w.node_with("Conv", &[x, &weight], attrs)
}

#[test]
fn convolutions_with_every_window_agree_with_tract() {
    let cases: [(&str, [usize; 4], Vec<(&str, Attr)>); 9] = [
        ("plain", [4, 3, 3, 3], vec![]),
        ("stride and padding", [4, 3, 3, 3], vec![("strides", ints(&[2, 2])), ("pads", ints(&[1, 1, 1, 1]))]),
        ("asymmetric padding", [4, 3, 3, 2], vec![("pads", ints(&[0, 2, 1, 0])), ("strides", ints(&[2, 1]))]),
        ("dilation", [2, 3, 3, 3], vec![("dilations", ints(&[2, 1])), ("pads", ints(&[2, 1, 2, 1]))]),
        (
            "same upper",
            [2, 3, 4, 3],
            vec![("auto_pad", Attr::Str("SAME_UPPER".into())), ("strides", ints(&[2, 2]))],
        ),
        (
            "same lower",
            [2, 3, 4, 3],
            vec![("auto_pad", Attr::Str("SAME_LOWER".into())), ("strides", ints(&[2, 2]))],
        ),
        ("valid", [2, 3, 3, 3], vec![("auto_pad", Attr::Str("VALID".into()))]),
        ("groups", [6, 1, 3, 3], vec![("group", Attr::Int(3))]),
        ("rectangular", [5, 3, 1, 5], vec![("kernel_shape", ints(&[1, 5])), ("pads", ints(&[0, 2, 0, 2]))]),
    ];
    for (name, dims, attrs) in cases {
        check(name, image([3, 9, 8], |w, x| conv(w, &x, &dims, &attrs)));
    }
}

#[test]
fn one_dimensional_convolutions_agree_with_tract() {
    let mut w = OnnxWriter::new("signal");
    let x = w.input("x", &[None, Some(2), Some(16)]);
    let y = conv(&mut w, &x, &[3, 2, 5], &[("strides", ints(&[2])), ("pads", ints(&[2, 2]))]);
    let y = w.node_with("AveragePool", &[&y], &[("kernel_shape", ints(&[2])), ("strides", ints(&[2]))]);
    let y = w.node("Flatten", &[&y]);
    check("conv1d", w.finish(&y, &[]));
}

#[test]
fn pools_agree_with_tract() {
    let pads = || ("pads", ints(&[1, 1, 1, 1]));
    let kernel = || ("kernel_shape", ints(&[3, 3]));
    let cases = [
        ("no padding", vec![("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))]),
        (
            "counts padding",
            vec![kernel(), pads(), ("count_include_pad", Attr::Int(1)), ("strides", ints(&[2, 2]))],
        ),
        ("leaves padding out", vec![kernel(), pads(), ("strides", ints(&[2, 2]))]),
        ("same", vec![kernel(), ("auto_pad", Attr::Str("SAME_UPPER".into())), ("strides", ints(&[2, 2]))]),
        ("overlapping", vec![kernel(), ("strides", ints(&[1, 2]))]),
    ];
    for (name, attrs) in cases {
        check(name, image([2, 8, 7], |w, x| w.node_with("AveragePool", &[&x], &attrs)));
    }
    check("global", image([3, 4, 5], |w, x| w.node("GlobalAveragePool", &[&x])));
    for keep in [0, 1] {
        let attrs = [("axes", ints(&[2, -1])), ("keepdims", Attr::Int(keep))];
        let reduced = |w: &mut OnnxWriter, x: String| {
            w.set_opset(13);
            w.node_with("ReduceMean", &[&x], &attrs)
        };
        check("reduce mean", image([3, 4, 5], reduced));
    }
}

#[test]
fn dense_layers_in_every_spelling_agree_with_tract() {
    for (turned, dims) in [(1, [4, 6]), (0, [6, 4])] {
        check(
            "gemm",
            vector(6, |w, x| {
                let (weight, bias) = (w.tensor("w", &dims, &ramp(24)), w.tensor("b", &[1, 4], &ramp(4)));
                let attrs =
                    [("transB", Attr::Int(turned)), ("alpha", Attr::Float(0.5)), ("beta", Attr::Float(-2.0))];
                w.node_with("Gemm", &[&x, &weight, &bias], &attrs)
            }),
        );
    }
    check(
        "gemm of a column",
        vector(6, |w, x| {
            let weight = w.tensor("w", &[6, 4], &ramp(24));
            let column = w.node_with("Transpose", &[&x], &[("perm", ints(&[1, 0]))]);
            w.node_with("Gemm", &[&column, &weight], &[("transA", Attr::Int(1))])
        }),
    );
    check(
        "constant on the left",
        vector(6, |w, x| {
            let weight = w.tensor("w", &[4, 6], &ramp(24));
            let column = w.node_with("Transpose", &[&x], &[("perm", ints(&[1, 0]))]);
            w.node("MatMul", &[&weight, &column])
        }),
    );
    check(
        "matmul and add",
        vector(6, |w, x| {
            let (weight, bias) = (w.tensor("w", &[6, 4], &ramp(24)), w.tensor("b", &[4], &ramp(4)));
            let y = w.node("MatMul", &[&x, &weight]);
            w.node("Add", &[&bias, &y])
        }),
    );
}

#[test]
fn a_bias_added_after_a_layer_costs_no_node() {
    let imported = check(
        "bias",
        vector(6, |w, x| {
            let (weight, bias) = (w.tensor("w", &[6, 4], &ramp(24)), w.tensor("b", &[4], &ramp(4)));
            let y = w.node("MatMul", &[&x, &weight]);
            w.node("Add", &[&y, &bias])
        }),
    );
    assert_eq!(common::ops(&imported), ["input", "linear", "output"]);
}

#[test]
fn normalization_spelled_as_mul_and_add_is_a_batch_norm() {
    let imported = check(
        "mul, add",
        image([3, 5, 5], |w, x| {
            let y = conv(w, &x, &[4, 3, 3, 3], &[]);
            let (scale, shift) =
                (w.tensor("s", &[4, 1, 1], &ramp(4)), w.tensor("t", &[1, 4, 1, 1], &ramp(4)));
            let y = w.node("Mul", &[&y, &scale]);
            let y = w.node("Add", &[&y, &shift]);
            w.node("Mul", &[&y, &y])
        }),
    );
    assert_eq!(common::ops(&imported), ["input", "conv2d", "batch_norm", "poly", "output"]);
}

#[test]
fn batch_normalization_agrees_with_tract() {
    check(
        "batch norm",
        image([3, 4, 4], |w, x| {
            let parts = ["scale", "bias", "mean"].map(|n| w.tensor(n, &[3], &ramp(3)));
            let variance = w.tensor("var", &[3], &[0.5, 1e-6, 2.0]);
            let inputs = [x.as_str(), &parts[0], &parts[1], &parts[2], &variance];
            w.node_with("BatchNormalization", &inputs, &[("epsilon", Attr::Float(1e-3))])
        }),
    );
}

#[test]
fn reordered_views_agree_with_tract() {
    check(
        "channels last, flattened, dense",
        image([3, 4, 5], |w, x| {
            let y = w.node_with("Transpose", &[&x], &[("perm", ints(&[0, 2, 3, 1]))]);
            let bias = w.tensor("b", &[3], &ramp(3));
            let y = w.node("Add", &[&y, &bias]);
            let y = w.node_with("Flatten", &[&y], &[]);
            let weight = w.tensor("w", &[60, 4], &ramp(240));
            w.node("MatMul", &[&y, &weight])
        }),
    );
    check(
        "dense over channels",
        image([3, 4, 5], |w, x| {
            let y = w.node_with("Transpose", &[&x], &[("perm", ints(&[0, 2, 3, 1]))]);
            let weight = w.tensor("w", &[3, 2], &ramp(6));
            let y = w.node("MatMul", &[&y, &weight]);
            w.node_with("Transpose", &[&y], &[("perm", ints(&[0, 3, 1, 2]))])
        }),
    );
    check(
        "squeeze and unsqueeze",
        image([3, 1, 5], |w, x| {
            let axes = w.ints("axes", &[2]);
            let y = w.node("Squeeze", &[&x, &axes]);
            let y = w.node("Mul", &[&y, &y]);
            let y = w.node("Unsqueeze", &[&y, &axes]);
            conv(w, &y, &[2, 3, 1, 3], &[])
        }),
    );
    check(
        "factor per feature of a flattened image",
        image([2, 2, 2], |w, x| {
            let shape = w.ints("shape", &[-1, 8]);
            let y = w.node("Reshape", &[&x, &shape]);
            let factor = w.tensor("f", &[8], &ramp(8));
            w.node("Mul", &[&y, &factor])
        }),
    );
}

#[test]
fn a_channels_last_input_is_recognized() {
    let mut w = OnnxWriter::new("nhwc");
    let x = w.input("x", &[None, Some(6), Some(7), Some(3)]);
    let mean = w.tensor("mean", &[3], &[0.1, 0.2, 0.3]);
    let y = w.node("Sub", &[&x, &mean]);
    let y = w.node_with("Transpose", &[&y], &[("perm", ints(&[0, 3, 1, 2]))]);
    let y = conv(&mut w, &y, &[4, 3, 3, 3], &[]);
    let imported = check("nhwc", w.finish(&y, &[]));
    assert!(imported.inputs[0].is_channels_last());
    assert_eq!(imported.inputs[0].shape.dims(), [3, 6, 7]);
}

#[test]
fn slices_pads_and_concatenations_agree_with_tract() {
    check(
        "shortcut without parameters",
        image([4, 6, 6], |w, x| {
            let parts = [("starts", [0, 0]), ("ends", [6, i64::MAX]), ("axes", [2, 3]), ("steps", [2, 2])];
            let parts = parts.map(|(n, v)| w.ints(n, &v));
            let y = w.node("Slice", &[&x, &parts[0], &parts[1], &parts[2], &parts[3]]);
            let pads = w.ints("pads", &[0, 2, 0, 0, 0, 3, 0, 0]);
            w.node("Pad", &[&y, &pads])
        }),
    );
    check(
        "pad before a convolution",
        image([2, 5, 5], |w, x| {
            let pads = w.ints("pads", &[0, 0, 1, 2, 0, 0, 0, 1]);
            let y = w.node("Pad", &[&x, &pads]);
            conv(w, &y, &[3, 2, 3, 3], &[("pads", ints(&[1, 0, 0, 0]))])
        }),
    );
    check(
        "pad by a constant",
        image([2, 3, 3], |w, x| {
            let (pads, value) = (w.ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1]), w.scalar(0.5));
            w.node("Pad", &[&x, &pads, &value])
        }),
    );
    check(
        "concat and slice of channels",
        image([3, 4, 4], |w, x| {
            let y = conv(w, &x, &[2, 3, 1, 1], &[]);
            let z = w.node_with("Concat", &[&x, &y], &[("axis", Attr::Int(1))]);
            let parts = [("starts", 1), ("ends", -1), ("axes", 1)].map(|(n, v)| w.ints(n, &[v]));
            w.node("Slice", &[&z, &parts[0], &parts[1], &parts[2]])
        }),
    );
    check(
        "concat with zeros",
        image([2, 3, 3], |w, x| {
            let zeros = w.tensor("z", &[1, 3, 3, 3], &[0.0; 27]);
            w.node_with("Concat", &[&zeros, &x], &[("axis", Attr::Int(1))])
        }),
    );
}

#[test]
fn noise_of_exporters_vanishes() {
    let imported = check(
        "noise",
        image([2, 4, 4], |w, x| {
            let y = w.node("Identity", &[&x]);
            let y = w.node_with("Cast", &[&y], &[("to", Attr::Int(1))]);
            let y = w.node("Dropout", &[&y]);
            let (low, high) = (w.scalar(f32::MIN), w.scalar(f32::INFINITY));
            let y = w.node("Clip", &[&y, &low, &high]);
            let shape = w.node("Shape", &[&y]);
            let y = w.node("Reshape", &[&y, &shape]);
            conv(w, &y, &[2, 2, 3, 3], &[])
        }),
    );
    assert_eq!(common::ops(&imported), ["input", "conv2d", "output"]);
}

#[test]
fn constants_computed_at_run_time_are_folded() {
    check(
        "folded",
        image([2, 4, 4], |w, x| {
            let dims = w.ints("dims", &[3, 2, 3, 3]);
            let part = w.tensor("part", &[3, 2, 1, 1], &ramp(6));
            let weight = w.node("Expand", &[&part, &dims]);
            let weight = w.node("Mul", &[&weight, &weight]);
            let bias = w.tensor("bias", &[1], &[0.25]);
            let three = w.ints("three", &[3]);
            let bias = w.node("Expand", &[&bias, &three]);
            w.node("Conv", &[&x, &weight, &bias])
        }),
    );
}

#[test]
fn a_fixed_batch_of_many_is_read_as_one() {
    let mut w = OnnxWriter::new("batch");
    let x = w.input("x", &[Some(32), Some(2), Some(2), Some(2)]);
    let shape = w.ints("shape", &[32, 8]);
    let y = w.node("Reshape", &[&x, &shape]);
    let weight = w.tensor("w", &[8, 3], &ramp(24));
    let y = w.node("MatMul", &[&y, &weight]);
    // tract would reshape to the batch of 32, so only the import is checked.
    assert_eq!(common::ops(&accepted(w.finish(&y, &[]))), ["input", "linear", "output"]);
}

#[test]
fn a_trailing_softmax_and_argmax_are_left_to_the_client() {
    let mut w = OnnxWriter::new("classes");
    let x = w.input("x", &[None, Some(4)]);
    let weight = w.tensor("w", &[4, 3], &ramp(12));
    let scores = w.node("MatMul", &[&x, &weight]);
    let y = w.node("Softmax", &[&scores]);
    let y = w.node_with("ArgMax", &[&y], &[("axis", Attr::Int(1))]);
    let imported = check("softmax", w.finish(&y, &[]));
    assert_eq!(imported.outputs, std::slice::from_ref(&scores));
    let steps = [TailStep::Softmax { length: 3, inner: 1 }, TailStep::ArgMax { length: 3, inner: 1 }];
    assert_eq!(imported.tails[0].steps, steps);
    assert_eq!(
        imported.notes[0].to_string(),
        format!("output `{y}` is computed at decryption: Softmax of `{scores}` and what follows it")
    );
}

#[test]
fn metadata_gives_labels_and_preprocessing() {
    let mut w = OnnxWriter::new("labels");
    w.metadata("labels", r#"["cat", "dog", "hen"]"#);
    w.metadata("mean", "[0.5, 0.4]");
    w.metadata("std", "[0.2, 0.1]");
    let x = w.input("x", &[None, Some(2), Some(1), Some(2)]);
    let y = w.node("Flatten", &[&x]);
    let weight = w.tensor("w", &[4, 3], &ramp(12));
    let y = w.node("MatMul", &[&y, &weight]);
    let imported = accepted(w.finish(&y, &[]));
    assert_eq!(imported.labels, Some(vec!["cat".into(), "dog".into(), "hen".into()]));
    assert_eq!(imported.preprocessing.map(|p| p.std), Some(vec![0.2, 0.1]));
}

#[test]
fn nodes_without_an_output_are_not_held_against_a_model() {
    let imported = check(
        "dead",
        vector(4, |w, x| {
            w.node("Relu", &[&x]);
            w.node("Mul", &[&x, &x])
        }),
    );
    assert_eq!(common::ops(&imported), ["input", "poly", "output"]);
}

#[test]
fn unusable_layers_are_refused_with_reasons() {
    let cases: [(&str, Vec<u8>); 4] = [
        ("divides by an encrypted value", vector(4, |w, x| w.node("Div", &[&x, &x]))),
        (
            "exponent 0.5",
            vector(4, |w, x| {
                let e = w.scalar(0.5);
                w.node("Pow", &[&x, &e])
            }),
        ),
        ("has no encrypted form", vector(4, |w, x| w.node("Det", &[&x]))),
        (
            "pads by `mirror`",
            image([1, 3, 3], |w, x| {
                let pads = w.ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1]);
                w.node_with("Pad", &[&x, &pads], &[("mode", Attr::Str("mirror".into()))])
            }),
        ),
    ];
    for (expected, bytes) in cases {
        let refusals = refused(bytes);
        assert!(refusals[0].reason.to_string().contains(expected), "{expected}: {refusals:?}");
    }
}

#[test]
fn a_symbolic_size_is_refused() {
    let mut w = OnnxWriter::new("open");
    let x = w.input("x", &[None, Some(3), None, None]);
    let y = w.node("Mul", &[&x, &x]);
    let refusals = refused(w.finish(&y, &[]));
    assert_eq!(refusals[0].reason.to_string(), "dimension 2 of the input has no fixed size");
}

#[test]
fn a_softmax_inside_the_network_is_refused_by_name() {
    let bytes = vector(4, |w, x| {
        let attention = w.node("Softmax", &[&x]);
        w.node("Mul", &[&attention, &x])
    });
    let refusals = refused(bytes);
    assert_eq!(refusals.len(), 1);
    assert_eq!((refusals[0].op.as_str(), refusals[0].shape.as_deref()), ("Softmax", Some(&[1, 4][..])));
    let bytes = vector(4, |w, x| {
        let weight = w.tensor("w", &[4, 2], &ramp(8));
        let soft = w.node("Softmax", &[&x]);
        w.node("MatMul", &[&soft, &weight])
    });
    assert_eq!(refused(bytes)[0].reason, Reason::InnerSoftmax);
}

#[test]
fn every_offending_node_is_in_one_report() {
    let bytes = image([3, 8, 8], |w, x| {
        let y = conv(w, &x, &[4, 3, 3, 3], &[]);
        let y = w.node("Relu", &[&y]);
        let y = w.node_with("MaxPool", &[&y], &[("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))]);
        let (low, high) = (w.scalar(0.0), w.scalar(6.0));
        let y = w.node("Clip", &[&y, &low, &high]);
        let y = w.node("Loop", &[&y]);
        w.node("Tanh", &[&y])
    });
    let found: Vec<_> = refused(bytes).into_iter().map(|r| (r.op, r.shape, r.reason)).collect();
    let at = |dims: &[usize]| Some(dims.to_vec());
    assert_eq!(
        found,
        [
            ("Relu".into(), at(&[1, 4, 6, 6]), Reason::Activation("ReLU")),
            ("MaxPool".into(), at(&[1, 4, 3, 3]), Reason::MaxPool),
            ("Clip".into(), at(&[1, 4, 3, 3]), Reason::Clip { min: 0.0, max: 6.0 }),
            ("Loop".into(), None, Reason::ControlFlow),
            ("Tanh".into(), None, Reason::Function("a hyperbolic tangent")),
        ]
    );
}

#[test]
fn weights_that_are_kept_as_integers_agree_with_tract() {
    let cases: [(&str, &[f32], &[i64], &[(&str, Attr)]); 3] = [
        ("one scale", &[0.25], &[3], &[]),
        ("a scale for every row", &[0.25, 0.5, -0.125], &[0, 3, -4], &[("axis", Attr::Int(0))]),
        ("a scale for every column", &[0.25, 0.5], &[1, -2], &[("axis", Attr::Int(-1))]),
    ];
    for (what, scales, zeros, attrs) in cases {
        let bytes = vector(3, |w, x| {
            let bytes = |w: &mut OnnxWriter, name: &str, values: &[i64], dims: &[i64]| {
                let (values, dims) = (w.ints(name, values), w.ints(&format!("{name}-dims"), dims));
                let shaped = w.node("Reshape", &[&values, &dims]);
                w.node_with("Cast", &[&shaped], &[("to", Attr::Int(3))])
            };
            let one = scales.len() == 1;
            let weight = bytes(w, "w", &[7, -3, 0, 120, -128, 5], &[3, 2]);
            let zero = bytes(w, "z", zeros, if one { &[] } else { &[-1] });
            let scale = match one {
                true => w.scalar(scales[0]),
                false => w.tensor("s", &[scales.len()], scales),
            };
            let weight = w.node_with("DequantizeLinear", &[&weight, &scale, &zero], attrs);
            w.node("MatMul", &[&x, &weight])
        });
        check(what, bytes);
    }
}

#[test]
fn the_larger_of_two_numbers_is_refused_with_a_way_out() {
    let bytes = vector(3, |w, x| {
        let zero = w.scalar(0.0);
        w.node("Max", &[&x, &zero])
    });
    let reason = &refused(bytes)[0].reason;
    assert!(reason.help().contains("--approximate"), "{}", reason.help());
}

//! Operators that are linear maps of an encrypted value: what tract computes, the graph computes.

mod common;

use common::{check, ops, refused};
use fhec_tests::onnx::{Attr, OnnxWriter};

fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

fn text(value: &str) -> Attr {
    Attr::Str(value.into())
}

/// Numbers without a pattern that a wrong order could keep.
fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect()
}

fn model(dims: &[i64], body: impl FnOnce(&mut OnnxWriter, String) -> String) -> Vec<u8> {
    let mut w = OnnxWriter::new("model");
    let dims: Vec<Option<i64>> = std::iter::once(None).chain(dims.iter().map(|&d| Some(d))).collect();
    let x = w.input("x", &dims);
    let y = body(&mut w, x);
    w.finish(&y, &[])
}

/// A convolution behind a map, so that its result must be an image again.
fn conv(w: &mut OnnxWriter, x: &str, dims: &[usize]) -> String {
    let weight = w.fresh("weight");
    w.tensor(&weight, dims, &ramp(dims.iter().product()));
    w.node("Conv", &[x, &weight])
}

/// A name for the case, and the operator with the operands it needs.
fn check_node(what: &str, dims: &[i64], body: impl Fn(&mut OnnxWriter, &str) -> String) {
    check(what, model(dims, |w, x| body(w, &x)));
    // Behind a polynomial, and with a sum behind it.
    check(
        &format!("{what}, squared before and added after"),
        model(dims, |w, x| {
            let square = w.node("Mul", &[&x, &x]);
            let y = body(w, &square);
            w.node("Add", &[&y, &y])
        }),
    );
}

#[test]
fn transpositions_of_parts_of_a_dimension() {
    check_node("channel shuffle", &[4, 2, 3], |w, x| {
        let (apart, again) = (w.ints("apart", &[1, 2, 2, 2, 3]), w.ints("again", &[1, 4, 2, 3]));
        let y = w.node("Reshape", &[x, &apart]);
        let y = w.node_with("Transpose", &[&y], &[("perm", ints(&[0, 2, 1, 3, 4]))]);
        w.node("Reshape", &[&y, &again])
    });
    let shuffled = model(&[4, 2, 3], |w, x| {
        let (apart, again) = (w.ints("apart", &[1, 2, 2, 2, 3]), w.ints("again", &[1, 4, 2, 3]));
        let y = w.node("Reshape", &[&x, &apart]);
        let y = w.node_with("Transpose", &[&y], &[("perm", ints(&[0, 2, 1, 3, 4]))]);
        let y = w.node("Reshape", &[&y, &again]);
        conv(w, &y, &[2, 4, 2, 2])
    });
    let imported = check("channel shuffle before a convolution", shuffled);
    assert_eq!(ops(&imported), ["input", "linear", "conv2d", "conv2d", "output"]);
}

#[test]
fn slices_with_any_step() {
    for (start, end, step) in [(0, 4, 2), (3, -5, -1), (-1, -9, -2), (2, 0, -1)] {
        check_node(&format!("slice {start}..{end} by {step}"), &[2, 4, 3], |w, x| {
            let [a, b, c, d] =
                [("s", start), ("e", end), ("a", 2), ("t", step)].map(|(n, v)| w.ints(n, &[v]));
            w.node("Slice", &[x, &a, &b, &c, &d])
        });
    }
}

#[test]
fn sums_and_means_over_any_dimensions() {
    for axes in [vec![1], vec![1, 2], vec![1, 2, 3], vec![1, 3], vec![2]] {
        for op in ["ReduceSum", "ReduceMean"] {
            for keeps in [0, 1] {
                check_node(&format!("{op} over {axes:?}, keeping {keeps}"), &[3, 2, 4], |w, x| {
                    let attrs = [("keepdims", Attr::Int(keeps))];
                    match op {
                        "ReduceSum" => {
                            let axes = w.ints("axes", &axes);
                            w.node_with(op, &[x, &axes], &attrs)
                        }
                        _ => w.node_with(op, &[x], &[attrs[0].clone(), ("axes", ints(&axes))]),
                    }
                });
            }
        }
    }
}

#[test]
fn products_and_sums_that_broadcast() {
    for (op, dims) in
        [("Mul", [1, 3, 1, 1]), ("Add", [1, 3, 1, 1]), ("Mul", [1, 1, 4, 2]), ("Sub", [1, 3, 1, 2])]
    {
        let bytes = model(&[3, 4, 2], |w, x| {
            // A gate of the smaller shape, computed from the value by means over the other dimensions.
            let axes: Vec<i64> =
                (1..4).filter(|&i| dims[i as usize] == 1 && [1, 3, 4, 2][i as usize] > 1).collect();
            let gate = w.node_with("ReduceMean", &[&x], &[("axes", ints(&axes)), ("keepdims", Attr::Int(1))]);
            w.node(op, &[&x, &gate])
        });
        check(&format!("{op} with {dims:?}"), bytes);
    }
}

#[test]
fn a_squeeze_and_excite_block_with_a_polynomial_gate() {
    let bytes = model(&[4, 3, 3], |w, x| {
        let pooled = w.node("GlobalAveragePool", &[&x]);
        let hidden = conv(w, &pooled, &[2, 4, 1, 1]);
        let square = w.node("Mul", &[&hidden, &hidden]);
        let gate = conv(w, &square, &[4, 2, 1, 1]);
        let y = w.node("Mul", &[&x, &gate]);
        conv(w, &y, &[2, 4, 2, 2])
    });
    check("squeeze and excite", bytes);
}

#[test]
fn depth_to_space_and_back() {
    for mode in ["DCR", "CRD"] {
        check_node(&format!("DepthToSpace {mode}"), &[8, 2, 3], |w, x| {
            w.node_with("DepthToSpace", &[x], &[("blocksize", Attr::Int(2)), ("mode", text(mode))])
        });
    }
    check_node("SpaceToDepth", &[2, 4, 6], |w, x| {
        w.node_with("SpaceToDepth", &[x], &[("blocksize", Attr::Int(2))])
    });
}

#[test]
fn resizing_by_the_nearest_number_and_linearly() {
    for (mode, transform, nearest) in [
        ("nearest", "asymmetric", "floor"),
        ("nearest", "half_pixel", "round_prefer_floor"),
        ("linear", "half_pixel", "round_prefer_floor"),
        ("linear", "align_corners", "round_prefer_floor"),
    ] {
        check_node(&format!("Resize {mode} {transform}"), &[2, 3, 4], |w, x| {
            let scales = w.tensor("scales", &[4], &[1.0, 1.0, 2.0, 2.0]);
            w.node_with(
                "Resize",
                &[x, "", &scales],
                &[
                    ("mode", text(mode)),
                    ("coordinate_transformation_mode", text(transform)),
                    ("nearest_mode", text(nearest)),
                ],
            )
        });
    }
}

#[test]
fn an_upsampled_image_goes_on_into_a_convolution() {
    let bytes = model(&[2, 3, 3], |w, x| {
        let scales = w.tensor("scales", &[4], &[1.0, 1.0, 2.0, 2.0]);
        let y = w.node_with(
            "Resize",
            &[&x, "", &scales],
            &[
                ("mode", text("nearest")),
                ("coordinate_transformation_mode", text("asymmetric")),
                ("nearest_mode", text("floor")),
            ],
        );
        conv(w, &y, &[1, 2, 3, 3])
    });
    check("upsampling before a convolution", bytes);
}

#[test]
fn transposed_convolutions() {
    for (stride, pads, extra, groups, dilation) in [
        (1, [0; 4], 0, 1, 1),
        (2, [0; 4], 0, 1, 1),
        (2, [1; 4], 1, 1, 1),
        (2, [1, 0, 0, 1], 0, 2, 1),
        (1, [0; 4], 0, 1, 2),
    ] {
        let what = format!(
            "ConvTranspose stride {stride} pads {pads:?} extra {extra} groups {groups} dilation {dilation}"
        );
        check_node(&what, &[2, 3, 2], |w, x| {
            let per_group = 4 / groups as usize;
            w.tensor("w", &[2, per_group, 3, 3], &ramp(2 * per_group * 9));
            w.tensor("b", &[4], &ramp(4));
            w.node_with(
                "ConvTranspose",
                &[x, "w", "b"],
                &[
                    ("strides", ints(&[stride, stride])),
                    ("pads", ints(&pads)),
                    ("output_padding", ints(&[extra, extra])),
                    ("dilations", ints(&[dilation, dilation])),
                    ("group", Attr::Int(groups)),
                ],
            )
        });
    }
}

#[test]
fn products_with_constants_along_any_dimension() {
    for (dims, is_left) in
        [(vec![4, 5], true), (vec![3, 4, 5], true), (vec![5, 2], false), (vec![3, 5, 2], false)]
    {
        check_node(&format!("MatMul with {dims:?}, left {is_left}"), &[3, 2, 4], |w, x| {
            w.tensor("w", &dims, &ramp(dims.iter().product()));
            if is_left { w.node("MatMul", &[x, "w"]) } else { w.node("MatMul", &["w", x]) }
        });
    }
    for equation in ["bchw,hk->bckw", "bchw,chw->b", "bchw,wo->bocH"] {
        let bytes = model(&[3, 2, 4], |w, x| {
            let dims: &[usize] = if equation.contains("hk") {
                &[2, 5]
            } else if equation.contains("wo") {
                &[4, 5]
            } else {
                &[3, 2, 4]
            };
            w.tensor("w", dims, &ramp(dims.iter().product()));
            w.node_with("Einsum", &[&x, "w"], &[("equation", text(equation))])
        });
        if equation.contains('H') {
            assert!(refused(bytes)[0].reason.to_string().contains("is not read here"));
        } else {
            check(equation, bytes);
        }
    }
}

#[test]
fn repetitions_and_picks() {
    check_node("Tile", &[2, 3], |w, x| {
        let repeats = w.ints("repeats", &[1, 2, 2]);
        w.node("Tile", &[x, &repeats])
    });
    check_node("Expand", &[3, 1, 2], |w, x| {
        let shape = w.ints("shape", &[1, 3, 4, 2]);
        w.node("Expand", &[x, &shape])
    });
    check_node("Gather", &[4, 3], |w, x| {
        let indices = w.ints("indices", &[2, 0, -1]);
        w.node_with("Gather", &[x, &indices], &[("axis", Attr::Int(1))])
    });
    for mode in ["reflect", "edge"] {
        check_node(&format!("Pad {mode}"), &[2, 3, 4], |w, x| {
            let pads = w.ints("pads", &[0, 0, 1, 2, 0, 0, 1, 0]);
            w.node_with("Pad", &[x, &pads], &[("mode", text(mode))])
        });
    }
    check_node("Concat along rows", &[2, 3, 4], |w, x| {
        let double = w.node("Add", &[x, x]);
        w.node_with("Concat", &[x, &double], &[("axis", Attr::Int(2))])
    });
}

#[test]
fn constants_are_tiled_and_chosen() {
    check(
        "Where and Tile of constants",
        model(&[3, 4], |w, x| {
            let repeats = w.ints("repeats", &[3, 2]);
            w.tensor("c", &[1, 2], &[0.5, -0.25]);
            let tiled = w.node("Tile", &["c", &repeats]);
            let (one, two) = (w.ints("one", &[1, 2, 1, 2]), w.ints("two", &[2, 2, 1, 1]));
            let equal = w.node("Equal", &[&one, &two]);
            let zero = w.scalar(0.0);
            let chosen = w.node("Where", &[&equal, &tiled, &zero]);
            w.node("Add", &[&x, &chosen])
        }),
    );
}

#[test]
fn a_constant_condition_chooses_between_values() {
    let condition = |w: &mut OnnxWriter, dims: &[i64]| {
        let (one, two) = (w.ints("one", &[1, 2, 1]), w.ints("two", &[2, 2, 1]));
        let equal = w.node("Equal", &[&one, &two]);
        let dims = w.ints("dims", dims);
        w.node("Reshape", &[&equal, &dims])
    };
    for dims in [[3, 1, 1], [1, 3, 1], [1, 1, 3]] {
        check_node(&format!("a value or a constant by {dims:?}"), &[3, 3, 3], |w, x| {
            let condition = condition(w, &dims);
            w.tensor("c", &[3, 1], &ramp(3));
            w.node("Where", &[&condition, x, "c"])
        });
        check_node(&format!("a constant or a value by {dims:?}"), &[3, 3, 3], |w, x| {
            let condition = condition(w, &dims);
            let c = w.scalar(0.5);
            w.node("Where", &[&condition, &c, x])
        });
        check_node(&format!("one of two values by {dims:?}"), &[3, 3, 3], |w, x| {
            let condition = condition(w, &dims);
            let square = w.node("Mul", &[x, x]);
            w.node("Where", &[&condition, x, &square])
        });
    }
}

#[test]
fn constants_that_are_larger_than_a_value_repeat_it() {
    for op in ["Add", "Sub", "Mul", "Div"] {
        check_node(&format!("{op} of a row and a matrix of constants"), &[1, 4], |w, x| {
            w.tensor("c", &[3, 4], &ramp(12).iter().map(|v| v + 3.0).collect::<Vec<f32>>());
            w.node(op, &[x, "c"])
        });
        check_node(&format!("{op} of a constant image and one number per channel"), &[2, 1, 1], |w, x| {
            w.tensor("c", &[2, 3, 3], &ramp(18).iter().map(|v| v + 3.0).collect::<Vec<f32>>());
            w.node(if op == "Div" { "Mul" } else { op }, &["c", x])
        });
    }
}

#[test]
fn cumulative_sums() {
    for (axis, exclusive, reverse) in [(1, 0, 0), (2, 1, 0), (3, 0, 1), (-1, 1, 1)] {
        let what = format!("CumSum of axis {axis}, exclusive {exclusive}, reverse {reverse}");
        check_node(&what, &[2, 3, 4], |w, x| {
            let (at, scalar) = (w.ints("axis", &[axis]), w.ints("scalar", &[]));
            let at = w.node("Reshape", &[&at, &scalar]);
            let attrs = [("exclusive", Attr::Int(exclusive)), ("reverse", Attr::Int(reverse))];
            w.node_with("CumSum", &[x, &at], &attrs)
        });
    }
}

#[test]
fn a_map_that_would_be_too_large_says_so() {
    let bytes =
        model(&[64, 16, 16], |w, x| w.node_with("DepthToSpace", &[&x], &[("blocksize", Attr::Int(2))]));
    let reason = &refused(bytes)[0].reason;
    assert!(reason.to_string().contains("16384 x 16384 weights"), "{reason}");
}

#[test]
fn normalizations_by_statistics_are_refused_with_the_reason() {
    for op in ["LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN"] {
        let bytes = model(&[4, 3, 3], |w, x| {
            w.tensor("s", &[4], &ramp(4));
            w.node(op, &[&x, "s", "s"])
        });
        assert!(refused(bytes)[0].reason.to_string().contains("statistics of the encrypted value"), "{op}");
    }
}

#[test]
fn convolutions_over_volumes() {
    for (stride, pads, groups, dilation) in [
        ([1, 1, 1], [0; 6], 1, 1),
        ([1, 1, 1], [1; 6], 1, 1),
        ([2, 1, 2], [1, 0, 1, 0, 1, 1], 1, 1),
        ([1, 2, 1], [0, 1, 1, 2, 0, 1], 2, 1),
        ([1, 1, 1], [2; 6], 1, 2),
    ] {
        let what = format!(
            "Conv over a volume, stride {stride:?} pads {pads:?} groups {groups} dilation {dilation}"
        );
        check_node(&what, &[2, 4, 3, 5], |w, x| {
            let per_group = 2 / groups as usize;
            w.tensor("w", &[4, per_group, 3, 2, 3], &ramp(4 * per_group * 18));
            w.tensor("b", &[4], &ramp(4));
            w.node_with(
                "Conv",
                &[x, "w", "b"],
                &[
                    ("strides", ints(&stride)),
                    ("pads", ints(&pads)),
                    ("dilations", ints(&[dilation; 3])),
                    ("group", Attr::Int(groups)),
                ],
            )
        });
    }
    check(
        "a network over volumes",
        model(&[1, 4, 4, 4], |w, x| {
            w.tensor("w", &[2, 1, 3, 3, 3], &ramp(54));
            let y = w.node_with("Conv", &[&x, "w"], &[("auto_pad", text("SAME_UPPER"))]);
            let statistics = [("s", 0.5), ("b", 0.2), ("m", 0.3)].map(|(n, v)| w.tensor(n, &[2], &[v, -v]));
            let variance = w.tensor("v", &[2], &[1.5, 0.5]);
            let [s, b, m] = &statistics;
            let y = w.node("BatchNormalization", &[&y, s, b, m, &variance]);
            let y = w.node("Mul", &[&y, &y]);
            let pool = [("kernel_shape", ints(&[2, 2, 2])), ("strides", ints(&[2, 2, 2]))];
            let y = w.node_with("AveragePool", &[&y], &pool);
            w.tensor("w2", &[3, 2, 2, 1, 1], &ramp(12));
            let y = w.node("Conv", &[&y, "w2"]);
            let y = w.node("GlobalAveragePool", &[&y]);
            w.node("Flatten", &[&y])
        }),
    );
}

#[test]
fn factors_of_every_position() {
    for (op, dims) in [("Mul", [1, 1, 4, 2]), ("Div", [1, 3, 4, 2]), ("Mul", [1, 3, 1, 2])] {
        check_node(&format!("{op} by a constant of {dims:?}"), &[3, 4, 2], |w, x| {
            let n = dims.iter().product();
            w.tensor("c", &dims, &ramp(n).iter().map(|v| v + 1.5).collect::<Vec<_>>());
            w.node(op, &[x, "c"])
        });
    }
    let tokens = model(&[3, 4, 2], |w, x| {
        // Rows and columns as tokens, and a normalization of each token.
        let y = w.node_with("Transpose", &[&x], &[("perm", ints(&[0, 2, 3, 1]))]);
        let shape = w.ints("tokens", &[1, 8, 3]);
        let y = w.node("Reshape", &[&y, &shape]);
        let [s, b, m] = ["s", "b", "m"].map(|name| w.tensor(name, &[8], &ramp(8)));
        let v = w.tensor("v", &[8], &ramp(8).iter().map(|v| v + 1.5).collect::<Vec<_>>());
        let y = w.node("BatchNormalization", &[&y, &s, &b, &m, &v]);
        w.node("Mul", &[&y, &y])
    });
    check("batch normalization of tokens", tokens);
}

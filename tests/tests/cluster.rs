//! Clustered networks and ensembles at a ring size that protects nothing: the decrypted result is that of the clear
//! clustered model, codebooks and slot maps are as expected, and files shrink.

use std::fmt::Write;

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::{Layout, TensorData, codec};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhec::cluster::{ClusterOptions, Method, Order, cluster_model};
use fhec::lower::{Circuit, eval};
use fhec::pipeline::{BuildError, Built, LayoutChoice};
use fhec::report::BuildReport;
use fhec::{CompileError, Model, Request, compile};
use fhec_ir::spec::GraphSpec;
use fhec_ir::{Graph, MemberIdx, evaluate};

const TOY_LOG_N: u32 = 11;

/// A residual network of 8 channels with a stride, with weights of its own for every seed.
fn network(seed: u64) -> Graph {
    let pads = "pads: (top: 1, left: 1, bottom: 1, right: 1)";
    let act = "op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))";
    let w = |k: u64| seed * 100 + k;
    let nodes = format!(
        r#"(name: "x", op: Input(2, 8, 8)),
        (name: "c0", of: ["x"], op: Conv2d(weight: Between([8, 2, 3, 3], {}, -0.3, 0.3), bias: Some(Seed([8], {})), {pads})),
        (name: "s0", of: ["c0"], {act}),
        (name: "c1", of: ["s0"], op: Conv2d(weight: Between([8, 8, 3, 3], {}, -0.1, 0.1), {pads})),
        (name: "b1", of: ["c1"], op: BatchNorm(scale: Between([8], {}, 0.5, 1.0), shift: Between([8], {}, -0.3, 0.3))),
        (name: "a1", of: ["b1", "s0"], op: Add),
        (name: "s1", of: ["a1"], {act}),
        (name: "c2", of: ["s1"], op: Conv2d(weight: Between([8, 8, 3, 3], {}, -0.1, 0.1), stride: (2, 2), {pads})),
        (name: "s2", of: ["c2"], {act}),
        (name: "p", of: ["s2"], op: Pool(kernel: (4, 4), stride: (4, 4), divisor: Some(16.0))),
        (name: "f", of: ["p"], op: Flatten),
        (name: "d", of: ["f"], op: Linear(weight: Between([5, 8], {}, -0.5, 0.5), bias: Some(Seed([5], {})))),
        (name: "o", of: ["d"], op: Output),"#,
        w(1),
        w(2),
        w(3),
        w(4),
        w(5),
        w(6),
        w(7),
        w(8)
    );
    let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
    spec.build().unwrap()
}

fn members(n: u64) -> Vec<Model> {
    (1..=n).map(|seed| Model::graph(format!("member {seed}"), network(seed))).collect()
}

fn request(models: Vec<Model>, layout: LayoutChoice, method: Method, centroids: u32) -> Request {
    Request {
        models,
        layout,
        precision: Some(7.0),
        toy: true,
        log_n: Some(TOY_LOG_N..=TOY_LOG_N),
        cluster: Some(ClusterOptions { method, centroids, seed: 1, order: Order::After }),
        ..Request::default()
    }
}

/// The same without codebooks.
fn plain(models: Vec<Model>) -> Request {
    Request { cluster: None, ..request(models, LayoutChoice::Hw, Method::Full, 1) }
}

fn built(request: &Request) -> Built {
    compile(request, &mut ()).unwrap().built
}

fn input() -> Vec<f64> {
    (0..128).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect()
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// The mean over the members of a circuit in the clear, without layouts, codebooks or instructions.
fn clear_model(circuit: &Circuit, input: &[f64]) -> Vec<f64> {
    eval::scores(circuit, &[input])
}

/// Decrypts what the program makes of the input, and compares with the clear model.
fn check(built: &Built, what: &str) {
    let expected = clear_model(built.circuit(), &input());
    let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let clear = ClearProgram::new(&built.program).run(&input(), &mut ()).unwrap();
    assert!(worst(&clear, &expected) < 1e-5 * size, "{what}: clear {clear:?} instead of {expected:?}");
    let mut seeds = fixed_seeds(7);
    let memory = Options { memory: 4 << 30, n_evaluations: 1 };
    let trial = Trial::new(&built.program, memory, &mut seeds).unwrap();
    let found = trial.run(&input(), &mut seeds, &Silent).unwrap().decrypted;
    let (error, deviation) = (worst(&found, &expected), built.schedule().error);
    assert!(error < 6.0 * deviation, "{what}: off by {error}, predicted deviation {deviation}");
}

fn check_members(n_members: u64) {
    let models = members(n_members);
    for method in [Method::Full, Method::Slice] {
        for centroids in [16, 64, 256, 1024] {
            let what = format!("{n_members} members, {method:?}, {centroids} centroids");
            check(&built(&request(models.clone(), LayoutChoice::Hw, method, centroids)), &what);
        }
    }
    check(&built(&request(models, LayoutChoice::Packed, Method::Slice, 16)), "packed");
}

#[test]
fn clustered_model_is_evaluated_within_the_predicted_error() {
    check_members(1);
}

#[test]
fn clustered_pair_is_evaluated_within_the_predicted_error() {
    check_members(2);
}

#[test]
fn clustered_ensemble_of_four_is_evaluated_within_the_predicted_error() {
    check_members(4);
}

#[test]
fn scores_of_an_ensemble_are_the_mean_over_its_models() {
    let found = clear_model(built(&plain(members(3))).circuit(), &input());
    let models =
        (1..=3).map(|m| evaluate(&network(m), &[&input()], MemberIdx::FIRST).unwrap().remove(0).data);
    let models: Vec<Vec<f64>> = models.collect();
    let mean: Vec<f64> = (0..5).map(|i| models.iter().map(|m| m[i]).sum::<f64>() / 3.0).collect();
    assert!(worst(&found, &mean) < 1e-5, "{found:?} instead of {mean:?}");
}

#[test]
fn enough_centroids_change_nothing() {
    let expected = clear_model(built(&plain(members(2))).circuit(), &input());
    for method in [Method::Full, Method::Slice] {
        let built = built(&request(members(2), LayoutChoice::Hw, method, 65535));
        let found = clear_model(built.circuit(), &input());
        // Weights are rounded to single precision, as a program stores them.
        assert!(worst(&found, &expected) < 1e-6, "{method:?}: {found:?} instead of {expected:?}");
        assert!(built.clustering.unwrap().worst_error() == 0.0);
    }
}

#[test]
fn members_share_indices_and_operations() {
    let of = |n: u64| built(&request(members(n), LayoutChoice::Hw, Method::Slice, 16));
    let (one, four) = (of(1), of(4));
    let ops = |b: &Built| -> Vec<String> {
        b.program.spec().instructions.iter().map(|i| i.op.name().to_owned()).collect()
    };
    assert_eq!(ops(&one), ops(&four));
    let counts = |b: &Built| -> Vec<_> {
        let maps = 0..b.program.spec().maps.len() as u32;
        maps.map(|m| b.program.map(fhe_bytecode::MapId(m)).plan.counts())
            .map(|c| (c.hoists, c.babies))
            .collect()
    };
    let convolutions = counts(&one).len() - 1;
    assert_eq!(counts(&one)[..convolutions], counts(&four)[..convolutions]);
    for tensor in &four.program.spec().constants.tensors {
        if let TensorData::Clustered { indices, .. } = &tensor.data {
            assert_eq!(indices.len(), tensor.len());
        }
    }
}

#[test]
fn plaintexts_and_bytes_become_fewer() {
    let of = |request: &Request| {
        let compiled = compile(request, &mut ()).unwrap();
        let program = &compiled.built.program;
        let bytes = codec::encode(program);
        // The file is the program.
        assert_eq!(codec::decode(&bytes, 1 << 30).unwrap().spec(), program.spec());
        (BuildReport::new(&compiled, bytes.len()), bytes.len())
    };
    let (report, bytes) = of(&request(members(1), LayoutChoice::Hw, Method::Slice, 16));
    let report = report.clustering.unwrap();
    let (_, plain_bytes) = of(&plain(members(1)));
    // 3 convolutions of 3 columns with 16 entries, the shortcut's factor, and the diagonals of the dense layer.
    assert!(report.plaintexts < 3 * 3 * 16 + 100, "{}", report.plaintexts);
    assert!(report.clustering.plaintexts_before.unwrap() > 600);
    assert!(bytes < plain_bytes - 3000, "{bytes} against {plain_bytes}");
    // Plans differ, weights do not.
    assert!(report.program_bytes_before.abs_diff(plain_bytes) < 400, "{}", report.program_bytes_before);
    assert_eq!(report.clustering.layers.len(), 3);
    assert!(report.clustering.layers.iter().all(|l| (0.001..0.1).contains(&l.relative_error)));
}

#[test]
fn same_seed_gives_the_same_bytes() {
    let bytes = |seed: u64| {
        let mut request = request(members(2), LayoutChoice::Hw, Method::Slice, 16);
        request.cluster.as_mut().unwrap().seed = seed;
        codec::encode(&built(&request).program)
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn model_weights_are_clustered_before_the_passes() {
    let cluster = ClusterOptions { method: Method::Slice, centroids: 4, seed: 1, order: Order::Before };
    let mut graph = network(1);
    cluster_model(&mut graph, cluster);
    let expected = evaluate(&graph, &[&input()], MemberIdx::FIRST).unwrap().remove(0).data;
    let built = built(&Request { cluster: Some(cluster), ..plain(members(1)) });
    assert!(worst(&clear_model(built.circuit(), &input()), &expected) < 1e-5);
    assert_eq!(built.clustering.unwrap().layers.len(), 3);
}

#[test]
fn codebooks_of_a_pair() {
    let built = built(&request(members(2), LayoutChoice::Hw, Method::Slice, 4));
    let mut text = String::new();
    for (i, book) in built.program.spec().constants.codebooks.iter().enumerate() {
        let rows: Vec<String> =
            book.values.chunks_exact(2).map(|row| format!("({:+.4}, {:+.4})", row[0], row[1])).collect();
        writeln!(text, "k{i}: {}", rows.join(" ")).unwrap();
    }
    for (i, tensor) in built.program.spec().constants.tensors.iter().enumerate() {
        if let TensorData::Clustered { codebooks, indices } = &tensor.data {
            let books: Vec<String> = codebooks.iter().map(ToString::to_string).collect();
            let first: String = indices.iter().take(27).map(|i| i.to_string()).collect();
            writeln!(text, "w{i} {:?}: codebooks {}, indices {first}…", tensor.shape, books.join(" "))
                .unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// Which member owns which slot of the first ciphertext, one character per slot, one line per row of the grid.
fn slot_map(layout: &Layout) -> String {
    let len = layout.shape().len();
    let owners: Vec<f64> = (0..layout.members() * len).map(|i| (i / len + 1) as f64).collect();
    let slots = &layout.scatter(&owners)[0][..layout.period()];
    let row = |row: &[f64]| -> String {
        row.iter().map(|&v| if v == 0.0 { '.' } else { char::from(b'0' + v as u8) }).collect()
    };
    slots.chunks(layout.spec().row_stride as usize).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn slot_map_of_an_ensemble() {
    let built = built(&request(members(3), LayoutChoice::Hw, Method::Slice, 16));
    let mut layouts = built.circuit().ids().map(|id| built.scheduled.placed.layout(id));
    let first = slot_map(layouts.next().unwrap());
    let strided = layouts.find(|l| l.shape().height == 4).unwrap();
    insta::assert_snapshot!(format!("{first}\n\nafter the stride\n{}", slot_map(strided)));
}

#[test]
fn too_many_members_are_refused_with_how_many_fit() {
    let refused = compile(&request(members(20), LayoutChoice::Hw, Method::Slice, 4), &mut ());
    let error = match refused {
        Err(error @ CompileError::Build(BuildError::Layout(_))) => error.to_string(),
        other => panic!("expected a refusal, not {other:?}"),
    };
    assert_eq!(error, "20 member(s) of [2,8,8] need 2048 slots in one ciphertext of 1024: 16 fit");
}

#[test]
fn different_architectures_are_refused_with_the_difference() {
    let nodes = r#"(name: "x", op: Input(2, 8, 8)), (name: "o", of: ["x"], op: Output),"#;
    let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
    let models = vec![members(1).remove(0), Model::graph("other", spec.build().unwrap())];
    let error = compile(&plain(models), &mut ()).unwrap_err();
    assert_eq!(error.code(), "no-ensemble");
    assert!(error.to_string().contains("2 nodes"), "{error}");
}

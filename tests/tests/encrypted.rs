//! Small networks, compiled and evaluated under encryption at a ring size that protects nothing: the result is that of the
//! clear evaluator within the predicted error.

mod networks;

use std::sync::Arc;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::ClearProgram;
use fhe_ckks::{Context, key_request};
use fhe_client::Client;
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Cancel, Input, Options, Session, Silent};
use fhe_runtime::Trial;
use fhe_secret::SecretKey;
use fhec::cluster::{ClusterOptions, Method, Order};
use fhec::pipeline::{LayoutChoice, RingChoice, Segmentation, SpecialChoice};
use fhec::report::{BuildReport, Measured};
use fhec::{Model, Request, compile};
use fhec_ir::{MemberIdx, evaluate};
use networks::{BRANCHES, LENET, RESNET, SPREAD, TOY_LOG_N, VGG, graph, toy_request};

fn decrypted(program: &CheckedProgram, input: &[f64]) -> Vec<f64> {
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = fixed_seeds(7);
    let secret = SecretKey::generate(&context, &mut seeds).unwrap();
    let keys = secret.evaluation_keys(&context, &key_request(&context, program), &mut seeds).unwrap();
    let client = Client::new(Arc::new(program.interface()), Arc::clone(&context), secret).unwrap();
    let fresh = client.encrypt(input, &mut seeds).unwrap();
    let options = Options { memory: 4 << 30, n_evaluations: 1 };
    let model = fhe_machine::Model::new(program, Arc::clone(&context), options).unwrap();
    let session = Session::new(Arc::new(model), Arc::new(keys)).unwrap();
    let cts = fresh.iter().map(|ct| ct.expand(&context)).collect();
    let input = Input::new(&context, client.key().id(), cts);
    let (result, _) = session.evaluate(input, &Cancel::default(), &Silent).unwrap();
    client.decrypt_raw(&result).unwrap().to_vec()
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Compiles, runs in the clear and under encryption, and compares.
fn check(nodes: &str, layout: LayoutChoice, sublevels: u32, toy_log_n: Option<u32>) {
    let graph = graph(nodes);
    let (toy, log_n, precision) = (toy_log_n.is_some(), toy_log_n.map(|n| n..=n), Some(7.0));
    let model = Model::graph("network", graph.clone());
    let request = Request { layout, sublevels, precision, toy, log_n, ..Request::new(model) };
    let built = compile(&request, &mut ()).unwrap().built;
    let n = graph.shape(graph.inputs()[0]).len();
    let input: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let expected = evaluate(&graph, &[&input], MemberIdx::FIRST).unwrap().remove(0).data;
    let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let clear = ClearProgram::new(&built.program).run(&input, &mut ()).unwrap();
    assert!(worst(&clear, &expected) < 1e-5 * size, "clear: off by {} of {size}", worst(&clear, &expected));
    let found = decrypted(&built.program, &input);
    let error = worst(&found, &expected);
    eprintln!(
        "{layout:?} l={sublevels}: levels {}, log2 PQ {:.0}, error {error:.2e} predicted {:.2e} of {size:.3}",
        built.positions().n_levels(),
        built.schedule().params.log2_pq(),
        built.schedule().error
    );
    let bound = built.program.spec().prediction.max_abs_error;
    assert!(error < bound, "off by {error}, the program says at most {bound}");
    assert!(built.schedule().headroom >= 1.5, "{} bits free", built.schedule().headroom);
}

fn check_all(nodes: &str, toy_log_n: Option<u32>) {
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        for sublevels in [2, 1] {
            check(nodes, layout, sublevels, toy_log_n);
        }
    }
}

/// Compiles a request with and without segments of lower levels, and evaluates both.
fn check_segments(request: &Request, what: &str) {
    let of = |rings, special| {
        let segmentation = Segmentation { rings, special };
        compile(&Request { segmentation, ..request.clone() }, &mut ()).unwrap().built.program
    };
    let fixed = of(RingChoice::One, SpecialChoice::Fixed);
    let digits = of(RingChoice::One, SpecialChoice::ByLevel);
    let both = of(RingChoice::Smaller, SpecialChoice::ByLevel);
    assert!(fixed.params().lower().is_empty(), "{what}");
    assert!(digits.params().segments().all(|segment| segment.n() == digits.params().n()), "{what}");
    let least = both.params().segments().map(|segment| segment.n()).min().unwrap();
    assert!(least < both.params().n(), "{what}: no smaller ring");
    assert!(both.spec().lower_keys.iter().any(|keys| keys.entry.is_some()), "{what}");
    let n = both.input_layout().shape().len();
    let input: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let expected = ClearProgram::new(&both).run(&input, &mut ()).unwrap();
    for program in [fixed, digits, both] {
        let error = worst(&decrypted(&program, &input), &expected);
        let bound = program.spec().prediction.max_abs_error;
        assert!(error < bound, "{what}: off by {error}, the program says at most {bound}");
    }
}

#[test]
fn segments_below_give_the_same_scores_in_both_layouts() {
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        check_segments(&Request { layout, ..toy_request(graph(RESNET)) }, &format!("{layout:?}"));
    }
}

#[test]
fn segments_below_give_the_same_scores_with_clustering_and_in_ensembles() {
    let options = ClusterOptions { method: Method::Slice, centroids: 4, seed: 1, order: Order::After };
    let member = |seed: u64| {
        let nodes = RESNET.replace(", 1, -0.4, 0.4)", &format!(", {seed}, -0.4, 0.4)"));
        Model::graph("member", graph(&nodes))
    };
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        let request = Request { layout, ..toy_request(graph(RESNET)) };
        let clustered = Request { cluster: Some(options), ..request.clone() };
        check_segments(&clustered, &format!("{layout:?}, clustered"));
        let models = vec![member(1), member(21)];
        check_segments(&Request { models, ..request }, &format!("{layout:?}, ensemble"));
    }
}

#[test]
fn lenet_is_evaluated_within_the_predicted_error() {
    check_all(LENET, Some(TOY_LOG_N));
}

#[test]
fn residual_network_is_evaluated_within_the_predicted_error() {
    check_all(RESNET, Some(TOY_LOG_N));
}

#[test]
fn stacked_convolutions_with_pools_are_evaluated_within_the_predicted_error() {
    check_all(VGG, Some(TOY_LOG_N));
}

#[test]
fn depthwise_and_concatenated_branches_are_evaluated_within_the_predicted_error() {
    check_all(BRANCHES, Some(TOY_LOG_N));
}

#[test]
fn vectors_spread_over_images_are_evaluated_within_the_predicted_error() {
    check_all(SPREAD, Some(TOY_LOG_N));
}

/// Scores below one: the last prime has to hold its scale, not only the scores.
#[test]
fn small_scores_are_evaluated_within_the_predicted_error() {
    for factor in ["0.05", "0.0001"] {
        let end = format!(
            r#"(name: "t", of: ["d2"], op: Scale(Vector([{factor}]))), (name: "o", of: ["t"], op: Output)"#
        );
        let nodes = LENET.replace(r#"(name: "o", of: ["d2"], op: Output)"#, &end);
        assert_ne!(nodes, LENET);
        check_all(&nodes, Some(TOY_LOG_N));
    }
}

/// A dense or convolutional network whose activation has this degree, every coefficient in use.
fn of_degree(degree: usize, is_dense: bool) -> String {
    let coeffs: Vec<String> =
        (0..=degree).map(|i| format!("{}", [0.2, 0.5, -0.3, 0.25][i % 4] / (1 + i) as f64)).collect();
    let poly = format!("Poly(Values([{}, 1], [{}]))", degree + 1, coeffs.join(", "));
    let first = if is_dense {
        r#"(name: "x", op: Input(20, 1, 1)), (name: "v", of: ["x"], op: Flatten),
        (name: "c", of: ["v"], op: Linear(weight: Between([16, 20], 1, -0.4, 0.4), bias: Some(Seed([16], 2)))),"#
    } else {
        r#"(name: "x", op: Input(1, 6, 6)),
        (name: "c", of: ["x"], op: Conv2d(weight: Between([4, 1, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([4], 2)))),"#
    };
    let n = if is_dense { 16 } else { 64 };
    format!(
        r#"{first} (name: "s", of: ["c"], op: {poly}), (name: "f", of: ["s"], op: Flatten),
        (name: "d", of: ["f"], op: Linear(weight: Between([5, {n}], 7, -0.4, 0.4), bias: Some(Seed([5], 8)))),
        (name: "o", of: ["d"], op: Output),"#
    )
}

#[test]
fn activations_of_every_degree_are_evaluated_within_the_predicted_error() {
    for degree in 3..=8 {
        for is_dense in [true, false] {
            check(&of_degree(degree, is_dense), LayoutChoice::Packed, 2, Some(TOY_LOG_N));
        }
    }
}

/// The smallest secure ring has the smallest special primes: key switching noise counts.
#[test]
fn cubic_and_quartic_activations_keep_the_bound_at_the_smallest_secure_ring() {
    for degree in [3, 4] {
        check(&of_degree(degree, true), LayoutChoice::Packed, 2, None);
    }
}

/// Scores near zero from large numbers that cancel: what has to fit is inside.
#[test]
fn values_inside_do_not_wrap_where_scores_are_small() {
    let nodes = r#"(name: "x", op: Input(20, 1, 1)), (name: "v", of: ["x"], op: Flatten),
        (name: "c", of: ["v"], op: Linear(weight: Between([16, 20], 1, -20.0, 20.0))),
        (name: "s", of: ["c"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
        (name: "f", of: ["s"], op: Flatten),
        (name: "d", of: ["f"], op: Linear(weight: Between([5, 16], 7, 0.1, 0.2), bias: Some(Between([5], 8, -900.0, -700.0)))),
        (name: "o", of: ["d"], op: Output),"#;
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        check(nodes, layout, 2, Some(TOY_LOG_N));
    }
}

#[test]
#[ignore = "secure ring degrees take minutes; run with cargo xtask slow"]
fn networks_are_evaluated_within_the_predicted_error_at_secure_ring_degrees() {
    for nodes in [LENET, RESNET, VGG, BRANCHES] {
        check_all(nodes, None);
    }
}

#[test]
fn same_graph_and_options_give_the_same_bytes() {
    let bytes = || {
        let compiled = compile(&toy_request(graph(RESNET)), &mut ()).unwrap();
        fhe_bytecode::codec::encode(&compiled.built.program)
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn simulated_error_is_about_the_predicted_one() {
    let graph = graph(RESNET);
    let request = Request { precision: Some(7.0), ..toy_request(graph.clone()) };
    let built = compile(&request, &mut ()).unwrap().built;
    let n = graph.shape(graph.inputs()[0]).len();
    let sample =
        |k: usize| (0..n).map(|i| ((i * 37 + k * 11) % 101) as f64 / 50.0 - 1.0).collect::<Vec<f64>>();
    let samples: Vec<_> = (0..20).map(sample).collect();
    let summary = fhec::simulate::summarize(&built.program, &samples, 1, &mut |_, _| ()).unwrap();
    let ratio = summary.rms_error / built.schedule().error;
    assert!((0.3..1.5).contains(&ratio), "simulated {} times the predicted error", ratio);
}

#[test]
fn ensemble_gives_the_mean_of_its_members() {
    let member = |seed: u64| {
        let nodes = LENET.replace(", 1, -0.4, 0.4)", &format!(", {seed}, -0.4, 0.4)"));
        graph(&nodes)
    };
    let members = [member(1), member(21), member(31)];
    let models: Vec<Model> = members.iter().map(|m| Model::graph("member", m.clone())).collect();
    let input: Vec<f64> = (0..144).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let results: Vec<Vec<f64>> =
        members.iter().map(|m| evaluate(m, &[&input], MemberIdx::FIRST).unwrap().remove(0).data).collect();
    let mean: Vec<f64> = (0..5).map(|i| results.iter().map(|r| r[i]).sum::<f64>() / 3.0).collect();
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        let models = models.clone();
        let request =
            Request { models, layout, toy: true, log_n: Some(TOY_LOG_N..=TOY_LOG_N), ..Request::default() };
        let built = compile(&request, &mut ()).unwrap().built;
        let clear = ClearProgram::new(&built.program).run(&input, &mut ()).unwrap();
        assert!(worst(&clear, &mean) < 1e-5, "{layout:?} clear: {clear:?} instead of {mean:?}");
        let error = worst(&decrypted(&built.program, &input), &mean);
        assert!(
            error < 6.0 * built.schedule().error,
            "{layout:?}: off by {error}, predicted {}",
            built.schedule().error
        );
    }
}

#[test]
fn build_report_compares_predicted_and_measured_time() {
    let compiled = compile(&toy_request(graph(LENET)), &mut ()).unwrap();
    let program = &compiled.built.program;
    let mut seeds = fixed_seeds(7);
    let trial = Trial::new(program, Options { memory: 4 << 30, n_evaluations: 1 }, &mut seeds).unwrap();
    let profile = trial.run(&[0.5; 144], &mut seeds, &Silent).unwrap().profile;
    let measured =
        Measured::new(fhe_runtime::cli::profile_json(&profile).to_string().as_bytes(), program).unwrap();
    let mut report = BuildReport::new(&compiled, 0);
    report.compare(&measured);
    assert!(report.measured_seconds.is_some_and(|s| s > 0.0));
    let slow = report.layers.iter().filter(|layer| layer.seconds > 0.0);
    assert!(slow.clone().count() > 0);
    assert!(slow.into_iter().all(|layer| layer.measured_seconds.is_some_and(|s| s > 0.0)));
}

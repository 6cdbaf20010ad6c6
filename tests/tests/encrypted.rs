//! Small networks, compiled and evaluated under encryption at a ring size that protects nothing: the result is that of the
//! clear evaluator within the predicted error.

mod networks;

use std::ops::RangeInclusive;
use std::sync::Arc;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::params::LOG_N_RANGE;
use fhe_ckks::{Context, key_request};
use fhe_client::Client;
use fhe_machine::{Machine, Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::{SecretKey, SeedSource};
use fhec::emit::Labels;
use fhec::pipeline::{BuildOptions, LayoutChoice, build};
use fhec::report::{BuildReport, Measured};
use fhec_ir::spec::GraphSpec;
use fhec_ir::{MemberIdx, evaluate, verify};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, pipeline};
use networks::{BRANCHES, LENET, RESNET, TOY_LOG_N, VGG, optimized};

fn decrypted(program: &CheckedProgram, input: &[f64]) -> Vec<f64> {
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = SeedSource::deterministic(7);
    let secret = SecretKey::generate(&context, &mut seeds).unwrap();
    let keys = secret.evaluation_keys(&context, &key_request(&context, program), &mut seeds).unwrap();
    let client = Client::new(program, Arc::clone(&context), secret).unwrap();
    let fresh = client.encrypt(input, &mut seeds).unwrap();
    let machine =
        Machine::new(program, Arc::clone(&context), keys, Options { memory: 4 << 30, n_evaluations: 1 })
            .unwrap();
    let cts = fresh.iter().map(|ct| ct.expand(&context)).collect();
    let (result, _) = machine.run(cts, &Silent).unwrap();
    client.decrypt(&result).unwrap()
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Compiles, runs in the clear and under encryption, and compares.
fn check(nodes: &str, layout: LayoutChoice, sublevels: u32, log_n: RangeInclusive<u32>) {
    let graph = optimized(nodes);
    let options = BuildOptions { layout, sublevels, precision: 7.0..=7.0, log_n, ..BuildOptions::default() };
    let built = build(verify(&graph).unwrap(), &options, Labels::default()).unwrap();
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
        built.positions.n_levels(),
        built.schedule.params.log2_pq(),
        built.schedule.error
    );
    assert!(
        error < 6.0 * built.schedule.error,
        "off by {error}, predicted deviation {}",
        built.schedule.error
    );
}

fn check_all(nodes: &str, log_n: RangeInclusive<u32>) {
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        for sublevels in [2, 1] {
            check(nodes, layout, sublevels, log_n.clone());
        }
    }
}

#[test]
fn lenet_is_evaluated_within_the_predicted_error() {
    check_all(LENET, TOY_LOG_N..=TOY_LOG_N);
}

#[test]
fn residual_network_is_evaluated_within_the_predicted_error() {
    check_all(RESNET, TOY_LOG_N..=TOY_LOG_N);
}

#[test]
fn stacked_convolutions_with_pools_are_evaluated_within_the_predicted_error() {
    check_all(VGG, TOY_LOG_N..=TOY_LOG_N);
}

#[test]
fn depthwise_and_concatenated_branches_are_evaluated_within_the_predicted_error() {
    check_all(BRANCHES, TOY_LOG_N..=TOY_LOG_N);
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
        check_all(&nodes, TOY_LOG_N..=TOY_LOG_N);
    }
}

#[test]
#[ignore = "secure ring degrees take minutes; run with cargo xtask slow"]
fn networks_are_evaluated_within_the_predicted_error_at_secure_ring_degrees() {
    for nodes in [LENET, RESNET, VGG, BRANCHES] {
        check_all(nodes, LOG_N_RANGE);
    }
}

#[test]
fn same_graph_and_options_give_the_same_bytes() {
    let bytes = || {
        let graph = optimized(RESNET);
        let options = BuildOptions { log_n: TOY_LOG_N..=TOY_LOG_N, ..BuildOptions::default() };
        let built = build(verify(&graph).unwrap(), &options, Labels::default()).unwrap();
        fhe_bytecode::codec::encode(&built.program)
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn simulated_error_is_about_the_predicted_one() {
    let graph = optimized(RESNET);
    let options =
        BuildOptions { log_n: TOY_LOG_N..=TOY_LOG_N, precision: 7.0..=7.0, ..BuildOptions::default() };
    let built = build(verify(&graph).unwrap(), &options, Labels::default()).unwrap();
    let n = graph.shape(graph.inputs()[0]).len();
    let sample =
        |k: usize| (0..n).map(|i| ((i * 37 + k * 11) % 101) as f64 / 50.0 - 1.0).collect::<Vec<f64>>();
    let samples: Vec<_> = (0..20).map(|k| (sample(k), None)).collect();
    let simulation = fhec::simulate::simulate(&built.program, &samples, 1, &|| ()).unwrap();
    let ratio = simulation.rms_error / built.schedule.error;
    assert!((0.3..1.5).contains(&ratio), "simulated {} times the predicted error", ratio);
}

#[test]
fn ensemble_gives_the_mean_of_its_members() {
    let member = |seed: u64| {
        let nodes = LENET.replace(", 1, -0.4, 0.4)", &format!(", {seed}, -0.4, 0.4)"));
        let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
        spec.build().unwrap()
    };
    let members = [member(1), member(21), member(31)];
    let mut graph = fhec_ir::ensemble(&members).unwrap();
    let manager = Manager::new(pipeline(Config::ALL), ManagerOptions::default()).unwrap();
    manager.run(&mut graph, &mut PassCx::default()).unwrap();
    let input: Vec<f64> = (0..144).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let results: Vec<Vec<f64>> =
        members.iter().map(|m| evaluate(m, &[&input], MemberIdx::FIRST).unwrap().remove(0).data).collect();
    let mean: Vec<f64> = (0..5).map(|i| results.iter().map(|r| r[i]).sum::<f64>() / 3.0).collect();
    for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
        let options = BuildOptions { layout, log_n: TOY_LOG_N..=TOY_LOG_N, ..BuildOptions::default() };
        let built = build(verify(&graph).unwrap(), &options, Labels::default()).unwrap();
        let clear = ClearProgram::new(&built.program).run(&input, &mut ()).unwrap();
        assert!(worst(&clear, &mean) < 1e-5, "{layout:?} clear: {clear:?} instead of {mean:?}");
        let error = worst(&decrypted(&built.program, &input), &mean);
        assert!(
            error < 6.0 * built.schedule.error,
            "{layout:?}: off by {error}, predicted {}",
            built.schedule.error
        );
    }
}

#[test]
fn build_report_compares_predicted_and_measured_time() {
    let graph = optimized(LENET);
    let options = BuildOptions { log_n: TOY_LOG_N..=TOY_LOG_N, ..BuildOptions::default() };
    let built = build(verify(&graph).unwrap(), &options, Labels::default()).unwrap();
    let mut seeds = SeedSource::deterministic(7);
    let trial =
        Trial::new(&built.program, Options { memory: 4 << 30, n_evaluations: 1 }, &mut seeds).unwrap();
    let profile = trial.run(&[0.5; 144], &mut seeds, &Silent).unwrap().profile;
    let measured =
        Measured::new(fhe_runtime::cli::profile_json(&profile).to_string().as_bytes(), &built.program)
            .unwrap();
    let mut report = BuildReport::new(&built, 0);
    report.compare(&measured);
    assert!(report.measured_seconds.is_some_and(|s| s > 0.0));
    let slow = report.layers.iter().filter(|layer| layer.seconds > 0.0);
    assert!(slow.clone().count() > 0);
    assert!(slow.into_iter().all(|layer| layer.measured_seconds.is_some_and(|s| s > 0.0)));
}

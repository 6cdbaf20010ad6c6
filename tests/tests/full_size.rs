//! Networks of the level tables from ONNX to a decrypted result, at full size and 128 bits of security.

use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SeedSource;
use fhec::import::{ImportOptions, import_bytes};
use fhec::pipeline::LayoutChoice;
use fhec::{Model, Request, compile};
use fhec_ir::{MemberIdx, evaluate};
use fhec_tests::models::{Network, Spec, generate};

/// As [`check_model`] for a generated network.
fn check(network: Network, layout: LayoutChoice, levels: u32, memory: u64) {
    check_model(network.name(), generate(&Spec::new(network)), layout, levels, memory);
}

/// Builds a network, evaluates it encrypted, and compares with the clear evaluator of the imported graph.
fn check_model(name: &str, model: Vec<u8>, layout: LayoutChoice, levels: u32, memory: u64) {
    let imported = import_bytes(model, &ImportOptions::default()).unwrap();
    let graph = imported.graph.clone();
    let request = Request { layout, memory, ..Request::new(Model::imported(name, imported)) };
    let built = compile(&request, &mut ()).unwrap().built;
    assert_eq!(built.positions().n_levels(), levels);
    let n = graph.shape(graph.inputs()[0]).len();
    let input: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let expected = evaluate(&graph, &[&input], MemberIdx::FIRST).unwrap().remove(0).data;
    let mut seeds = SeedSource::os();
    let trial = Trial::new(&built.program, Options { memory, n_evaluations: 1 }, &mut seeds).unwrap();
    let found = trial.run(&input, &mut seeds, &Silent).unwrap();
    let error = found.decrypted.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    eprintln!(
        "{name} {layout:?}: {:.1} s, log2 PQ {:.0}, error {error:.2e}, predicted deviation {:.2e}",
        found.eval_seconds,
        built.schedule().params.log2_pq(),
        built.schedule().error
    );
    assert!(error < 6.0 * built.schedule().error, "off by {error}");
}

#[test]
fn trained_lenet_gives_the_clear_result() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx-models/lenet-mnist-0.onnx");
    check_model("trained", std::fs::read(path).unwrap(), LayoutChoice::Packed, 4, 2 << 30);
}

#[test]
#[ignore = "takes minutes; run with cargo xtask slow"]
fn lenet_gives_the_clear_result_in_both_layouts() {
    check(Network::Lenet, LayoutChoice::Packed, 5, 8 << 30);
    check(Network::Lenet, LayoutChoice::Hw, 5, 8 << 30);
}

#[test]
#[ignore = "takes minutes and 8 GiB; run with cargo xtask slow"]
fn resnet20_gives_the_clear_result_packed() {
    check(Network::Resnet20, LayoutChoice::Packed, 20, 8 << 30);
}

#[test]
#[ignore = "takes minutes and 16 GiB; run with cargo xtask slow"]
fn resnet20_gives_the_clear_result_with_one_ciphertext_per_channel() {
    check(Network::Resnet20, LayoutChoice::Hw, 20, 16 << 30);
}

#[test]
#[ignore = "takes 4 GiB; CI runs it by its name, and cargo xtask slow"]
fn trained_resnet20_gives_the_clear_result() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx-models/resnet20-cifar10.onnx");
    check_model("trained", std::fs::read(path).unwrap(), LayoutChoice::Packed, 20, 8 << 30);
}

#[test]
#[ignore = "takes minutes and 8 GiB; run with cargo xtask slow"]
fn vgg16_gives_the_clear_result() {
    check(Network::Vgg16, LayoutChoice::Packed, 16, 16 << 30);
}

#[test]
#[ignore = "takes minutes and 8 GiB; run with cargo xtask slow"]
fn resnet18_gives_the_clear_result() {
    check(Network::Resnet18, LayoutChoice::Packed, 18, 16 << 30);
}

/// Two multiplications a layer and one for the classifier, two of them a level; simulated noise changes no class.
#[test]
#[ignore = "takes minutes; run with cargo xtask slow"]
fn deeper_residual_networks_are_built_and_keep_their_classes() {
    for (network, levels) in [(Network::Resnet44, 44), (Network::Resnet56, 56)] {
        let imported = import_bytes(generate(&Spec::new(network)), &ImportOptions::default()).unwrap();
        let model = Model::imported(network.name(), imported);
        // They are not evaluated: keys may be larger than this machine.
        let request = Request { memory: 256 << 30, layout: LayoutChoice::Packed, ..Request::new(model) };
        let compiled = compile(&request, &mut ()).unwrap();
        assert_eq!(compiled.built.positions().n_levels(), levels);
        let (params, summary) = (compiled.built.program.params(), &compiled.check.summary);
        eprintln!(
            "{}: N = 2^{}, log2 PQ {:.0}, keys {} bytes, {} classes of {} change, error {:.2e}",
            network.name(),
            params.log_n(),
            params.log2_pq(),
            compiled.built.program.key_bytes(),
            summary.changed_classes,
            summary.samples,
            summary.max_abs_error
        );
        assert!(params.is_secure() && summary.samples > 0);
        assert_eq!((summary.changed_classes, summary.wrapped_samples), (0, 0));
    }
}

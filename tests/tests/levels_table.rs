//! The level table, from generated ONNX files, by running the passes.

use fhec::import::{ImportOptions, import_bytes};
use fhec::levels::{LevelsOptions, ModelLevels, agreement, analyze};
use fhec_oracle::Oracle;
use fhec_tests::models::{Network, Shortcut, Spec, generate};

/// Narrow networks have the structure of the full ones, and so their levels.
const NARROW: f32 = 0.125;

fn levels(spec: &Spec) -> ModelLevels {
    let imported = import_bytes(generate(spec), &ImportOptions::default()).expect("a sound model");
    let name = spec.network.name();
    analyze(name, &imported.graph, &LevelsOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}")).report
}

/// Levels of the quartic network as imported, then of the quadratic one: none, F, R, FR, FRT.
const TABLE: [(Network, u32, [u32; 5]); 4] = [
    (Network::Vgg16, 79, [64, 51, 31, 31, 16]),
    (Network::Resnet18, 87, [70, 53, 35, 35, 18]),
    (Network::Resnet20, 97, [78, 59, 39, 39, 20]),
    (Network::Resnet32, 157, [126, 95, 63, 63, 32]),
];

#[test]
fn the_table_comes_out_of_the_passes() {
    for (network, quartic, quadratic) in TABLE {
        let spec = Spec::new(network).with_width(NARROW);
        let report = levels(&spec);
        assert_eq!(report.degree, 2);
        assert_eq!(report.levels.keys().copied().collect::<Vec<_>>(), ["none", "F", "R", "FR", "FRT"]);
        assert_eq!(report.levels.values().copied().collect::<Vec<_>>(), quadratic, "{}", network.name());
        let report = levels(&spec.with_degree(4));
        assert_eq!((report.degree, report.levels["none"]), (4, quartic), "{}", network.name());
    }
}

#[test]
fn trained_network_has_the_levels_of_its_row() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx-models/resnet20-cifar10.onnx");
    let imported = import_bytes(std::fs::read(path).expect("a shipped model"), &ImportOptions::default());
    let graph = imported.expect("a sound model").graph;
    let report = analyze("resnet20", &graph, &LevelsOptions::default()).expect("passes run").report;
    assert_eq!(report.levels.values().copied().collect::<Vec<_>>(), TABLE[2].2);
}

#[test]
fn shortcuts_without_parameters_have_the_same_levels() {
    for (network, _, quadratic) in &TABLE[2..] {
        let spec = Spec::new(*network).with_width(NARROW).with_shortcut(Shortcut::Identity);
        let report = levels(&spec);
        assert_eq!(report.levels.values().copied().collect::<Vec<_>>(), quadratic, "{}", network.name());
    }
}

#[test]
fn asking_what_degree_four_costs_gives_the_levels_of_the_quartic_network() {
    let imported =
        import_bytes(generate(&Spec::new(Network::Resnet20).with_width(NARROW)), &ImportOptions::default());
    let graph = fhec::levels::with_degree(&imported.expect("a sound model").graph, 4).expect("shapes stay");
    let report = analyze("resnet20", &graph, &LevelsOptions::default()).expect("passes run").report;
    assert_eq!((report.degree, report.levels["none"]), (4, 97));
}

#[test]
fn optimized_graphs_compute_what_tract_computes() {
    for (network, ..) in TABLE {
        for degree in [2, 4] {
            let bytes = generate(&Spec::new(network).with_width(NARROW).with_degree(degree));
            let imported = import_bytes(bytes.clone(), &ImportOptions::default()).expect("a sound model");
            let oracle = Oracle::from_bytes(&bytes, &imported).expect("tract knows these networks");
            let analysis =
                analyze(network.name(), &imported.graph, &LevelsOptions::default()).expect("passes run");
            for graph in [&imported.graph, &analysis.graph] {
                let found = agreement(graph, &oracle, 2).expect("tract evaluates");
                assert!(found.holds(), "{} of degree {degree}: {}", network.name(), found.error);
            }
        }
    }
}

#[test]
#[ignore = "full-size networks take minutes; run with cargo xtask slow"]
fn full_size_networks_keep_their_function_in_every_configuration() {
    for (network, quartic, quadratic) in TABLE {
        let bytes = generate(&Spec::new(network));
        let imported = import_bytes(bytes.clone(), &ImportOptions::default()).expect("a sound model");
        let oracle = Oracle::from_bytes(&bytes, &imported).expect("tract knows these networks");
        let options = LevelsOptions { compare: 5, ..LevelsOptions::default() };
        let analysis = analyze(network.name(), &imported.graph, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(analysis.report.levels.values().copied().collect::<Vec<_>>(), quadratic);
        let found = agreement(&analysis.graph, &oracle, 5).expect("tract evaluates");
        assert!(found.holds(), "{}: {}", network.name(), found.error);
        assert_eq!(levels(&Spec::new(network).with_degree(4)).levels["none"], quartic);
    }
}

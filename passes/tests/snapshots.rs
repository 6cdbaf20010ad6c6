//! Snapshots of every pass: the graph before and after, over the fixtures of `tests/passes/<pass>/`.
//!
//! Each fixture also keeps its function and its depth.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use fhec_ir::cost::depths;
use fhec_ir::spec::{GraphSpec, NodeSpec};
use fhec_ir::{Graph, MemberIdx, verify};
use fhec_passes::{
    Config, Manager, ManagerOptions, Pass, PassCx, Redistribute, SAME_OUTPUT, pipeline, rules,
};
use serde::Deserialize;
use support::{difference, outputs, random};

/// A graph and how to run the pass of its folder.
#[derive(Deserialize)]
struct Fixture {
    about: String,
    #[serde(default = "yes")]
    forward: bool,
    #[serde(default = "yes")]
    backward: bool,
    /// Random calibration inputs.
    #[serde(default)]
    calibrate: u64,
    nodes: Vec<NodeSpec>,
}

fn yes() -> bool {
    true
}

#[test]
fn passes_match_their_snapshots() {
    insta::glob!("../../tests/passes", "*/*.ron", |path| {
        let folder = path.parent().expect("a fixture has a folder");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_input_file(path);
        settings.set_omit_expression(true);
        let name = path.file_stem().and_then(|s| s.to_str()).expect("fixtures have plain names").to_owned();
        settings.remove_snapshot_suffix();
        settings.bind(|| insta::assert_snapshot!(name, check(path)));
    });
}

fn read(path: &Path) -> Fixture {
    let text = std::fs::read_to_string(path).unwrap();
    ron::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn check(path: &Path) -> String {
    let fixture = read(path);
    let graph = GraphSpec { nodes: fixture.nodes.clone() }
        .build()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name =
        path.parent().and_then(Path::file_name).and_then(|s| s.to_str()).expect("the folder names the pass");
    let (optimized, rules) = run(&graph, pass(name, &fixture), &fixture);
    let error = difference(&outputs(&graph, 7, MemberIdx::FIRST), &outputs(&optimized, 7, MemberIdx::FIRST));
    assert!(error <= SAME_OUTPUT, "{}: off by {error:e}", path.display());
    let (before, after) = (depths(&graph).total(), depths(&optimized).total());
    assert!(after <= before, "{}: deepens {before} to {after}", path.display());
    let mut text = format!("{}\n", fixture.about);
    let _ =
        write!(text, "\nbefore, depth {before}\n{graph}\nafter, depth {after}\n{optimized}\nfired\n{rules}");
    text
}

fn pass(name: &str, fixture: &Fixture) -> Box<dyn Pass> {
    if name == "redistribute" {
        return Box::new(Redistribute { forward: fixture.forward, backward: fixture.backward });
    }
    let found = pipeline(Config::ALL).into_iter().find(|pass| pass.name() == name);
    found.unwrap_or_else(|| panic!("no pass is named {name}"))
}

/// The graph after the pass, and which rules fired how often.
fn run(graph: &Graph, pass: Box<dyn Pass>, fixture: &Fixture) -> (Graph, String) {
    let inputs = |seed: u64| -> Vec<Vec<f64>> {
        graph.inputs().iter().map(|&id| random(100 + seed, graph.shape(id).len())).collect()
    };
    let mut cx = PassCx::with_calibration((0..fixture.calibrate).map(inputs).collect());
    let mut graph = graph.clone();
    let manager = Manager::new(vec![pass], ManagerOptions::default()).unwrap();
    let runs = manager.run(&mut graph, &mut cx).unwrap();
    verify(&graph).unwrap();
    let counters = runs[0].report.counters.iter().filter(|(name, _)| *name != "e-nodes");
    (graph, counters.map(|(name, n)| format!("{name} {n}\n")).collect())
}

/// Every pass of the pipeline has fixtures.
#[test]
fn every_pass_has_a_snapshot_folder() {
    for pass in pipeline(Config::ALL) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/passes").join(pass.name());
        assert!(folder.is_dir(), "{} has no folder", pass.name());
    }
}

/// Every rule fires in a fixture of its pass, so every rule is checked against the clear evaluator.
#[test]
fn every_rule_fires_in_a_fixture() {
    let mut silent: BTreeSet<&str> =
        rules::fusing().iter().chain(&rules::redistribution(true, true)).map(|rule| rule.name).collect();
    for name in ["fuse", "redistribute"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/passes").join(name);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "ron") {
                let fixture = read(&path);
                let graph = GraphSpec { nodes: fixture.nodes.clone() }.build().unwrap();
                let (_, fired) = run(&graph, pass(name, &fixture), &fixture);
                silent.retain(|rule| !fired.lines().any(|line| line.split(' ').next() == Some(rule)));
            }
        }
    }
    assert!(silent.is_empty(), "no fixture fires {silent:?}");
}

//! Property: every configuration keeps the function of every graph, and no pass makes a graph deeper.

mod support;

use fhec_ir::cost::depths;
use fhec_ir::{Graph, verify};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, PassRun, SAME_OUTPUT, pipeline};
use support::{difference, outputs, random};

const CONFIGS: [(&str, Config); 7] = [
    ("none", Config::NONE),
    ("F", Config::F),
    ("forward", Config { forward: true, ..Config::NONE }),
    ("backward", Config { backward: true, ..Config::NONE }),
    ("R", Config::R),
    ("FR", Config::FR),
    ("all", Config::ALL),
];

fn optimize(graph: &Graph, config: Config) -> (Graph, Vec<PassRun>) {
    let mut graph = graph.clone();
    let manager = Manager::new(pipeline(config), ManagerOptions::default()).unwrap();
    let runs = manager.run(&mut graph, &mut PassCx::default()).unwrap();
    (graph, runs)
}

fn check(seed: u64) {
    let graph = random::network(seed);
    verify(&graph).unwrap_or_else(|e| panic!("seed {seed}: the generator made a broken graph: {e}"));
    for (name, config) in CONFIGS {
        let (optimized, runs) = optimize(&graph, config);
        let mut depth = depths(&graph).total();
        for run in runs {
            assert!(
                run.depth <= depth,
                "seed {seed}, {name}: {} deepens {depth} to {}\n{graph}",
                run.name,
                run.depth
            );
            depth = run.depth;
        }
        for member in graph.members() {
            let expected = outputs(&graph, seed, member);
            let error = difference(&expected, &outputs(&optimized, seed, member));
            assert!(
                error <= SAME_OUTPUT,
                "seed {seed}, {name}, {member}: off by {error:e}\n{graph}\n{optimized}"
            );
        }
    }
}

#[test]
fn random_graphs_keep_their_function_and_never_deepen() {
    for seed in 0..400 {
        check(seed);
    }
}

#[test]
fn optimizing_twice_gives_the_same_text() {
    for seed in 0..40 {
        let graph = random::network(seed);
        let print = |graph: &Graph| optimize(graph, Config::ALL).0.to_string();
        assert_eq!(print(&graph), print(&graph), "seed {seed}");
    }
}

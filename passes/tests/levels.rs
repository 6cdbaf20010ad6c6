//! The level table of the paper (§4.4), by running the passes.

mod support;

use fhec_ir::Graph;
use fhec_ir::depth::depths;
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, pipeline};
use support::nets;

fn depth_after(graph: &Graph, config: Config) -> u32 {
    let mut graph = graph.clone();
    let options = ManagerOptions { compare: 1, ..ManagerOptions::default() };
    let manager = Manager::new(pipeline(config), options).unwrap();
    manager.run(&mut graph, &mut PassCx::default()).unwrap();
    depths(&graph).total()
}

/// Columns P4, P2, P2F, P2R, P2FR, P2FRT with two sublevels.
fn check(p4: &Graph, p2: &Graph, expected: [u32; 6]) {
    let fr = depth_after(p2, Config::FR);
    let found = [
        depth_after(p4, Config::NONE),
        depth_after(p2, Config::NONE),
        depth_after(p2, Config::F),
        depth_after(p2, Config::R),
        fr,
        fr.div_ceil(2),
    ];
    assert_eq!(found, expected);
}

#[test]
fn vgg16_levels() {
    check(&nets::vgg16(4, 8), &nets::vgg16(2, 8), [79, 64, 51, 31, 31, 16]);
}

#[test]
fn resnet18_levels() {
    check(&nets::resnet18(4, 8), &nets::resnet18(2, 8), [87, 70, 53, 35, 35, 18]);
}

#[test]
fn resnet20_levels() {
    check(&nets::resnet20(4), &nets::resnet20(2), [97, 78, 59, 39, 39, 20]);
}

#[test]
fn resnet32_levels() {
    check(&nets::resnet32(4), &nets::resnet32(2), [157, 126, 95, 63, 63, 32]);
}

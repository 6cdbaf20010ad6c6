//! The level table (paper §4.4), by running the passes.

mod support;

use fhec_ir::cost::depths;
use fhec_ir::{Divisor, Graph, Op};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, Stop, pipeline};
use support::nets;

fn depth_after(graph: &Graph, config: Config) -> u32 {
    let mut graph = graph.clone();
    let options = ManagerOptions { compare: 1, ..ManagerOptions::default() };
    let manager = Manager::new(pipeline(config), options).unwrap();
    let runs = manager.run(&mut graph, &mut PassCx::default()).unwrap();
    // The rules find nothing new, so the depth is the least that they reach.
    let saturation: Vec<_> =
        runs.iter().filter_map(|run| run.report.saturation.map(|how| (run.name, how))).collect();
    assert_eq!(saturation.is_empty(), !(config.fuse || config.forward || config.backward));
    for (pass, how) in saturation {
        assert_eq!(how.stop, Stop::Saturated, "{pass}: {how:?}");
    }
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

/// What lowering has to know: linear layers, sums, re-arrangements and squarings; nothing else is left.
fn check_final_form(graph: &Graph, depth: u32) {
    let mut graph = graph.clone();
    let options = ManagerOptions { compare: 1, ..ManagerOptions::default() };
    let manager = Manager::new(pipeline(Config::ALL), options).unwrap();
    manager.run(&mut graph, &mut PassCx::default()).unwrap();
    assert_eq!(depths(&graph).total(), depth);
    for id in graph.ids() {
        let is_final = match graph.op(id) {
            Op::Poly { coeffs } => graph.tensor(*coeffs).iter().eq([0.0, 0.0, 1.0]),
            Op::Pool(pool) => pool.divisor == Divisor::Constant(1.0),
            Op::Input { .. }
            | Op::Conv2d(_)
            | Op::Linear(_)
            | Op::Scale { .. }
            | Op::Add
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Output => true,
            _ => false,
        };
        assert!(is_final, "{} is left", fhec_ir::print_node(&graph, id));
    }
}

#[test]
fn resnets_and_vgg_end_as_linear_layers_and_squarings() {
    check_final_form(&nets::resnet20(2), 39);
    check_final_form(&nets::resnet18(2, 8), 35);
    check_final_form(&nets::vgg16(2, 8), 31);
}

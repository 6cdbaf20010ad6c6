//! Leading coefficients of any kind reach the depth of the formula: two for every layer with an activation, one for the
//! classifier.

mod support;

use fhec_ir::cost::depths;
use fhec_ir::{Graph, Op, Shape};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, pipeline};
use support::nets::{Net, Shortcut, blocks};

/// Leading coefficients by channel, and whether redistribution alone leaves a layer too deep with them.
const LEADS: [(&str, &[f32], bool); 6] = [
    ("fine", &[0.25, 0.3, 0.2, 0.5], false),
    ("negative", &[0.25, -0.3, 0.2, 0.5], false),
    ("tiny", &[0.25, 0.25e-6, 0.2, 0.5], true),
    ("zero", &[0.25, 0.0, 0.2, 0.5], true),
    ("mixed", &[0.25, -1e-9, 0.0, -0.5], true),
    ("linear", &[0.0, 0.0, 0.0, 0.25], true),
];

/// The depth after redistribution, and after all passes, which keep the function.
fn depths_of(graph: &Graph) -> [u32; 2] {
    let mut graph = graph.clone();
    let options = ManagerOptions { compare: 2, ..ManagerOptions::default() };
    let manager = Manager::new(pipeline(Config::ALL), options).unwrap();
    let runs = manager.run(&mut graph, &mut PassCx::default()).unwrap();
    let before = runs.iter().take_while(|run| run.name != "factor-quadratics").last();
    [before.unwrap().depth, depths(&graph).total()]
}

fn check(n_activations: u32, write: impl Fn(Net) -> Graph) {
    for (name, leads, is_needed) in LEADS {
        let graph = write(Net::new(7, 2).with_leads(leads));
        let [before, after] = depths_of(&graph);
        eprintln!("{name}: {before}, {after}");
        assert_eq!(after, 2 * n_activations + 1, "{name}\n{graph}");
        assert_eq!(before > after, is_needed, "{name}: {before} before\n{graph}");
    }
}

#[test]
fn layers_in_a_row() {
    check(3, |mut net| {
        let mut x = net.input(Shape::new(3, 8, 8));
        for _ in 0..3 {
            x = net.conv_norm_act(x, 4, 1);
        }
        let x = net.linear(x, 5);
        net.finish(x)
    });
}

#[test]
fn residual_blocks() {
    for shortcut in [Shortcut::Projection, Shortcut::ZeroPad] {
        check(7, |net| blocks(net, &[(4, 1), (8, 2)], 8, shortcut));
    }
}

#[test]
fn pooling_after_an_activation() {
    check(2, |mut net| {
        let mut x = net.input(Shape::new(3, 8, 8));
        for _ in 0..2 {
            x = net.conv_norm_act(x, 4, 1);
            x = net.pool(x, 2);
        }
        let x = net.node(Op::Flatten, &[x], "flatten");
        let x = net.linear(x, 5);
        net.finish(x)
    });
}

#[test]
fn pooling_before_an_activation() {
    check(2, |mut net| {
        let mut x = net.input(Shape::new(3, 8, 8));
        for _ in 0..2 {
            x = net.conv(x, 4, 3, 1);
            x = net.pool(x, 2);
            x = net.act(x);
        }
        let x = net.linear(x, 5);
        net.finish(x)
    });
}

#[test]
fn concatenations_around_activations() {
    check(3, |mut net| {
        let x = net.input(Shape::new(3, 8, 8));
        let x = net.conv_norm_act(x, 4, 1);
        let (a, b) = (net.conv_norm_act(x, 4, 1), net.conv(x, 3, 1, 1));
        let b = net.act(b);
        let x = net.node(Op::Concat, &[a, b], "cat");
        let (a, b) = (net.conv(x, 4, 3, 1), net.conv(x, 2, 1, 1));
        let x = net.node(Op::Concat, &[a, b], "cat");
        let x = net.act(x);
        let x = net.linear(x, 5);
        net.finish(x)
    });
}

#[test]
fn activations_before_their_layer() {
    // Pre-activation blocks: the shortcut is never activated, and the first layer and the classifier have none.
    check(5, |mut net| {
        let x = net.input(Shape::new(3, 8, 8));
        let mut x = net.conv(x, 4, 3, 1);
        for _ in 0..2 {
            let y = net.norm(x);
            let y = net.act(y);
            let y = net.conv(y, 4, 3, 1);
            let y = net.norm(y);
            let y = net.act(y);
            let y = net.conv(y, 4, 3, 1);
            x = net.node(Op::Add, &[y, x], "join");
        }
        let x = net.norm(x);
        let x = net.act(x);
        let x = net.linear(x, 5);
        net.finish(x)
    });
}

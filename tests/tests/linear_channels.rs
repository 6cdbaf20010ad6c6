//! Networks whose activations are linear or nearly so in some channels have the depth of the formula, and are evaluated
//! under encryption within the error that their programs state.

mod networks;

use fhe_bytecode::clear::ClearProgram;
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhec::pipeline::LayoutChoice;
use fhec::{Request, compile};
use fhec_ir::{Graph, MemberIdx, Op, Tensor, evaluate};
use networks::{BRANCHES, LENET, RESNET, VGG, graph, toy_request};

/// Leading coefficients by channel: one zero, one tiny, one negative, of all kinds.
const LEADS: [(&str, &[f64]); 4] = [
    ("zero", &[0.2, 0.0, 0.25, 0.15]),
    ("tiny", &[0.2, 2e-7, 0.25, 0.15]),
    ("negative", &[0.2, -0.2, 0.25, 0.15]),
    ("mixed", &[0.2, 0.0, -1e-9, -0.15]),
];

/// The network with these leading coefficients in turn in the channels of every activation.
fn with_leads(nodes: &str, leads: &[f64]) -> Graph {
    let mut graph = graph(nodes);
    for id in graph.topo_order() {
        if let Op::Poly { .. } = graph.op(id) {
            let c = graph.shape(id).c;
            let low = |r: usize| (0..c).map(move |i| [0.3, 0.5][r] - i as f64 / 32.0);
            let coeffs = low(0).chain(low(1)).chain((0..c).map(|i| leads[i % leads.len()]));
            let coeffs = Tensor::from_f64(vec![3, c], coeffs.collect::<Vec<_>>()).unwrap();
            let coeffs = graph.add_tensor(coeffs);
            graph.set_op(id, Op::Poly { coeffs }, "test").unwrap();
        }
    }
    graph
}

fn check(nodes: &str, depth: u32) {
    for (name, leads) in LEADS {
        let graph = with_leads(nodes, leads);
        let n = graph.shape(graph.inputs()[0]).len();
        let input: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
        let expected = evaluate(&graph, &[&input], MemberIdx::FIRST).unwrap().remove(0).data;
        let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let worst =
            |found: &[f64]| found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        for layout in [LayoutChoice::Packed, LayoutChoice::Hw] {
            let request = Request { layout, precision: Some(7.0), ..toy_request(graph.clone()) };
            let built = compile(&request, &mut ()).unwrap().built;
            assert_eq!(built.positions().depth(), depth, "{name}, {layout:?}");
            let clear = worst(&ClearProgram::new(&built.program).run(&input, &mut ()).unwrap());
            assert!(clear < 1e-5 * size, "{name}, {layout:?}, clear: off by {clear} of {size}");
            let mut seeds = fixed_seeds(7);
            let options = Options { memory: 4 << 30, n_evaluations: 1 };
            let trial = Trial::new(&built.program, options, &mut seeds).unwrap();
            let error = worst(&trial.run(&input, &mut seeds, &Silent).unwrap().decrypted);
            let bound = built.program.spec().prediction.max_abs_error;
            eprintln!("{name}, {layout:?}: error {error:.2e}, bound {bound:.2e}, largest score {size:.3}");
            assert!(error < bound, "{name}, {layout:?}: off by {error}, the program says at most {bound}");
        }
    }
}

#[test]
fn convolutions_pools_and_dense_layers() {
    check(LENET, 7);
}

#[test]
fn residual_blocks() {
    check(RESNET, 11);
}

#[test]
fn stacked_convolutions_with_normalizations() {
    check(VGG, 9);
}

#[test]
fn concatenated_and_depthwise_branches() {
    check(BRANCHES, 8);
}

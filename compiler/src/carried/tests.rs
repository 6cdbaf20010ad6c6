use fhe_bytecode::Pairing;
use fhec_ir::spec::{GraphSpec, Uniform};

use super::*;
use crate::pipeline::{Built, LayoutChoice};
use crate::{Model, Request, compile};

/// Dense layers with complex halves, and with folds.
const VECTOR: &str = r#"(nodes: [
    (name: "x", op: Input(100, 1, 1)),
    (name: "c", of: ["x"], op: Linear(weight: Between([80, 100], 1, -0.4, 0.4), bias: Some(Seed([80], 2)))),
    (name: "q", of: ["c"], op: Poly(Values([4, 1], [0.1, 0.2, 1.0, 0.3]))),
    (name: "d", of: ["q"], op: Linear(weight: Between([3, 80], 3, -0.4, 0.4))),
    (name: "p", of: ["d"], op: Poly(Values([3, 1], [0.0, 0.5, 1.0]))),
    (name: "e", of: ["p"], op: Linear(weight: Between([9, 3], 4, -0.4, 0.4))),
    (name: "o", of: ["e"], op: Output),
])"#;

/// Convolutions with several ciphertexts, and a sum of two ways.
const IMAGE: &str = r#"(nodes: [
    (name: "x", op: Input(4, 8, 8)),
    (name: "c", of: ["x"], op: Conv2d(weight: Between([4, 4, 3, 3], 1, -0.4, 0.4), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.1, 0.2, 1.0]))),
    (name: "d", of: ["q"], op: Conv2d(weight: Between([4, 4, 3, 3], 3, -0.4, 0.4), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s", of: ["d", "q"], op: Add),
    (name: "r", of: ["s"], op: Poly(Values([3, 1], [0.0, 0.5, 1.0]))),
    (name: "e", of: ["r"], op: Conv2d(weight: Between([6, 4, 3, 3], 5, -0.2, 0.2), stride: (2, 2))),
    (name: "f", of: ["e"], op: Flatten),
    (name: "g", of: ["f"], op: Linear(weight: Between([5, 54], 4, -0.4, 0.4))),
    (name: "o", of: ["g"], op: Output),
])"#;

fn built(nodes: &str, layout: LayoutChoice) -> Built {
    let spec: GraphSpec = ron::from_str(nodes).unwrap();
    let model = Model::graph("network", spec.build().unwrap());
    let log_n = Some(10..=11);
    let request = Request { toy: true, log_n, layout, ..Request::new(model) };
    compile(&request, &mut ()).unwrap().built
}

fn all() -> Vec<Built> {
    let kinds = [(VECTOR, LayoutChoice::Auto), (IMAGE, LayoutChoice::Hw), (IMAGE, LayoutChoice::Packed)];
    kinds.map(|(nodes, layout)| built(nodes, layout)).into_iter().collect()
}

fn input(program: &fhe_bytecode::CheckedProgram) -> Vec<f64> {
    let mut stream = Uniform::new(7);
    (0..program.input_layout().shape().len()).map(|_| stream.between(-1.0, 1.0)).collect()
}

/// Where all copies of a number change alike, a score changes by its derivative.
#[test]
fn copies_of_a_number_gain_its_derivative_together() {
    let mut pairings = Vec::new();
    for built in all() {
        let program = &built.program;
        let maps = program.spec().maps.len() as u32;
        pairings.extend((0..maps).map(|map| program.map(fhe_bytecode::MapId(map)).plan.pairing));
        let carried = Carried::new(program);
        let input = input(program);
        let evaluated = carried.evaluated(&input).unwrap();
        let score = |input: &[f64], score: usize| carried.clear.run(input, &mut ()).unwrap()[score];
        for of in [0, 2] {
            let mut gained = Vec::new();
            carried.back(&evaluated, of, &mut |index, slots| {
                if index == 0 {
                    let period = program.input_layout().period();
                    let folded: Vec<Vec<f64>> = slots.iter().map(|ct| ct.folded(period).re).collect();
                    gained = program.input_layout().gather(&folded);
                }
            });
            for (number, gained) in gained.iter().enumerate().step_by(7) {
                let moved = |by: f64| {
                    let mut moved = input.clone();
                    moved[number] += by;
                    score(&moved, of)
                };
                let derivative = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                assert!(
                    (gained - derivative).abs() < 1e-5 * (1.0 + derivative.abs()),
                    "{gained} {derivative}"
                );
            }
            assert_eq!(gained.len(), input.len());
        }
    }
    assert!(pairings.contains(&Pairing::Halves) && pairings.contains(&Pairing::Outputs), "{pairings:?}");
}

/// The bound of a search is for noise of copies that is alike or apart, whichever is worse.
#[test]
fn deviations_are_about_those_of_the_search() {
    for built in all() {
        let carried = Carried::new(&built.program);
        let case = built.stats.cases.iter().map(|case| {
            carried.variance(&carried.evaluated(&case.input).unwrap(), case.result.unwrap()).sqrt()
        });
        let ratio = case.fold(0.0, f64::max) / built.schedule().worst_error;
        assert!((0.3..1.5).contains(&ratio), "{ratio}");
    }
}

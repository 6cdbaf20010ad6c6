//! Values that leave their modulus: the simulation gives the number that comes back from an encrypted evaluation.

mod networks;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::ClearProgram;
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhec::simulate::{disturbed, summarize};
use fhec::{Calibration, Request, compile};
use networks::{graph, toy_request};

/// Two dense layers without an activation: scores grow with the inputs and nothing else does.
const DENSE: &str = r#"
    (name: "x", op: Input(8, 1, 1)),
    (name: "d", of: ["x"], op: Linear(weight: Between([12, 8], 5, -0.4, 0.4), bias: Some(Seed([12], 6)))),
    (name: "s", of: ["d"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
    (name: "e", of: ["s"], op: Linear(weight: Between([5, 12], 7, -0.4, 0.4))),
    (name: "o", of: ["e"], op: Output),
"#;

/// Size of the largest input that is calibrated on.
const CALIBRATED: f64 = 0.9;

fn sample(size: f64) -> Vec<f64> {
    (0..8).map(|i| size * (((i * 37 + 11) % 101) as f64 / 50.0 - 1.0)).collect()
}

fn program() -> CheckedProgram {
    let calibration = Calibration::Inputs((0..8).map(|k| sample(0.2 + 0.1 * f64::from(k))).collect());
    let request = Request { calibration, precision: Some(8.0), ..toy_request(graph(DENSE)) };
    compile(&request, &mut ()).unwrap().built.program
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[test]
fn score_beyond_the_last_modulus_comes_back_as_simulated() {
    let program = program();
    let mut seeds = fixed_seeds(7);
    let trial = Trial::new(&program, Options { memory: 4 << 30, n_evaluations: 1 }, &mut seeds).unwrap();
    let bound = program.spec().prediction.max_abs_error;
    let mut n_wrapped = 0;
    for size in [1.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        let input = sample(size);
        let exact = ClearProgram::new(&program).run(&input, &mut ()).unwrap();
        let simulated = disturbed(&program, &input, 1).unwrap();
        let summary = summarize(&program, &vec![input.clone()], 1, &mut |_, _| ()).unwrap();
        let found = trial.run(&input, &mut seeds, &Silent).unwrap().decrypted;
        let size_of = |v: &[f64]| v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        eprintln!(
            "input {size}: exact {:.3}, decrypted {:.3}, simulated {:.3}, error {:.4}, bound {bound:.4}, {:?}",
            size_of(&exact),
            size_of(&found),
            size_of(&simulated),
            worst(&found, &exact),
            summary.fullest
        );
        // What comes back differs from the exact scores if, and only if, the simulation says so.
        let has_wrapped = summary.wrapped_samples == 1;
        // Noise grows with the numbers that it meets: those of a square with the square of the input, and more where the mean
        // over the calibration inputs is left out of them.
        let tolerance = 2.0 * bound * (size / CALIBRATED).max(1.0).powi(2);
        assert_eq!(worst(&found, &exact) > tolerance, has_wrapped, "{found:?} for {exact:?}");
        assert!(!has_wrapped || summary.near_samples == 1);
        if !has_wrapped {
            // Nor is the noise larger than what the simulation shows.
            let noise = |seed: u64| worst(&disturbed(&program, &input, seed).unwrap(), &exact);
            let largest = (1..=40).map(noise).fold(0.0, f64::max);
            assert!(worst(&found, &exact) <= 1.5 * largest, "{found:?} for {exact:?}, noise up to {largest}");
        }
        n_wrapped += summary.wrapped_samples;
        // As long as only the last value wraps, the numbers are those of the simulation.
        if n_wrapped <= 1 {
            // Two noises are compared.
            assert!(worst(&found, &simulated) < 2.0 * tolerance, "{found:?} is not {simulated:?}");
        }
    }
    assert!(n_wrapped > 0, "no input was large enough");
}

#[test]
fn inputs_within_the_calibrated_range_stay_away_from_the_edge() {
    let program = program();
    let inputs: Vec<Vec<f64>> = (0..8).map(|k| sample(0.2 + 0.1 * f64::from(k))).collect();
    let summary = summarize(&program, &inputs, 1, &mut |_, _| ()).unwrap();
    assert_eq!((summary.near_samples, summary.wrapped_samples), (0, 0), "{:?}", summary.fullest);
}

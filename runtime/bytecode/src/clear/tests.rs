//! The interpreter against direct evaluation and against the plans of its maps.

use super::*;
use crate::layout::Layout;
use crate::testing::{Rng, apply_plan, naive, sample_program};

fn sample() -> CheckedProgram {
    CheckedProgram::new(sample_program()).unwrap()
}

fn image(program: &CheckedProgram) -> Vec<f64> {
    let mut rng = Rng::new(5);
    (0..program.input_layout().shape().len()).map(|_| rng.unit()).collect()
}

#[test]
fn sample_network_gives_what_its_layers_give() {
    let program = sample();
    let spec = program.spec();
    let input = image(&program);
    let layer = |map: usize, tensor: &[f64]| {
        let map = &spec.maps[map];
        let layout = |id| -> &Layout { program.layout(id) };
        naive(&map.terms[0].op, layout(map.terms[0].input), layout(map.output), &spec.constants, tensor)
    };
    let bias = |tensor: u32, per: usize, values: Vec<f64>| {
        let bias = spec.constants.values(crate::ids::TensorId(tensor)).unwrap().data;
        values.into_iter().enumerate().map(|(i, v)| v + bias[i / per]).collect::<Vec<_>>()
    };
    let hidden = bias(3, 64, layer(0, &input));
    let squared: Vec<f64> = hidden.iter().map(|v| v * v).collect();
    let joined: Vec<f64> = layer(1, &squared).iter().zip(&hidden).map(|(a, b)| a + 0.5 * b).collect();
    let expected = bias(4, 1, layer(2, &joined));
    let found = ClearProgram::new(&program).run(&input, &mut ()).unwrap();
    assert_eq!(found.len(), 5);
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

/// Replays every linear map by its plan, slot by slot.
struct PlanOracle<'a> {
    program: &'a CheckedProgram,
    values: std::collections::BTreeMap<u32, Vec<f64>>,
    compared: usize,
}

impl Hook for PlanOracle<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        if let Op::Linear { src, map, .. } = event.op {
            let inputs: Vec<Vec<f64>> =
                src.iter().flat_map(|range| range.iter()).map(|ct| self.values[&ct.0].clone()).collect();
            let map = self.program.map(*map);
            let expected = apply_plan(&map.plan, &map.diagonals, &inputs);
            for (a, b) in cts.iter().flatten().zip(expected.iter().flatten()) {
                assert!((a - b).abs() < 1e-9);
            }
            self.compared += 1;
        }
        let dst = event.op.dst().unwrap();
        dst.iter().zip(cts.iter()).for_each(|(ct, slots)| drop(self.values.insert(ct.0, slots.clone())));
    }
}

#[test]
fn linear_maps_equal_their_plans_in_every_slot() {
    let program = sample();
    let mut oracle = PlanOracle { program: &program, values: Default::default(), compared: 0 };
    ClearProgram::new(&program).run(&image(&program), &mut oracle).unwrap();
    assert_eq!(oracle.compared, 3);
}

#[test]
fn hook_may_disturb_results() {
    struct Doubler;
    impl Hook for Doubler {
        fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
            if event.instruction == 21 {
                cts.iter_mut().flatten().for_each(|v| *v *= 2.0);
            }
        }
    }
    let program = sample();
    let clear = ClearProgram::new(&program);
    let plain = clear.run(&image(&program), &mut ()).unwrap();
    let doubled = clear.run(&image(&program), &mut Doubler).unwrap();
    assert!(plain.iter().zip(doubled).all(|(a, b)| 2.0 * a == b));
}

#[test]
fn wrong_input_size_is_an_error() {
    let program = sample();
    let error = ClearProgram::new(&program).run(&[1.0], &mut ()).unwrap_err();
    assert_eq!(error, InputError { found: 1, needed: 128 });
}

//! One rejecting test per invariant, asserting the message.

use super::*;
use crate::constants::{Tensor, TensorData};
use crate::ids::{CtRange, LayerId};
use crate::linear::{LinearOp, Pairing};
use crate::program::{Instruction, Op, RotationKey, TailStep, batch_ports};
use crate::rotation::Rotation;
use crate::testing::sample_program;

/// The messages for a changed sample program.
fn messages(change: impl FnOnce(&mut ProgramSpec)) -> Vec<String> {
    let mut program = sample_program();
    change(&mut program);
    let errors = CheckedProgram::new(program).expect_err("the change breaks the program");
    errors.list().iter().map(ToString::to_string).collect()
}

fn check(change: impl FnOnce(&mut ProgramSpec), expected: &str) {
    let found = messages(change);
    assert!(found.iter().any(|message| message == expected), "expected {expected:?} among {found:#?}");
}

fn ct(register: u32) -> CtRange {
    CtRange::new(register, 1)
}

fn insert(program: &mut ProgramSpec, at: usize, op: Op) {
    program.instructions.insert(at, Instruction { layer: LayerId(0), op });
}

#[test]
fn sample_passes_and_knows_its_facts() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    assert_eq!(program.output_level(), Level(0));
    assert!(program.output_scale().agrees(Scale::from_log2(22.0)));
    let square = program.fact(7).unwrap();
    assert!(square.level == Level(2) && square.scale.agrees(Scale::from_log2(44.0)));
    assert_eq!(program.spec().relin_level, Some(Level(2)));
}

#[test]
fn bad_parameters_layouts_constants_and_maps_are_located() {
    check(|p| p.params.digit_size = 0, "header: digits of 0 towers in a chain of 4");
    check(|p| p.layouts[1].row_stride = 3, "layout l1: layout row needs 8 slots but row_stride leaves 3");
    check(|p| p.layouts[1].slots = 512, "layout l1: 512 slots in a ring of 256");
    check(|p| p.constants.tensors[0].shape[0] = 5, "constants: tensor w0 has 72 values, its shape needs 90");
    check(|p| p.maps[2].output = LayoutId(9), "map m2: layout l9 does not exist");
    check(|p| p.maps[0].pairing = Pairing::Outputs, "map m0: pairing Outputs has nothing to pair");
    check(|p| p.maps[0].terms.clear(), "map m0: a linear map needs at least one term");
    check(|p| p.maps[1].plan.splits.clear(), "map m1: no split for rotation -63");
}

#[test]
fn header_must_fit_the_tables() {
    check(|p| p.input.level = Level(4), "instruction 0: level L4 is above the chain's L3");
    let tiny = |p: &mut ProgramSpec| p.input.scale = Scale::from_log2(-1000.0);
    assert!(messages(tiny)[0].ends_with("is below one"));
    check(|p| p.output.layout = LayoutId(7), "header: layout l7 does not exist");
    check(|p| p.input.preprocessing.mean = vec![0.0; 3], "header: mean has 3 values for 2 channels");
    check(|p| p.input.preprocessing.std = vec![1.0, 0.0], "header: standard deviation 0 is not positive");
    check(|p| p.output.labels = vec!["a".into()], "header: labels has 1 values for 5 channels");
}

#[test]
fn ports_and_tails_must_fit_the_tensors() {
    let port =
        |name: &str| format!("header: port {name} does not lie within the tensor, or overlaps another");
    check(|p| p.input.ports[0].dims = vec![1, 8, 8, 3], &port("image"));
    check(|p| p.input.ports[0].dims = vec![], &port("image"));
    check(|p| p.input.ports[0].dims = vec![u32::MAX; 8], &port("image"));
    check(|p| p.input.ports[0].offset = 1, &port("image"));
    check(|p| p.output.ports.push(p.output.ports[0].clone()), &port("logits"));
    let tail = "header: tail label does not fit the scores it starts from";
    check(|p| p.output.tails[0].port = 1, tail);
    check(|p| p.output.tails[0].classes.truncate(4), tail);
    check(|p| p.output.tails[0].steps[1] = TailStep::ArgMax { length: 0, inner: 1 }, tail);
    check(|p| p.output.tails[0].steps[0] = TailStep::Softmax { length: 5, inner: u32::MAX }, tail);
    check(|p| p.output.tails[0].steps[0] = TailStep::Votes { classes: 0 }, tail);
    check(|p| p.output.tails[0].steps = vec![TailStep::Sigmoid {}; 9], tail);
}

/// The sample for batches, as far as its header tells.
fn of_two(program: &mut ProgramSpec) {
    program.input.ports = batch_ports(&program.input.ports, 128, 2);
    program.output.ports = batch_ports(&program.output.ports, 5, 2);
}

#[test]
fn batches_are_the_same_at_both_ends_and_in_every_operand() {
    let port =
        |name: &str| format!("header: port {name} does not lie within the tensor, or overlaps another");
    check(
        |p| p.input.ports = batch_ports(&p.input.ports, 128, 2),
        "header: a batch of 2 inputs and 1 results",
    );
    let named = |p: &mut ProgramSpec| {
        of_two(p);
        p.input.ports[1].name = "other".into();
    };
    check(named, &port("other"));
    check(of_two, "instruction 0: 1 registers for a tensor of 2 ciphertexts");
    let lanes = |p: &mut ProgramSpec| {
        of_two(p);
        let both = |register| CtRange::new(register, 2);
        p.instructions[0].op = Op::Input { dst: both(30) };
        let Op::Linear { map, scale, .. } = p.instructions[1].op.clone() else { unreachable!() };
        insert(p, 1, Op::Linear { dst: ct(40), src: vec![ct(31)], map, scale });
        insert(p, 2, Op::Linear { dst: both(50), src: vec![both(30)], map, scale });
        insert(p, 3, Op::Add { dst: both(60), a: ct(40), b: both(50) });
    };
    check(lanes, "instruction 3: operands of 1 and 2 lanes");
}

#[test]
fn messages_repeat_little_of_a_name_and_nothing_that_a_terminal_obeys() {
    let name = format!("\u{1b}]0;\u{202e}{}", "x".repeat(1 << 16));
    let changes: [fn(&mut ProgramSpec, String); 2] = [
        |p, name| (p.input.ports[0].name, p.input.ports[0].offset) = (name, u32::MAX),
        |p, name| (p.output.tails[0].name, p.output.tails[0].port) = (name, 9),
    ];
    for change in changes {
        let found = messages(|p| change(p, name.clone()));
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found.iter().all(|m| m.len() < 200 && crate::text::is_harmless(m)), "{found:#?}");
    }
}

/// Found by changed programs: they were accepted, and could not be evaluated.
#[test]
fn numbers_must_be_encodable_at_their_scale() {
    let large = |place: &str, change: &dyn Fn(&mut ProgramSpec)| {
        let found = messages(change);
        let expected = format!("instruction {place}: numbers up to 1e290 at scale ");
        assert!(found[0].starts_with(&expected), "{found:#?}");
    };
    let exact = |n: usize| TensorData::Exact([vec![-1e290], vec![1.0; n - 1]].concat());
    large("1", &|p| p.constants.tensors[0].data = exact(72));
    large("5", &|p| p.constants.tensors[3].data = exact(4));
    large("10", &|p| {
        let Op::MulScalar { value, .. } = &mut p.instructions[10].op else { unreachable!() };
        *value = -1e290;
    });
    large("10", &|p| {
        let tensor = p.constants.push(Tensor { members: 1, shape: vec![4], data: exact(4) });
        let Op::MulScalar { dst, src, scale, .. } = p.instructions[10].op else { unreachable!() };
        p.instructions[10].op = Op::MulPlain { dst, src, tensor, scale };
    });
    let first = TensorId(5);
    let other = |p: &mut ProgramSpec, op: LinearOp| {
        p.constants.tensors.push(Tensor { members: 1, shape: vec![4], data: exact(4) });
        (p.maps[1].terms[0].op, p.maps[1].pairing) = (op, Pairing::None);
        p.maps[1].plan.splits.retain(|split| split.rotation.is_zero());
    };
    let (stride, pads, kernel) = ([1; 2], [0; 2], [1; 2]);
    large("8", &|p| other(p, LinearOp::SumPool { kernel, stride, pads, factor: -1e290 }));
    large("8", &|p| other(p, LinearOp::Pick { factors: Some(first), channel_offset: 0, stride, pads }));
    // Nothing but zeros has no size, and what a double holds with room to spare is fine.
    for value in [0.0, 1e250] {
        let mut program = sample_program();
        program.constants.tensors[3].data = TensorData::Exact(vec![value; 4]);
        assert!(CheckedProgram::new(program).is_ok(), "{value}");
    }
}

#[test]
fn sources_must_be_defined() {
    check(
        |p| p.instructions[7].op = Op::Square { dst: ct(2), src: ct(30) },
        "instruction 7: registers c30 are not one whole tensor",
    );
    check(|p| insert(p, 3, Op::Free { src: ct(0) }), "instruction 3: registers c0 are not one whole tensor");
}

#[test]
fn destinations_must_be_free() {
    check(
        |p| p.instructions[7].op = Op::Square { dst: ct(1), src: ct(1) },
        "instruction 7: registers c1 are already in use",
    );
}

#[test]
fn runs_have_the_length_of_their_layout() {
    check(
        |p| p.instructions[0].op = Op::Input { dst: CtRange::new(0, 2) },
        "instruction 0: 2 registers for a tensor of 1 ciphertexts",
    );
    check(
        |p| p.instructions[0].op = Op::Input { dst: CtRange::new(0, 0) },
        "instruction 0: registers c0..0 are empty or beyond the limit",
    );
    check(
        |p| p.instructions[0].op = Op::Input { dst: ct(u32::MAX) },
        "instruction 0: registers c4294967295 are empty or beyond the limit",
    );
}

#[test]
fn registers_must_be_freed() {
    check(|p| drop(p.instructions.remove(22)), "end: registers c8 and 0 more are never freed");
}

#[test]
fn operands_must_agree_in_level_and_scale() {
    let add = Op::Add { dst: ct(20), a: ct(1), b: ct(2) };
    let found = messages(|p| insert(p, 8, add));
    assert!(found[0].contains("operands at scales 2^22"), "{found:?}");
    let lowered = |p: &mut ProgramSpec| {
        insert(p, 7, Op::Drop { dst: ct(20), src: ct(1), level: Level(1) });
        insert(p, 8, Op::Sub { dst: ct(21), a: ct(1), b: ct(20) });
    };
    check(lowered, "instruction 8: operands at levels L2 and L1");
}

#[test]
fn operands_must_agree_in_layout() {
    let mul = Op::Mul { dst: ct(20), a: ct(0), b: ct(1) };
    check(|p| insert(p, 2, mul), "instruction 2: operands in different layouts");
    check(|p| p.output.layout = LayoutId(1), "instruction 23: operands in different layouts");
    check(
        |p| p.maps[0].terms[0].input = LayoutId(1),
        "map m0: weights w0 of shape [4, 2, 3, 3] do not fit [4,8,8] to [4,8,8]",
    );
}

#[test]
fn maps_take_one_run_per_term() {
    let change = |p: &mut ProgramSpec| {
        if let Op::Linear { src, .. } = &mut p.instructions[1].op {
            src.push(ct(0));
        }
    };
    check(change, "instruction 1: 2 operands for a map of 1 terms");
    let change = |p: &mut ProgramSpec| {
        if let Op::Linear { map, .. } = &mut p.instructions[1].op {
            *map = MapId(8);
        }
    };
    check(change, "instruction 1: map m8 does not exist");
}

#[test]
fn plaintext_scales_are_at_least_one() {
    let change = |p: &mut ProgramSpec| {
        if let Op::Linear { scale, .. } = &mut p.instructions[1].op {
            *scale = Scale::from_log2(20.0);
        }
    };
    check(change, "instruction 1: scale 2^20.0000 is smaller than that of the operand, 2^22.0000");
}

#[test]
fn scales_stay_within_the_modulus() {
    let change = |p: &mut ProgramSpec| {
        if let Op::Linear { scale, .. } = &mut p.instructions[17].op {
            *scale = Scale::from_log2(90.0);
        }
    };
    let found = messages(change);
    assert!(
        found[0].starts_with("instruction 17: scale 2^90.0000 does not fit the modulus of 2^81"),
        "{found:?}"
    );
}

#[test]
fn rescales_need_a_tower_and_a_scale() {
    let found = messages(|p| insert(p, 20, Op::Rescale { dst: ct(20), src: ct(8) }));
    assert_eq!(found[0], "instruction 20: no tower left to rescale by");
    let found = messages(|p| insert(p, 7, Op::Rescale { dst: ct(20), src: ct(1) }));
    assert!(found[0].ends_with("is below one"), "{found:?}");
}

#[test]
fn drops_go_down() {
    let drop_up = Op::Drop { dst: ct(20), src: ct(1), level: Level(3) };
    check(|p| insert(p, 7, drop_up), "instruction 7: drop from level L2 up to level L3");
}

/// The sample with a top level that has a tower of 58 bits in place of those of 38 and 20.
fn pooled_program() -> ProgramSpec {
    let mut program = sample_program();
    let params = &mut program.params;
    params.towers[3] = crate::params::ntt_primes_near(f64::exp2(58.0), params.log_n, 1, &[]).unwrap()[0];
    let set = |indices: &[u16]| indices.iter().copied().map(crate::TowerIdx).collect();
    let levels = vec![set(&[0]), set(&[0, 1]), set(&[0, 1, 2]), set(&[0, 1, 3])];
    params.pool = Some(crate::Pool { levels, digits: vec![1; 4] });
    let ratio = params.towers[3] as f64 / params.towers[2] as f64;
    if let Op::Linear { scale, .. } = &mut program.instructions[1].op {
        *scale = Scale::new(f64::exp2(22.0) * ratio).unwrap();
    }
    program
}

#[test]
fn a_rescale_to_other_towers_is_replayed() {
    let program = CheckedProgram::new(pooled_program()).unwrap();
    let fact = program.fact(3).unwrap();
    assert!(fact.level == Level(2) && fact.scale.agrees(Scale::from_log2(22.0)), "{fact:?}");
    assert!((program.params().log2_q_at(Level(3)) - 139.0).abs() < 0.1);
    // Twice the scale before the rescale is twice the scale after it.
    let mut doubled = pooled_program();
    if let Op::Linear { scale, .. } = &mut doubled.instructions[1].op {
        *scale = scale.times(Scale::from_log2(1.0));
    }
    let fact = CheckedProgram::new(doubled).unwrap().fact(3).copied().unwrap();
    assert!(fact.scale.agrees(Scale::from_log2(23.0)), "{fact:?}");
}

#[test]
fn a_drop_to_other_towers_is_replayed() {
    let mut program = pooled_program();
    insert(&mut program, 1, Op::Drop { dst: ct(20), src: ct(0), level: Level(2) });
    insert(&mut program, 2, Op::Free { src: ct(20) });
    let program = CheckedProgram::new(program).unwrap();
    let (before, after) = (program.fact(0).unwrap(), program.fact(1).unwrap());
    let drop = program.params().drop(Level(3), Level(2)).unwrap();
    assert_eq!(
        (after.level, after.scale),
        (Level(2), drop.rescaled(program.params().towers(), before.scale))
    );
    assert!((after.scale.value() / before.scale.value() - 1.0).abs() < 1e-5);
}

#[test]
fn constants_must_fit_their_tensor() {
    let change = |p: &mut ProgramSpec| {
        let tensor = p.constants.push(Tensor::dense(vec![3], vec![0.0; 3]));
        p.instructions[5].op = Op::AddPlain { dst: ct(1), src: ct(0), tensor };
    };
    check(change, "instruction 5: constant of shape [3] does not fit [4,8,8]");
    let missing =
        Op::MulPlain { dst: ct(20), src: ct(1), tensor: TensorId(77), scale: Scale::from_log2(30.0) };
    check(|p| insert(p, 7, missing), "instruction 7: tensor w77 does not exist");
    let infinite =
        Op::MulScalar { dst: ct(20), src: ct(1), value: f64::INFINITY, scale: Scale::from_log2(30.0) };
    check(|p| insert(p, 7, infinite), "instruction 7: a number that is not finite");
}

#[test]
fn one_input_and_one_output_last() {
    check(|p| insert(p, 1, Op::Input { dst: ct(20) }), "instruction 1: a second input");
    check(|p| drop(p.instructions.remove(0)), "end: no input");
    check(|p| drop(p.instructions.remove(23)), "end: no output");
    let late = Op::Drop { dst: ct(20), src: ct(9), level: Level(0) };
    check(|p| insert(p, 24, late), "instruction 24: an instruction after the output");
}

#[test]
fn layers_must_exist() {
    check(|p| p.instructions[4].layer = LayerId(3), "instruction 4: layer y3 does not exist");
}

#[test]
fn every_use_has_a_key_of_its_level() {
    let first = sample_program().rotation_keys[0];
    let RotationKey { rotation, level } = first;
    check(
        |p| p.rotation_keys = p.rotation_keys.split_off(1),
        &format!("keys: no key for rotation {rotation} at {level}"),
    );
    check(
        |p| p.rotation_keys[0].level = Level(0),
        &format!("keys: no key for rotation {rotation} at {level}"),
    );
    check(|p| p.relin_level = None, "keys: no relinearization key at L2");
    check(|p| p.relin_level = Some(Level(1)), "keys: no relinearization key at L2");
    check(|p| p.conjugation_level = None, "keys: no conjugation key at L2");
}

#[test]
fn every_key_has_a_use() {
    let useless = |name: &str| {
        format!("keys: the key for {name} is out of order, not normalized, above its use, or of no use")
    };
    let extra = RotationKey { rotation: Rotation::new(101, 256), level: Level(1) };
    check(|p| p.rotation_keys.push(extra), &useless("rotation +101"));
    let first = sample_program().rotation_keys[0].rotation;
    check(|p| p.rotation_keys[0].level = Level(9), &useless(&format!("rotation {first}")));
    check(|p| p.rotation_keys.swap(0, 1), &useless(&format!("rotation {first}")));
    check(|p| p.relin_level = Some(Level(3)), &useless("relinearization"));
    check(|p| p.conjugation_level = Some(Level(3)), &useless("conjugation"));
}

#[test]
fn constants_spread_over_channels_coordinates_and_members() {
    let layout = Layout::fresh(crate::Packing::Hw, crate::Shape::new(2, 1, 2), 2, 16).unwrap();
    let spread =
        |members, shape: Vec<usize>, data: Vec<f64>| plain_tensor(&Values { members, shape, data }, &layout);
    assert_eq!(spread(1, vec![2], vec![1.0, 2.0]).unwrap(), [1., 1., 2., 2., 1., 1., 2., 2.]);
    assert_eq!(spread(2, vec![1], vec![5.0, 6.0]).unwrap(), [5., 5., 5., 5., 6., 6., 6., 6.]);
    assert_eq!(spread(1, vec![2, 1, 2], vec![1., 2., 3., 4.]).unwrap(), [1., 2., 3., 4., 1., 2., 3., 4.]);
    assert!(spread(3, vec![1], vec![0.0; 3]).is_err());
}

#[test]
fn peaks_stay_below_half_the_modulus() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    // The classifier has as much room before its rescale as after it.
    let room = program.params().log2_q_at(Level(0)) - 1.0 - 1.5 - program.fact(19).unwrap().scale.log2();
    let with_peak = |bits: f64| move |p: &mut ProgramSpec| p.layers[2].peak = bits.exp2();
    let mut fits = sample_program();
    with_peak(room - 0.01)(&mut fits);
    CheckedProgram::new(fits).unwrap();
    let found = messages(with_peak(room + 0.25));
    assert!(found[1].starts_with("instruction 19: layer y2 \"classifier\": values up to"), "{found:?}");
    assert!(found[1].ends_with("need 0.25 bits more than the modulus of 2^45.00 at level L0"), "{found:?}");
    check(|p| p.layers[1].peak = -1.0, "header: peak -1 is negative or not finite");
    check(|p| p.layers[1].peak = f64::NAN, "header: peak NaN is negative or not finite");
}

#[test]
fn ranges_are_finite_and_ordered() {
    let range = |low, high| Some(crate::program::Interval { low, high });
    check(|p| p.input.range = range(1.0, 0.0), "header: range [1, 0] is not two finite numbers in order");
    check(
        |p| p.output.range = range(f64::NEG_INFINITY, 0.0),
        "header: range [-inf, 0] is not two finite numbers in order",
    );
}

#[test]
fn steps_know_operands_results_and_memory() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    let steps: Vec<Step<'_>> = program.steps().collect();
    assert_eq!(steps.len(), program.spec().instructions.len());
    for step in &steps {
        assert_eq!(step.sources.len(), step.op().sources().len());
        assert_eq!(step.result, program.fact(step.index));
        assert_eq!(step.result.is_some(), step.op().dst().is_some());
    }
    // A rescale works a level above its result, everything else at its own.
    assert_eq!((steps[3].level(), steps[3].result.unwrap().level), (Level(3), Level(2)));
    // Input and result of the first map are alive while it runs, and its sums beside them.
    let ct = |level| program.params().ciphertext_bytes(Level(level));
    assert_eq!(steps[0].live_bytes, ct(3));
    assert_eq!(steps[1].live_bytes, 2 * ct(3));
    assert!(steps[1].working_bytes > 0 && steps[2].working_bytes == 0);
    assert_eq!(steps[3].live_bytes, ct(3) + ct(2));
    assert_eq!(steps.last().unwrap().live_bytes, ct(0));
}

/// The sample with a lower segment from level 1 on, in a ring of 2^`log_n`.
fn segmented(log_n: u32) -> ProgramSpec {
    let mut program = sample_program();
    let special_primes = crate::params::ntt_primes_below(47, program.params.log_n, 2, &program.params.towers);
    let special_primes = special_primes.unwrap();
    program.params.lower =
        vec![crate::params::SegmentSpec { log_n, level: Level(1), special_primes, digits: vec![2] }];
    let keys = required_keys(&program);
    if let Ok(keys) = keys {
        program.rotation_keys = keys.rotations;
        (program.relin_level, program.conjugation_level) = (keys.relin, keys.conjugation);
        program.lower_keys = keys.lower;
    }
    program
}

#[test]
fn keys_of_segments_are_checked_apart() {
    let log_n = sample_program().params.log_n;
    let program = segmented(log_n);
    CheckedProgram::new(program.clone()).unwrap();
    let lower = &program.lower_keys[0];
    assert!(lower.entry.is_none(), "the same ring needs no way into it");
    assert!(!lower.rotations.is_empty() && lower.rotations.iter().all(|key| key.level <= Level(1)));
    assert!(program.rotation_keys.iter().all(|key| key.level > Level(1)));
    let refused = |change: &dyn Fn(&mut ProgramSpec), expected: &str| {
        let mut program = program.clone();
        change(&mut program);
        let errors = CheckedProgram::new(program).unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    };
    refused(&|p| p.lower_keys.clear(), "keys of 0 segments below the first, there are 1");
    refused(&|p| p.lower_keys[0].rotations.clear(), "no key for rotation");
    refused(&|p| p.lower_keys[0].entry = Some(Level(1)), "the key for entry is out of order");
}

#[test]
fn content_must_repeat_in_a_smaller_ring() {
    let log_n = sample_program().params.log_n;
    let least = (5..log_n).find(|&log_n| CheckedProgram::new(segmented(log_n)).is_ok());
    // What fits, fits with a key for the way; what does not is told.
    if let Some(least) = least {
        let program = segmented(least);
        assert_eq!(program.lower_keys[0].entry, Some(Level(1)));
        let mut without = program;
        without.lower_keys[0].entry = None;
        let errors = CheckedProgram::new(without).unwrap_err().to_string();
        assert!(errors.contains("no entry key at L1"), "{errors}");
    }
    let errors = CheckedProgram::new(segmented(5)).unwrap_err().to_string();
    assert!(errors.contains("slots in a ring of 16 at level L1"), "{errors}");
}

//! Both sides of the bounds that the checker holds programs to.

use super::*;
use crate::constants::{Tensor, TensorData};
use crate::ids::{CtRange, LayerId};
use crate::program::{Instruction, Op};
use crate::testing::sample_program;

fn messages(change: impl FnOnce(&mut ProgramSpec)) -> Vec<String> {
    let mut program = sample_program();
    change(&mut program);
    match CheckedProgram::new(program) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.list().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn accepts(change: impl FnOnce(&mut ProgramSpec)) {
    assert_eq!(messages(change), Vec::<String>::new());
}

#[track_caller]
fn refuses(change: impl FnOnce(&mut ProgramSpec), expected: &str) {
    let found = messages(change);
    assert!(found.iter().any(|message| message.contains(expected)), "{expected:?} among {found:#?}");
}

fn ct(register: u32) -> CtRange {
    CtRange::new(register, 1)
}

/// Puts instructions that change nothing for the others after the first `at`.
fn insert(program: &mut ProgramSpec, at: usize, ops: Vec<Op>) {
    for (i, op) in ops.into_iter().enumerate() {
        program.instructions.insert(at + i, Instruction { layer: LayerId(0), op });
    }
}

#[test]
fn peaks_and_times_of_layers_are_numbers_that_are_not_negative() {
    let fields: [fn(&mut ProgramSpec) -> &mut f64; 3] =
        [|p| &mut p.layers[1].peak, |p| &mut p.layers[1].seconds, |p| &mut p.layers[1].error];
    for field in fields {
        accepts(|p| *field(p) = 0.0);
        for bad in [-1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let found = messages(|p| *field(p) = bad);
            assert!(found.first().is_some_and(|message| message.starts_with("header: ")), "{bad}: {found:?}");
        }
    }
    refuses(|p| p.layers[2].name = "\u{7}".to_owned(), "\\u{7}");
    let many = |p: &mut ProgramSpec| {
        let bad = crate::program::LayerSpec { peak: -1.0, ..p.layers[0].clone() };
        p.layers.extend(vec![bad; 500]);
    };
    assert_eq!(messages(many).len(), MAX_ERRORS);
}

#[test]
fn values_keep_two_and_a_half_bits_below_the_modulus() {
    // The last instruction leaves scores at level 0, so the tower of 45 bits holds 2^22 times the peak.
    let free = |p: &ProgramSpec| (p.params.towers[0] as f64).log2() - 22.0 - 2.5;
    accepts(|p| p.layers[2].peak = (free(p) - 1e-3).exp2());
    refuses(|p| p.layers[2].peak = (free(p) + 1e-3).exp2(), "instruction 19");
    // Nothing is known of a layer whose peak is zero.
    accepts(|p| p.layers[2].peak = 0.0);
    let found = messages(|p| {
        p.layers[2].peak = (free(p) + 3.0).exp2();
        p.layers[2].name = "long ".repeat(1000);
    });
    assert!(found[0].len() < 400 && found[0].contains(&"long ".repeat(16)), "{found:#?}");
}

#[test]
fn scales_end_where_the_modulus_does() {
    let log2_q = |p: &ProgramSpec| p.params.towers[..2].iter().map(|&q| (q as f64).log2()).sum::<f64>();
    let set = |p: &mut ProgramSpec, scale: Scale| {
        p.layers[2].peak = 0.0;
        if let Op::Linear { scale: of, .. } = &mut p.instructions[17].op {
            *of = scale;
        }
    };
    accepts(|p| set(p, Scale::from_log2(log2_q(p) - 1e-3)));
    refuses(|p| set(p, Scale::from_log2(log2_q(p) + 1e-3)), "does not fit the modulus");
    let at = |p: &mut ProgramSpec, value: f64| {
        let scale = Scale::new(value).unwrap();
        p.layers[0].peak = 0.0;
        insert(
            p,
            1,
            vec![Op::MulScalar { dst: ct(20), src: ct(0), value: 1.0, scale }, Op::Free { src: ct(20) }],
        );
    };
    // A plaintext has a scale of at least one, so the product has at least the scale of the operand.
    accepts(|p| at(p, f64::exp2(22.0)));
    refuses(|p| at(p, f64::exp2(21.9)), "is smaller than that of the operand");
}

#[test]
fn a_scale_of_one_is_the_smallest() {
    accepts(|p| p.input.scale = Scale::ONE);
    refuses(|p| p.input.scale = Scale::new(1.0 - 1e-9).unwrap(), "is below one");
    // The tower has 20 bits and the input a scale of 22, so the second rescale leaves nothing.
    let twice = vec![
        Op::Rescale { dst: ct(20), src: ct(0) },
        Op::Rescale { dst: ct(21), src: ct(20) },
        Op::Free { src: ct(20) },
        Op::Free { src: ct(21) },
    ];
    refuses(|p| insert(p, 1, twice), "is below one");
}

#[test]
fn a_scale_as_large_as_the_modulus_is_too_large() {
    let at = |p: &mut ProgramSpec, scale: f64| {
        p.layers[0].peak = 0.0;
        let drop = Op::Drop { dst: ct(20), src: ct(0), level: Level(0) };
        let scaled =
            Op::MulScalar { dst: ct(21), src: ct(20), value: 1.0, scale: Scale::new(scale).unwrap() };
        insert(p, 1, vec![drop, scaled, Op::Free { src: ct(20) }, Op::Free { src: ct(21) }]);
    };
    accepts(|p| at(p, 0.999 * p.params.towers[0] as f64));
    refuses(|p| at(p, p.params.towers[0] as f64), "does not fit the modulus");
}

#[test]
fn no_more_errors_are_listed_than_anybody_reads() {
    let count = |change: &dyn Fn(&mut ProgramSpec)| messages(change).len();
    assert_eq!(
        count(&|p| p.layouts.extend(vec![crate::LayoutSpec { slots: 512, ..p.layouts[0].clone() }; 100])),
        MAX_ERRORS
    );
    assert_eq!(
        count(&|p| (0..100)
            .for_each(|_| p.maps.push(crate::LinearMap { terms: Vec::new(), ..p.maps[0].clone() }))),
        MAX_ERRORS
    );
    assert_eq!(count(&|p| insert(p, 1, vec![Op::Free { src: ct(77) }; 100])), MAX_ERRORS);
    let useless = crate::RotationKey { rotation: crate::Rotation::new(1, 1 << 20), level: Level(3) };
    assert_eq!(count(&|p| p.rotation_keys = vec![useless; 100]), MAX_ERRORS);
}

#[test]
fn numbers_of_960_bits_are_encoded_and_more_are_not() {
    let bias = |p: &mut ProgramSpec, bits: f64| {
        p.constants.tensors[3].data = TensorData::Exact(vec![-f64::exp2(bits), 0.0, 0.0, 0.0]);
    };
    // Biases are encoded at the scale of 22 bits, give or take what towers are off.
    accepts(|p| bias(p, 937.9));
    refuses(|p| bias(p, 938.1), "instruction 5");
    // The input has a scale of 22 bits to the last digit.
    let added = |p: &mut ProgramSpec, bits: f64| {
        p.layers[0].peak = 0.0;
        let data = TensorData::Exact(vec![f64::exp2(bits)]);
        let tensor = p.constants.push(Tensor { members: 1, shape: vec![1], data });
        insert(p, 1, vec![Op::AddPlain { dst: ct(20), src: ct(0), tensor }, Op::Free { src: ct(20) }]);
    };
    accepts(|p| added(p, 938.0));
    refuses(|p| added(p, 938.001), "instruction 1");
}

#[test]
fn constants_are_one_number_one_for_each_channel_or_one_for_each_place() {
    for (shape, fits) in [
        (vec![1], true),
        (vec![4], true),
        (vec![4, 8, 8], true),
        (vec![256], true),
        (vec![2], false),
        (vec![64], false),
    ] {
        let n = shape.iter().product::<u32>() as usize;
        let change = |p: &mut ProgramSpec| {
            let tensor = p.constants.push(Tensor::dense(shape.clone(), vec![0.5; n]));
            p.instructions[5].op = Op::AddPlain { dst: ct(1), src: ct(0), tensor };
        };
        assert_eq!(messages(change).is_empty(), fits, "{shape:?}");
    }
    let members = |members: u32| {
        move |p: &mut ProgramSpec| {
            let data = TensorData::Dense(vec![0.5; 4 * members as usize]);
            let tensor = p.constants.push(Tensor { members, shape: vec![4], data });
            p.instructions[5].op = Op::AddPlain { dst: ct(1), src: ct(0), tensor };
        }
    };
    accepts(members(1));
    refuses(members(2), "constant of 2 members does not fit 1");
}

#[test]
fn a_constant_stands_where_it_belongs() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    let bias = program.plain(TensorId(3), LayoutId(1)).unwrap();
    let values = program.spec().constants.values(TensorId(3)).unwrap();
    let tensor = program.layout(LayoutId(1)).gather(&bias);
    for (i, found) in tensor.iter().enumerate() {
        assert_eq!(*found, values.data[i / 64], "{i}");
    }
    assert!(program.plain(TensorId(0), LayoutId(1)).is_err());
    assert!(program.plain(TensorId(9), LayoutId(1)).is_err());
}

#[test]
fn memory_is_counted_while_tensors_live() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    let params = program.params();
    let bytes: Vec<u64> = program.steps().map(|step| step.live_bytes).collect();
    let at = |level: u16| params.ciphertext_bytes(Level(level));
    // Input; input and product; both while the input is freed; product and rescaled.
    assert_eq!(bytes[..4], [at(3), 2 * at(3), 2 * at(3), at(3) + at(2)]);
    assert_eq!(*bytes.last().unwrap(), at(0));
    let working: Vec<u64> = program.steps().map(|step| step.working_bytes).collect();
    let maps = [(1, 0, 3), (8, 1, 2), (17, 2, 1)];
    for (step, map, level) in maps {
        let pairs = program.map(MapId(map)).plan.working_pairs(0) + params.n_digits(Level(level));
        assert_eq!(working[step], params.key_pair_bytes(Level(level)) * pairs as u64, "{step}");
    }
    assert_eq!(working.iter().filter(|bytes| **bytes > 0).count(), maps.len());
    let most = program.steps().map(|step| step.live_bytes + step.working_bytes).max().unwrap();
    assert_eq!(program.peak_bytes(), most);
    let spec = program.spec();
    let levels = spec.rotation_keys.iter().map(|key| key.level);
    let keys = levels.chain(spec.relin_level).chain(spec.conjugation_level).map(|l| params.key_bytes(l));
    assert_eq!(program.key_bytes(), keys.sum::<u64>());
    assert!(spec.relin_level.is_some() && spec.conjugation_level.is_some());
}

#[test]
fn steps_have_what_they_read_and_the_level_they_work_at() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    let steps: Vec<Step<'_>> = program.steps().collect();
    assert_eq!((steps[0].sources.len(), steps[0].level(), steps[0].index), (0, Level(3), 0));
    assert_eq!((steps[1].sources.len(), steps[1].level()), (1, Level(3)));
    assert_eq!((steps[3].level(), steps[3].result.unwrap().level), (Level(3), Level(2)));
    // A sum reads two.
    assert_eq!((steps[12].sources.len(), steps[12].level()), (2, Level(2)));
    assert!(steps[12].sources.iter().all(|fact| fact.layout == LayoutId(1)));
    assert_eq!((steps[23].level(), steps[23].result.is_none()), (Level(0), true));
}

#[test]
fn registers_end_with_the_limit_and_runs_do_not_overlap() {
    let last = (1 << 20) - 1;
    let drop = |dst: CtRange, src: CtRange| Op::Drop { dst, src, level: Level(3) };
    accepts(|p| insert(p, 1, vec![drop(ct(last), ct(0)), Op::Free { src: ct(last) }]));
    refuses(|p| insert(p, 1, vec![drop(ct(last + 1), ct(0))]), "are empty or beyond the limit");
    refuses(|p| insert(p, 1, vec![drop(ct(0), ct(0))]), "are already in use");
    refuses(
        |p| insert(p, 1, vec![drop(ct(30), ct(0)), drop(ct(31), ct(0)), drop(ct(32), ct(0))]),
        "registers c30 and 2 more are never freed",
    );
    refuses(|p| insert(p, 1, vec![Op::Free { src: CtRange::new(0, 2) }]), "are not one whole tensor");
}

#[test]
fn drops_may_stay_where_they_are() {
    accepts(|p| {
        insert(p, 1, vec![Op::Drop { dst: ct(20), src: ct(0), level: Level(3) }, Op::Free { src: ct(20) }])
    });
    accepts(|p| {
        insert(p, 1, vec![Op::Drop { dst: ct(20), src: ct(0), level: Level(0) }, Op::Free { src: ct(20) }])
    });
}

#[test]
fn keys_are_neither_missing_nor_too_high_nor_unused() {
    let lower = |level: Option<Level>| level.and_then(Level::lower);
    let higher = |level: Option<Level>| level.map(|level| Level(level.0 + 1));
    refuses(|p| p.relin_level = lower(p.relin_level), "no relinearization key");
    refuses(|p| p.relin_level = None, "no relinearization key");
    refuses(|p| p.relin_level = higher(p.relin_level), "relinearization");
    refuses(|p| p.conjugation_level = lower(p.conjugation_level), "no conjugation key");
    refuses(|p| p.conjugation_level = None, "no conjugation key");
    refuses(|p| p.conjugation_level = higher(p.conjugation_level), "conjugation");
    refuses(|p| p.rotation_keys[0].level.0 += 1, "rotation");
    refuses(|p| p.rotation_keys.swap(0, 1), "rotation");
    refuses(|p| p.rotation_keys.push(*p.rotation_keys.last().unwrap()), "rotation");
    let at_zero = |p: &mut ProgramSpec| p.rotation_keys.iter_mut().for_each(|key| key.level = Level(0));
    let n_keys = sample_program().rotation_keys.len();
    assert_eq!(messages(at_zero).len(), n_keys.min(MAX_ERRORS));
    let keys = Keys::from(&CheckedProgram::new(sample_program()).unwrap());
    assert_eq!(keys.places().count(), n_keys + 2);
}

#[test]
fn a_bound_that_is_widened_is_another_program() {
    let program = CheckedProgram::new(sample_program()).unwrap();
    let before = crate::codec::encode(&program);
    let program = program.with_wider_bound(0.5);
    assert_eq!(program.spec().prediction.max_abs_error, 0.501);
    assert_ne!(crate::codec::encode(&program), before);
}

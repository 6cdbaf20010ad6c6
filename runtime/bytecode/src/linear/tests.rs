//! Diagonals against direct evaluation, over random geometries and layouts.

use super::*;
use crate::constants::{Constants, Tensor};
use crate::layout::Packing;
use crate::testing::{Rng, apply_diagonals, naive};

/// A random operation with its input layout; the output layout is derived or fresh.
struct Case {
    op: LinearOp,
    input: Layout,
    output: Layout,
    constants: Constants,
}

fn packing(rng: &mut Rng) -> Packing {
    if rng.below(2) == 0 { Packing::Hw } else { Packing::Packed }
}

fn random_case(rng: &mut Rng) -> Case {
    let slots = 1 << (8 + rng.below(3));
    let members = if rng.below(3) == 0 { 2 } else { 1 };
    let shape = Shape::new(1 + rng.below(7), 1 + rng.below(6), 1 + rng.below(5));
    let packed = packing(rng);
    let mut input = Layout::fresh(packed, shape, members, slots).unwrap();
    if rng.below(2) == 0 {
        // A tensor that already has gaps, as after an earlier stride.
        let reduced = Shape::new(1 + rng.below(9), shape.height.div_ceil(2), shape.width.div_ceil(2));
        input = input.after(packed, reduced, [2, 2]).unwrap().0;
    }
    let shape = input.shape();
    let stride = [1 + rng.below(2), 1 + rng.below(2)];
    let pads = [rng.below(3) as i32 - 1, rng.below(3) as i32 - 1];
    let mut constants = Constants::default();
    let mut weights = |rng: &mut Rng, shape: Vec<u32>| {
        let members = if rng.below(2) == 0 { 1 } else { members };
        let len = members * shape.iter().product::<u32>();
        let data = (0..len).map(|_| if rng.below(5) == 0 { 0.0 } else { rng.unit() as f32 }).collect();
        constants.push(Tensor { members, shape, data: crate::constants::TensorData::Dense(data) })
    };
    let spatial = |kernel: [u32; 2]| {
        let out = |n: u32, axis: usize| {
            let free = n as i32 + 2 * pads[axis] - kernel[axis] as i32;
            (free.max(0) as u32 / stride[axis]) + 1
        };
        (out(shape.height, 0), out(shape.width, 1))
    };
    let (op, out_shape, stride) = match rng.below(4) {
        0 => {
            let rows = 1 + rng.below(12);
            let weight = weights(rng, vec![rows, shape.len() as u32]);
            (LinearOp::Dense { weight }, Shape::new(rows, 1, 1), [1, 1])
        }
        1 => {
            let kernel = [1 + rng.below(3), 1 + rng.below(3)];
            let (h, w) = spatial(kernel);
            let op = LinearOp::SumPool { kernel, stride, pads, factor: 0.25 };
            (op, Shape::new(shape.channels, h, w), stride)
        }
        2 => {
            let (h, w) = spatial([1, 1]);
            let channels = 1 + rng.below(9);
            let factors = (rng.below(2) == 0).then(|| weights(rng, vec![channels]));
            let channel_offset = rng.below(5) as i32 - 2;
            (LinearOp::Pick { factors, channel_offset, stride, pads }, Shape::new(channels, h, w), stride)
        }
        _ => {
            let groups = if shape.channels.is_multiple_of(2) { 1 + rng.below(2) } else { 1 };
            let channels = groups * (1 + rng.below(5));
            let kernel = [1 + rng.below(3), 1 + rng.below(3)];
            let weight = weights(rng, vec![channels, shape.channels / groups, kernel[0], kernel[1]]);
            let dilation = [1 + rng.below(2), 1 + rng.below(2)];
            let (h, w) = spatial(kernel);
            let op = LinearOp::Conv2d { weight, stride, pads, dilation, groups };
            (op, Shape::new(channels, h, w), stride)
        }
    };
    let packed = packing(rng);
    let output = match rng.below(3) {
        0 => Layout::fresh(packed, out_shape, members, slots),
        _ => input.after(packed, out_shape, stride).map(|(layout, _)| layout),
    };
    let mut output = output.unwrap();
    if members > 1 && rng.below(3) == 0 {
        output = output.single_member().unwrap();
    }
    Case { op, input, output, constants }
}

const PAIRINGS: [Pairing; 3] = [Pairing::None, Pairing::Halves, Pairing::Outputs];

#[test]
fn diagonals_reproduce_the_operation_for_random_geometries_and_layouts() {
    let mut compared = [0; 3];
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let case = random_case(&mut rng);
        let tensor: Vec<f64> =
            (0..case.input.members() * case.input.shape().len()).map(|_| rng.unit()).collect();
        let terms = [Operand { op: &case.op, input: &case.input }];
        let expected =
            case.output.scatter(&naive(&case.op, &case.input, &case.output, &case.constants, &tensor));
        for (pairing, compared) in PAIRINGS.into_iter().zip(&mut compared) {
            let diagonals = match Diagonals::build(&terms, &case.output, pairing, &case.constants) {
                Err(LinearError::Pairing(_)) => continue,
                built => built.unwrap(),
            };
            let found = apply_diagonals(&diagonals, &case.input.scatter(&tensor));
            // Whole ciphertexts agree: replicas are filled and unused slots stay zero.
            for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
                assert!((a - b).abs() < 1e-9, "seed {seed}, {pairing:?}: {:?}", case.op);
            }
            *compared += 1;
        }
    }
    assert!(compared[0] == 400 && compared[1] > 300 && compared[2] > 80, "{compared:?}");
}

fn conv(constants: &mut Constants, out: u32, input: u32, stride: u32) -> LinearOp {
    let data = (0..out * input * 9).map(|i| 1.0 + i as f32).collect();
    let weight = constants.push(Tensor::dense(vec![out, input, 3, 3], data));
    LinearOp::Conv2d { weight, stride: [stride; 2], pads: [1, 1], dilation: [1, 1], groups: 1 }
}

/// Diagonals without and with halves paired, period, folds.
fn count(op: &LinearOp, input: &Layout, output: &Layout, constants: &Constants) -> [usize; 4] {
    let build = |pairing| Diagonals::build(&[Operand { op, input }], output, pairing, constants).unwrap();
    let (plain, paired) = (build(Pairing::None), build(Pairing::Halves));
    [plain.list().len(), paired.list().len(), plain.period(), plain.folds().len()]
}

#[test]
fn residual_network_layers_have_the_expected_diagonals() {
    let mut constants = Constants::default();
    let image = Layout::fresh(Packing::Packed, Shape::new(3, 32, 32), 1, 16384).unwrap();
    let one = Layout::fresh(Packing::Packed, Shape::new(16, 32, 32), 1, 16384).unwrap();
    let two = one.after(Packing::Packed, Shape::new(32, 16, 16), [2, 2]).unwrap().0;
    let three = two.after(Packing::Packed, Shape::new(64, 8, 8), [2, 2]).unwrap().0;
    let logits = Layout::vector(Packing::Packed, 10, 1, 16384).unwrap();
    let ops = [
        conv(&mut constants, 16, 3, 1),
        conv(&mut constants, 16, 16, 1),
        conv(&mut constants, 32, 16, 2),
        conv(&mut constants, 32, 32, 1),
        conv(&mut constants, 64, 32, 2),
        conv(&mut constants, 64, 64, 1),
    ];
    let weight = constants.push(Tensor::dense(vec![10, 4096], vec![0.5; 40960]));
    assert_eq!(count(&ops[0], &image, &one, &constants), [36, 18, 16384, 0]);
    assert_eq!(count(&ops[1], &one, &one, &constants), [144, 72, 16384, 0]);
    assert_eq!(count(&ops[2], &one, &two, &constants), [128, 64, 16384, 1]);
    assert_eq!(count(&ops[3], &two, &two, &constants), [392, 196, 8192, 0]);
    assert_eq!(count(&ops[4], &two, &three, &constants), [324, 162, 8192, 1]);
    assert_eq!(count(&ops[5], &three, &three, &constants), [900, 450, 4096, 0]);
    assert_eq!(count(&LinearOp::Dense { weight }, &three, &logits, &constants), [16, 8, 4096, 8]);
}

#[test]
fn pairing_is_chosen_where_it_saves_more_than_it_costs() {
    let mut constants = Constants::default();
    let op = conv(&mut constants, 16, 16, 1);
    let codes = crate::constants::TensorData::Clustered {
        codebooks: vec![crate::CodebookId(0)],
        indices: (0..2304).map(|i| (i % 4) as u16).collect(),
    };
    constants.codebooks.push(crate::Codebook { members: 1, values: vec![0.5, 1.0, 1.5, 2.0] });
    let clustered = constants.push(Tensor { members: 1, shape: vec![16, 16, 3, 3], data: codes });
    let shared =
        LinearOp::Conv2d { weight: clustered, stride: [1; 2], pads: [1; 2], dilation: [1; 2], groups: 1 };
    let shape = Shape::new(16, 32, 32);
    let check = |op: &LinearOp, packing, expected| {
        let layout = Layout::fresh(packing, shape, 1, 16384).unwrap();
        let best =
            Diagonals::best(&[Operand { op, input: &layout }], &layout, &constants, f64::INFINITY).unwrap();
        assert_eq!(best.pairing(), expected);
    };
    check(&op, Packing::Packed, Pairing::Halves);
    check(&op, Packing::Hw, Pairing::Outputs);
    check(&LinearOp::identity(), Packing::Packed, Pairing::None);
    check(&shared, Packing::Hw, Pairing::None);
}

/// The imaginary part of the noise meets the weights of the other row.
#[test]
fn weights_that_matter_share_no_complex_sum_with_much_larger_ones() {
    let weights: Vec<f32> = (0..4 * 4 * 9).map(|i| 1.0 + i as f32 / 16.0).collect();
    let squares = |row: &[f32]| row.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>();
    let largest = weights.chunks_exact(36).map(squares).fold(0.0, f64::max);
    let best = |packing: Packing, acting: f64| {
        let mut constants = Constants::default();
        let weight = constants.push(Tensor::dense(vec![4, 4, 3, 3], weights.clone()));
        let op = LinearOp::Conv2d { weight, stride: [1; 2], pads: [1; 2], dilation: [1; 2], groups: 1 };
        let layout = Layout::fresh(packing, Shape::new(4, 8, 8), 1, 256).unwrap();
        Diagonals::best(&[Operand { op: &op, input: &layout }], &layout, &constants, acting).unwrap()
    };
    for (packing, paired) in [(Packing::Packed, Pairing::Halves), (Packing::Hw, Pairing::Outputs)] {
        assert_eq!(best(packing, largest).pairing(), paired);
        assert_eq!(best(packing, largest / 255.0).pairing(), paired);
        assert_eq!(best(packing, largest / 257.0).pairing(), Pairing::None);
        assert_eq!(best(packing, 0.0).pairing(), Pairing::None);
    }
}

#[test]
fn shares_are_the_weights_of_both_parts() {
    let mut constants = Constants::default();
    let weight = constants.push(Tensor::dense(vec![2, 1, 1, 1], vec![3.0, 0.5]));
    let op = LinearOp::Conv2d { weight, stride: [1; 2], pads: [0; 2], dilation: [1; 2], groups: 1 };
    let input = Layout::fresh(Packing::Hw, Shape::new(1, 4, 4), 1, 64).unwrap();
    let output = Layout::fresh(Packing::Hw, Shape::new(2, 4, 4), 1, 64).unwrap();
    let build = |pairing| {
        Diagonals::build(&[Operand { op: &op, input: &input }], &output, pairing, &constants).unwrap()
    };
    let first_and_last = |pairing| {
        let shares = build(pairing).shares(&output).remove(0);
        [shares[0], shares[31]].map(|share| [share.own, share.other])
    };
    assert_eq!(first_and_last(Pairing::None), [[9.0, 0.0], [0.25, 0.0]]);
    assert_eq!(first_and_last(Pairing::Outputs), [[9.0, 0.25], [0.25, 9.0]]);
}

#[test]
fn equal_weights_under_equal_masks_share_a_plaintext() {
    let mut constants = Constants::default();
    let weight = constants.push(Tensor::dense(vec![2, 2, 1, 1], vec![0.5, 0.25, 0.25, 0.5]));
    let op = LinearOp::Conv2d { weight, stride: [1, 1], pads: [0, 0], dilation: [1, 1], groups: 1 };
    let layout = Layout::fresh(Packing::Hw, Shape::new(2, 4, 4), 1, 64).unwrap();
    let diagonals =
        Diagonals::build(&[Operand { op: &op, input: &layout }], &layout, Pairing::None, &constants).unwrap();
    let keys: Vec<_> = (0..4).map(|id| diagonals.key(DiagonalId(id))).collect();
    assert!(keys[0] == keys[3] && keys[1] == keys[2] && keys[0] != keys[1]);
}

#[test]
fn outputs_that_nothing_reaches_get_a_diagonal_of_zeros() {
    let layout = Layout::fresh(Packing::Hw, Shape::new(2, 4, 4), 1, 64).unwrap();
    let op = LinearOp::Pick { factors: None, channel_offset: 1, stride: [1, 1], pads: [0, 0] };
    let diagonals = Diagonals::build(
        &[Operand { op: &op, input: &layout }],
        &layout,
        Pairing::None,
        &Constants::default(),
    )
    .unwrap();
    let sums: Vec<u32> = diagonals.list().iter().map(|d| d.sum).collect();
    assert_eq!(sums, [0, 1]);
    let mut vector = vec![1.0; diagonals.period()];
    diagonals.write(DiagonalId(0), crate::Rotation::ZERO, &mut vector, &mut []);
    assert!(vector.iter().all(|&v| v == 0.0));
}

#[test]
fn terms_of_different_periods_add_up() {
    let mut rng = Rng::new(7);
    let mut constants = Constants::default();
    let wide = Layout::fresh(Packing::Packed, Shape::new(16, 4, 4), 1, 256).unwrap();
    let narrow = Layout::fresh(Packing::Packed, Shape::new(2, 4, 4), 1, 256).unwrap();
    let output = Layout::fresh(Packing::Packed, Shape::new(4, 4, 4), 1, 256).unwrap();
    let ops = [conv(&mut constants, 4, 16, 1), conv(&mut constants, 4, 2, 1)];
    let inputs = [&wide, &narrow].map(|l| (0..l.shape().len()).map(|_| rng.unit()).collect::<Vec<_>>());
    let terms = [Operand { op: &ops[0], input: &wide }, Operand { op: &ops[1], input: &narrow }];
    let cts: Vec<_> = wide.scatter(&inputs[0]).into_iter().chain(narrow.scatter(&inputs[1])).collect();
    let first = naive(&ops[0], &wide, &output, &constants, &inputs[0]);
    let second = naive(&ops[1], &narrow, &output, &constants, &inputs[1]);
    for pairing in [Pairing::None, Pairing::Halves] {
        let diagonals = Diagonals::build(&terms, &output, pairing, &constants).unwrap();
        let found = output.gather(&apply_diagonals(&diagonals, &cts));
        for ((f, a), b) in found.iter().zip(&first).zip(&second) {
            assert!((f - a - b).abs() < 1e-9);
        }
    }
}

#[test]
fn operations_that_do_not_fit_are_refused() {
    let mut constants = Constants::default();
    let layout = |c, h| Layout::fresh(Packing::Packed, Shape::new(c, h, h), 1, 1024).unwrap();
    let good = conv(&mut constants, 4, 4, 1);
    let check = |op: &LinearOp, input: &Layout, output: &Layout, message: &str| {
        let error =
            Diagonals::build(&[Operand { op, input }], output, Pairing::None, &constants).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(
        &good,
        &layout(3, 4),
        &layout(4, 4),
        "weights w0 of shape [4, 4, 3, 3] do not fit [3,4,4] to [4,4,4]",
    );
    let mut op = good.clone();
    if let LinearOp::Conv2d { stride, .. } = &mut op {
        *stride = [0, 1];
    }
    check(&op, &layout(4, 4), &layout(4, 4), "stride out of range");
    let dense = LinearOp::Dense { weight: TensorId(0) };
    check(
        &dense,
        &layout(4, 4),
        &layout(4, 1),
        "weights w0 of shape [4, 4, 3, 3] do not fit [4,4,4] to [4,1,1]",
    );
    let pool = LinearOp::SumPool { kernel: [2, 2], stride: [2, 2], pads: [0, 0], factor: 1.0 };
    check(&pool, &layout(4, 4), &layout(5, 2), "pooling cannot map [4,4,4] to [5,2,2]");
    let vast = LinearOp::SumPool { kernel: [1 << 12, 1 << 12], stride: [1, 1], pads: [0, 0], factor: 1.0 };
    check(&vast, &layout(4, 4), &layout(4, 4), "kernel out of range");
    let missing = LinearOp::Dense { weight: TensorId(9) };
    check(&missing, &layout(4, 4), &layout(4, 1), "tensor w9 does not exist");
    let members = Layout::fresh(Packing::Packed, Shape::new(4, 4, 4), 3, 1024).unwrap();
    let two = Layout::fresh(Packing::Packed, Shape::new(4, 4, 4), 2, 1024).unwrap();
    check(&good, &members, &two, "members disagree: input 3, output 2, weights 1");
    let other = Layout::fresh(Packing::Packed, Shape::new(4, 4, 4), 1, 512).unwrap();
    check(&good, &other, &layout(4, 4), "layouts of 512 and 1024 slots in one map");
    let single = Layout::vector(Packing::Hw, 1, 1, 1024).unwrap();
    let sum = LinearOp::SumPool { kernel: [1, 1], stride: [1, 1], pads: [0, 0], factor: 1.0 };
    let alone = [Operand { op: &sum, input: &single }];
    for pairing in [Pairing::Halves, Pairing::Outputs] {
        let error = Diagonals::build(&alone, &single, pairing, &constants).unwrap_err();
        assert_eq!(error, LinearError::Pairing(pairing));
    }
    assert_eq!(Diagonals::build(&[], &two, Pairing::None, &constants).unwrap_err(), LinearError::NoTerms);
}

/// A padded convolution from a layout with free rows to the one after it.
fn guarded_case(rng: &mut Rng, members: u32) -> Case {
    let shape = Shape::new(1 + rng.below(3), 4 + rng.below(5), 4 + rng.below(5));
    let mut input = Layout::guarded(shape, members, 1 << 10).unwrap();
    if rng.below(2) == 0 {
        let reduced = Shape::new(shape.channels, shape.height.div_ceil(2), shape.width.div_ceil(2));
        input = input.after(Packing::Hw, reduced, [2, 2]).unwrap().0;
    }
    let (from, stride) = (input.shape(), 1 + rng.below(2));
    let to = Shape::new(1 + rng.below(3), from.height.div_ceil(stride), from.width.div_ceil(stride));
    let weights = (members * to.channels * from.channels * 9) as usize;
    let data = (0..weights).map(|_| rng.unit() as f32).collect();
    let mut constants = Constants::default();
    let weight = constants.push(Tensor {
        members,
        shape: vec![to.channels, from.channels, 3, 3],
        data: crate::constants::TensorData::Dense(data),
    });
    let op = LinearOp::Conv2d { weight, stride: [stride; 2], pads: [1, 1], dilation: [1, 1], groups: 1 };
    let output = input.after(Packing::Hw, to, [stride; 2]).unwrap().0;
    Case { op, input, output, constants }
}

#[test]
fn members_do_not_leak_into_one_another() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let members = [1, 2, 3, 4][seed as usize % 4];
        let case = guarded_case(&mut rng, members);
        let alive = rng.below(members) as usize;
        let len = case.input.shape().len();
        let tensor: Vec<f64> =
            (0..len * members as usize).map(|i| if i / len == alive { rng.unit() } else { 0.0 }).collect();
        let operand = Operand { op: &case.op, input: &case.input };
        let diagonals = Diagonals::build(&[operand], &case.output, Pairing::None, &case.constants).unwrap();
        let slots = apply_diagonals(&diagonals, &case.input.scatter(&tensor));
        let expected = naive(&case.op, &case.input, &case.output, &case.constants, &tensor);
        // Slots without a coordinate and slots of the other members are zero, in every copy.
        let exact = case.output.scatter(&expected);
        for (found, expected) in slots.iter().flatten().zip(exact.iter().flatten()) {
            assert!((found - expected).abs() < 1e-9, "seed {seed}");
        }
        let of_others = (0..expected.len()).filter(|i| i / case.output.shape().len() != alive);
        assert!(of_others.into_iter().all(|i| expected[i] == 0.0), "seed {seed}");
    }
}

#[test]
fn kernel_rows_share_their_mask_where_rows_are_free() {
    let mut constants = Constants::default();
    let weight = constants.push(Tensor::dense(vec![2, 2, 3, 3], vec![0.5; 36]));
    let op = LinearOp::Conv2d { weight, stride: [1; 2], pads: [1; 2], dilation: [1; 2], groups: 1 };
    let shape = Shape::new(2, 8, 8);
    let n_plaintexts = |layout: &Layout| {
        let operand = Operand { op: &op, input: layout };
        let diagonals = Diagonals::build(&[operand], layout, Pairing::None, &constants).unwrap();
        (diagonals.list().len(), diagonals.n_plaintexts())
    };
    assert_eq!(n_plaintexts(&Layout::fresh(Packing::Hw, shape, 1, 512).unwrap()), (36, 9));
    assert_eq!(n_plaintexts(&Layout::guarded(shape, 1, 512).unwrap()), (36, 3));
    // No room for free rows: as without them.
    assert_eq!(n_plaintexts(&Layout::guarded(shape, 8, 512).unwrap()), (36, 9));
}

#[test]
fn many_terms_of_one_slot_have_no_halves_to_pair() {
    let mut constants = Constants::default();
    let ops: Vec<LinearOp> = (0..65)
        .map(|i| constants.push(Tensor::dense(vec![1, 1], vec![0.5 + i as f32])))
        .map(|weight| LinearOp::Dense { weight })
        .collect();
    let layout = Layout::fresh(Packing::Packed, Shape::new(1, 1, 1), 1, 64).unwrap();
    let terms: Vec<Operand<'_>> = ops.iter().map(|op| Operand { op, input: &layout }).collect();
    let best = Diagonals::best(&terms, &layout, &constants, f64::INFINITY).unwrap();
    assert_eq!((best.pairing(), best.list().len()), (Pairing::None, 65));
}

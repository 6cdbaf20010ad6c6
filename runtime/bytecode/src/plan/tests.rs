//! Plans compute the same as their map, are small, and fast to find.

use super::*;
use crate::constants::{Constants, Tensor};
use crate::layout::{Layout, Packing, Shape};
use crate::linear::{LinearOp, Operand, Pairing};
use crate::noise::{LinearNoise, TermNoise};
use crate::params::{Level, Params, ParamsSpec, ntt_primes_near};
use crate::testing::{Rng, apply_diagonals, apply_plan};
use std::collections::BTreeSet;

fn costs(level: u16) -> StepCosts {
    let towers = ntt_primes_near(2f64.powi(38), 15, 20, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(40), 15, 2, &towers).unwrap();
    let spec = ParamsSpec {
        log_n: 15,
        towers,
        special_primes,
        digit_size: 2,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    };
    CostModel::default().at(&Params::new(spec).unwrap(), Level(level))
}

fn conv(out: u32, input: u32, stride: u32) -> (LinearOp, Constants) {
    let mut rng = Rng::new(u64::from(out * input));
    let data = (0..out * input * 9).map(|_| rng.unit() as f32).collect();
    let mut constants = Constants::default();
    let weight = constants.push(Tensor::dense(vec![out, input, 3, 3], data));
    (LinearOp::Conv2d { weight, stride: [stride; 2], pads: [1, 1], dilation: [1, 1], groups: 1 }, constants)
}

fn check(
    packing: Packing,
    channels: [u32; 2],
    stride: u32,
    slots: u32,
    extra: &dyn Fn(&Diagonals) -> Vec<Plan>,
) {
    let (op, constants) = conv(channels[1], channels[0], stride);
    let input = Layout::fresh(packing, Shape::new(channels[0], 8, 8), 1, slots).unwrap();
    let size = 8 / stride;
    let output = input.after(packing, Shape::new(channels[1], size, size), [stride; 2]).unwrap().0;
    let mut rng = Rng::new(3);
    let tensor: Vec<f64> = (0..input.shape().len()).map(|_| rng.unit()).collect();
    let cts = input.scatter(&tensor);
    let build = |pairing| {
        Diagonals::build(&[Operand { op: &op, input: &input }], &output, pairing, &constants).unwrap()
    };
    let expected = apply_diagonals(&build(Pairing::None), &cts);
    for diagonals in [Pairing::None, Pairing::Halves].map(build) {
        let found = plan(&diagonals, &costs(5), &BTreeSet::new());
        for plan in extra(&diagonals).into_iter().chain([found]) {
            let result = apply_plan(&plan.expand(&diagonals).unwrap(), &diagonals, &cts);
            for (a, b) in result.iter().flatten().zip(expected.iter().flatten()) {
                assert!((a - b).abs() < 1e-9);
            }
        }
    }
}

/// Every rotation split at a random place.
fn random_plans(diagonals: &Diagonals) -> Vec<Plan> {
    let mut rng = Rng::new(11);
    let mut plan = || {
        let splits = distinct_rotations(diagonals).into_iter().map(|rotation| {
            let baby = Rotation::new(i64::from(rng.below(4096)), diagonals.input_period());
            Split { rotation, baby }
        });
        let splits: Vec<Split> = splits.collect();
        Gait::ALL.map(|gait| Plan { splits: splits.clone(), gait })
    };
    [plan(), plan()].concat()
}

#[test]
fn plans_compute_the_same_as_the_map() {
    for (packing, channels, stride, slots) in [
        (Packing::Packed, [4, 4], 1, 256),
        (Packing::Packed, [4, 8], 2, 256),
        (Packing::Packed, [8, 3], 1, 256),
        (Packing::Packed, [3, 5], 2, 1024),
        (Packing::Hw, [2, 3], 2, 256),
    ] {
        check(packing, channels, stride, slots, &random_plans);
    }
}

#[test]
fn residual_network_layers_need_few_rotations() {
    let image = Layout::fresh(Packing::Packed, Shape::new(3, 32, 32), 1, 16384).unwrap();
    let one = Layout::fresh(Packing::Packed, Shape::new(16, 32, 32), 1, 16384).unwrap();
    let two = one.after(Packing::Packed, Shape::new(32, 16, 16), [2, 2]).unwrap().0;
    let three = two.after(Packing::Packed, Shape::new(64, 8, 8), [2, 2]).unwrap().0;
    let mut known = BTreeSet::new();
    let mut total = 0;
    let layers = [
        (&image, &one, 1, 19, 1, 16),
        (&one, &one, 1, 17, 6, 32),
        (&one, &two, 2, 12, 1, 40),
        (&two, &two, 1, 9, 5, 80),
        (&two, &three, 2, 7, 1, 80),
        (&three, &three, 1, 4, 5, 120),
    ];
    for (input, output, stride, level, repeats, most) in layers {
        let (op, constants) = conv(output.shape().channels, input.shape().channels, stride);
        let diagonals =
            Diagonals::build(&[Operand { op: &op, input }], output, Pairing::None, &constants).unwrap();
        let plan = plan(&diagonals, &costs(level), &known);
        let counts = plan.expand(&diagonals).unwrap().counts();
        assert!(counts.rotations() <= most, "{counts:?}");
        known.extend(plan.rotations(&diagonals));
        total += repeats * counts.rotations();
    }
    assert!(total < 1000 && known.len() < 150);
}

#[test]
fn noise_facts_follow_the_plan() {
    let layout = Layout::fresh(Packing::Packed, Shape::new(2, 8, 8), 1, 128).unwrap();
    let mut constants = Constants::default();
    let weight = constants.push(Tensor::dense(vec![2, 2, 1, 1], vec![0.5, 0.25, 0.25, 0.5]));
    let op = LinearOp::Conv2d { weight, stride: [1; 2], pads: [0; 2], dilation: [1; 2], groups: 1 };
    let diagonals =
        Diagonals::build(&[Operand { op: &op, input: &layout }], &layout, Pairing::None, &constants).unwrap();
    // One ciphertext of 128 numbers, two input channels behind each.
    let noise = |plan: Plan| LinearNoise::new(&diagonals, &plan.expand(&diagonals).unwrap(), &layout);
    let babies = noise(Plan::trivial(&diagonals));
    let term = TermNoise {
        weight_energy: 0.3125,
        rotated_energy: 0.0625,
        encoded_slots: 256.0,
        products: 2.0,
        ..TermNoise::default()
    };
    assert_eq!((babies.terms[0].clone(), babies.n_giants, babies.n_folds), (term, 0.0, 0));
    let splits =
        distinct_rotations(&diagonals).into_iter().map(|rotation| Split { rotation, baby: Rotation::ZERO });
    let giants = noise(Plan { splits: splits.collect(), gait: Gait::Direct });
    assert_eq!((giants.terms[0].rotated_energy, giants.n_giants), (0.0, 1.0));
}

#[test]
fn no_plan_is_noisier_than_any_plan() {
    let (op, constants) = conv(4, 4, 1);
    let layout = Layout::fresh(Packing::Packed, Shape::new(4, 8, 8), 1, 256).unwrap();
    let operands = [Operand { op: &op, input: &layout }];
    for pairing in [Pairing::None, Pairing::Halves] {
        let diagonals = Diagonals::build(&operands, &layout, pairing, &constants).unwrap();
        let noise = |plan: &Plan| LinearNoise::new(&diagonals, &plan.expand(&diagonals).unwrap(), &layout);
        let any = noise(&Plan::trivial(&diagonals)).under_any_plan(&diagonals);
        let found = plan(&diagonals, &costs(5), &BTreeSet::new());
        for plan in random_plans(&diagonals).into_iter().chain([found]) {
            let (worse, [a, b]) = (noise(&plan), [&any, &noise(&plan)].map(|noise| noise.terms[0].clone()));
            assert!(worse.n_giants <= any.n_giants && b.encoded_slots <= a.encoded_slots);
            assert!(b.rotated_energy <= a.rotated_energy * (1.0 + 1e-9));
        }
    }
}

#[test]
fn menus_have_the_cheapest_plan_whatever_steps_cost() {
    let (op, constants) = conv(16, 16, 1);
    let input = Layout::fresh(Packing::Packed, Shape::new(16, 8, 8), 1, 1024).unwrap();
    let output = input.after(Packing::Packed, Shape::new(16, 8, 8), [1, 1]).unwrap().0;
    let terms = [Operand { op: &op, input: &input }];
    for pairing in [Pairing::None, Pairing::Halves] {
        let diagonals = Diagonals::build(&terms, &output, pairing, &constants).unwrap();
        let menu = Ways::new(&diagonals).menu(&BTreeSet::new());
        assert!(menu.len() > 3, "{} plans", menu.len());
        for (giant, key) in [(1.0, 0.0), (3.0, 0.0), (9.0, 0.0), (3.0, 2.0), (3.0, 30.0)] {
            let own = costs(5);
            let step = StepCosts { giant: giant * own.baby, key: key * own.baby, ..own };
            // Rotations at the end are the same for all.
            let price = |plan: &Plan| {
                let counts = plan.expand(&diagonals).unwrap().counts();
                step.linear(&counts) + step.key * plan.rotations(&diagonals).len() as f64
            };
            let found = price(&plan(&diagonals, &step, &BTreeSet::new()));
            let least = menu.iter().map(price).fold(f64::INFINITY, f64::min);
            assert!((least - found).abs() < 1e-9 * found, "{least} in the menu, {found} found");
        }
    }
}

#[test]
fn known_rotations_are_preferred() {
    let one = Layout::fresh(Packing::Packed, Shape::new(16, 32, 32), 1, 16384).unwrap();
    let (op, constants) = conv(16, 16, 1);
    let diagonals =
        Diagonals::build(&[Operand { op: &op, input: &one }], &one, Pairing::None, &constants).unwrap();
    let dear = StepCosts { key: 1e3, ..costs(10) };
    let first = plan(&diagonals, &dear, &BTreeSet::new());
    let known: BTreeSet<Rotation> = first.rotations(&diagonals).into_iter().collect();
    let second = plan(&diagonals, &dear, &known);
    assert!(second.rotations(&diagonals).iter().all(|r| known.contains(r)));
}

#[test]
fn shortcut_that_is_not_rotated_does_not_change_the_plan() {
    let one = Layout::fresh(Packing::Packed, Shape::new(16, 32, 32), 1, 16384).unwrap();
    let (op, constants) = conv(16, 16, 1);
    let identity = LinearOp::identity();
    let conv = Operand { op: &op, input: &one };
    let shortcut = Operand { op: &identity, input: &one };
    let build = |terms: &[Operand<'_>]| Diagonals::build(terms, &one, Pairing::None, &constants).unwrap();
    let (alone, joined) = (build(&[conv]), build(&[conv, shortcut]));
    let found = plan(&joined, &costs(15), &BTreeSet::new());
    assert_eq!(found, plan(&alone, &costs(15), &BTreeSet::new()));
    let counts = found.expand(&joined).unwrap().counts();
    assert_eq!(counts.babies, found.expand(&alone).unwrap().counts().babies);
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let (op, constants) = conv(2, 2, 1);
    let layout = Layout::fresh(Packing::Packed, Shape::new(2, 8, 8), 1, 256).unwrap();
    let diagonals =
        Diagonals::build(&[Operand { op: &op, input: &layout }], &layout, Pairing::None, &constants).unwrap();
    let good = Plan::trivial(&diagonals);
    let check = |change: &dyn Fn(&mut Plan), message: &str| {
        let mut plan = good.clone();
        change(&mut plan);
        assert_eq!(plan.expand(&diagonals).unwrap_err().to_string(), message);
    };
    check(&|p| p.splits.truncate(p.splits.len() - 1), "no split for rotation +64");
    check(&|p| p.splits.swap(0, 1), "split of rotation -63 is out of order or of no use");
    let useless = Split { rotation: Rotation::new(100, 256), baby: Rotation::ZERO };
    check(&|p| p.splits.push(useless), "split of rotation +100 is out of order or of no use");
    check(&|p| p.splits[0].baby = Rotation::new(300, 4096), "rotation +300 is not normalized");
}

fn amounts(giants: &[i64]) -> Vec<Rotation> {
    let mut all: Vec<Rotation> = giants.iter().map(|&amount| Rotation::new(amount, 64)).collect();
    all.sort_unstable();
    all
}

/// From, to and rotation of every hop.
fn hops(gait: Gait, giants: &[i64]) -> Vec<[i64; 3]> {
    let hops = gait.hops(&amounts(giants), 64);
    hops.iter().map(|hop| [hop.from, hop.to, hop.by].map(Rotation::amount)).collect()
}

#[test]
fn giant_steps_are_taken_from_the_outermost_on() {
    let giants = [-16, -8, 0, 8, 16, 24];
    let direct = vec![[-16, 0, -16], [-8, 0, -8], [8, 0, 8], [16, 0, 16], [24, 0, 24]];
    assert_eq!(hops(Gait::Direct, &giants), direct);
    let inward = vec![[24, 16, 8], [16, 8, 8], [8, 0, 8], [-16, -8, -8], [-8, 0, -8]];
    assert_eq!(hops(Gait::Inward, &giants), inward);
    // To the left, -8 is 56 and -16 is 48.
    let down = vec![[-8, -16, 8], [-16, 24, 24], [24, 16, 8], [16, 8, 8], [8, 0, 8]];
    assert_eq!(hops(Gait::Down, &giants), down);
}

#[test]
fn a_sum_takes_the_hops_from_its_outermost_giant_step_on() {
    let all = [8, 16, 24];
    let n_hops = |gait: Gait, own: &[i64]| {
        gait::n_hops(&gait.hops(&amounts(&all), 64), amounts(own).into_iter().filter(|own| !own.is_zero()))
    };
    for (own, direct, inward) in
        [(&[0][..], 0, 0), (&[8], 1, 1), (&[0, 24], 1, 3), (&[8, 24], 2, 3), (&all, 3, 3)]
    {
        assert_eq!((n_hops(Gait::Direct, own), n_hops(Gait::Inward, own)), (direct, inward), "{own:?}");
    }
}

#[test]
fn a_key_serves_all_giant_steps_that_are_equally_far_apart() {
    let (op, constants) = conv(16, 16, 1);
    let layout = Layout::fresh(Packing::Packed, Shape::new(16, 32, 32), 1, 16384).unwrap();
    let terms = [Operand { op: &op, input: &layout }];
    let diagonals = Diagonals::build(&terms, &layout, Pairing::Halves, &constants).unwrap();
    let (own, known) = (costs(15), BTreeSet::new());
    let found = plan(&diagonals, &own, &known);
    let direct = Plan { gait: Gait::Direct, ..found.clone() };
    let counts = |plan: &Plan| plan.expand(&diagonals).unwrap().counts();
    assert_eq!(counts(&found), counts(&direct));
    assert!(counts(&found).giants >= 7);
    let [few, many] = [&found, &direct].map(|plan| plan.rotations(&diagonals).len());
    assert!(few + counts(&found).giants - 2 <= many, "{few} and {many} keys");
    // Where all keys are there already nothing is gained.
    let known = direct.rotations(&diagonals).into_iter().collect();
    assert_eq!(plan(&diagonals, &own, &known).gait, Gait::Direct);
}

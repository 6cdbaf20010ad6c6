//! What an author learns who is told nothing but classes: slowly, the key (docs/security.md).
//!
//! A program may enlarge the noise of its input, add all slots, which leaves the first coefficient of the noise alone, and
//! compare it with a scale of marks. Then the class is that coefficient: one linear equation in the key for every result.

mod attack;

use std::sync::Arc;

use attack::{LOG_N, N, coefficients, interface, solve};
use fhe_bytecode::{Interface, Layout, Level, Packing, Scale};
use fhe_ckks::{Ciphertext, Context, Evaluator, GaloisKeys, KeyRequest, KeyUse, Rotation};
use fhe_client::{Client, Resolution};
use fhe_fixed_seeds::fixed_seeds;
use fhe_secret::SecretKey;

const SLOTS: usize = N / 2;
/// The scale of inputs, what the noise is enlarged by before slots are added, and the scale of the marks.
const INPUT_BITS: f64 = 16.0;
const FACTOR: f64 = 4096.0;
const MARK_BITS: f64 = 10.0;

/// An ordinary interface with this many classes.
fn with_classes(n_classes: usize) -> Interface {
    let mut spec = interface(LOG_N, 40.0, INPUT_BITS, 1e-300).spec().clone();
    spec.output_scale = Scale::from_log2(INPUT_BITS + MARK_BITS);
    let layout = Layout::vector(Packing::Packed, n_classes as u32, 1, SLOTS as u32).unwrap();
    spec.layouts.push(layout.spec().clone());
    spec.output.layout = fhe_bytecode::LayoutId(1);
    Interface::new(spec).unwrap()
}

/// What the author wrote: scores j·v - j²/2, the largest of which is that of the j next to v, where v is the first coefficient
/// of the noise, moved to the middle of the classes.
fn evaluate(context: &Context, keys: &GaloisKeys, input: &Ciphertext, n_classes: usize) -> Ciphertext {
    let evaluator = Evaluator::new(context);
    let mut sum = evaluator.mul_scalar(input, FACTOR, Scale::from_log2(0.0)).unwrap();
    for steps in [8, 4, 2, 1] {
        sum = evaluator
            .add(&sum, &evaluator.rotate(&sum, Rotation::new(steps, context), keys).unwrap())
            .unwrap();
    }
    let mark = |j: usize| if j < n_classes { j as f64 } else { 0.0 };
    let encode = |bits: f64, value: &dyn Fn(f64) -> f64| {
        let values: Vec<f64> = (0..SLOTS).map(|j| value(mark(j))).collect();
        context.encoder().encode(&values, Scale::from_log2(bits), Level(0)).unwrap()
    };
    let product = evaluator.mul_plain(&sum, &encode(MARK_BITS, &|j| j)).unwrap();
    let middle = (n_classes / 2) as f64;
    evaluator.add_plain(&product, &encode(INPUT_BITS + MARK_BITS, &|j| j * middle - j * j / 2.0)).unwrap()
}

/// How many results an author needs who gets their classes and nothing else, until all coefficients of the key are found.
fn results_for_the_key(n_classes: usize, seed: u64) -> usize {
    let interface = Arc::new(with_classes(n_classes));
    let context = Context::new(interface.params().clone()).unwrap();
    let mut seeds = fixed_seeds(seed);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let mut request = KeyRequest::default();
    for steps in [8, 4, 2, 1] {
        request.add(KeyUse::rotation(steps, &context), Level(0));
    }
    let keys = key.evaluation_keys(&context, &request, &mut seeds).unwrap();
    let client = Client::new(interface, context.clone(), key).unwrap();
    let q = client.interface().params().towers()[0];
    let (mut rows, mut n_results) = (Vec::new(), 0);
    while rows.len() < N {
        n_results += 1;
        // An input that the author knows; any other would do.
        let input = client.encrypt(&[0.0; SLOTS], &mut seeds).unwrap()[0].expand(&context);
        let result = evaluate(&context, keys.galois(), &input, n_classes);
        let class = client.decrypt(&[result]).unwrap().class;
        // The first and the last class stand for all that is beyond them.
        if (1..n_classes - 1).contains(&class) {
            let [c0, c1] = [0, 1].map(|i| coefficients(&client, &input.polys()[i]));
            let noise = class as i64 - (n_classes / 2) as i64;
            let mut row: Vec<u64> = (0..N).map(|i| if i == 0 { c1[0] } else { q - c1[N - i] }).collect();
            row.push((noise - c0[0] as i64).rem_euclid(q as i64) as u64);
            rows.push(row);
        }
    }
    let secret = client.key().coeffs().iter().map(|&c| i64::from(c).rem_euclid(q as i64) as u64);
    assert!(secret.eq(solve(rows, q)), "{n_classes} classes, seed {seed}");
    n_results
}

#[test]
fn classes_of_a_hostile_program_give_the_key_after_some_times_n_results() {
    for (n_classes, most) in [(16, 2 * N), (10, 3 * N), (3, 20 * N)] {
        let n_results = results_for_the_key(n_classes, 7);
        println!("{n_classes} classes: the key after {n_results} results at N = {N}");
        assert!((N..most).contains(&n_results), "{n_classes} classes: {n_results}");
    }
}

/// The floor is no help here: what the author enlarges is above it by construction.
#[test]
fn the_noise_that_is_enlarged_is_far_above_the_floor() {
    let unit = Resolution::finest(&with_classes(16)).unit();
    assert!(unit < 1e-2, "{unit}");
}

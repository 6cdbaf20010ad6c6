//! Measured noise against the estimates the compiler plans with.

use fhe_bytecode::Pairing;
use fhe_bytecode::noise::{ERROR_VARIANCE, LinearNoise, NoiseModel, OperandNoise, Row, TermNoise};

use super::*;
use fhe_ckks::linear::*;

const SCALE: f64 = 34.0;
const WEIGHT_SCALE: f64 = 18.0;

/// Mean square of the slots of `found - expected`, in units of the stored integer.
fn error(found: &[f64], expected: &[f64], scale: Scale) -> f64 {
    let sum: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).powi(2)).sum();
    sum / found.len() as f64 * scale.value().powi(2)
}

fn mean_square(x: &[f64], scale: Scale) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 * scale.value().powi(2)
}

/// Sums measured and estimated variances of one operation.
#[derive(Default)]
struct Tally {
    measured: f64,
    estimated: f64,
}

impl Tally {
    fn add(&mut self, measured: f64, estimated: f64) {
        self.measured += measured;
        self.estimated += estimated;
    }

    #[track_caller]
    fn assert(&self, name: &str) {
        let ratio = (self.measured / self.estimated).sqrt();
        assert!((0.5..=1.1).contains(&ratio), "{name}: measured noise is {ratio:.3} of the estimate");
    }
}

/// Runs every operation `runs` times with fresh values and compares.
fn check_operations(params: Params, runs: usize) {
    let level = params.max_level();
    check_operations_at(params, level, runs);
}

/// As [`check_operations`], at a level, with keys of the highest.
fn check_operations_at(params: Params, level: Level, runs: usize) {
    let model = NoiseModel::new(&params);
    let top = params.max_level();
    let mut party = Party::new(params);
    let slots = party.context.slots();
    let relin = party.relin_key(top);
    let keys = party.rotation_keys(&[1, 2, 4], top);
    let (scale, weight_scale) = (Scale::from_log2(SCALE), Scale::from_log2(WEIGHT_SCALE));
    let context = party.context.clone();
    let (evaluator, encoder) = (Evaluator::new(&context), context.encoder());
    let lower = level.lower().unwrap();
    let division = context.params().rescale(level, lower).unwrap();
    let ratio =
        Scale::from_log2(100.0).over(division.rescaled(context.params().towers(), Scale::from_log2(100.0)));
    let fresh = model.fresh();
    let mut tallies: std::collections::BTreeMap<&str, Tally> = Default::default();
    for run in 0..runs {
        let (x, y) = (vector(slots, 2 * run as u64 + 1), vector(slots, 2 * run as u64 + 2));
        let (cx, cy) = (party.encrypt(&x, scale, level), party.encrypt(&y, scale, level));
        let small = party.encrypt(&x, Scale::from_log2(14.0), level);
        let message = mean_square(&x, scale);
        let weight = mean_square(&y, weight_scale);
        let mut check = |name, found: &Ciphertext, expected: &[f64], estimate| {
            let measured = error(&party.decrypt(found), expected, found.scale());
            tallies.entry(name).or_default().add(measured, estimate);
        };
        let zip = |f: fn(f64, f64) -> f64| -> Vec<f64> { x.iter().zip(&y).map(|(&a, &b)| f(a, b)).collect() };

        check("fresh", &cx, &x, fresh);
        check("add", &evaluator.add(&cx, &cy).unwrap(), &zip(|a, b| a + b), model.add(fresh, fresh));
        check("rescale", &evaluator.rescale(&cx).unwrap(), &x, model.rescale(fresh, ratio.value()));
        let rounding = model.drop(level, lower);
        check("drop", &evaluator.drop_to(&cx, lower).unwrap(), &x, fresh + rounding);
        let plain = encoder.encode(&y, weight_scale, level).unwrap();
        let product = evaluator.mul_plain(&cx, &plain).unwrap();
        check("mul_plain", &product, &zip(|a, b| a * b), model.mul_plain(fresh, message, weight, slots));
        let short = encoder.encode(&y[..slots / 4], weight_scale, level).unwrap();
        let product = evaluator.mul_plain(&cx, &short).unwrap();
        let expected: Vec<f64> = x.iter().zip(y[..slots / 4].iter().cycle()).map(|(a, b)| a * b).collect();
        let weight_short = mean_square(&y[..slots / 4], weight_scale);
        check(
            "mul_plain periodic",
            &product,
            &expected,
            model.mul_plain(fresh, message, weight_short, slots / 4),
        );
        let scaled = evaluator.mul_scalar(&cx, 0.5, weight_scale).unwrap();
        let halves: Vec<f64> = x.iter().map(|x| x / 2.0).collect();
        check("mul_scalar", &scaled, &halves, model.mul_scalar(fresh, 0.5 * weight_scale.value()));
        let lazy = evaluator.mul(&cx, &cy).unwrap();
        let estimate = model.mul((fresh, message), (fresh, mean_square(&y, scale)));
        check("mul", &lazy, &zip(|a, b| a * b), estimate);
        let square = evaluator.square(&cx).unwrap();
        let squares: Vec<f64> = x.iter().map(|x| x * x).collect();
        check("square", &square, &squares, model.square(fresh, message));
        let rotated_x = evaluator.rotate(&cx, Rotation::new(1, &context), &keys).unwrap();
        check("rotate", &rotated_x, &rotated(&x, 1), fresh + model.key_switch(level));
        // What relinearization adds to a square, at a scale where decryption resolves it.
        let small = evaluator.square(&small).unwrap();
        let relinearized = evaluator.relinearize(&small, &relin).unwrap();
        check("relinearize", &relinearized, &party.decrypt(&small), model.key_switch(level));
        let (plan, source, map) = linear_map(&context, &y, weight_scale);
        let output = evaluate(&evaluator, std::slice::from_ref(&cx), &plan, &source, &keys).unwrap();
        let row = Row::mean(&map.terms[0]);
        let operand = OperandNoise { noise: fresh, message, weight_scale: weight_scale.value(), row };
        let estimate = model.linear(&[operand], level, &map).total();
        check("linear", &output[0], &source.apply(&x), estimate);
    }
    for (name, tally) in tallies {
        tally.assert(name);
    }
}

/// Four diagonals: babies 0 and 1, giants 0 and 2.
struct FourDiagonals<'a> {
    context: &'a Context,
    diagonals: Vec<Vec<f64>>,
    scale: Scale,
}

impl PlaintextSource for FourDiagonals<'_> {
    fn diagonal(&self, diagonal: usize) -> Result<Diagonal, CkksError> {
        let encoding = self.context.encoder().round(&self.diagonals[diagonal], self.scale)?;
        Ok(Diagonal::Encoding(std::sync::Arc::new(encoding)))
    }
}

impl FourDiagonals<'_> {
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; x.len()];
        for (diagonal, (giant, baby)) in self.diagonals.iter().zip([(0, 0), (0, 1), (2, 0), (2, 1)]) {
            let product: Vec<f64> = diagonal.iter().zip(rotated(x, baby)).map(|(d, x)| d * x).collect();
            sum.iter_mut().zip(rotated(&product, giant)).for_each(|(sum, p)| *sum += p);
        }
        sum
    }
}

/// Four rotations of a vector as diagonals, and the mean over their rows.
fn linear_map<'a>(
    context: &'a Context,
    values: &[f64],
    scale: Scale,
) -> (LinearPlan, FourDiagonals<'a>, LinearNoise) {
    let diagonals = (0..4).map(|k| rotated(values, 7 * k)).collect();
    four_diagonals(context, diagonals, scale)
}

fn four_diagonals(
    context: &Context,
    diagonals: Vec<Vec<f64>>,
    scale: Scale,
) -> (LinearPlan, FourDiagonals<'_>, LinearNoise) {
    let rotation = |s| Rotation::new(s, context);
    let group = |giant, first| LinearGroup {
        output: 0,
        giant: rotation(giant),
        terms: (0..2)
            .map(|baby| LinearTerm { input: 0, baby: rotation(baby), diagonal: first + baby as usize })
            .collect(),
    };
    let (groups, hops) = (vec![group(0, 0), group(2, 2)], vec![Hop::direct(rotation(2))]);
    let plan = LinearPlan { n_outputs: 1, groups, hops, ..LinearPlan::default() };
    let energy: Vec<f64> = diagonals.iter().map(|d| mean_square(d, Scale::ONE)).collect();
    let term = TermNoise {
        weight_energy: energy.iter().sum(),
        rotated_energy: energy[1] + energy[3],
        encoded_slots: 4.0 * context.slots() as f64,
        products: 4.0,
        ..TermNoise::default()
    };
    let map = LinearNoise { terms: vec![term], n_giants: 1.0, ..LinearNoise::default() };
    (plan, FourDiagonals { context, diagonals, scale }, map)
}

/// Rows of a map whose weights and operands are large in one half of the slots and small in the other: each half has the noise
/// that its rows say, whether keys or roundings bring it.
fn check_rows(params: Params, weight_scale: Scale, runs: u64) {
    const LARGE: f64 = 30.0;
    let (model, level) = (NoiseModel::new(&params), params.max_level());
    let mut party = Party::new(params);
    let context = party.context.clone();
    let (evaluator, slots) = (Evaluator::new(&context), context.slots());
    let keys = party.rotation_keys(&[1, 2], level);
    let size = |s: usize| if s < slots / 2 { LARGE } else { 1.0 };
    let weights: Vec<f64> = (0..slots).map(size).collect();
    // Those under the giant step of two are read two slots later.
    let diagonals = [0, 0, -2, -2].map(|steps| rotated(&weights, steps)).to_vec();
    let (plan, source, map) = four_diagonals(&context, diagonals, weight_scale);
    let scale = Scale::from_log2(SCALE);
    let mut halves = [Tally::default(), Tally::default()];
    for run in 0..runs {
        let x: Vec<f64> = vector(slots, run + 1).iter().enumerate().map(|(s, x)| x * size(s)).collect();
        let cx = party.encrypt(&x, scale, level);
        let found = party.decrypt(&evaluate(&evaluator, &[cx], &plan, &source, &keys).unwrap()[0]);
        let expected = source.apply(&x);
        let result = scale.times(weight_scale);
        for (half, tally) in halves.iter_mut().enumerate() {
            // Rows at the edge of a half read from both.
            let rows = half * slots / 2..(half + 1) * slots / 2 - 4;
            let read = &x[rows.clone()];
            let row = Row {
                weight_energy: 4.0 * size(rows.start).powi(2),
                reads: 4.0,
                squares: 4.0 * mean_square(read, scale),
                ..Row::default()
            };
            let (noise, message) = (model.fresh(), mean_square(&x, scale));
            let operand = OperandNoise { noise, message, weight_scale: weight_scale.value(), row };
            let estimate = model.linear(&[operand], level, &map).total();
            tally.add(error(&found[rows.clone()], &expected[rows], result), estimate);
        }
    }
    for (half, name) in halves.iter().zip(["large rows", "small rows"]) {
        half.assert(name);
    }
    assert!(halves[0].measured > 20.0 * halves[1].measured, "the halves do not differ");
}

#[test]
fn noise_of_a_row_follows_its_weights() {
    // Special primes smaller than a digit, so that keys bring the noise.
    let towers = ntt_primes_near(2f64.powi(40), 7, 4, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(36), 7, 2, &towers).unwrap();
    let (log_n, digit_size, pool, lower) = (7, 2, None, Vec::new());
    let spec =
        ParamsSpec { log_n, towers, special_primes, digit_size, pool, lower, insecure: false, toy: true };
    check_rows(Params::new(spec).unwrap(), Scale::from_log2(WEIGHT_SCALE), 200);
}

#[test]
fn noise_of_a_row_follows_what_it_reads() {
    // Weights so coarse that their roundings bring the noise.
    check_rows(toy_params(7, 4, 44, 2, 2), Scale::from_log2(4.0), 200);
}

/// Two outputs from one complex sum. Without giant steps, so that roundings (coarse weights) or keys (fine ones) bring the noise.
fn check_complex_sum(params: Params, weight_scale: Scale, runs: u64) {
    let (model, level) = (NoiseModel::new(&params), params.max_level());
    let mut party = Party::new(params);
    let context = party.context.clone();
    let (evaluator, slots) = (Evaluator::new(&context), context.slots());
    let moves = [Galois::Rotation(Rotation::new(1, &context)), Galois::Conjugation];
    let key = |galois| {
        let key = party.secret.evaluation_key(&context, (KeyUse::Move(galois), level), &mut party.seeds);
        (galois, key.unwrap())
    };
    let keys = GaloisKeys::from_parts(party.secret.id(), moves.map(key).into());
    let weights: Vec<Vec<f64>> = (0..4).map(|k| vector(slots, 90 + k)).collect();
    let source = ComplexDiagonals { context: &context, weights: &weights, scale: weight_scale };
    let rotation = |s| Rotation::new(s, &context);
    let term = |baby| LinearTerm { input: 0, baby: rotation(baby), diagonal: baby as usize };
    let group = LinearGroup { output: 0, giant: Rotation::ZERO, terms: vec![term(0), term(1)] };
    let parts = Parts::Outputs(2);
    let plan = LinearPlan { n_outputs: 1, groups: vec![group], parts, ..LinearPlan::default() };
    let energy = |k: usize| mean_square(&weights[k], Scale::ONE);
    let term = TermNoise {
        weight_energy: energy(0) + energy(1),
        rotated_energy: energy(1),
        encoded_slots: 2.0 * slots as f64,
        products: 2.0,
        ..TermNoise::default()
    };
    let map = LinearNoise { terms: vec![term], pairing: Pairing::Outputs, ..LinearNoise::default() };
    let scale = Scale::from_log2(SCALE);
    let (mut result, mut imaginary) = (Tally::default(), Tally::default());
    for run in 0..runs {
        let x = vector(slots, run + 1);
        let cx = party.encrypt(&x, scale, level);
        let outputs = evaluate(&evaluator, &[cx], &plan, &source, &keys).unwrap();
        let message = mean_square(&x, scale);
        for (output, own) in outputs.iter().enumerate() {
            let expected: Vec<f64> = (0..slots)
                .map(|s| weights[2 * output][s] * x[s] + weights[2 * output + 1][s] * x[(s + 1) % slots])
                .collect();
            let [weight_energy, shared_energy] =
                [output, 1 - output].map(|k| energy(2 * k) + energy(2 * k + 1));
            let row = Row { weight_energy, shared_energy, ..Row::default() };
            let weight_scale = weight_scale.value() * 2.0;
            let operand = OperandNoise { noise: model.fresh(), message, weight_scale, row };
            let estimate = model.linear(&[operand], level, &map);
            let found = party.decrypt(own);
            result.add(error(&found, &expected, own.scale()), estimate.total());
            // Times -i, what was imaginary is real.
            let turned = context.encoder().round_complex(&[0.0], &[-1.0], Scale::ONE).unwrap();
            let turned = context.encoder().transform(&turned, context.basis(level));
            let turned = party.decrypt(&evaluator.mul_plain(own, &turned).unwrap());
            imaginary.add(error(&turned, &vec![0.0; slots], own.scale()), estimate.complex);
        }
    }
    result.assert("complex sum");
    imaginary.assert("imaginary part after a complex sum");
    assert!(imaginary.measured < result.measured / 4.0, "nothing was taken apart");
}

/// Two diagonals, each the weights of one output and, in the imaginary part, those of another.
struct ComplexDiagonals<'a> {
    context: &'a Context,
    weights: &'a [Vec<f64>],
    scale: Scale,
}

impl PlaintextSource for ComplexDiagonals<'_> {
    fn diagonal(&self, diagonal: usize) -> Result<Diagonal, CkksError> {
        let [real, imaginary] = [0, 2].map(|first| &self.weights[first + diagonal]);
        let encoding = self.context.encoder().round_complex(real, imaginary, self.scale)?;
        Ok(Diagonal::Encoding(std::sync::Arc::new(encoding)))
    }
}

#[test]
fn noise_of_complex_sums_matches_the_estimate() {
    let params = || toy_params(7, 4, 44, 2, 2);
    for weight_scale in [3.0, 18.0] {
        check_complex_sum(params(), Scale::from_log2(weight_scale), 400);
    }
}

#[test]
fn noise_of_every_operation_matches_the_estimate_at_small_n() {
    check_operations(toy_params(7, 4, 44, 2, 2), 1000);
}

#[test]
fn noise_of_every_operation_matches_the_estimate_in_a_pool() {
    let params = toy_pool(7);
    // From level 3 on a rescale adds a tower, level 2 has few of the towers of a key, and level 4 has all of them.
    for (level, runs) in [(4, 200), (3, 500), (2, 200), (1, 500)] {
        check_operations_at(params.clone(), Level(level), runs);
    }
}

#[test]
fn key_switching_noise_matches_where_the_key_error_dominates() {
    // Special primes smaller than a digit: the error of the key is not divided away.
    let towers = ntt_primes_near(2f64.powi(40), 7, 4, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(36), 7, 2, &towers).unwrap();
    let spec = ParamsSpec { digit_size: 2, insecure: false, ..ParamsSpec::toy(7, towers, special_primes) };
    check_operations(Params::new(spec).unwrap(), 200);
}

#[test]
#[ignore = "full ring; run with cargo xtask slow"]
fn noise_of_every_operation_matches_the_estimate_at_full_n() {
    check_operations(toy_params(15, 4, 44, 2, 2), 20);
}

#[test]
fn fresh_error_has_the_deviation_of_theory() {
    let mut party = Party::new(toy_params(12, 2, 40, 1, 1));
    let level = party.max_level();
    let (mut sum, mut sum_of_squares, mut count) = (0.0, 0.0, 0.0);
    for _ in 0..16 {
        let zero = party.encrypt(&[0.0], Scale::from_log2(30.0), level);
        let message = party.secret.decrypt_poly(&party.context, &zero).unwrap();
        for e in party.context.encoder().centered(message) {
            sum += e;
            sum_of_squares += e * e;
            count += 1.0;
        }
    }
    let deviation = f64::sqrt(sum_of_squares / count);
    assert!((deviation / ERROR_VARIANCE.sqrt() - 1.0).abs() < 0.02, "{deviation}");
    assert!((sum / count).abs() < 0.05, "{}", sum / count);
}

#[test]
fn secrets_are_uniformly_ternary() {
    let party = Party::new(toy_params(12, 1, 40, 1, 1));
    for value in [-1, 0, 1] {
        let share = party.secret.coeffs().iter().filter(|&&c| c == value).count() as f64 / 4096.0;
        assert!((share - 1.0 / 3.0).abs() < 0.04, "{value}: {share}");
    }
}

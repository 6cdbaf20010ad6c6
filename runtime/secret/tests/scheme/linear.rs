//! Linear maps against clear sums of rotated products.

use std::sync::Arc;

use super::*;
use fhe_ckks::linear::*;

/// Diagonals as clear vectors, encoded when asked for.
struct Clear<'a> {
    context: &'a Context,
    diagonals: Vec<Vec<f64>>,
    level: Level,
    /// Hand out residues instead of coefficients for odd diagonals.
    mixed: bool,
}

impl PlaintextSource for Clear<'_> {
    fn diagonal(&self, diagonal: usize) -> Result<Diagonal, CkksError> {
        let encoder = self.context.encoder();
        let values = &self.diagonals[diagonal];
        let scale = Scale::from_log2(20.0);
        if self.mixed && diagonal % 2 == 1 {
            return Ok(Diagonal::Plaintext(Arc::new(encoder.encode_for_linear(values, scale, self.level)?)));
        }
        Ok(Diagonal::Encoding(Arc::new(encoder.round(values, scale)?)))
    }
}

/// Two inputs, two outputs, babies 0..3, giants 0, 4, -8; every fifth diagonal is periodic.
fn plan(context: &Context) -> (LinearPlan, Vec<Vec<f64>>) {
    let slots = context.slots();
    let mut diagonals = Vec::new();
    let mut groups = Vec::new();
    for output in 0..2 {
        for giant in [0, 4, -8] {
            let mut terms = Vec::new();
            for input in 0..2 {
                for baby in 0..3 {
                    let diagonal = diagonals.len();
                    let period = [slots, slots, slots / 2, slots, slots / 4][diagonal % 5];
                    diagonals.push(vector(period, diagonal as u64 + 10));
                    terms.push(LinearTerm { input, baby: Rotation::new(baby, context), diagonal });
                }
            }
            groups.push(LinearGroup { output, giant: Rotation::new(giant, context), terms });
        }
    }
    let hops = [4, -8].map(|giant| Hop::direct(Rotation::new(giant, context))).to_vec();
    let fold = vec![Rotation::new(1, context)];
    (LinearPlan { n_outputs: 2, groups, hops, fold, ..LinearPlan::default() }, diagonals)
}

/// The same plan, with giant steps that are taken together: -8 goes to 4 first.
fn chained(plan: &LinearPlan, context: &Context) -> LinearPlan {
    let [four, minus_eight, between] = [4, -8, -12].map(|steps| Rotation::new(steps, context));
    let hops = vec![Hop { from: minus_eight, to: four, by: between }, Hop::direct(four)];
    LinearPlan { hops, ..plan.clone() }
}

fn clear(plan: &LinearPlan, diagonals: &[Vec<f64>], x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let slots = x[0].len();
    let mut outputs = vec![vec![0.0; slots]; plan.n_outputs];
    for group in &plan.groups {
        let mut sum = vec![0.0; slots];
        for term in &group.terms {
            let rotated = rotated(&x[term.input], term.baby.steps() as i64);
            let diagonal = diagonals[term.diagonal].iter().cycle();
            sum.iter_mut().zip(rotated).zip(diagonal).for_each(|((sum, x), d)| *sum += d * x);
        }
        let sum = rotated(&sum, group.giant.steps() as i64);
        outputs[group.output].iter_mut().zip(sum).for_each(|(out, s)| *out += s);
    }
    for fold in &plan.fold {
        for output in &mut outputs {
            let rotated = rotated(output, fold.steps() as i64);
            output.iter_mut().zip(rotated).for_each(|(out, r)| *out += r);
        }
    }
    outputs
}

#[test]
fn linear_map_equals_the_clear_sum() {
    for params in [toy_params(8, 4, 40, 1, 1), toy_params(9, 5, 40, 2, 2), toy_params(7, 4, 57, 2, 2)] {
        let mut party = Party::new(params);
        let slots = party.context.slots();
        let top = party.max_level();
        let keys = party.rotation_keys(&[1, 2, 4, -8, -12], top);
        for level in [top, Level(1)] {
            let x = [vector(slots, 1), vector(slots, 2)];
            let inputs = [
                party.encrypt(&x[0], Scale::from_log2(35.0), level),
                party.encrypt(&x[1], Scale::from_log2(35.0), level),
            ];
            let (plan, diagonals) = plan(&party.context);
            let expected = clear(&plan, &diagonals, &x);
            for mixed in [false, true] {
                let source = Clear { context: &party.context, diagonals: diagonals.clone(), level, mixed };
                let evaluator = Evaluator::new(&party.context);
                for plan in [&plan, &chained(&plan, &party.context)] {
                    let outputs = evaluate(&evaluator, &inputs, plan, &source, &keys).unwrap();
                    for (output, expected) in outputs.iter().zip(&expected) {
                        assert!(output.scale().agrees(Scale::from_log2(55.0)));
                        assert_close(&party.decrypt(output), expected, 1e-3);
                    }
                }
            }
        }
    }
}

/// Few diagonals for many terms: 5 inputs and 4 outputs, 4 babies, no giant steps.
fn shared_plan(context: &Context, n_diagonals: usize) -> LinearPlan {
    let babies = [0, 1, 2, -8].map(|baby| Rotation::new(baby, context));
    let group = |output: usize| {
        let terms = (0..20).filter(|term| (term + output) % 7 != 3).map(|term| LinearTerm {
            input: term / 4,
            baby: babies[term % 4],
            // Some diagonals serve many terms of an output, some few.
            diagonal: (term * (output + 1) * (term + 3) / 2) % n_diagonals,
        });
        LinearGroup { output, giant: Rotation::ZERO, terms: terms.collect() }
    };
    LinearPlan { n_outputs: 4, groups: (0..4).map(group).collect(), ..LinearPlan::default() }
}

#[test]
fn adding_before_multiplying_changes_no_bit() {
    use fhe_ring::kernels::Instructions;
    let chains = [22, 36, 44, 47, 50].map(|bits| {
        let log_n = if bits < 30 { 6 } else { 10 };
        (bits, toy_params(log_n, 3, bits, 2, 2), Level(1))
    });
    // Level 2 of the pool lacks two towers in the middle.
    for (bits, params, level) in chains.into_iter().chain([(48, toy_pool(10), Level(2))]) {
        let mut party = Party::new(params.clone());
        let scalar = Context::with_instructions(params, Instructions::Scalar).unwrap();
        let (slots, top) = (party.context.slots(), party.max_level());
        let keys = party.rotation_keys(&[1, 2, -8], top);
        let x: Vec<Vec<f64>> = (0..5).map(|i| vector(slots, i)).collect();
        let inputs: Vec<Ciphertext> =
            x.iter().map(|x| party.encrypt(x, Scale::from_log2(18.0), level)).collect();
        for n_diagonals in [1, 3, 9] {
            let plan = shared_plan(&party.context, n_diagonals);
            assert!(plan.adds_first());
            let period = |d: usize| [slots, slots / 4][d % 2];
            let diagonals: Vec<Vec<f64>> =
                (0..n_diagonals).map(|d| vector(period(d), d as u64 + 40)).collect();
            let run = |context: &Context| {
                let source = Clear { context, diagonals: diagonals.clone(), level, mixed: true };
                evaluate(&Evaluator::new(context), &inputs, &plan, &source, &keys).unwrap()
            };
            assert!(run(&party.context) == run(&scalar), "{bits} bits, {n_diagonals} diagonals");
        }
    }
}

#[test]
fn bad_plans_are_refused() {
    let mut party = Party::new(toy_params(6, 3, 40, 1, 1));
    let keys = party.rotation_keys(&[1], party.max_level());
    let x = party.encrypt(&vector(32, 1), Scale::from_log2(30.0), Level(1));
    let source =
        Clear { context: &party.context, diagonals: vec![vec![1.0; 32]], level: Level(1), mixed: false };
    let term = LinearTerm { input: 0, baby: Rotation::ZERO, diagonal: 0 };
    let group = LinearGroup { output: 0, giant: Rotation::ZERO, terms: vec![term] };
    let good = LinearPlan { n_outputs: 1, groups: vec![group.clone()], ..LinearPlan::default() };
    let [one, five] = [1, 5].map(|steps| Rotation::new(steps, &party.context));
    let turned = LinearGroup { giant: five, ..group.clone() };
    let run = |plan: &LinearPlan| {
        evaluate(&Evaluator::new(&party.context), std::slice::from_ref(&x), plan, &source, &keys)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(run(&good), Ok(()));
    let cases = [
        (LinearPlan { n_outputs: 2, ..good.clone() }, "linear map: an output has no terms"),
        (
            LinearPlan { n_outputs: 0, ..good.clone() },
            "linear map: a group names an output that does not exist",
        ),
        (
            LinearPlan {
                groups: vec![LinearGroup { terms: vec![LinearTerm { input: 1, ..term }], ..group.clone() }],
                ..good.clone()
            },
            "linear map: a term names an input that does not exist",
        ),
        (
            LinearPlan { groups: vec![turned.clone()], ..good.clone() },
            "linear map: a group never comes to its output",
        ),
        (
            LinearPlan { groups: vec![turned.clone()], hops: vec![Hop::direct(five)], ..good.clone() },
            "no key for rotation by 5",
        ),
        (
            LinearPlan {
                groups: vec![turned],
                hops: vec![Hop { from: five, to: Rotation::new(4, &party.context), by: one }],
                ..good.clone()
            },
            "linear map: a group never comes to its output",
        ),
        (
            LinearPlan { groups: vec![LinearGroup { terms: vec![], ..group }], ..good },
            "linear map: a group has no terms",
        ),
    ];
    for (plan, message) in cases {
        assert_eq!(run(&plan), Err(message.to_owned()));
    }
}

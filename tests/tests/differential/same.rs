//! Networks that compute the same give the same scores, to within what both predict.

use fhec_tests::differential::metamorphic::{
    permute_channels, scale_input, split_by_outputs, split_by_weights, with_identity,
};
use fhec_tests::differential::{Drawn, Limits, Network, Temper, draw};
use fhec_tests::models::random::Random;
use rayon::prelude::*;

use crate::compile::{Rings, try_compile};
use crate::encrypted::Encrypted;
use crate::judge::worst;

/// Networks that every change is tried on in the normal suite.
const FEW: u64 = 2;
/// Networks that every change is tried on where there is time.
const MANY: u64 = 30;

/// Decrypted scores of the first fresh input, and the predicted error.
fn evaluated(network: &Network, drawn: &Drawn, factor: f32) -> (Vec<f64>, f64) {
    let scaled = |input: &Vec<f64>| input.iter().map(|x| x * f64::from(factor)).collect::<Vec<f64>>();
    let calibration: Option<Vec<_>> = drawn.calibration.as_ref().map(|all| all.iter().map(scaled).collect());
    let tried = try_compile(network.to_onnx(), calibration.as_deref(), Rings::Toy)
        .unwrap_or_else(|refusal| panic!("seed {}: {}: {network}", drawn.seed, refusal.text));
    let mut encrypted = Encrypted::new(&tried.program, drawn.seed, 1);
    (encrypted.run(&scaled(&drawn.fresh[0])).numbers, encrypted.bound())
}

/// Compares calibrated networks before and after a change; `factor` is what inputs are multiplied by after it.
fn check(networks: u64, factor: f32, change: impl Fn(&Network, u64) -> Option<Network> + Sync) {
    let calibrated = (1..).map(|seed| draw(seed, Temper::Ordinary, &Limits::toy()));
    let drawn: Vec<(Drawn, Network)> = calibrated
        .filter(|drawn| drawn.calibration.is_some())
        .filter_map(|drawn| change(&drawn.network, drawn.seed).map(|changed| (drawn, changed)))
        .take(networks as usize)
        .collect();
    drawn.par_iter().for_each(|(drawn, changed)| {
        let input = &drawn.fresh[0];
        let larger: Vec<f64> = input.iter().map(|x| x * f64::from(factor)).collect();
        let expected = drawn.network.scores(input);
        let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let apart = worst(&expected, &changed.scores(&larger));
        assert!(apart < 1e-4 * size, "seed {}: the change is off by {apart} of {size}", drawn.seed);
        let (before, bound) = evaluated(&drawn.network, drawn, 1.0);
        let (after, other) = evaluated(changed, drawn, factor);
        let error = worst(&before, &after);
        assert!(
            error <= bound + other + apart,
            "seed {}: off by {error:.2e}, {:.2e} and {:.2e} from the network's {size:.2e}, predicted {bound:.2e} and {other:.2e}\n  {}\n  {changed}",
            drawn.seed,
            worst(&before, &expected),
            worst(&after, &expected),
            drawn.network
        );
    });
}

fn larger_inputs(networks: u64) {
    check(networks, 64.0, |network, _| Some(scale_input(network, 64.0)));
    check(networks, 1e-3, |network, _| Some(scale_input(network, 1e-3)));
}

fn permuted(networks: u64) {
    check(networks, 1.0, |network, seed| {
        let (permuted, count) = permute_channels(network, &mut Random::new(seed));
        (count > 0).then_some(permuted)
    });
}

fn split(networks: u64) {
    check(networks, 1.0, |network, _| Some(split_by_outputs(network)));
    check(networks, 1.0, |network, _| Some(split_by_weights(network)));
}

fn widened(networks: u64) {
    check(networks, 1.0, |network, seed| Some(with_identity(network, seed as usize)));
}

#[test]
fn larger_inputs_and_smaller_weights_change_no_score() {
    larger_inputs(FEW);
}

#[test]
fn order_of_channels_changes_no_score() {
    permuted(FEW);
}

#[test]
fn split_layers_change_no_score() {
    split(FEW);
}

#[test]
fn identity_layer_changes_no_score() {
    widened(FEW);
}

#[test]
#[ignore = "many networks take minutes; run with cargo xtask slow changes_that_change_nothing"]
fn changes_that_change_nothing() {
    larger_inputs(MANY);
    permuted(MANY);
    split(MANY);
    widened(MANY);
}

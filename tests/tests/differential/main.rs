//! Random networks, compiled as users compile them and evaluated under encryption, against tract and the clear evaluators.
//!
//! Inputs of the kind that a program was calibrated on give scores within the predicted error. Inputs beyond it give right
//! scores or are flagged. A network that does not build says which layer is why, and what to do.

mod bounds;
mod compile;
mod encrypted;
mod judge;
mod same;
mod tally;

use compile::Rings;
use fhec_tests::differential::{Limits, Temper};
use tally::Tally;

/// Networks of the normal suite.
const TOY_NETWORKS: u64 = 120;

/// A number from the environment, to look at other networks than the usual ones.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn run(temper: Temper, limits: Limits, rings: Rings, count: u64) -> Tally {
    let first = setting("FHEC_SEED", 1);
    Tally::of(first..first + setting("FHEC_NETWORKS", count), temper, &limits, rings)
}

#[test]
#[ignore = "finds faults that are being mended; run with cargo xtask slow random_networks_at_toy_rings"]
fn random_networks_at_toy_rings() {
    let tally = run(Temper::Wild, Limits::toy(), Rings::Toy, TOY_NETWORKS);
    eprint!("{tally}");
    tally.assert_good();
}

#[test]
#[ignore = "finds faults that are being mended; run with cargo xtask slow ordinary_random_networks_at_toy_rings"]
fn ordinary_random_networks_at_toy_rings() {
    let tally = run(Temper::Ordinary, Limits::toy(), Rings::Toy, TOY_NETWORKS);
    eprint!("{tally}");
    tally.assert_good();
}

#[test]
#[ignore = "secure rings take half an hour; run with cargo xtask slow random_networks_at_secure_rings"]
fn random_networks_at_secure_rings() {
    let tally = run(Temper::Wild, Limits::real(), Rings::Secure, 500);
    eprint!("{tally}");
    tally.assert_good();
}

#[test]
#[ignore = "secure rings take half an hour; run with cargo xtask slow random_networks_at_secure_rings"]
fn ordinary_random_networks_at_secure_rings() {
    let tally = run(Temper::Ordinary, Limits::real(), Rings::Secure, 500);
    eprint!("{tally}");
    tally.assert_good();
}

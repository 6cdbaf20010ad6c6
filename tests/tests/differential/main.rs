//! Random networks, compiled as users compile them and evaluated under encryption, against tract and the clear evaluators.
//!
//! Inputs of the kind that a program was calibrated on give scores within the predicted error. Inputs beyond it give right
//! scores or are flagged. A network that does not build says which layer is why, and what to do.

mod bounds;
mod cases;
mod compile;
mod encrypted;
mod judge;
mod same;
mod tally;

use compile::Rings;
use fhec_tests::differential::{Limits, Temper};
use tally::Tally;

/// Networks of either kind in the normal suite: as many as two cores judge within a minute.
const FEW: u64 = 60;
/// Networks of either kind at toy rings.
const MANY: u64 = 1000;
/// Networks of either kind at secure rings.
const SECURE: u64 = 500;

/// A number from the environment, to look at other networks than the usual ones.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn check(temper: Temper, rings: Rings, count: u64) {
    let first = setting("FHEC_SEED", 1);
    let limits = match rings {
        Rings::Toy => Limits::toy(),
        Rings::Secure => Limits::real(),
    };
    let tally = Tally::of(first..first + setting("FHEC_NETWORKS", count), temper, &limits, rings);
    eprint!("{tally}");
    tally.assert_good();
}

#[test]
fn wild_random_networks() {
    check(Temper::Wild, Rings::Toy, FEW);
}

#[test]
fn ordinary_random_networks() {
    check(Temper::Ordinary, Rings::Toy, FEW);
}

#[test]
#[ignore = "a thousand networks take a quarter of an hour; run with cargo xtask slow wild_random_networks_at_toy_rings"]
fn wild_random_networks_at_toy_rings() {
    check(Temper::Wild, Rings::Toy, MANY);
}

#[test]
#[ignore = "a thousand networks take a quarter of an hour; run with cargo xtask slow ordinary_random_networks_at_toy_rings"]
fn ordinary_random_networks_at_toy_rings() {
    check(Temper::Ordinary, Rings::Toy, MANY);
}

#[test]
#[ignore = "secure rings take an hour; run with cargo xtask slow wild_random_networks_at_secure_rings"]
fn wild_random_networks_at_secure_rings() {
    check(Temper::Wild, Rings::Secure, SECURE);
}

#[test]
#[ignore = "secure rings take an hour; run with cargo xtask slow ordinary_random_networks_at_secure_rings"]
fn ordinary_random_networks_at_secure_rings() {
    check(Temper::Ordinary, Rings::Secure, SECURE);
}

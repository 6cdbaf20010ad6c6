//! Chains hold their scales and values.

use fhe_bytecode::{Level, Scale};

use super::{per_level, pool};
use crate::schedule::{Chain, Room, Sizes};
use crate::timed::{Positions, Rung, positions_of as chain};

/// Values of 2^`log2_peak` at the last position.
fn room(positions: &Positions, log2_peak: f64) -> Vec<Room> {
    vec![Room { position: positions.depth(), raw: false, rung: Rung(0), log2_peak }]
}

fn sizes(positions: &Positions) -> Sizes {
    Sizes {
        input: 30.0,
        activations: vec![22.0; positions.n_rescales() as usize],
        weights: vec![16.0; positions.depth() as usize],
        rooms: room(positions, 2.0),
        headroom: 3.0,
    }
}

#[test]
fn scales_after_rescales_are_exactly_the_wanted_ones() {
    let positions = chain("lplplpl", 2);
    let found = per_level::chain(&positions, &sizes(&positions), 15).unwrap();
    assert_eq!(found.moduli().towers().len(), 5);
    for position in [1, 3, 5, 7] {
        assert!(found.scale(position).agrees(Scale::from_log2(22.0)), "{}", found.scale(position));
    }
    assert!(found.raw(2).agrees(found.scale(1).squared()));
}

#[test]
fn primes_follow_the_scales_of_a_pair() {
    let positions = chain("lplpl", 2);
    let found = per_level::chain(&positions, &sizes(&positions), 15).unwrap();
    let bits: Vec<f64> = found.moduli().towers().iter().map(|&q| (q as f64).log2().round()).collect();
    assert_eq!(bits, [28.0, 38.0, 38.0, 24.0]);
}

#[test]
fn stretch_of_products_takes_the_scale_its_prime_gives() {
    let positions = chain("lp", 1);
    let found = per_level::chain(&positions, &sizes(&positions), 12).unwrap();
    let expected = found.scale(1).squared().rescaled(found.moduli().towers()[1]);
    assert!(found.scale(2).agrees(expected));
}

#[test]
fn last_prime_holds_the_scale_of_small_results() {
    let positions = chain("lplpl", 2);
    for (log_n, log2_peak) in [(9, -4.4), (13, -11.0), (15, -34.0)] {
        let small = Sizes { rooms: room(&positions, log2_peak), ..sizes(&positions) };
        let found = per_level::chain(&positions, &small, log_n).unwrap();
        let (scale, prime) = (found.scale(5).log2(), (found.moduli().towers()[0] as f64).log2());
        assert!(scale < prime, "2^{scale} in 2^{prime} at N = 2^{log_n}");
    }
}

#[test]
fn last_prime_has_the_headroom_that_is_asked_for() {
    let positions = chain("lpp", 1);
    for log_n in [5, 9, 13, 15] {
        for tenth in 0..60 {
            let activations = vec![20.0, 19.0, 10.0 + f64::from(tenth) / 10.0];
            let sizes = Sizes { activations, ..sizes(&positions) };
            let found = per_level::chain(&positions, &sizes, log_n).unwrap();
            let free = found.free_bits(&sizes.rooms[0]);
            assert!(free >= 3.0, "{free} bits at N = 2^{log_n}, {sizes:?}");
        }
    }
}

#[test]
fn value_inside_the_circuit_has_headroom_too() {
    let positions = chain("lplpl", 2);
    // The squares before the last layer are far larger than the results.
    let inside = Room { position: 4, raw: true, rung: positions.working_rung(4), log2_peak: 30.0 };
    let rooms = vec![inside, room(&positions, 2.0)[0]];
    let sizes = Sizes { rooms, ..sizes(&positions) };
    let found = per_level::chain(&positions, &sizes, 15).unwrap();
    for room in &sizes.rooms {
        assert!(found.free_bits(room) >= 3.0, "{} bits in {room:?}", found.free_bits(room));
    }
}

#[test]
fn given_towers_hold_the_given_scales() {
    let positions = chain("lpl", 1);
    let check = |towers: [u64; 4], expected: &str| {
        let error = Chain::with_towers(&positions, &sizes(&positions), towers.to_vec()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        [(1 << 20) + 1, 1 << 40, 1 << 40, 1 << 40],
        "a scale of 2^62.0 does not fit the modulus of 2^60.0 at level 1",
    );
    check(
        [1 << 40, 1 << 22, 1 << 22, 1 << 8],
        "the towers leave the weights at level 3 a scale of 2^0.0, which rounds them away",
    );
    check(
        [(1 << 26) + 1, 1 << 40, 1 << 40, 1 << 40],
        "values of 2^2.0 at a scale of 2^22.0 leave 1.0 bits of the modulus at level 0 free, at least 1.5 are needed; a larger first tower holds them",
    );
}

#[test]
fn level_beyond_the_largest_prime_has_several() {
    let positions = chain("plpl", 4);
    let found = per_level::chain(&positions, &sizes(&positions), 15).unwrap();
    assert_eq!((found.moduli().rescale(Rung(1)).divided.len(), found.level(Rung(1))), (3, Level(1)));
    assert!(
        found.moduli().towers().iter().all(|&q| (q as f64).log2() < 50.0),
        "{:?}",
        found.moduli().towers()
    );
    assert!(found.scale(4).agrees(Scale::from_log2(22.0)), "{}", found.scale(4));
}

#[test]
fn results_beyond_the_largest_prime_have_several() {
    let positions = chain("lpl", 2);
    let sizes = Sizes { rooms: room(&positions, 45.0), ..sizes(&positions) };
    let found = per_level::chain(&positions, &sizes, 15).unwrap();
    assert_eq!(found.moduli().towers().len() - found.moduli().rescale(Rung(2)).divided.len() - 1, 2);
    assert!(found.free_bits(&sizes.rooms[0]) >= 3.0);
}

#[test]
fn pools_keep_the_wanted_scales_and_headroom() {
    let positions = chain(&format!("l{}", "pl".repeat(9)), 2);
    let sizes = sizes(&positions);
    let found = pool::chain(&positions, &sizes, 15, 50).unwrap().unwrap();
    let per_level = per_level::chain(&positions, &sizes, 15).unwrap();
    assert!(found.moduli().n_residues() < per_level.moduli().n_residues());
    assert!(found.free_bits(&sizes.rooms[0]) >= 3.0);
    let weights: Vec<f64> = (1..=19)
        .step_by(2)
        .map(|position| found.raw(position).log2() - found.scale(position - 1).log2())
        .collect();
    assert!(weights.iter().all(|bits| *bits > 13.0), "{weights:?}");
}

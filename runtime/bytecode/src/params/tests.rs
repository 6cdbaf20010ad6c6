//! One test per rule of the parameter check.

use super::*;

fn spec(log_n: u32) -> ParamsSpec {
    let towers = ntt_primes_near(2f64.powi(30), log_n, 2, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(31), log_n, 1, &towers).unwrap();
    ParamsSpec { log_n, towers, special_primes, digit_size: 1, insecure: false, toy: false }
}

/// Towers and one special prime whose product has close to `bits` bits, from either side.
fn spec_of_bits(log_n: u32, bits: f64) -> ParamsSpec {
    let n_primes = (bits / 50.0).ceil().max(2.0) as usize;
    let mut primes: Vec<u64> = Vec::new();
    for left in (1..=n_primes).rev() {
        let used = log2_product(&primes);
        let target = 2f64.powf((bits - used) / left as f64);
        primes.extend(ntt_primes_near(target, log_n, 1, &primes).unwrap());
    }
    let special_primes = primes.split_off(n_primes - 1);
    ParamsSpec { log_n, towers: primes, special_primes, digit_size: 1, insecure: false, toy: false }
}

#[test]
fn security_bound_holds_on_both_sides_for_every_ring() {
    for log_n in LOG_N_RANGE {
        let cap = f64::from(security_cap(log_n).unwrap());
        let below = Params::new(spec_of_bits(log_n, cap - 0.2)).unwrap();
        assert!(below.is_secure() && (cap - below.log2_pq()).abs() < 0.5, "{log_n}");
        let above = spec_of_bits(log_n, cap + 0.2);
        let error = Params::new(above.clone()).unwrap_err();
        assert!(matches!(error, ParamsError::Insecure { .. }), "{log_n}: {error}");
        let allowed = Params::new(ParamsSpec { insecure: true, ..above }).unwrap();
        assert!(!allowed.is_secure());
    }
}

#[test]
fn toy_ring_needs_the_flag() {
    assert_eq!(Params::new(spec(10)), Err(ParamsError::ToyNotAllowed { log_n: 10 }));
    let toy = Params::new(ParamsSpec { toy: true, ..spec(10) }).unwrap();
    assert!(toy.is_toy() && !toy.is_secure());
}

#[test]
fn ring_degree_is_bounded() {
    for log_n in [4, 18, 40] {
        let spec = ParamsSpec { log_n, toy: true, ..spec(10) };
        assert_eq!(Params::new(spec), Err(ParamsError::RingDegree { log_n }));
    }
}

#[test]
fn composite_and_misfit_primes_are_refused() {
    let good = spec(12);
    for bad in [8192 * 4 + 1, 1_000_003, (1 << 60) + 8192 + 1, 0, u64::MAX] {
        let spec = ParamsSpec { towers: vec![good.towers[0], bad], ..good.clone() };
        assert_eq!(Params::new(spec), Err(ParamsError::NotNttPrime { prime: bad, modulus: 8192 }), "{bad}");
    }
}

#[test]
fn a_special_prime_may_not_repeat_a_tower() {
    let good = spec(12);
    let prime = good.towers[0];
    let spec = ParamsSpec { special_primes: vec![prime], ..good };
    assert_eq!(Params::new(spec), Err(ParamsError::DuplicatePrime { prime }));
}

#[test]
fn towers_and_special_primes_are_required() {
    let none = ParamsSpec { special_primes: vec![], ..spec(12) };
    assert_eq!(Params::new(none), Err(ParamsError::PrimeCount { kind: "special", count: 0 }));
    let none = ParamsSpec { towers: vec![], ..spec(12) };
    assert_eq!(Params::new(none), Err(ParamsError::PrimeCount { kind: "tower", count: 0 }));
}

#[test]
fn digit_size_is_bounded_by_the_chain() {
    for digit_size in [0, 3] {
        let spec = ParamsSpec { digit_size, ..spec(12) };
        assert_eq!(Params::new(spec), Err(ParamsError::DigitSize { digit_size, n_towers: 2 }));
    }
}

#[test]
fn fingerprint_sees_every_field() {
    let base = ParamsSpec { toy: true, ..spec(12) };
    let mut variants = vec![base.clone()];
    variants.push(ParamsSpec { insecure: true, ..base.clone() });
    variants.push(ParamsSpec { toy: false, ..base.clone() });
    variants.push(ParamsSpec { digit_size: 2, ..base.clone() });
    variants.push(ParamsSpec { towers: vec![base.towers[0]], ..base.clone() });
    variants.push(ParamsSpec { towers: base.towers.iter().rev().copied().collect(), ..base.clone() });
    let prints: std::collections::BTreeSet<_> =
        variants.into_iter().map(|spec| Params::new(spec).unwrap().fingerprint()).collect();
    assert_eq!(prints.len(), 6);
}

#[test]
fn spec_survives_ron() {
    let spec = spec(13);
    let text = ron::to_string(&spec).unwrap();
    assert_eq!(ron::from_str::<ParamsSpec>(&text).unwrap(), spec);
}

//! One test per rule of the parameter check.

use super::*;

fn spec(log_n: u32) -> ParamsSpec {
    let towers = ntt_primes_near(2f64.powi(30), log_n, 2, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(31), log_n, 1, &towers).unwrap();
    ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    }
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
    ParamsSpec {
        log_n,
        towers: primes,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    }
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

/// Six towers, two of them small, in five levels; the levels below the highest are no prefixes.
fn pool_spec(log_n: u32, bits: f64) -> ParamsSpec {
    let special_primes = ntt_primes_near(2f64.powi(45), log_n, 1, &[]).unwrap();
    let mut towers: Vec<u64> = Vec::new();
    for small in [25.0, 31.0] {
        let taken = [&towers[..], &special_primes].concat();
        towers.extend(ntt_primes_near(f64::exp2(small), log_n, 1, &taken).unwrap());
    }
    let n_large = ((bits - 101.0) / 50.0).ceil() as usize;
    for left in (1..=n_large).rev() {
        let taken = [&towers[..], &special_primes].concat();
        let target = 2f64.powf((bits - log2_product(&taken)) / left as f64);
        towers.extend(ntt_primes_near(target, log_n, 1, &taken).unwrap());
    }
    let n = towers.len() as u16;
    let set = |indices: &[u16]| indices.iter().copied().map(TowerIdx).collect::<Vec<_>>();
    let levels =
        vec![set(&[2]), set(&[0, 1, 3]), (2..n).map(TowerIdx).collect(), (0..n).map(TowerIdx).collect()];
    let pool = Some(Pool { levels, digits: vec![2, n - 2] });
    let digit_size = usize::from(n - 2).max(2);
    ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size,
        pool,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    }
}

#[test]
fn security_is_judged_by_all_towers_of_a_pool() {
    for log_n in 14..=16 {
        let cap = f64::from(security_cap(log_n).unwrap());
        let below = Params::new(pool_spec(log_n, cap - 0.9)).unwrap();
        assert!(
            below.is_secure() && (cap - below.log2_pq() - 0.9).abs() < 0.1,
            "{log_n}: {}",
            below.log2_pq()
        );
        let above = pool_spec(log_n, cap + 0.9);
        let error = Params::new(above.clone()).unwrap_err();
        assert!(matches!(error, ParamsError::Insecure { .. }), "{log_n}: {error}");
        // No ciphertext has all towers any more, but the keys still do.
        let mut without_top = above.clone();
        without_top.pool.as_mut().unwrap().levels.pop();
        let error = Params::new(without_top).unwrap_err();
        assert!(matches!(error, ParamsError::Insecure { .. }), "{log_n}: {error}");
        assert!(!Params::new(ParamsSpec { insecure: true, ..above }).unwrap().is_secure());
    }
}

#[test]
fn ill_formed_pools_are_refused() {
    let check = |change: &dyn Fn(&mut Pool), expected: &str| {
        let mut spec = pool_spec(14, 400.0);
        change(spec.pool.as_mut().unwrap());
        assert_eq!(Params::new(spec).unwrap_err().to_string(), expected);
    };
    Params::new(pool_spec(14, 400.0)).unwrap();
    check(&|pool| pool.levels.clear(), "0 levels in a pool, need 1 to 256");
    check(
        &|pool| pool.levels[1].clear(),
        "the towers of level L1 are none, not ascending or beyond the pool",
    );
    check(
        &|pool| pool.levels[1].reverse(),
        "the towers of level L1 are none, not ascending or beyond the pool",
    );
    check(
        &|pool| pool.levels[1].push(TowerIdx(8)),
        "the towers of level L1 are none, not ascending or beyond the pool",
    );
    check(
        &|pool| pool.levels.swap(1, 2),
        "the modulus of level L2 is not larger than that of the level below",
    );
    let idle = |pool: &mut Pool| pool.levels.iter_mut().for_each(|set| set.retain(|tower| tower.0 != 1));
    check(&idle, "no level has tower 1");
    check(&|pool| pool.digits[0] = 1, "digits of [1, 6] towers for 8, the largest said to be 6");
    check(&|pool| pool.digits = vec![4, 4], "digits of [4, 4] towers for 8, the largest said to be 6");
    check(&|pool| pool.digits.push(0), "digits of [2, 6, 0] towers for 8, the largest said to be 6");
}

#[test]
fn a_level_of_a_pool_has_its_towers_digits_and_keys() {
    let params = Params::new(pool_spec(14, 400.0)).unwrap();
    assert_eq!((params.max_level(), params.n_towers(Level(1)), params.n_digits(Level(1))), (Level(3), 3, 2));
    assert_eq!((params.n_digits(Level(0)), params.digits(Level(0))), (1, &[1][..]));
    // A key up to level 1 has the tower of level 0, which level 1 has not.
    assert_eq!(params.held(Level(1)), [0, 1, 2, 3].map(TowerIdx));
    assert_eq!(params.held(Level(3)).len(), 8);
    let bits = params.primes(Level(1)).iter().map(|&q| (q as f64).log2()).sum::<f64>();
    assert_eq!(params.log2_q_at(Level(1)), bits);
    let poly = |primes: &[u64]| primes.iter().map(|&q| residue_bits(q) * 2048).sum::<usize>();
    assert_eq!(params.key_bytes(Level(1)), (2 * 2 * poly(&params.key_primes(Level(1)))) as u64);
}

#[test]
fn ways_down_a_pool_keep_account_of_the_scale() {
    let params = Params::new(pool_spec(14, 400.0)).unwrap();
    let scale = crate::Scale::from_log2(200.0);
    let rescale = params.rescale(Level(2), Level(1)).unwrap();
    assert_eq!((rescale.added.len(), rescale.divided.len(), rescale.factor), (2, 5, 1.0));
    let lost = params.log2_q_at(Level(2)) - params.log2_q_at(Level(1));
    assert!((scale.log2() - rescale.rescaled(params.towers(), scale).log2() - lost).abs() < 1e-9);
    // A drop divides by no more than it takes to keep the scale.
    let drop = params.drop(Level(2), Level(1)).unwrap();
    assert_eq!((drop.added.len(), drop.divided.len()), (2, 2));
    assert!((scale.log2() - drop.rescaled(params.towers(), scale).log2()).abs() < 1e-6);
    assert_eq!(params.drop(Level(3), Level(1)), None);
    assert_eq!((params.rescale(Level(1), Level(2)), params.rescale(Level(9), Level(1))), (None, None));
}

#[test]
fn an_exchange_of_towers_beyond_the_range_of_numbers_has_no_scale() {
    let towers = ntt_primes_near(2f64.powi(40), 17, 49, &[]).unwrap();
    let tower = |range: std::ops::Range<u16>| range.map(TowerIdx).collect();
    let division = Division { divided: tower(0..25), added: tower(25..49), factor: 1.0 };
    let left = |bits: f64| division.rescaled(&towers, crate::Scale::from_log2(bits));
    assert!((left(60.0).log2() - 20.0).abs() < 1e-3, "{}", left(60.0));
    // 2^100 times 2^960 is no number; half of it would be a scale, but another one.
    assert!(left(100.0).value() < 1.0, "{}", left(100.0));
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
    let first = |n: u16| (0..n).map(TowerIdx).collect::<Vec<_>>();
    let pool = |levels: Vec<Vec<TowerIdx>>| ParamsSpec {
        pool: Some(Pool { levels, digits: vec![1, 1] }),
        ..base.clone()
    };
    variants.push(pool(vec![first(1), first(2)]));
    variants.push(pool(vec![vec![TowerIdx(1)], first(2)]));
    let prints: std::collections::BTreeSet<_> =
        variants.into_iter().map(|spec| Params::new(spec).unwrap().fingerprint()).collect();
    assert_eq!(prints.len(), 8);
}

#[test]
fn spec_survives_ron() {
    let spec = spec(13);
    let text = ron::to_string(&spec).unwrap();
    assert_eq!(ron::from_str::<ParamsSpec>(&text).unwrap(), spec);
}

/// A ring of 2^15 and, from level 2 on, one of 2^14 whose keys have about so many bits.
fn segmented(bits: f64) -> ParamsSpec {
    let towers = ntt_primes_near(2f64.powi(45), 15, 8, &[]).unwrap();
    let held = log2_product(&towers[..3]);
    let mut special: Vec<u64> = Vec::new();
    for left in (1..=6).rev() {
        let taken = [&towers[..], &special].concat();
        let target = 2f64.powf((bits - held - log2_product(&special)) / f64::from(left));
        special.extend(ntt_primes_near(target, 15, 1, &taken).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(46), 15, 1, &towers).unwrap();
    let lower = vec![SegmentSpec { log_n: 14, level: Level(2), special_primes: special, digits: vec![2, 1] }];
    let (insecure, toy) = (false, false);
    ParamsSpec { log_n: 15, towers, special_primes, digit_size: 2, pool: None, lower, insecure, toy }
}

#[test]
fn security_of_a_segment_is_judged_in_its_own_ring() {
    let cap = f64::from(security_cap(14).unwrap());
    let below = Params::new(segmented(cap - 0.9)).unwrap();
    assert!(below.is_secure());
    let lower = &below.lower()[0];
    assert!((cap - lower.params().log2_pq() - 0.9).abs() < 0.1, "{}", lower.params().log2_pq());
    // The way into the smaller ring has the same modulus, in the larger ring.
    assert_eq!(lower.entry().unwrap().log2_pq(), lower.params().log2_pq());
    let above = segmented(cap + 0.9);
    let error = Params::new(above.clone()).unwrap_err();
    assert!(error.to_string().starts_with("the segment from L2 on: log2(PQ) = 430.9"), "{error}");
    // Where a flag allows it, it is insecure all the same, although the first segment alone is not.
    let allowed = Params::new(ParamsSpec { insecure: true, ..above }).unwrap();
    assert!(allowed.is_secure_alone() && !allowed.is_secure());
}

#[test]
fn levels_have_what_their_segment_has() {
    let params = Params::new(segmented(420.0)).unwrap();
    assert_eq!([7, 3, 2, 0].map(|level| params.segment(Level(level))), [0, 0, 1, 1]);
    assert_eq!([3, 2].map(|level| params.at(Level(level)).n()), [1 << 15, 1 << 14]);
    assert_eq!(params.at(Level(2)).n_digits(Level(2)), 2);
    assert_eq!(params.at(Level(2)).primes(Level(1)), params.primes(Level(1)));
    assert_eq!(params.ciphertext_bytes(Level(2)), (2 * 8 * 3) << 14);
    assert_eq!(params.entered(Level(7), Level(2)).len(), 1);
    assert!(params.entered(Level(7), Level(3)).is_empty() && params.entered(Level(2), Level(0)).is_empty());
    // The way into the smaller ring has twice the degree, and three digits instead of two.
    let entry = params.key_bytes(KeyPlace { level: Level(2), enters: true });
    assert_eq!(entry, 3 * params.key_bytes(Level(2)));
    // A rescale across the boundary is what it is without segments.
    let plain = Params::new(ParamsSpec { lower: vec![], ..params.spec().clone() }).unwrap();
    assert_eq!(plain.rescale(Level(3), Level(2)), params.rescale(Level(3), Level(2)));
    assert_ne!(plain.fingerprint(), params.fingerprint());
}

#[test]
fn ill_formed_segments_are_refused() {
    let check = |change: &dyn Fn(&mut Vec<SegmentSpec>), expected: &str| {
        let mut spec = segmented(420.0);
        change(&mut spec.lower);
        let error = Params::new(spec).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let ends = "the segment from L7 on does not lie below the one before it, which ends at L7";
    check(&|lower| lower[0].level = Level(7), ends);
    check(
        &|lower| lower[0].log_n = 16,
        "the segment from L2 on has a ring of 2^16, larger than 2^15 above it",
    );
    check(&|lower| lower[0].digits = vec![2], "the segment from L2 on: digits of [2] towers for 3");
    check(&|lower| lower[0].digits.clear(), "the segment from L2 on: digits of 0 towers in a chain of 3");
    check(&|lower| lower[0].special_primes.clear(), "the segment from L2 on: 0 special primes");
    check(&|lower| lower[0].log_n = 11, "the segment from L2 on: ring degree 2^11 protects nothing");
    check(&|lower| lower.push(lower[0].clone()), "the segment from L2 on does not lie below");
    // A special prime of the smaller ring only would have no transform on the way into it.
    let small = ntt_primes_near(2f64.powi(40), 14, 64, &[]).unwrap();
    let small = small.into_iter().find(|q| q % (1 << 16) != 1).unwrap();
    check(
        &|lower| lower[0].special_primes[0] = small,
        &format!("the segment from L2 on: {small} is not a prime"),
    );
    check(&|lower| *lower = vec![lower[0].clone(); 5], "5 segments below the first");
}

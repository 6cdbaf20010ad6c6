//! What parameters compute, at both sides of every bound.

use fhe_bytecode::params::{MAX_TOWERS, Pool, PoolError, is_ntt_prime, ntt_primes_below, ntt_primes_near};
use fhe_bytecode::{Fingerprint, Level, Params, ParamsError, ParamsSpec, Scale, TowerIdx};

/// Towers and special primes of these sizes in bits.
fn spec(log_n: u32, towers: &[i32], special: &[i32], digit_size: usize) -> ParamsSpec {
    let mut taken: Vec<u64> = Vec::new();
    let mut pick = |bits: &[i32]| -> Vec<u64> {
        let found = bits.iter().map(|&bits| {
            let prime = ntt_primes_near(2f64.powi(bits), log_n, 1, &taken).unwrap()[0];
            taken.push(prime);
            prime
        });
        found.collect()
    };
    let (towers, special_primes) = (pick(towers), pick(special));
    ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size,
        pool: None,
        lower: Vec::new(),
        insecure: true,
        toy: true,
    }
}

fn params(log_n: u32, towers: &[i32], special: &[i32], digit_size: usize) -> Params {
    Params::new(spec(log_n, towers, special, digit_size)).unwrap()
}

fn towers(of: &[u16]) -> Vec<TowerIdx> {
    of.iter().copied().map(TowerIdx).collect()
}

#[test]
fn rings_of_32_to_131072_are_taken_and_those_below_4096_are_toys() {
    for (log_n, is_toy) in [(5, true), (11, true), (12, false), (17, false)] {
        let found = params(log_n, &[30], &[31], 1);
        assert_eq!((found.is_toy(), found.n(), found.slots()), (is_toy, 1 << log_n, 1 << (log_n - 1)));
        assert_eq!(found.security_cap().is_none(), is_toy, "{log_n}");
        let plain = Params::new(ParamsSpec { toy: false, ..spec(log_n, &[30], &[31], 1) });
        assert_eq!(plain.is_err(), is_toy, "{log_n}");
    }
    for log_n in [4, 18] {
        let other = ParamsSpec { log_n, ..spec(12, &[30], &[31], 1) };
        assert_eq!(Params::new(other), Err(ParamsError::RingDegree { log_n }));
    }
}

#[test]
fn as_many_primes_as_allowed_are_taken_and_one_more_is_not() {
    let many = ntt_primes_below(40, 5, MAX_TOWERS + 2, &[]).unwrap();
    let base = spec(5, &[45], &[46], 1);
    let with = |n: usize| (ParamsSpec { towers: many[..n].to_vec(), ..base.clone() }, n);
    let special = |n: usize| (ParamsSpec { special_primes: many[..n].to_vec(), ..base.clone() }, n);
    for (kind, of) in [("tower", &with as &dyn Fn(usize) -> _), ("special", &special)] {
        Params::new(of(MAX_TOWERS).0).unwrap();
        let (spec, count) = of(MAX_TOWERS + 1);
        assert_eq!(Params::new(spec), Err(ParamsError::PrimeCount { kind, count }));
    }
}

#[test]
fn a_prime_is_one_modulo_twice_the_degree_and_has_at_most_60_bits() {
    let largest = ntt_primes_below(60, 5, 1, &[]).unwrap()[0];
    assert!(is_ntt_prime(largest, 5) && largest < 1 << 60);
    let above = ((1u64 << 60) + 1..).step_by(64).take(1000);
    assert!(above.clone().count() == 1000 && above.into_iter().all(|p| !is_ntt_prime(p, 5)));
    for (number, is_one) in [(0, false), (1, false), (65, false), (193, true), (257, true), (97, false)] {
        assert_eq!(is_ntt_prime(number, 5), is_one, "{number}");
    }
}

#[test]
fn a_digit_may_have_all_towers_and_no_more() {
    let all = params(5, &[30, 31, 32], &[33], 3);
    assert_eq!((all.digit_size(), all.n_digits(Level(2)), all.digits(Level(2))), (3, 1, &[0][..]));
    let more = spec(5, &[30, 31, 32], &[33], 4);
    assert_eq!(Params::new(more), Err(ParamsError::DigitSize { digit_size: 4, n_towers: 3 }));
}

#[test]
fn a_chain_has_the_first_towers_at_every_level_and_its_digits_in_order() {
    let chain = params(6, &[30, 31, 32, 33, 34], &[35, 36], 2);
    assert_eq!((chain.max_level(), chain.log_n()), (Level(4), 6));
    let digits: [&[usize]; 5] = [&[0], &[0], &[0, 1], &[0, 1], &[0, 1, 2]];
    for (level, digits) in (0..5).zip(digits) {
        let (first, at) = ((0..=level).map(TowerIdx).collect::<Vec<_>>(), Level(level));
        assert_eq!((chain.set(at), chain.held(at)), (&first[..], &first[..]));
        assert_eq!((chain.digits(at), chain.key_digits(at)), (digits, digits));
        assert_eq!((chain.n_towers(at), chain.n_digits(at)), (first.len(), digits.len()));
        assert_eq!(chain.primes(at), chain.towers()[..first.len()]);
        let key = [&chain.towers()[..first.len()], chain.special_primes()].concat();
        assert_eq!(chain.key_primes(at), key);
        assert_eq!(chain.digit_of(TowerIdx(level)), usize::from(level) / 2);
    }
    // What does not exist has what the highest level has.
    assert_eq!((chain.set(Level(5)), chain.n_towers(Level(900))), (chain.set(Level(4)), 5));
    assert_eq!((Level(3).lower(), Level(0).lower()), (Some(Level(2)), None));
}

#[test]
fn sizes_in_bits_are_sums_over_the_primes() {
    let found = params(6, &[30, 41, 32], &[45, 36], 1);
    let sum = |primes: &[u64]| primes.iter().map(|&p| (p as f64).log2()).sum::<f64>();
    assert_eq!((found.log2_q(), found.log2_p()), (sum(found.towers()), sum(found.special_primes())));
    assert_eq!(found.log2_pq(), found.log2_q() + found.log2_p());
    assert!((found.log2_q() - 103.0).abs() < 0.1 && (found.log2_p() - 81.0).abs() < 0.1);
    for (level, bits) in [(0, 30.0), (1, 71.0), (2, 103.0), (9, 103.0)] {
        assert!((found.log2_q_at(Level(level)) - bits).abs() < 0.1, "{level}");
    }
}

#[test]
fn keys_take_the_bits_of_their_primes_and_ciphertexts_words() {
    let below = ntt_primes_below(50, 5, 1, &[]).unwrap()[0];
    let above = (0..).map(|k| (1u64 << 50) + 1 + 64 * k).find(|&p| is_ntt_prime(p, 5)).unwrap();
    let special = ntt_primes_near(2f64.powi(40), 5, 1, &[]).unwrap();
    let special_bits = u64::from(64 - special[0].leading_zeros());
    let spec = ParamsSpec { towers: vec![below, above], special_primes: special, ..spec(5, &[30], &[31], 1) };
    let found = Params::new(spec).unwrap();
    // Two polynomials a digit; 50 bits a residue below 2^50, a word above it, and as many as the special prime has.
    let bytes = |digits: u64, bits: &[u64]| 2 * digits * bits.iter().map(|b| b * 32 / 8).sum::<u64>();
    assert_eq!(found.key_bytes(Level(0)), bytes(1, &[50, special_bits]));
    assert_eq!(found.key_bytes(Level(1)), bytes(2, &[50, 64, special_bits]));
    assert_eq!((found.ciphertext_bytes(Level(0)), found.ciphertext_bytes(Level(1))), (512, 1024));
    assert_eq!((found.key_pair_bytes(Level(0)), found.key_pair_bytes(Level(1))), (1024, 1536));
}

#[test]
fn security_is_what_the_primes_have_whatever_the_flags_say() {
    // 106 bits are the most at 2^12.
    for (special, is_secure) in [(40, true), (60, false)] {
        let found = params(12, &[30, 31], &[special], 1);
        assert_eq!((found.is_secure(), found.security_cap()), (is_secure, Some(106)));
    }
    assert!(!params(11, &[30], &[31], 1).is_secure());
}

#[test]
fn the_fingerprint_is_the_hash_of_every_field_as_a_word() {
    let mut spec = spec(7, &[30, 31, 32], &[33, 34], 2);
    let hash = |words: &[u64]| {
        let mut hasher = blake3::Hasher::new_derive_key("fhec 1 parameters");
        for word in words {
            hasher.update(&word.to_le_bytes());
        }
        Fingerprint(*hasher.finalize().as_bytes())
    };
    let (t, s) = (spec.towers.clone(), spec.special_primes.clone());
    let mut words = vec![7, 3, t[0], t[1], t[2], 2, s[0], s[1], 2, 1, 1];
    assert_eq!(Params::new(spec.clone()).unwrap().fingerprint(), hash(&words));
    let levels = vec![towers(&[1]), towers(&[0, 1, 2])];
    spec.pool = Some(Pool { levels, digits: vec![2, 1] });
    words.extend([2, 1, 1, 3, 0, 1, 2, 2, 2, 1]);
    assert_eq!(Params::new(spec.clone()).unwrap().fingerprint(), hash(&words));
    spec.insecure = false;
    words[9] = 0;
    assert_eq!(Params::new(spec).unwrap().fingerprint(), hash(&words));
}

#[test]
fn levels_of_a_pool_grow_by_a_bit_at_least() {
    let base = spec(5, &[30, 30, 31, 32], &[33], 4);
    let with = |levels: &[&[u16]]| {
        let levels = levels.iter().map(|of| towers(of)).collect();
        Params::new(ParamsSpec { pool: Some(Pool { levels, digits: vec![4] }), ..base.clone() })
    };
    let all: &[u16] = &[0, 1, 2, 3];
    let refused = |level: u16| Err(ParamsError::Pool(PoolError::NotGrowing(Level(level))));
    // Two bits and some more are enough, a bit less some is not, nor is the same size again.
    assert!(with(&[&[0], &[3], all]).is_ok());
    assert_eq!(with(&[&[0], &[1], all]), refused(1));
    assert_eq!(with(&[&[0], &[0, 1], &[0, 1], all]), refused(2));
    assert_eq!(with(&[&[2], &[0], all]), refused(1));
    // Level 0 has no level below.
    assert!(with(&[all]).is_ok());
    let set = |level: u16| Err(ParamsError::Pool(PoolError::Set(Level(level))));
    assert_eq!(with(&[&[0, 0], all]), set(0));
    assert_eq!(with(&[&[0, 1, 2, 4], all]), set(0));
    assert_eq!(with(&[&[0, 2], &[]]), set(1));
}

#[test]
fn a_pool_has_as_many_levels_as_allowed_and_not_one_more() {
    let n = MAX_TOWERS as u16;
    let many = ntt_primes_below(40, 5, MAX_TOWERS, &[]).unwrap();
    let level = |l: u16| (0..=l.min(n - 1)).map(TowerIdx).collect::<Vec<_>>();
    let with = |levels: Vec<Vec<TowerIdx>>| {
        let pool = Some(Pool { levels, digits: vec![1; MAX_TOWERS] });
        Params::new(ParamsSpec { towers: many.clone(), pool, ..spec(5, &[30], &[45], 1) })
    };
    assert!(with((0..n).map(level).collect()).is_ok());
    let more = with((0..=n).map(level).collect());
    assert_eq!(more, Err(ParamsError::Pool(PoolError::Levels(MAX_TOWERS + 1))));
}

#[test]
fn a_drop_takes_the_last_towers_until_the_scale_is_kept_to_a_millionth() {
    let spec = spec(5, &[20, 45, 22, 24, 26], &[50], 5);
    let levels = vec![towers(&[1]), towers(&[0, 2, 3, 4]), towers(&[0, 1, 2, 3, 4])];
    let pool = Some(Pool { levels, digits: vec![5] });
    let found = Params::new(ParamsSpec { pool, ..spec }).unwrap();
    // Level 0 has a tower of 45 bits that level 1 lacks: 26 + 24 bits are 5 more, so one more is divided by.
    let drop = found.drop(Level(1), Level(0)).unwrap();
    assert_eq!((&drop.divided, &drop.added), (&towers(&[2, 3, 4]), &towers(&[1])));
    let prime = |i: usize| found.towers()[i] as f64;
    assert_eq!(drop.factor, (prime(2) * prime(3) * prime(4) / prime(1)).round());
    // Nothing is added on the way from the top, so nothing is divided by.
    assert_eq!((found.drop(Level(2), Level(1)), found.drop(Level(2), Level(0))), (None, None));
    assert_eq!((found.rescale(Level(1), Level(1)), found.rescale(Level(3), Level(0))), (None, None));
    let rescale = found.rescale(Level(2), Level(1)).unwrap();
    assert_eq!((&rescale.divided, &rescale.added, rescale.factor), (&towers(&[1]), &Vec::new(), 1.0));
    let left = rescale.rescaled(found.towers(), Scale::from_log2(60.0));
    assert_eq!(left.value(), 2f64.powi(60) / prime(1));
}

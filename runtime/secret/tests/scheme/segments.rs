//! Segments: smaller rings below, special primes and digits of their own.

use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::params::ntt_primes_below;
use fhe_bytecode::{KeyPlace, SegmentSpec};

use super::*;

/// Five towers of 40 bits in a ring of 2^`log_n`; from level 3 on two special primes and digits of two in the same ring, from
/// level 2 on a half of the ring, and from level 0 on an eighth of it.
fn segmented(log_n: u32) -> Params {
    let base = toy_params(log_n, 5, 40, 1, 1);
    let primes = ntt_primes_below(46, log_n, 3, base.towers()).unwrap();
    let segment = |log_n, level, n_special: usize, digits: &[u16]| SegmentSpec {
        log_n,
        level: Level(level),
        special_primes: primes[..n_special].to_vec(),
        digits: digits.to_vec(),
    };
    let lower = vec![
        segment(log_n, 3, 2, &[2, 2]),
        segment(log_n - 1, 2, 3, &[1, 2]),
        segment(log_n - 3, 0, 1, &[1]),
    ];
    Params::new(ParamsSpec { lower, ..base.spec().clone() }).unwrap()
}

/// Keys of every segment: the ways in, a rotation by one and the relinearization.
fn request(context: &Context) -> KeyRequest {
    let mut request = KeyRequest::default();
    for (segment, params) in context.params().segments().enumerate() {
        let level = params.max_level();
        request.add_in(segment, KeyUse::Relinearize, level);
        request.add_in(segment, KeyUse::rotation(1, context.at(level)), level);
        let is_entered = context.of_key(KeyUse::Enter, level).params().n() > params.n();
        if is_entered {
            request.add_in(segment, KeyUse::Enter, level);
        }
    }
    request
}

/// The context, the keys, and a ciphertext of a vector that repeats in the smallest ring.
fn setup(instructions: Instructions) -> (Party, EvaluationKeys, Vec<f64>) {
    let mut party = Party::with_instructions(segmented(8), instructions);
    let request = request(&party.context);
    let keys = party.secret.evaluation_keys(&party.context, &request, &mut party.seeds).unwrap();
    let slots = party.context.at(Level(0)).slots();
    let x = vector(slots, 3).repeat(party.context.slots() / slots);
    (party, keys, x)
}

#[test]
fn content_that_repeats_survives_every_ring_on_the_way() {
    let (mut party, keys, x) = setup(Instructions::Best);
    let context = party.context.clone();
    let fresh = party.encrypt(&x, Scale::from_log2(30.0), Level(4));
    for level in [3, 2, 1, 0].map(Level) {
        let own = context.at(level);
        let dropped = Evaluator::new(&context).drop_to(&fresh, level).unwrap();
        let lower = descend(&context, Level(4), dropped, &keys).unwrap();
        assert!(lower.is_relinearized_in(&context));
        assert_eq!(lower.bytes() as u64, context.params().ciphertext_bytes(level));
        assert_close(&party.decrypt(&lower), &x[..own.slots()], 1e-5);
        // The keys of the segment work on what came there.
        let segment = keys.segment(context.params().segment(level)).unwrap();
        let evaluator = Evaluator::new(own);
        let turned = evaluator.rotate(&lower, Rotation::new(1, own), segment.galois()).unwrap();
        assert_close(&party.decrypt(&turned), &rotated(&x[..own.slots()], 1), 1e-5);
        if level > Level(0) {
            let square = evaluator.square(&lower).unwrap();
            let square = evaluator.relinearize(&square, segment.relin().unwrap()).unwrap();
            let squares: Vec<f64> = x[..own.slots()].iter().map(|x| x * x).collect();
            assert_close(&party.decrypt(&square), &squares, 1e-4);
        }
    }
}

#[test]
fn a_way_down_by_steps_is_as_good_as_one_at_once() {
    let (mut party, keys, x) = setup(Instructions::Best);
    let context = party.context.clone();
    let mut lower = party.encrypt(&x, Scale::from_log2(30.0), Level(4));
    for level in [3, 2, 1, 0].map(Level) {
        let from = lower.level();
        let dropped = Evaluator::new(context.at(from)).drop_to(&lower, level).unwrap();
        lower = descend(&context, from, dropped, &keys).unwrap();
    }
    assert_close(&party.decrypt(&lower), &x[..context.at(Level(0)).slots()], 1e-5);
}

#[test]
fn noise_of_a_ring_switch_matches_the_estimate() {
    let (mut party, keys, x) = setup(Instructions::Best);
    let context = party.context.clone();
    let model = NoiseModel::new(context.params());
    let scale = Scale::from_log2(30.0);
    for level in [2, 1, 0].map(Level) {
        let (mut measured, mut estimated) = (0.0, 0.0);
        for _ in 0..300 {
            let fresh = party.encrypt(&x, scale, Level(4));
            let dropped = Evaluator::new(&context).drop_to(&fresh, level).unwrap();
            let before = party.secret.decrypt(&context, &fresh).unwrap();
            let lower = descend(&context, Level(4), dropped, &keys).unwrap();
            let found = party.decrypt(&lower);
            // What the way adds: the mean of the copies is what was there before.
            let n_copies = before.len() / found.len();
            let mean =
                |i: usize| (0..n_copies).map(|k| before[i + k * found.len()]).sum::<f64>() / n_copies as f64;
            let added =
                (0..found.len()).map(|i| (found[i] - mean(i)).powi(2)).sum::<f64>() / found.len() as f64;
            measured += added * scale.value().powi(2);
            estimated += model.enter(Level(4), level);
        }
        let ratio: f64 = (measured / estimated).sqrt();
        assert!((0.5..=1.1).contains(&ratio), "into {level}: measured noise is {ratio:.3} of the estimate");
    }
    assert_eq!(model.enter(Level(4), Level(3)), 0.0);
}

#[test]
fn key_error_of_a_ring_switch_matches_where_it_dominates() {
    // Towers larger than the special prime: the error of the key is not divided away.
    let base = toy_params(8, 3, 40, 2, 2);
    let special_primes = ntt_primes_below(26, 8, 1, base.towers()).unwrap();
    let lower = vec![SegmentSpec { log_n: 7, level: Level(1), special_primes, digits: vec![2] }];
    let mut party = Party::new(Params::new(ParamsSpec { lower, ..base.spec().clone() }).unwrap());
    let (context, model) = (party.context.clone(), NoiseModel::new(party.context.params()));
    let mut request = KeyRequest::default();
    request.add_in(1, KeyUse::Enter, Level(1));
    let keys = party.secret.evaluation_keys(&context, &request, &mut party.seeds).unwrap();
    let x = vector(64, 1).repeat(2);
    let scale = Scale::from_log2(60.0);
    let mut measured = 0.0;
    for _ in 0..200 {
        let fresh = party.encrypt(&x, scale, Level(2));
        let dropped = Evaluator::new(&context).drop_to(&fresh, Level(1)).unwrap();
        let found = party.decrypt(&descend(&context, Level(2), dropped, &keys).unwrap());
        let added: f64 = found.iter().zip(&x).map(|(a, b)| (a - b).powi(2)).sum();
        measured += added / found.len() as f64 * scale.value().powi(2) / 200.0;
    }
    let ratio: f64 = (measured / model.enter(Level(2), Level(1))).sqrt();
    assert!((0.5..=1.1).contains(&ratio), "measured noise is {ratio:.3} of the estimate");
}

#[test]
fn keys_take_the_bytes_that_are_predicted() {
    let (party, keys, _) = setup(Instructions::Best);
    let params = party.context.params();
    assert_eq!(keys.bytes(), request(&party.context).bytes(&party.context));
    for (key_use, key) in keys.iter() {
        let place = KeyPlace { level: key.level(), enters: key_use == KeyUse::Enter };
        assert_eq!(key.bytes() as u64, params.key_bytes(place), "{key_use} up to {}", key.level());
    }
}

#[test]
fn instructions_and_threads_give_the_same_bits() {
    let run = |instructions, n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let (mut party, keys, x) = setup(instructions);
            let context = party.context.clone();
            let fresh = party.encrypt(&x, Scale::from_log2(30.0), Level(4));
            let dropped = Evaluator::new(&context).drop_to(&fresh, Level(0)).unwrap();
            descend(&context, Level(4), dropped, &keys).unwrap()
        })
    };
    let best = run(Instructions::Best, 1);
    assert!(best == run(Instructions::Best, 3));
    for instructions in [Instructions::Scalar, Instructions::Avx2, Instructions::Avx512] {
        assert!(best == run(instructions, 2), "{instructions:?}");
    }
}

#[test]
fn a_missing_way_into_a_ring_is_an_error() {
    let (mut party, _, x) = setup(Instructions::Best);
    let context = party.context.clone();
    let none = EvaluationKeys::from_parts(&context, party.secret.id(), []);
    let fresh = party.encrypt(&x, Scale::from_log2(30.0), Level(4));
    let dropped = Evaluator::new(&context).drop_to(&fresh, Level(2)).unwrap();
    let error = descend(&context, Level(4), dropped, &none).unwrap_err();
    assert!(matches!(error, CkksError::MissingEntry), "{error}");
}

#[test]
fn secrets_of_smaller_rings_are_their_own_and_follow_from_the_first() {
    let (party, ..) = setup(Instructions::Best);
    let at = |level| party.secret.at(&party.context, Level(level)).1.coeffs().to_vec();
    assert_eq!((at(4).len(), at(3).len(), at(2).len(), at(0).len()), (256, 256, 128, 32));
    assert_eq!(at(4), at(3));
    assert_ne!(at(4)[..128], at(2)[..]);
    assert_ne!(at(2)[..32], at(0)[..]);
    let again = SecretKey::from_coeffs(&party.context, party.secret.id(), at(4).into()).unwrap();
    assert_eq!(again.at(&party.context, Level(0)).1.coeffs(), at(0));
}

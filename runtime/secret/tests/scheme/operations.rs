//! Every operation decrypts to what it does to clear vectors.

use super::*;

const SCALE: f64 = 30.0;

fn scale() -> Scale {
    Scale::from_log2(SCALE)
}

/// Parameter shapes: digits of one tower, of several, uneven, and more digits than special primes allow quietly.
fn shapes() -> Vec<Params> {
    vec![
        toy_params(6, 4, 40, 1, 1),
        toy_params(8, 5, 40, 2, 2),
        toy_params(7, 7, 36, 3, 3),
        toy_params(7, 4, 50, 1, 1),
        toy_params(6, 4, 57, 2, 2),
        toy_params(5, 3, 40, 1, 1),
    ]
}

#[test]
fn encoding_inverts_for_every_length() {
    for params in shapes() {
        let party = Party::new(params);
        let slots = party.context.slots();
        let encoder = party.context.encoder();
        let mut len = 1;
        while len <= slots {
            let x = vector(len, len as u64);
            let plain = encoder.encode(&x, scale(), party.max_level()).unwrap();
            let expected: Vec<f64> = x.iter().copied().cycle().take(slots).collect();
            assert_close(&encoder.decode(&plain).unwrap(), &expected, 1e-6);
            len *= 2;
        }
    }
}

#[test]
fn slots_are_values_at_powers_of_five() {
    let party = Party::new(toy_params(6, 2, 40, 1, 1));
    let n = party.context.ring().n();
    let x = vector(n / 2, 3);
    let encoding = party.context.encoder().round(&x, Scale::from_log2(45.0)).unwrap();
    let mut exponent = 1usize;
    for &value in &x {
        let at = |k: usize| (std::f64::consts::PI * (k * exponent % (2 * n)) as f64 / n as f64).cos();
        let sum: f64 = encoding.coeffs().to_vec().iter().enumerate().map(|(k, c)| c * at(k)).sum();
        assert!((sum / 2f64.powi(45) - value).abs() < 1e-9);
        exponent = exponent * 5 % (2 * n);
    }
}

#[test]
fn large_coefficients_survive_encoding() {
    let party = Party::new(toy_params(6, 4, 40, 1, 1));
    let x = vector(32, 5);
    let plain = party.context.encoder().encode(&x, Scale::from_log2(120.0), party.max_level()).unwrap();
    assert_close(&party.context.encoder().decode(&plain).unwrap(), &x, 1e-12);
}

#[test]
fn bad_vectors_are_refused() {
    let party = Party::new(toy_params(6, 2, 40, 1, 1));
    let encoder = party.context.encoder();
    let level = party.max_level();
    assert!(matches!(encoder.encode(&[1.0; 3], scale(), level), Err(CkksError::VectorLength { len: 3, .. })));
    assert!(matches!(encoder.encode(&[1.0; 64], scale(), level), Err(CkksError::VectorLength { .. })));
    assert!(matches!(encoder.encode(&[], scale(), level), Err(CkksError::VectorLength { .. })));
    let error = encoder.encode(&[0.0, f64::NAN], scale(), level).unwrap_err();
    assert!(matches!(error, CkksError::Unencodable { slot: 1, .. }), "{error}");
}

#[test]
fn encryption_inverts_and_sums_add() {
    for params in shapes() {
        let mut party = Party::new(params);
        let slots = party.context.slots();
        let (x, y) = (vector(slots, 1), vector(slots, 2));
        let level = party.max_level();
        let (cx, cy) = (party.encrypt(&x, scale(), level), party.encrypt(&y, scale(), level));
        let evaluator = Evaluator::new(&party.context);
        assert_close(&party.decrypt(&cx), &x, 1e-5);
        let sum: Vec<f64> = x.iter().zip(&y).map(|(a, b)| a + b).collect();
        assert_close(&party.decrypt(&evaluator.add(&cx, &cy).unwrap()), &sum, 1e-5);
        let difference: Vec<f64> = x.iter().zip(&y).map(|(a, b)| a - b).collect();
        assert_close(&party.decrypt(&evaluator.sub(&cx, &cy).unwrap()), &difference, 1e-5);
        let plain = party.context.encoder().encode(&y, scale(), level).unwrap();
        assert_close(&party.decrypt(&evaluator.add_plain(&cx, &plain).unwrap()), &sum, 1e-5);
    }
}

#[test]
fn products_with_plaintexts_periodic_ones_and_scalars_multiply() {
    for params in shapes() {
        let mut party = Party::new(params);
        let slots = party.context.slots();
        let x = vector(slots, 1);
        let level = party.max_level();
        let cx = party.encrypt(&x, scale(), level);
        let evaluator = Evaluator::new(&party.context);
        for period in [slots, slots / 2, slots / 4, 1] {
            let y = vector(period, 2);
            let prime = Scale::new(party.context.params().towers()[usize::from(level.0)] as f64).unwrap();
            let plain = party.context.encoder().encode(&y, prime, level).unwrap();
            let product = evaluator.mul_plain(&cx, &plain).unwrap();
            let mut assigned = cx.clone();
            evaluator.mul_plain_assign(&mut assigned, &plain).unwrap();
            assert_eq!(assigned, product);
            let product = evaluator.rescale(&product).unwrap();
            let expected: Vec<f64> = x.iter().zip(y.iter().cycle()).map(|(a, b)| a * b).collect();
            assert_close(&party.decrypt(&product), &expected, 1e-5);
        }
        let product = evaluator.mul_scalar(&cx, -0.375, Scale::from_log2(20.0)).unwrap();
        let expected: Vec<f64> = x.iter().map(|a| a * -0.375).collect();
        assert_close(&party.decrypt(&product), &expected, 1e-5);
    }
}

#[test]
fn products_and_squares_relinearize_and_rescale() {
    for params in shapes() {
        let mut party = Party::new(params);
        let slots = party.context.slots();
        let (x, y) = (vector(slots, 1), vector(slots, 2));
        let level = party.max_level();
        let key = party.relin_key(level);
        let big = Scale::from_log2(38.0);
        let (cx, cy) = (party.encrypt(&x, big, level), party.encrypt(&y, big, level));
        let evaluator = Evaluator::new(&party.context);
        let product: Vec<f64> = x.iter().zip(&y).map(|(a, b)| a * b).collect();
        let squares: Vec<f64> = x.iter().map(|a| a * a).collect();
        let lazy = evaluator.mul(&cx, &cy).unwrap();
        assert_close(&party.decrypt(&lazy), &product, 1e-6);
        let switched = evaluator.relinearize(&lazy, &key).unwrap();
        assert_close(&party.decrypt(&switched), &product, 1e-6);
        let square = evaluator.relinearize(&evaluator.square(&cx).unwrap(), &key).unwrap();
        assert_close(&party.decrypt(&square), &squares, 1e-6);
        let rescaled = evaluator.rescale(&square).unwrap();
        assert_eq!(rescaled.level(), level.lower().unwrap());
        assert_close(&party.decrypt(&rescaled), &squares, 1e-2);
        // A key made for a high level serves every lower one.
        let dropped = evaluator.drop_to(&cx, Level(2)).unwrap();
        let square = evaluator.relinearize(&evaluator.square(&dropped).unwrap(), &key).unwrap();
        assert_close(&party.decrypt(&square), &squares, 1e-5);
    }
}

#[test]
fn rescale_by_several_primes_divides_by_their_product() {
    let mut party = Party::new(toy_params(7, 5, 40, 1, 1));
    let x = vector(64, 1);
    let level = party.max_level();
    let cx = party.encrypt(&x, Scale::from_log2(105.0), level);
    let evaluator = Evaluator::new(&party.context);
    let twice = evaluator.rescale_by(&cx, 2).unwrap();
    assert_eq!(twice.level(), Level(2));
    assert_close(&party.decrypt(&twice), &x, 1e-4);
    let error = evaluator.rescale_by(&cx, 5).unwrap_err();
    assert_eq!(error.to_string(), "needs 5 levels below it, but the ciphertext is at L4");
}

#[test]
fn rotations_move_slots_to_the_left() {
    for params in shapes() {
        let mut party = Party::new(params);
        let slots = party.context.slots();
        let x = vector(slots, 1);
        let level = party.max_level();
        let steps = [1, 3, -2, slots as i64 / 2, 0];
        let keys = party.rotation_keys(&steps, level);
        let cx = party.encrypt(&x, Scale::from_log2(35.0), level);
        let evaluator = Evaluator::new(&party.context);
        let rotations: Vec<Rotation> = steps.iter().map(|&s| Rotation::new(s, &party.context)).collect();
        let hoisted = evaluator.rotate_hoisted(&cx, &rotations, &keys).unwrap();
        for ((&s, &rotation), hoisted) in steps.iter().zip(&rotations).zip(&hoisted) {
            let single = evaluator.rotate(&cx, rotation, &keys).unwrap();
            assert_eq!(&single, hoisted);
            assert_close(&party.decrypt(&single), &rotated(&x, s), 1e-5);
        }
        let low = evaluator.drop_to(&cx, Level(1)).unwrap();
        let low = evaluator.rotate(&low, rotations[1], &keys).unwrap();
        assert_close(&party.decrypt(&low), &rotated(&x, 3), 1e-5);
    }
}

#[test]
fn a_truncated_key_serves_its_level_and_no_higher() {
    let mut party = Party::new(toy_params(7, 5, 40, 2, 2));
    let x = vector(64, 1);
    let keys = party.rotation_keys(&[1], Level(2));
    let rotation = Rotation::new(1, &party.context);
    let low = party.encrypt(&x, scale(), Level(2));
    let high = party.encrypt(&x, scale(), Level(3));
    let evaluator = Evaluator::new(&party.context);
    assert_close(&party.decrypt(&evaluator.rotate(&low, rotation, &keys).unwrap()), &rotated(&x, 1), 1e-4);
    let error = evaluator.rotate(&high, rotation, &keys).unwrap_err();
    assert_eq!(error.to_string(), "the key reaches up to L2, the ciphertext is at L3");
    let error = evaluator.rotate(&low, Rotation::new(2, &party.context), &keys).unwrap_err();
    assert_eq!(error.to_string(), "no key for rotation by 2");
}

#[test]
fn disagreeing_operands_are_named() {
    let mut party = Party::new(toy_params(6, 3, 40, 1, 1));
    let x = vector(32, 1);
    let a = party.encrypt(&x, scale(), Level(2));
    let b = party.encrypt(&x, scale(), Level(1));
    let c = party.encrypt(&x, Scale::from_log2(31.0), Level(2));
    let evaluator = Evaluator::new(&party.context);
    let error = evaluator.add(&a, &b).unwrap_err();
    assert_eq!(error.to_string(), "operands at different levels: L2 and L1");
    let error = evaluator.sub(&a, &c).unwrap_err();
    assert_eq!(error.to_string(), "operands with different scales: 2^30.0000 and 2^31.0000");
    assert!(matches!(evaluator.mul(&a, &b), Err(CkksError::LevelMismatch { .. })));
    assert!(matches!(evaluator.drop_to(&b, Level(2)), Err(CkksError::LevelMismatch { .. })));
    let three = evaluator.square(&a).unwrap();
    assert!(matches!(evaluator.square(&three), Err(CkksError::Degree { expected: 2, found: 3 })));
    let plain = party.context.encoder().encode(&x, scale(), Level(0)).unwrap();
    assert!(matches!(
        evaluator.mul_plain(&a, &plain),
        Err(CkksError::PlaintextBasis { expected: 3, found: 1 })
    ));
}

#[test]
fn residues_survive_disassembly_and_bad_ones_are_refused() {
    let mut party = Party::new(toy_params(6, 3, 40, 1, 2));
    let x = vector(32, 1);
    let keys = party.rotation_keys(&[1], Level(1));
    let (_, key) = keys.iter().next().unwrap();
    let digits: Vec<Vec<u64>> = key.residues().collect();
    let rebuilt = KeySwitchKey::from_residues(&party.context, key.level(), *key.seed(), &digits).unwrap();
    assert_eq!(&rebuilt, key);
    assert_eq!(key.bytes() as u64, party.context.params().key_bytes(key.level()), "as predicted");
    let mut bad = digits;
    bad[0][0] = u64::MAX;
    assert!(KeySwitchKey::from_residues(&party.context, key.level(), *key.seed(), &bad).is_err());
    assert!(KeySwitchKey::from_residues(&party.context, key.level(), *key.seed(), &[]).is_err());

    let plain = party.context.encoder().encode(&x, scale(), Level(1)).unwrap();
    let fresh = party.secret.encrypt(&party.context, &plain, &mut party.seeds).unwrap();
    let rebuilt = SeededCiphertext::from_residues(
        &party.context,
        fresh.level(),
        fresh.scale(),
        fresh.residues(),
        *fresh.seed(),
    );
    assert_eq!(rebuilt.unwrap(), fresh);
    let full = fresh.expand(&party.context);
    let polys: Vec<Vec<u64>> = full.polys().iter().map(|poly| poly.data().to_vec()).collect();
    let rebuilt = Ciphertext::from_residues(&party.context, full.level(), full.scale(), &polys).unwrap();
    assert_eq!(rebuilt, full);
    assert!(Ciphertext::from_residues(&party.context, Level(2), full.scale(), &polys).is_err());
    assert!(Ciphertext::from_residues(&party.context, Level(1), full.scale(), &polys[..1]).is_err());
}

#[test]
fn all_kernels_and_thread_counts_give_the_same_bits() {
    check_bits(&toy_params(9, 5, 44, 2, 2));
    check_bits(&toy_pool(9));
}

/// Product, rescales, drop and rotation give the same bits with every kernel and any number of threads.
fn check_bits(params: &Params) {
    let run = |instructions, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut party = Party::with_instructions(params.clone(), instructions);
            let level = party.max_level();
            let (relin, keys) = (party.relin_key(level), party.rotation_keys(&[3], level));
            let x = party.encrypt(&vector(256, 1), scale(), level);
            let evaluator = Evaluator::new(&party.context);
            let square = evaluator.relinearize(&evaluator.square(&x).unwrap(), &relin).unwrap();
            let rescaled = evaluator.rescale(&square).unwrap();
            let dropped = evaluator.drop_to(&rescaled, rescaled.level().lower().unwrap()).unwrap();
            let lower = evaluator.rescale(&dropped).unwrap();
            [rescaled, dropped, lower]
                .map(|x| evaluator.rotate(&x, Rotation::new(3, &party.context), &keys).unwrap())
        })
    };
    let reference = run(Instructions::Scalar, 1);
    for (instructions, threads) in
        [(Instructions::Best, 1), (Instructions::Best, 2), (Instructions::Avx2, 7), (Instructions::Scalar, 3)]
    {
        assert_eq!(run(instructions, threads), reference, "{instructions:?} on {threads} threads");
    }
}

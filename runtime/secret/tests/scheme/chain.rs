//! A chain of depth 39 with two multiplications per prime, as a compiled network runs it.

use fhe_bytecode::noise::NoiseModel;

use super::*;

const PAIRS: usize = 19;
const X_BITS: f64 = 22.0;
const W_BITS: f64 = 16.0;

/// A prime for every rescale.
fn prime_per_level(log_n: u32) -> Params {
    let mut towers = ntt_primes_near(2f64.powi(30), log_n, 1, &[]).unwrap();
    // The last product has a small prime of its own; it is the first to be rescaled away after q_0.
    let own = ntt_primes_near(2f64.powi(20), log_n, 1, &towers).unwrap();
    towers.extend(own);
    let pairs = ntt_primes_near(2f64.powf(X_BITS + W_BITS), log_n, PAIRS, &towers).unwrap();
    towers.extend(pairs);
    let special_primes = ntt_primes_near(2f64.powi(40), log_n, 2, &towers).unwrap();
    let toy = log_n < 12;
    let spec = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 2,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy,
    };
    Params::new(spec).unwrap()
}

/// The same levels from a pool of 50-bit towers and a few small ones: each has the smallest set that is large enough.
fn pool(log_n: u32) -> Params {
    let mut sizes = vec![49.9; 13];
    sizes.extend([20.0, 27.0, 33.0, 44.0]);
    let mut towers = Vec::new();
    for bits in &sizes {
        towers.extend(ntt_primes_near(f64::exp2(*bits), log_n, 1, &towers).unwrap());
    }
    let set = |wanted: f64| {
        let all = (0..=13u16).flat_map(|big| (0..16u16).map(move |small| (big, small)));
        let set = |(big, small): (u16, u16)| {
            let smalls = (0..4).filter(move |k| small >> k & 1 == 1).map(|k| TowerIdx(13 + k));
            (0..big).map(TowerIdx).chain(smalls).collect::<Vec<_>>()
        };
        let bits =
            |set: &Vec<TowerIdx>| set.iter().map(|t| (towers[usize::from(t.0)] as f64).log2()).sum::<f64>();
        let enough = all.map(set).filter(|set| bits(set) >= wanted);
        enough.min_by(|a, b| bits(a).total_cmp(&bits(b))).unwrap()
    };
    let levels =
        (0..=PAIRS + 1).map(|l| if l == 0 { 30.0 } else { 50.0 + (X_BITS + W_BITS) * (l - 1) as f64 });
    let pool = Some(Pool { levels: levels.map(set).collect(), digits: vec![2, 2, 2, 2, 2, 2, 1, 2, 2] });
    let special_primes = ntt_primes_near(f64::exp2(46.9), log_n, 2, &towers).unwrap();
    let toy = log_n < 12;
    let spec = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 2,
        pool,
        lower: Vec::new(),
        insecure: false,
        toy,
    };
    Params::new(spec).unwrap()
}

/// x ← w·x² + c nineteen times, then x ← w·x: 39 multiplications over 20 primes.
///
/// Values stay near 0.8 and w near one half, so that errors neither grow nor vanish.
fn check_chain(params: Params) {
    let x_bits = X_BITS;
    let model = NoiseModel::new(&params);
    let mut party = Party::new(params);
    let top = party.max_level();
    let relin = party.relin_key(top);
    let context = party.context.clone();
    let (evaluator, encoder) = (Evaluator::new(&context), context.encoder());
    let (slots, x_scale) = (context.slots(), Scale::from_log2(x_bits));
    let mean_square = |x: &[f64], scale: Scale| {
        x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 * scale.value().powi(2)
    };
    let near =
        |center: f64, seed| -> Vec<f64> { vector(slots, seed).iter().map(|v| center + 0.05 * v).collect() };

    let mut clear = near(0.8, 1);
    let mut x = party.encrypt(&clear, x_scale, top);
    let mut noise = model.fresh();
    for step in 0..PAIRS {
        let level = x.level();
        let division = context.params().rescale(level, level.lower().unwrap()).unwrap();
        let one = Scale::from_log2(100.0);
        let ratio = one.over(division.rescaled(context.params().towers(), one));
        noise = model.square(noise, mean_square(&clear, x.scale())) + model.key_switch(level);
        let squared = evaluator.relinearize(&evaluator.square(&x).unwrap(), &relin).unwrap();
        clear.iter_mut().for_each(|x| *x *= *x);
        // The weight's scale makes the result land on the canonical scale exactly.
        let w_scale = x_scale.times(ratio).over(squared.scale());
        let w = near(0.5, 100 + step as u64);
        let energy = (mean_square(&clear, squared.scale()), mean_square(&w, w_scale));
        noise = model.rescale(model.mul_plain(noise, energy.0, energy.1, slots), ratio.value());
        let product = evaluator.mul_plain(&squared, &encoder.encode(&w, w_scale, level).unwrap()).unwrap();
        x = evaluator.rescale(&product).unwrap();
        assert!(x.scale().agrees(x_scale));
        clear.iter_mut().zip(&w).for_each(|(x, w)| *x *= w);
        let target = near(0.8, 200 + step as u64);
        let c: Vec<f64> = target.iter().zip(&clear).map(|(t, x)| t - x).collect();
        x = evaluator.add_plain(&x, &encoder.encode(&c, x.scale(), x.level()).unwrap()).unwrap();
        noise += model.encode(slots);
        clear = target;
    }
    let division = context.params().rescale(Level(1), Level(0)).unwrap();
    let one = Scale::from_log2(100.0);
    let w_scale = one.over(division.rescaled(context.params().towers(), one));
    let w = near(0.5, 99);
    noise = model.mul_plain(noise, mean_square(&clear, x.scale()), mean_square(&w, w_scale), slots);
    noise = model.rescale(noise, w_scale.value());
    let product = evaluator.mul_plain(&x, &encoder.encode(&w, w_scale, x.level()).unwrap()).unwrap();
    x = evaluator.rescale(&product).unwrap();
    clear.iter_mut().zip(&w).for_each(|(x, w)| *x *= w);

    assert_eq!(x.level(), Level(0));
    let error: Vec<f64> = party.decrypt(&x).iter().zip(&clear).map(|(a, b)| a - b).collect();
    let ratio = (mean_square(&error, x.scale()) / noise).sqrt();
    assert!((0.5..=1.1).contains(&ratio), "measured {ratio:.3} of the predicted error");
}

#[test]
fn depth_39_decrypts_to_the_predicted_precision_at_toy_size() {
    check_chain(prime_per_level(9));
    check_chain(pool(9));
}

#[test]
#[ignore = "full ring; run with cargo xtask slow"]
fn depth_39_decrypts_to_the_predicted_precision_within_868_bits() {
    check_chain(prime_per_level(15));
    check_chain(pool(15));
}

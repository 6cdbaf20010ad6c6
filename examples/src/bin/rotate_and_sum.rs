//! The sum of an encrypted vector, by rotating and adding.
//!
//! A client makes keys and encrypts a vector. A server, which holds the rotation keys but no secret, adds
//! the ciphertext to its own rotations by 1, 2, 4, …; after log2(slots) steps every slot holds the sum.
//! The client decrypts. Run with `cargo run --release -p fhec-examples --bin rotate_and_sum`.

use std::error::Error;
use std::time::Instant;

use fhe_bytecode::params::ntt_primes_below;
use fhe_bytecode::{Params, ParamsSpec, Scale};
use fhe_ckks::{Context, Evaluator, Rotation};
use fhe_secret::{SecretKey, SeedSource};

fn main() -> Result<(), Box<dyn Error>> {
    // 128-bit parameters: log2(PQ) stays below the bound for N = 2^13, or `Params::new` refuses.
    let log_n = 13;
    let towers = ntt_primes_below(45, log_n, 3, &[])?;
    let special_primes = ntt_primes_below(47, log_n, 1, &towers)?;
    let spec = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    };
    let context = Context::new(Params::new(spec)?)?;
    let level = context.params().max_level();
    let slots = context.slots();

    // The client.
    let mut seeds = SeedSource::os();
    let secret = SecretKey::generate(&context, &mut seeds)?;
    let steps: Vec<Rotation> = (0..slots.trailing_zeros()).map(|k| Rotation::new(1 << k, &context)).collect();
    let wanted: Vec<_> = steps.iter().map(|&step| (step, level)).collect();
    let keys = secret.rotation_keys(&context, &wanted, &mut seeds)?;
    let values: Vec<f64> = (0..slots).map(|i| (i as f64 * 0.37).sin()).collect();
    let plain = context.encoder().encode(&values, Scale::from_log2(40.0), level)?;
    let encrypted = secret.encrypt(&context, &plain, &mut seeds)?;

    // The server.
    let start = Instant::now();
    let evaluator = Evaluator::new(&context);
    let mut sum = encrypted.expand(&context);
    for step in steps {
        let rotated = evaluator.rotate(&sum, step, &keys)?;
        evaluator.add_assign(&mut sum, &rotated)?;
    }
    let time = start.elapsed();

    // The client.
    let decrypted = secret.decrypt(&context, &sum)?;
    let expected: f64 = values.iter().sum();
    println!("sum of {slots} encrypted values: {:.9}", decrypted[0]);
    println!("sum in the clear:               {expected:.9}");
    println!("{} rotations in {:.1} ms", slots.trailing_zeros(), time.as_secs_f64() * 1e3);
    if (decrypted[0] - expected).abs() > 1e-4 {
        return Err("the sums disagree".into());
    }
    Ok(())
}

//! What attackers compute from results and what they are told of them, at a ring of degree 32.

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;
use fhe_client::Client;
use fhe_ring::{Coeff, NttForm, Poly};

pub(crate) const LOG_N: u32 = 5;
pub(crate) const N: usize = 1 << LOG_N;

/// An interface whose author claims an error of `claimed`; results are at level 0 with a scale of 2^`scale_bits`.
pub(crate) fn interface(log_n: u32, prime_bits: f64, scale_bits: f64, claimed: f64) -> Interface {
    let towers = ntt_primes_near(prime_bits.exp2(), log_n, 1, &[]).unwrap();
    let special_primes = ntt_primes_near(41f64.exp2(), log_n, 1, &towers).unwrap();
    let (slots, scale) = (1 << (log_n - 1), Scale::from_log2(scale_bits));
    let layout = Layout::vector(Packing::Packed, slots, 1, slots).unwrap();
    let (input, output) =
        (InputSpec::new("x", LayoutId(0), Level(0), scale), OutputSpec::new("y", LayoutId(0)));
    let spec = InterfaceSpec {
        program: Fingerprint([7; 32]),
        params: ParamsSpec::toy(log_n, towers, special_primes),
        origin: Origin::default(),
        input,
        output,
        output_level: Level(0),
        output_scale: scale,
        layouts: vec![layout.spec().clone()],
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction { max_abs_error: claimed, ..Prediction::default() },
    };
    Interface::new(spec).unwrap()
}

pub(crate) fn coefficients(client: &Client, poly: &Poly<NttForm>) -> Vec<u64> {
    let coeffs: Poly<Coeff> = client.context().ring().inverse(poly.clone());
    coeffs.tower(0).to_vec()
}

/// Gauss's elimination modulo the prime q.
pub(crate) fn solve(mut rows: Vec<Vec<u64>>, q: u64) -> Vec<u64> {
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(q)) as u64;
    let power = |base: u64, mut exponent: u64| {
        let (mut base, mut result) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = mul(result, base);
            }
            base = mul(base, base);
            exponent >>= 1;
        }
        result
    };
    for column in 0..N {
        let pivot = (column..N).find(|&row| rows[row][column] != 0).expect("independent equations");
        rows.swap(column, pivot);
        let inverse = power(rows[column][column], q - 2);
        rows[column].iter_mut().for_each(|x| *x = mul(*x, inverse));
        let used = rows[column].clone();
        for row in (0..N).filter(|&row| row != column) {
            let factor = rows[row][column];
            for (x, &y) in rows[row].iter_mut().zip(&used) {
                *x = (*x + q - mul(factor, y)) % q;
            }
        }
    }
    rows.iter().map(|row| row[N]).collect()
}

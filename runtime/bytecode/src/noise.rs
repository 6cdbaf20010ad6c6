//! Variance-based noise estimates, one pure function per operation.
//!
//! A variance here is that of the real part of one slot, in units of the stored integer: divide by the
//! square of the scale to get the variance of the value. An error polynomial whose coefficients are
//! independent with variance s² has slots of variance N/2·s². Message arguments are mean squares of the
//! stored integers (value times scale), again per slot.
//!
//! Assumptions, all checked against measurement by the runtime's tests: uniform ternary secret (variance
//! 2/3), centered binomial error from 2×21 bits (variance 10.5), exact and centered base conversions, so that a
//! digit is uniform over its modulus and a division rounds to the nearest integer.

mod linear;
mod nature;

use crate::params::{Level, Lower, Params, TowerIdx};

pub use linear::{LinearNoise, OperandNoise, Row, Shares, TermNoise};
pub use nature::{Noise, Reach};

/// Variance of one coefficient of a fresh error.
pub const ERROR_VARIANCE: f64 = 10.5;
/// Variance of one coefficient of the secret.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;
/// Variance of a rounding to the nearest integer.
const ROUNDING: f64 = 1.0 / 12.0;
/// Variance in a slot of a real vector's encoding, per slot of its period.
const REAL_ENCODING: f64 = 2.0 * ROUNDING;

/// Estimates for one parameter set.
#[derive(Clone, Debug)]
pub struct NoiseModel {
    n: f64,
    /// For every level the sizes of its digits, in bits.
    digits: Vec<Vec<f64>>,
    special_product_log2: f64,
    /// The towers of every level, where levels are from a pool.
    sets: Option<Vec<Vec<TowerIdx>>>,
    /// Those of lower segments, the highest first.
    lower: Vec<Segment>,
}

/// The estimates of a lower segment.
#[derive(Clone, Debug)]
struct Segment {
    /// Its highest level.
    level: Level,
    model: NoiseModel,
    /// Of the key that leads into it, in the ring above.
    entry: Option<NoiseModel>,
}

impl NoiseModel {
    /// The model of a parameter set.
    pub fn new(params: &Params) -> Self {
        Self {
            n: params.n() as f64,
            digits: (0..=params.max_level().0).map(|level| digit_bits(params, Level(level))).collect(),
            special_product_log2: params.log2_p(),
            sets: params.spec().pool.as_ref().map(|pool| pool.levels.clone()),
            lower: params.lower().iter().map(Segment::new).collect(),
        }
    }

    /// The estimates of the segment that a level is in.
    pub fn at(&self, level: Level) -> &Self {
        self.lower.iter().rev().find(|lower| level <= lower.level).map_or(self, |lower| &lower.model)
    }

    /// What bringing a ciphertext down into the rings of the segments on the way adds, which a rescale or a drop does besides.
    ///
    /// Keeping some coefficients of many averages what was in the slots that become one. Noise is no larger after it, and
    /// half of it where the slots had noise of their own; nothing is counted on that.
    pub fn enter(&self, from: Level, to: Level) -> f64 {
        let entered = self.lower.iter().filter(|lower| to <= lower.level && lower.level < from);
        entered.map(|lower| lower.entry(to)).sum()
    }

    /// Slot variance of a polynomial whose coefficients have variance `per_coefficient`.
    fn slot(&self, per_coefficient: f64) -> f64 {
        self.n / 2.0 * per_coefficient
    }

    /// Encoding a real vector of `period` slots (all slots for a full one): coefficients round to integers.
    ///
    /// A real vector is a polynomial with cₖ = -c₍ₙ₋ₖ₎, so its rounding errors come in pairs and are real too:
    /// the whole error is in the real part.
    pub fn encode(&self, period: usize) -> f64 {
        period as f64 * REAL_ENCODING
    }

    /// Fresh secret-key encryption of a full vector, encoding included.
    pub fn fresh(&self) -> f64 {
        self.slot(ERROR_VARIANCE) + self.encode((self.n / 2.0) as usize)
    }

    /// Sum or difference of independent ciphertexts.
    pub fn add(&self, a: f64, b: f64) -> f64 {
        a + b
    }

    /// Rounding of both halves of a ciphertext when a prime is divided out.
    pub fn rescale_rounding(&self) -> f64 {
        self.slot(ROUNDING * (1.0 + SECRET_VARIANCE * self.n))
    }

    /// Division by what makes the scale `ratio` times smaller: a prime, or the quotient of towers removed and towers added.
    pub fn rescale(&self, noise: f64, ratio: f64) -> f64 {
        noise / ratio.powi(2) + self.rescale_rounding()
    }

    /// What a drop from one level to another adds: a rounding where the lower one has towers that the higher one lacks.
    /// A smaller ring on the way comes on top.
    pub fn drop(&self, from: Level, to: Level) -> f64 {
        let entered = self.enter(from, to);
        let Some(sets) = self.sets.as_ref().filter(|_| to < from) else { return entered };
        let set = |level: Level| sets.get(usize::from(level.0)).map_or(&[][..], Vec::as_slice);
        let is_subset = set(to).iter().all(|tower| set(from).binary_search(tower).is_ok());
        entered + if is_subset { 0.0 } else { self.at(from).rescale_rounding() }
    }

    /// Product with a plaintext of mean square `weight`, encoded over `period` slots.
    pub fn mul_plain(&self, noise: f64, message: f64, weight: f64, period: usize) -> f64 {
        let encode = self.encode(period);
        noise * (weight + encode) + message * encode
    }

    /// A scalar as an integer, in a slot: one rounding for all of them.
    pub fn round_scalar(&self) -> f64 {
        ROUNDING
    }

    /// Product with an integer scalar, which has no encoding error of its own.
    pub fn mul_scalar(&self, noise: f64, scalar: f64) -> f64 {
        noise * scalar * scalar
    }

    /// Product of independent ciphertexts, before relinearization.
    pub fn mul(&self, (noise_a, message_a): (f64, f64), (noise_b, message_b): (f64, f64)) -> f64 {
        noise_a * message_b + noise_b * message_a + 2.0 * noise_a * noise_b
    }

    /// Square of a ciphertext, before relinearization.
    pub fn square(&self, noise: f64, message: f64) -> f64 {
        4.0 * noise * message + 4.0 * noise * noise
    }

    /// What a rescale from a level to the one below rounds, and what a smaller ring there adds to it.
    pub fn rescale_from(&self, level: Level) -> f64 {
        let entered = level.lower().map_or(0.0, |lower| self.enter(level, lower));
        self.at(level).rescale_rounding() + entered
    }

    /// Key switching at `level` (relinearization or one rotation), what it adds.
    pub fn key_switch(&self, level: Level) -> f64 {
        self.key_switch_product(level) + self.mod_down()
    }

    /// The part of a key switch that the key's own error causes, already divided by P.
    ///
    /// Each digit is uniform over its modulus and meets an independent error polynomial of the key.
    pub fn key_switch_product(&self, level: Level) -> f64 {
        let digits = &self.digits[usize::from(level.0).min(self.digits.len() - 1)];
        let share = |bits: &f64| ROUNDING * (2.0 * (bits - self.special_product_log2)).exp2();
        let digits: f64 = digits.iter().map(share).sum();
        self.slot(self.n * ERROR_VARIANCE * digits)
    }

    /// Rounding of both halves when the special primes are divided out.
    pub fn mod_down(&self) -> f64 {
        self.rescale_rounding()
    }
}

impl Segment {
    fn new(lower: &Lower) -> Self {
        let level = lower.params().max_level();
        let entry = lower.entry().map(NoiseModel::new);
        Self { level, model: NoiseModel::new(lower.params()), entry }
    }

    /// What the key switch into it adds at a level. Errors of the key have all coefficients of the ring above, of which one in
    /// so many is kept; roundings meet a secret that has no more than the smaller ring.
    fn entry(&self, level: Level) -> f64 {
        let Some(entry) = &self.entry else { return 0.0 };
        entry.key_switch_product(level) * self.model.n / entry.n + self.model.mod_down()
    }
}

/// Sizes of the digits of a level, in bits.
fn digit_bits(params: &Params, level: Level) -> Vec<f64> {
    let mut bits = vec![0.0; params.n_digits(level)];
    for (tower, prime) in params.set(level).iter().zip(params.primes(level)) {
        let at = params.digits(level).binary_search(&params.digit_of(*tower));
        bits[at.expect("the digits of a level are those of its towers")] += (prime as f64).log2();
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::Pairing;
    use crate::params::{ParamsSpec, ntt_primes_near};

    fn model(log_n: u32, n_towers: usize, n_special: usize, digit_size: usize) -> NoiseModel {
        let towers = ntt_primes_near(2f64.powi(38), log_n, n_towers, &[]).unwrap();
        let special_primes = ntt_primes_near(2f64.powi(40), log_n, n_special, &towers).unwrap();
        let spec = ParamsSpec {
            log_n,
            towers,
            special_primes,
            digit_size,
            pool: None,
            lower: Vec::new(),
            insecure: false,
            toy: false,
        };
        NoiseModel::new(&Params::new(spec).unwrap())
    }

    #[test]
    fn rescale_rounding_is_12_4_bits_at_n_32768() {
        let bits = model(15, 10, 2, 2).rescale_rounding().log2() / 2.0;
        assert!((bits - 12.4).abs() < 0.05, "{bits}");
    }

    #[test]
    fn weight_encoding_error_is_the_root_of_n_over_12() {
        assert_eq!(model(15, 10, 2, 2).encode(16384), 32768.0 / 12.0);
    }

    #[test]
    fn larger_special_modulus_than_digits_leaves_only_rounding() {
        let model = self::model(15, 10, 2, 2);
        let level = Level(9);
        assert!(model.key_switch_product(level) < model.mod_down());
        let poor = self::model(15, 10, 2, 4);
        assert!(poor.key_switch(level) > 1e6 * model.key_switch(level));
    }

    #[test]
    fn truncated_key_switch_adds_less() {
        let model = model(15, 10, 2, 2);
        assert!(model.key_switch_product(Level(3)) < model.key_switch_product(Level(9)));
    }

    fn map(encoded_slots: f64, weight_energy: f64, pairing: Pairing) -> LinearNoise {
        let term = TermNoise { encoded_slots, weight_energy, ..TermNoise::default() };
        LinearNoise { terms: vec![term], pairing, ..LinearNoise::default() }
    }

    #[test]
    fn complex_sums_cost_half_a_bit_of_the_weights() {
        let model = model(15, 10, 2, 2);
        let real = map(64.0 * 16384.0, 0.0, Pairing::None);
        let halves = map(32.0 * 16384.0, 0.0, Pairing::Halves);
        // A message so large that only the rounding of the weights matters.
        let operand = OperandNoise { noise: 0.0, message: 1e20, weight_scale: 1.0, row: Row::default() };
        let [a, b] = [&real, &halves].map(|map| model.linear(&[operand], Level(5), map).total());
        assert!((b / a / 2.0 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn key_switches_of_complex_sums_count_twice_in_every_part() {
        let model = model(15, 10, 2, 2);
        let [real, halves] = [Pairing::None, Pairing::Halves].map(|pairing| LinearNoise {
            n_giants: 40.0,
            pairing,
            ..LinearNoise::default()
        });
        let ratio = halves.summed(&model, Level(5)).total() / real.summed(&model, Level(5)).total();
        assert!((7.8..8.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_single_unrotated_diagonal_is_a_plain_product_and_one_rounding() {
        let model = model(15, 10, 2, 2);
        let map = map(16384.0, 1e9, Pairing::None);
        let row = Row::mean(&map.terms[0]);
        let operand = OperandNoise { noise: 1e6, message: 1e12, weight_scale: 1.0, row };
        let linear = model.linear(&[operand], Level(5), &map).total();
        let plain = model.mul_plain(1e6, 1e12, 1e9, 16384) + model.mod_down();
        assert!((linear / plain - 1.0).abs() < 1e-12);
    }

    #[test]
    fn rows_have_the_noise_of_what_they_read() {
        let model = model(15, 10, 2, 4);
        let term = TermNoise {
            weight_energy: 100.0,
            rotated_energy: 50.0,
            encoded_slots: 4.0,
            products: 4.0,
            ..TermNoise::default()
        };
        let map = LinearNoise { terms: vec![term], ..LinearNoise::default() };
        let added = |message: f64, row: Row| {
            let operand = OperandNoise { noise: 0.0, message, weight_scale: 1.0, row };
            model.linear(&[operand], Level(5), &map).total() - map.summed(&model, Level(5)).total()
        };
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        // Keys: in proportion to the squared weights.
        let [all, few] = [100.0, 1.0].map(|weight_energy| Row { weight_energy, ..Row::default() });
        assert!(close(added(0.0, all), 100.0 * added(0.0, few)));
        // Roundings: one product brings what the row reads, three bring slots of the mean.
        let large = Row { reads: 1.0, squares: 9e12, ..Row::default() };
        assert!(close(added(1e12, large), 3.0 * added(1e12, Row::default())));
        // A row that reads more than the mean of them has products.
        let long = Row { reads: 8.0, squares: 8e12, ..Row::default() };
        assert!(close(added(0.0, long), added(1e12, Row::default())));
    }
}

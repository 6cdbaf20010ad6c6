//! What homomorphic operations cost: transforms, inner products and memory traffic times calibrated constants.
//!
//! The constants are nanoseconds on one core per coefficient of a ring of degree N; a transform also pays
//! log2 N. Keys, digits, rotated inputs and sums are larger than any cache, so what is streamed pays per byte. The constants
//! order the alternatives and predict times; [`Cpu`] has those of several kinds of CPUs.

use crate::params::{Level, Params};
use crate::plan::{Cpu, PlanCounts};
use serde::{Deserialize, Serialize};

/// Calibrated constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// One number-theoretic transform of one tower, per coefficient and bit of N.
    pub ntt_ns: f64,
    /// One modular multiply-accumulate on operands in cache, per coefficient and tower.
    pub mac_ns: f64,
    /// One byte of an operand that is not in cache, all cores reading at once.
    pub byte_ns: f64,
    /// One term of a base conversion, per coefficient and target tower.
    pub convert_ns: f64,
    /// Moving one coefficient through an automorphism.
    pub permute_ns: f64,
    /// The embedding of an encoder, per slot and bit of the period.
    pub embed_ns: f64,
    /// Rounding and reducing an encoded vector, per coefficient and tower.
    pub round_ns: f64,
    /// Seconds that a byte of a further rotation key is worth.
    pub key_byte_s: f64,
}

impl Default for CostModel {
    /// Those of the usual kind of CPU.
    fn default() -> Self {
        Cpu::default().costs()
    }
}

/// What a word from the last cache costs, over one from memory: rotated inputs and sums are read from there.
const CACHED: f64 = 0.25;
/// Nanoseconds of adding one rotated input to others that share its plaintext, per coefficient and tower.
const ADDITION_NS: f64 = 0.06;
/// Additions that a product of added inputs takes as long as.
const SHARED_PRODUCT: f64 = 3.0;

/// Seconds per step at one level, and bytes of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCosts {
    /// Decomposing an input.
    pub hoist: f64,
    /// One hoisted rotation.
    pub baby: f64,
    /// Rotating a partial sum.
    pub giant: f64,
    /// A rotation on its own (folds).
    pub rotation: f64,
    /// One plaintext product, its plaintext in transformed form.
    pub term: f64,
    /// Transforming one slot of a plaintext's period: plaintexts are kept as coefficients.
    pub transform_slot: f64,
    /// One addition before a plaintext product.
    pub addition: f64,
    /// Bringing an output back from the special modulus.
    pub finish: f64,
    /// A square or product with relinearization.
    pub product: f64,
    /// One rescale by one tower.
    pub rescale: f64,
    /// What a further tower that is divided by adds to it.
    pub further_tower: f64,
    /// Encoding one slot of a plaintext's period as coefficients, which every use transforms.
    pub encode_slot: f64,
    /// Bytes of a rotation key.
    pub key_bytes: f64,
    /// Price of a new rotation key.
    pub key: f64,
}

impl CostModel {
    /// Seconds of bringing a ciphertext from one level down into the rings of the segments between and of the other, which a
    /// rescale or a drop does besides.
    pub fn enter(&self, params: &Params, from: Level, to: Level) -> f64 {
        let entered = params.entered(from, to).iter().filter_map(|lower| lower.entry());
        entered.map(|entry| self.at(entry, to).rotation).sum()
    }

    /// Step costs at a level, in its segment.
    pub fn at(&self, params: &Params, level: Level) -> StepCosts {
        let params = params.at(level);
        let n = params.n() as f64;
        let towers = params.n_towers(level) as f64;
        let special = params.special_primes().len() as f64;
        let digits = params.n_digits(level) as f64;
        let digit_towers = towers / digits;
        let all = towers + special;
        let per = |ns: f64| ns * n * 1e-9;
        let ntt = per(self.ntt_ns) * f64::from(params.log_n());
        let (mac, convert, permute) = (per(self.mac_ns), per(self.convert_ns), per(self.permute_ns));
        // A word of every coefficient of a tower, read or written.
        let word = per(self.byte_ns) * 8.0;

        let hoist =
            digits * all * (ntt + word) + digits * (all - digit_towers).max(1.0) * digit_towers * convert;
        // Keys are packed: both their halves have as many bits as their primes.
        let packed = (params.log2_q_at(level) + params.log2_p()) / (64.0 * all);
        let inner = digits * all * (2.0 * mac + (1.0 + 2.0 * packed) * word);
        let turn = 2.0 * all * (permute + word);
        let baby = inner + turn;
        let mod_down = (special + towers) * (ntt + word) + towers * special * convert + towers * (mac + word);
        let rotation = hoist + baby + 2.0 * mod_down;
        let rescale = 2.0 * towers * (ntt + mac + 2.0 * word);
        StepCosts {
            hoist,
            baby,
            giant: mod_down + hoist + baby + 2.0 * all * 3.0 * word,
            rotation,
            term: all * (2.0 * mac + 3.0 * CACHED * word),
            transform_slot: 2.0 * all * self.ntt_ns * f64::from(params.log_n()) * 1e-9,
            addition: 2.0 * all * per(ADDITION_NS),
            finish: 2.0 * mod_down,
            product: hoist + inner + 2.0 * mod_down + 4.0 * towers * (mac + word),
            rescale,
            further_tower: 2.0 * (ntt + towers * convert),
            encode_slot: (self.embed_ns * f64::from(params.log_n() - 1) + 2.0 * all * self.round_ns) * 1e-9,
            key_bytes: params.key_bytes(level) as f64,
            key: params.key_bytes(level) as f64 * self.key_byte_s,
        }
    }
}

impl StepCosts {
    /// Seconds of a linear map with these counts, encodings left out.
    pub fn linear(&self, counts: &PlanCounts) -> f64 {
        self.linear_of_lanes(counts, 1)
    }

    /// Seconds of a linear map of several lanes, which share the transforms of its plaintexts.
    pub fn linear_of_lanes(&self, counts: &PlanCounts, lanes: usize) -> f64 {
        // Where inputs are added first, everything is in the cache: a product is worth a few additions.
        let term = if counts.additions > 0 { SHARED_PRODUCT * self.addition } else { self.term };
        let of_lane = counts.hoists as f64 * self.hoist
            + counts.babies as f64 * self.baby
            + counts.giants as f64 * self.giant
            + (counts.folds + counts.conjugations) as f64 * self.rotation
            + counts.terms as f64 * term
            + counts.additions as f64 * self.addition
            + counts.outputs as f64 * self.finish;
        lanes as f64 * of_lane + counts.plaintext_slots as f64 * self.transform_slot
    }

    /// Seconds of a rescale that divides by so many towers at once.
    pub fn rescale(&self, n_divided: usize) -> f64 {
        self.rescale + n_divided.saturating_sub(1) as f64 * self.further_tower
    }

    /// Seconds to encode `count` plaintexts of `period` slots.
    pub fn encode(&self, count: usize, period: usize) -> f64 {
        (count * period) as f64 * self.encode_slot
    }
}

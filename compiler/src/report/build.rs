//! The build report: what was built, what it needs and what it is expected to do.

use fhe_bytecode::{CheckedProgram, Keys, Level, Params};
use fhec_passes::Saturation;
use serde::Serialize;

use super::layers::work;
use super::profile::Measured;
use crate::approximate::Approximation;
use crate::cluster::{Clustering, unclustered_bytes};
use crate::pipeline::Built;
use crate::{Compiled, Rehearsal, SelfCheck};

/// Everything `fhec build --report` tells.
#[derive(Clone, Debug, Serialize)]
pub struct BuildReport {
    /// Ring degree.
    pub n: usize,
    /// Bits of the ciphertext modulus.
    pub log2_q: f64,
    /// Bits of the modulus of the keys.
    pub log2_pq: f64,
    /// Largest modulus of the keys at 128 bits of security; none for a toy ring.
    pub security_cap_log2_pq: Option<u32>,
    /// Bits left below it.
    pub security_margin_bits: Option<f64>,
    /// Whether the keys have 128 bits of security.
    pub secure: bool,
    /// Levels on the longest path; one may take several towers.
    pub levels: u32,
    /// Multiplications on the longest path.
    pub depth: u32,
    /// Multiplications per level.
    pub sublevels: u32,
    /// Name of the packing.
    pub layout: String,
    /// Sizes of the towers in bits.
    pub tower_bits: Vec<f64>,
    /// For every level, the last first: how many towers it has, and the bits of its modulus.
    pub level_moduli: Vec<(usize, f64)>,
    /// Sizes of the special primes in bits.
    pub special_bits: Vec<f64>,
    /// Towers per digit, at most.
    pub digit_size: usize,
    /// What lower levels have of their own, the highest first.
    pub segments: Vec<SegmentReport>,
    /// Input scale in bits.
    pub input_scale_bits: f64,
    /// Rotation keys.
    pub rotation_keys: usize,
    /// Bytes of the evaluation keys in memory.
    pub key_bytes: u64,
    /// Bytes of one fresh input, uncompressed.
    pub input_bytes: u64,
    /// Bytes of all plaintexts, encoded.
    pub plaintext_bytes: u64,
    /// Most bytes of ciphertexts, rotated inputs and sums at one time.
    pub ciphertext_bytes: u64,
    /// How equality saturation of the passes went: where it did not end by itself, depth may have been left on the table.
    pub saturation: Vec<SaturationReport>,
    /// Predicted seconds on one core, plaintexts cached.
    pub predicted_seconds: f64,
    /// Predicted seconds to encode all plaintexts once.
    pub predicted_encode_seconds: f64,
    /// Predicted deviation of the error of a result.
    pub predicted_error: f64,
    /// Error that no result is expected to exceed.
    pub predicted_max_abs_error: f64,
    /// Bits between the largest result seen and the deviation of its error.
    pub predicted_precision_bits: f64,
    /// Bits between every value seen and half the modulus it is in.
    pub headroom_bits: f64,
    /// Bytes of the program file.
    pub program_bytes: usize,
    /// Measured seconds of an evaluation on all cores, where a profile is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_seconds: Option<f64>,
    /// What was put in place of functions that are no polynomials, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approximation: Option<Approximation>,
    /// The program in the clear on the calibration inputs, with simulated noise.
    pub check: SelfCheck,
    /// The program under encryption on one of them, where that was a matter of seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// What clustering did, if it was asked for.
    pub clustering: Option<ClusterReport>,
    /// Layer by layer.
    pub layers: Vec<LayerReport>,
}

/// A segment of lower levels.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentReport {
    /// Its highest level.
    pub level: u16,
    /// Degree of its ring.
    pub n: usize,
    /// Bits of the modulus of its keys.
    pub log2_pq: f64,
    /// Largest modulus of its keys at 128 bits of security; none for a toy ring.
    pub security_cap_log2_pq: Option<u32>,
    /// Sizes of its special primes in bits.
    pub special_bits: Vec<f64>,
    /// Digits of a ciphertext at its highest level.
    pub digits: usize,
}

impl SegmentReport {
    fn new(segment: &Params) -> Self {
        Self {
            level: segment.max_level().0,
            n: segment.n(),
            log2_pq: segment.log2_pq(),
            security_cap_log2_pq: segment.security_cap(),
            special_bits: segment.special_primes().iter().map(|&p| (p as f64).log2()).collect(),
            digits: segment.n_digits(segment.max_level()),
        }
    }
}

/// How equality saturation of a pass went.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SaturationReport {
    /// The pass.
    pub pass: &'static str,
    /// `saturated`, `round-limit` or `node-limit`.
    pub stop: &'static str,
    /// Rounds of all rules.
    pub rounds: usize,
    /// E-nodes at the end.
    pub e_nodes: usize,
}

impl SaturationReport {
    fn new((pass, how): &(&'static str, Saturation)) -> Self {
        Self { pass, stop: how.stop.name(), rounds: how.rounds, e_nodes: how.n_nodes }
    }
}

/// What clustering did to a program.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterReport {
    /// Method, size and errors of the codebooks.
    #[serde(flatten)]
    pub clustering: Clustering,
    /// Distinct plaintexts of the program.
    pub plaintexts: usize,
    /// Bytes of the program file with plain weights.
    pub program_bytes_before: usize,
}

/// One layer of a [`BuildReport`].
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// Name in the model.
    pub name: String,
    /// Level and sublevel of the result, as `L5.1`.
    pub at: String,
    /// Extents of the result.
    pub shape: String,
    /// Ciphertexts of the result.
    pub ciphertexts: usize,
    /// Slots that hold no number of their own.
    pub spare_slots: usize,
    /// Rotations, hoisted or not.
    pub rotations: usize,
    /// Products with plaintexts.
    pub plaintext_products: usize,
    /// Distinct plaintexts.
    pub plaintexts: usize,
    /// Products of ciphertexts.
    pub ciphertext_products: usize,
    /// Predicted seconds on one core.
    pub seconds: f64,
    /// Measured seconds on all cores, where a profile is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_seconds: Option<f64>,
    /// Share of the predicted variance of the results that arises here.
    pub error_share: f64,
}

impl BuildReport {
    /// The report of a compilation whose program has `program_bytes` bytes.
    #[must_use]
    pub fn new(compiled: &Compiled, program_bytes: usize) -> Self {
        let built = &compiled.built;
        let program = &built.program;
        let (params, prediction) = (program.params(), &program.spec().prediction);
        let bits = |primes: &[u64]| primes.iter().map(|&p| (p as f64).log2()).collect();
        let cap = params.security_cap();
        let input_towers = params.n_towers(program.spec().input.level);
        let layers = layers(built, program);
        Self {
            n: params.n(),
            log2_q: params.log2_q(),
            log2_pq: params.log2_pq(),
            security_cap_log2_pq: cap,
            security_margin_bits: cap.map(|cap| f64::from(cap) - params.log2_pq()),
            secure: params.is_secure(),
            levels: built.positions().n_levels(),
            depth: built.positions().depth(),
            sublevels: built.positions().sublevels(),
            layout: program.spec().origin.packing.clone(),
            tower_bits: bits(params.towers()),
            level_moduli: (0..=params.max_level().0)
                .map(|level| (params.n_towers(Level(level)), params.log2_q_at(Level(level))))
                .collect(),
            special_bits: bits(params.special_primes()),
            digit_size: params.digit_size(),
            input_scale_bits: program.spec().input.scale.log2(),
            rotation_keys: Keys::from(program).n_rotations(),
            segments: params.segments().skip(1).map(SegmentReport::new).collect(),
            key_bytes: prediction.key_bytes,
            input_bytes: (program.interface().input_ciphertexts() * 2 * input_towers * params.n() * 8) as u64,
            plaintext_bytes: prediction.plaintext_bytes,
            ciphertext_bytes: prediction.ciphertext_bytes,
            saturation: compiled.saturation.iter().map(SaturationReport::new).collect(),
            predicted_seconds: prediction.seconds,
            predicted_encode_seconds: prediction.encode_seconds,
            predicted_error: built.schedule().error,
            predicted_max_abs_error: prediction.max_abs_error,
            predicted_precision_bits: precision_bits(built),
            headroom_bits: built.schedule().headroom,
            program_bytes,
            measured_seconds: None,
            check: compiled.check.clone(),
            rehearsal: None,
            approximation: compiled.approximation.clone(),
            clustering: built.clustering.clone().map(|clustering| ClusterReport {
                clustering,
                plaintexts: layers.iter().map(|l| l.plaintexts).sum(),
                program_bytes_before: unclustered_bytes(program_bytes, &program.spec().constants),
            }),
            layers,
        }
    }

    /// Puts a profile of the program beside the predictions.
    pub fn compare(&mut self, measured: &Measured) {
        self.measured_seconds = Some(measured.total_seconds);
        for (layer, &seconds) in self.layers.iter_mut().zip(&measured.seconds) {
            layer.measured_seconds = Some(seconds);
        }
    }
}

/// Bits between the largest result seen and the deviation of its error.
#[must_use]
pub fn precision_bits(built: &Built) -> f64 {
    (built.stats.largest_result() / built.schedule().error).log2()
}

fn layers(built: &Built, program: &CheckedProgram) -> Vec<LayerReport> {
    let total = built.schedule().error.powi(2).max(f64::MIN_POSITIVE);
    let placed = &built.scheduled.placed;
    built
        .circuit()
        .ids()
        .zip(&program.spec().layers)
        .zip(work(program))
        .map(|((id, layer), work)| {
            let layout = placed.layout(id);
            let of_value = built.schedule().contributions.iter().filter(|c| c.value == id);
            let variance: f64 = of_value.map(|c| c.variance(&built.schedule().chain)).sum();
            LayerReport {
                name: layer.name.clone(),
                at: placed.timed.time(id).label(),
                shape: layout.shape().to_string(),
                ciphertexts: layout.n_cts(),
                spare_slots: layout.spare_slots(),
                rotations: work.rotations,
                plaintext_products: work.plaintext_products,
                plaintexts: work.plaintexts,
                ciphertext_products: work.ciphertext_products,
                seconds: layer.seconds,
                measured_seconds: None,
                error_share: variance / total,
            }
        })
        .collect()
}

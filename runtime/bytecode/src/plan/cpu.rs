//! What operations cost on kinds of CPUs. `cargo xtask bench cost --write` measures the kinds that the machine at hand has
//! and replaces their constants.

use super::CostModel;

/// A kind of CPU, by the instructions that kernels use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// Plain code.
    Scalar,
    /// Four lanes, AVX2 and FMA.
    Avx2,
    /// Eight lanes, AVX512.
    Avx512,
    /// Eight lanes and products of 52-bit integers.
    #[default]
    Avx512Ifma,
}

impl Cpu {
    /// All kinds, the plainest first.
    pub const ALL: [Cpu; 4] = [Cpu::Scalar, Cpu::Avx2, Cpu::Avx512, Cpu::Avx512Ifma];

    /// The name of its constants.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Ifma => "avx512-ifma",
        }
    }

    /// The kind that this program runs on.
    pub fn native() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let has_eight = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
            if has_eight && is_x86_feature_detected!("avx512ifma") {
                return Self::Avx512Ifma;
            }
            if has_eight {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Scalar
    }

    /// What operations cost on it.
    pub fn costs(self) -> CostModel {
        match self {
            Self::Scalar => SCALAR,
            Self::Avx2 => AVX2,
            Self::Avx512 => AVX512,
            Self::Avx512Ifma => AVX512_IFMA,
        }
    }
}

/// Seconds that a byte of a further rotation key is worth: about what it takes to send and load it once.
const KEY_BYTE_S: f64 = 1e-9;

const SCALAR: CostModel = CostModel {
    ntt_ns: 0.877,
    mac_ns: 7.432,
    byte_ns: 0.015,
    convert_ns: 2.549,
    permute_ns: 1.361,
    embed_ns: 1.902,
    round_ns: 4.481,
    key_byte_s: KEY_BYTE_S,
};

const AVX2: CostModel = CostModel {
    ntt_ns: 0.170,
    mac_ns: 0.802,
    byte_ns: 0.031,
    convert_ns: 0.537,
    permute_ns: 1.399,
    embed_ns: 2.102,
    round_ns: 0.000,
    key_byte_s: KEY_BYTE_S,
};

const AVX512: CostModel = CostModel {
    ntt_ns: 0.118,
    mac_ns: 0.320,
    byte_ns: 0.045,
    convert_ns: 0.164,
    permute_ns: 0.350,
    embed_ns: 1.500,
    round_ns: 0.000,
    key_byte_s: KEY_BYTE_S,
};

const AVX512_IFMA: CostModel = CostModel {
    ntt_ns: 0.118,
    mac_ns: 0.240,
    byte_ns: 0.045,
    convert_ns: 0.164,
    permute_ns: 0.350,
    embed_ns: 1.500,
    round_ns: 0.000,
    key_byte_s: KEY_BYTE_S,
};

//! Version 1 of the format. Frozen: nothing here changes any more.

use super::DecodeError;
use super::frozen::{Frozen, enums, finished, sections, structs};
use super::instructions::Instruction;
use super::packed::Indices;
use super::wire::{Reader, Wire, Writer};
use crate::ids::{CodebookId, LayoutId, TensorId};
use crate::params::Level;
use crate::program::ProgramSpec;
use crate::rotation::Rotation;
use crate::scale::Scale;
use crate::{constants, layout, linear, params, plan, program};

sections! {
    /// A program of version 1.
    Program {
        b"PARM" params: Params,
        b"ORIG" origin: Origin,
        b"INPT" input: Input,
        b"OUTP" output: Output,
        b"LAYT" layouts: Vec<Layout>,
        b"CNST" constants: Constants,
        b"MAPS" maps: Vec<LinearMap>,
        b"LAYR" layers: Vec<Layer>,
        b"CODE" instructions: Vec<Instruction>,
        b"ROTK" rotation_keys: Vec<RotationKey>,
        b"RELK" relin_level: Option<Level>,
        b"CONK" conjugation_level: Option<Level>,
        b"PRED" prediction: Prediction,
    }
}

impl Program {
    /// Reads the sections to the last byte.
    pub(super) fn read_all(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let program = Self::read(r)?;
        finished(r).map(|()| program)
    }

    /// The program in today's form: ranges and peaks are unknown.
    pub(super) fn upgrade(self) -> ProgramSpec {
        ProgramSpec {
            params: self.params.thaw(),
            origin: self.origin.thaw(),
            input: self.input.thaw(),
            output: self.output.thaw(),
            layouts: self.layouts.thaw(),
            constants: self.constants.thaw(),
            maps: self.maps.thaw(),
            layers: self.layers.thaw(),
            instructions: self.instructions.thaw(),
            rotation_keys: self.rotation_keys.thaw(),
            relin_level: self.relin_level,
            conjugation_level: self.conjugation_level,
            lower_keys: Vec::new(),
            prediction: self.prediction.thaw(),
        }
    }
}

structs! {
    Params for params::ParamsSpec {
        log_n: u32, towers: Vec<u64>, special_primes: Vec<u64>, digit_size: usize, insecure: bool, toy: bool,
    } + { pool: None, lower: Vec::new() }
    Origin for program::Origin { model: String, producer: String, packing: String }
    Input for program::InputSpec {
        name: String, layout: LayoutId, level: Level, scale: Scale, preprocessing: Preprocessing,
    } + { range: None, ports: Vec::new() }
    Preprocessing for program::Preprocessing { mean: Vec<f64>, std: Vec<f64> }
    Output for program::OutputSpec { name: String, layout: LayoutId, labels: Vec<String> }
        + { range: None, ports: Vec::new(), tails: Vec::new() }
    Shape for layout::Shape { channels: u32, height: u32, width: u32 }
    Layout for layout::LayoutSpec {
        shape: Shape, members: u32, slots: u32, gap: [u32; 2], phases: [u32; 2], blocks: u32,
        row_stride: u32, block_stride: u32, member_stride: u32, period: u32,
    }
    Constants for constants::Constants { tensors: Vec<Tensor>, codebooks: Vec<Codebook> }
    Tensor for constants::Tensor { members: u32, shape: Vec<u32>, data: TensorData }
    Codebook for constants::Codebook { members: u32, values: Vec<f32> }
    LinearMap for program::LinearMap {
        terms: Vec<LinearTerm>, output: LayoutId, pairing: Pairing, plan: Plan,
    }
    LinearTerm for linear::LinearTerm { op: LinearOp, input: LayoutId }
    Plan for plan::Plan { splits: Vec<Split> } + { gait: plan::Gait::Direct }
    Split for plan::Split { rotation: Rotation, baby: Rotation }
    Layer for program::LayerSpec { name: String, seconds: f64, error: f64 } + { peak: 0.0 }
    RotationKey for program::RotationKey { rotation: Rotation, level: Level }
    Prediction for program::Prediction {
        seconds: f64, encode_seconds: f64, key_bytes: u64, plaintext_bytes: u64, ciphertext_bytes: u64,
        max_abs_error: f64,
    }
}

enums! {
    Pairing for linear::Pairing {
        0 None {}
        1 Halves {}
        2 Outputs {}
    }
    LinearOp for linear::LinearOp {
        0 Conv2d { weight: TensorId, stride: [u32; 2], pads: [i32; 2], dilation: [u32; 2], groups: u32 }
        1 Dense { weight: TensorId }
        2 SumPool { kernel: [u32; 2], stride: [u32; 2], pads: [i32; 2], factor: f64 }
        3 Pick { factors: Option<TensorId>, channel_offset: i32, stride: [u32; 2], pads: [i32; 2] }
    }
}

/// Dense values as they are; indices packed into as few bits as the largest needs.
pub(super) enum TensorData {
    Dense(Vec<f32>),
    Clustered { codebooks: Vec<CodebookId>, indices: Indices },
}

impl Wire for TensorData {
    fn put(&self, w: &mut Writer) {
        match self {
            TensorData::Dense(values) => {
                w.raw(&[0]);
                values.put(w);
            }
            TensorData::Clustered { codebooks, indices } => {
                w.raw(&[1]);
                codebooks.put(w);
                indices.put(w);
            }
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let tag = r.byte()?;
        Self::get_tagged(tag, r)
    }
}

impl TensorData {
    /// What follows a tag.
    pub(super) fn get_tagged(tag: u8, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match tag {
            0 => Ok(TensorData::Dense(Wire::get(r)?)),
            1 => Ok(TensorData::Clustered { codebooks: Wire::get(r)?, indices: Wire::get(r)? }),
            _ => Err(r.error("unknown tag")),
        }
    }
}

impl Frozen for TensorData {
    type Live = constants::TensorData;

    fn thaw(self) -> Self::Live {
        match self {
            TensorData::Dense(values) => Self::Live::Dense(values),
            TensorData::Clustered { codebooks, indices } => {
                Self::Live::Clustered { codebooks, indices: indices.0 }
            }
        }
    }

    // All that this version can say of a double.
    #[cfg_attr(not(test), expect(clippy::cast_possible_truncation))]
    fn freeze(live: &Self::Live) -> Self {
        match live {
            constants::TensorData::Dense(values) => TensorData::Dense(values.clone()),
            constants::TensorData::Exact(values) => {
                TensorData::Dense(values.iter().map(|&value| value as f32).collect())
            }
            constants::TensorData::Clustered { codebooks, indices } => {
                TensorData::Clustered { codebooks: codebooks.clone(), indices: Indices(indices.clone()) }
            }
        }
    }
}

//! Version 2 of the format: what a client needs comes first, ranges, peaks, level and scale of the output are known, and
//! constants may have double precision.
//!
//! Frozen: nothing here changes any more. What did not change since version 1 keeps its frozen type.

pub(super) mod constants;

use super::DecodeError;
use super::frozen::{Frozen, finished, sections, structs};
use super::instructions::Instruction;
use super::v1;
use super::wire::Reader;
use crate::check::CheckedProgram;
use crate::ids::LayoutId;
use crate::interface::InterfaceSpec;
use crate::params::{self, Fingerprint, Level, TowerIdx};
use crate::program::{self, ProgramSpec};
use crate::scale::Scale;

sections! {
    /// What a client needs: the first sections of a program, and those of an interface file.
    Interface {
        b"PARM" params: Params,
        b"ORIG" origin: v1::Origin,
        b"INPT" input: Input,
        b"OUTP" output: Output,
        b"OUTF" output_fact: OutputFact,
        b"LAYT" layouts: Vec<v1::Layout>,
        b"ROTK" rotation_keys: Vec<v1::RotationKey>,
        b"RELK" relin_level: Option<Level>,
        b"CONK" conjugation_level: Option<Level>,
        b"PRED" prediction: v1::Prediction,
    }
}

sections! {
    /// The other sections of a program.
    Model {
        b"CNST" constants: constants::Constants,
        b"MAPS" maps: Vec<v1::LinearMap>,
        b"LAYR" layers: Vec<Layer>,
        b"CODE" instructions: Vec<Instruction>,
    }
}

/// A program of version 2.
pub(super) struct Program {
    interface: Interface,
    model: Model,
}

structs! {
    Params for params::ParamsSpec {
        log_n: u32, towers: Vec<u64>, special_primes: Vec<u64>, digit_size: usize, pool: Option<Pool>, insecure: bool,
        toy: bool,
    } + { lower: Vec::new() }
    Pool for params::Pool { levels: Vec<Vec<TowerIdx>>, digits: Vec<u16> }
    Interval for program::Interval { low: f64, high: f64 }
    Input for program::InputSpec {
        name: String, layout: LayoutId, level: Level, scale: Scale, preprocessing: v1::Preprocessing,
        range: Option<Interval>,
    } + { ports: Vec::new() }
    Output for program::OutputSpec {
        name: String, layout: LayoutId, labels: Vec<String>, range: Option<Interval>,
    } + { ports: Vec::new(), tails: Vec::new() }
    /// Follows from the instructions; repeated for clients, who do not read them.
    #[derive(Clone, Copy)]
    OutputFact for OutputFact { level: Level, scale: Scale }
    Layer for program::LayerSpec { name: String, seconds: f64, error: f64, peak: f64 }
}

impl Program {
    /// Reads the sections to the last byte.
    pub(super) fn read_all(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let program = Self { interface: Interface::read(r)?, model: Model::read(r)? };
        finished(r).map(|()| program)
    }

    /// The program in today's form, and what the file says of its output.
    pub(super) fn upgrade(self) -> (ProgramSpec, OutputFact) {
        let Self { interface, model } = self;
        let spec = ProgramSpec {
            params: interface.params.thaw(),
            origin: interface.origin.thaw(),
            input: interface.input.thaw(),
            output: interface.output.thaw(),
            layouts: interface.layouts.thaw(),
            constants: model.constants.thaw(),
            maps: model.maps.thaw(),
            layers: model.layers.thaw(),
            instructions: model.instructions.thaw(),
            rotation_keys: interface.rotation_keys.thaw(),
            relin_level: interface.relin_level,
            conjugation_level: interface.conjugation_level,
            lower_keys: Vec::new(),
            prediction: interface.prediction.thaw(),
        };
        (spec, interface.output_fact)
    }
}

impl Interface {
    /// The interface of a program file in today's form.
    pub(super) fn upgrade(self, program: Fingerprint) -> InterfaceSpec {
        InterfaceSpec {
            program,
            params: self.params.thaw(),
            origin: self.origin.thaw(),
            input: self.input.thaw(),
            output: self.output.thaw(),
            output_level: self.output_fact.level,
            output_scale: self.output_fact.scale,
            layouts: self.layouts.thaw(),
            rotation_keys: self.rotation_keys.thaw(),
            relin_level: self.relin_level,
            conjugation_level: self.conjugation_level,
            lower_keys: Vec::new(),
            prediction: self.prediction.thaw(),
        }
    }
}

impl OutputFact {
    /// Whether the instructions lead to what the file says.
    pub(super) fn holds(&self, program: &CheckedProgram) -> bool {
        self.level == program.output_level() && self.scale == program.output_scale()
    }
}

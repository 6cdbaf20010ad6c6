//! Version 4 of the format: lower levels may have a smaller ring, special primes and digits of their own, and keys for it;
//! partial sums of a map may take their giant steps together.
//!
//! What did not change since version 3 keeps its frozen type.

use super::DecodeError;
use super::frozen::{Frozen, enums, finished, sections, structs};
use super::instructions::Instruction;
use super::stream::SectionWriter;
use super::wire::Reader;
use super::{v1, v2, v3};
use crate::check::CheckedProgram;
use crate::ids::LayoutId;
use crate::interface::InterfaceSpec;
use crate::params::{self, Fingerprint, Level};
use crate::plan;
use crate::program::{self, ProgramSpec};
use std::io::{self, Write};
use v2::{OutputFact, Pool};
use v3::{Input, Output};

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
        b"LOWK" lower_keys: Vec<SegmentKeys>,
        b"PRED" prediction: v1::Prediction,
    }
}

sections! {
    /// The other sections of a program.
    Model {
        b"CNST" constants: v2::constants::Constants,
        b"MAPS" maps: Vec<LinearMap>,
        b"LAYR" layers: Vec<v2::Layer>,
        b"CODE" instructions: Vec<Instruction>,
    }
}

/// A program of version 4.
pub(super) struct Program {
    interface: Interface,
    model: Model,
}

structs! {
    Params for params::ParamsSpec {
        log_n: u32, towers: Vec<u64>, special_primes: Vec<u64>, digit_size: usize, pool: Option<Pool>,
        lower: Vec<Segment>, insecure: bool, toy: bool,
    }
    Segment for params::SegmentSpec { log_n: u32, level: Level, special_primes: Vec<u64>, digits: Vec<u16> }
    SegmentKeys for program::SegmentKeys {
        entry: Option<Level>, rotations: Vec<v1::RotationKey>, relin: Option<Level>, conjugation: Option<Level>,
    }
    LinearMap for program::LinearMap {
        terms: Vec<v1::LinearTerm>, output: LayoutId, pairing: v1::Pairing, plan: Plan,
    }
    Plan for plan::Plan { splits: Vec<v1::Split>, gait: Gait }
}

enums! {
    Gait for plan::Gait {
        0 Direct {}
        1 Inward {}
        2 Down {}
    }
}

impl Program {
    /// What this version can say of a program.
    pub(super) fn freeze(program: &CheckedProgram) -> Self {
        let spec = program.spec();
        let interface = Interface {
            params: Frozen::freeze(&spec.params),
            origin: Frozen::freeze(&spec.origin),
            input: Frozen::freeze(&spec.input),
            output: Frozen::freeze(&spec.output),
            output_fact: OutputFact { level: program.output_level(), scale: program.output_scale() },
            layouts: Frozen::freeze(&spec.layouts),
            rotation_keys: Frozen::freeze(&spec.rotation_keys),
            relin_level: spec.relin_level,
            conjugation_level: spec.conjugation_level,
            lower_keys: Frozen::freeze(&spec.lower_keys),
            prediction: Frozen::freeze(&spec.prediction),
        };
        let model = Model {
            constants: Frozen::freeze(&spec.constants),
            maps: Frozen::freeze(&spec.maps),
            layers: Frozen::freeze(&spec.layers),
            instructions: Frozen::freeze(&spec.instructions),
        };
        Self { interface, model }
    }

    /// Writes the sections in order.
    pub(super) fn write<W: Write + ?Sized>(&self, w: &mut SectionWriter<'_, W>) -> io::Result<()> {
        self.interface.write(w)?;
        self.model.write(w)
    }

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
            lower_keys: interface.lower_keys.thaw(),
            prediction: interface.prediction.thaw(),
        };
        (spec, interface.output_fact)
    }
}

impl Interface {
    /// What this version can say of an interface.
    pub(super) fn freeze(spec: &InterfaceSpec) -> Self {
        Self {
            params: Frozen::freeze(&spec.params),
            origin: Frozen::freeze(&spec.origin),
            input: Frozen::freeze(&spec.input),
            output: Frozen::freeze(&spec.output),
            output_fact: OutputFact { level: spec.output_level, scale: spec.output_scale },
            layouts: Frozen::freeze(&spec.layouts),
            rotation_keys: Frozen::freeze(&spec.rotation_keys),
            relin_level: spec.relin_level,
            conjugation_level: spec.conjugation_level,
            lower_keys: Frozen::freeze(&spec.lower_keys),
            prediction: Frozen::freeze(&spec.prediction),
        }
    }

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
            lower_keys: self.lower_keys.thaw(),
            prediction: self.prediction.thaw(),
        }
    }
}

//! Version 3 of the format: input and output know the tensors of the model that they are made of, and what a client
//! computes from the scores.
//!
//! What did not change since version 2 keeps its frozen type.

use super::DecodeError;
use super::frozen::{Frozen, enums, finished, sections, structs};
use super::wire::Reader;
use super::{v1, v2};
use crate::ids::LayoutId;
use crate::interface::InterfaceSpec;
use crate::params::{Fingerprint, Level};
use crate::program::{self, ProgramSpec};
use crate::scale::Scale;
use v2::{Interval, Model, OutputFact, Params};

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

/// A program of version 3.
pub(super) struct Program {
    interface: Interface,
    model: Model,
}

structs! {
    Input for program::InputSpec {
        name: String, layout: LayoutId, level: Level, scale: Scale, preprocessing: v1::Preprocessing,
        range: Option<Interval>, ports: Vec<Port>,
    }
    Output for program::OutputSpec {
        name: String, layout: LayoutId, labels: Vec<String>, range: Option<Interval>, ports: Vec<Port>,
        tails: Vec<Tail>,
    }
    Port for program::Port { name: String, dims: Vec<u32>, channels_last: bool, offset: u32 }
    Tail for program::Tail { name: String, port: u32, steps: Vec<TailStep>, classes: Vec<String> }
}

enums! {
    TailStep for program::TailStep {
        0 Softmax { length: u32, inner: u32 }
        1 LogSoftmax { length: u32, inner: u32 }
        2 Sigmoid {}
        3 ArgMax { length: u32, inner: u32 }
        4 Normalize { length: u32, inner: u32 }
        5 Votes { classes: u32 }
    }
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

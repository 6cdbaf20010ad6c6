//! Version 2 of the format: what a client needs comes first, and ranges, peaks, level and scale of the output are known.
//!
//! What did not change since version 1 keeps its frozen type.

use super::DecodeError;
use super::frozen::{Frozen, finished, put_section, sections, structs};
use super::v1;
use super::wire::{Reader, Writer};
use crate::check::CheckedProgram;
use crate::ids::LayoutId;
use crate::params::Level;
use crate::program::{self, ProgramSpec};
use crate::scale::Scale;

sections! {
    /// A program of version 2.
    Program {
        b"PARM" params: v1::Params,
        b"ORIG" origin: v1::Origin,
        b"INPT" input: Input,
        b"OUTP" output: Output,
        b"OUTF" output_fact: OutputFact,
        b"LAYT" layouts: Vec<v1::Layout>,
        b"ROTK" rotation_keys: Vec<v1::RotationKey>,
        b"RELK" relin_level: Option<Level>,
        b"CONK" conjugation_level: Option<Level>,
        b"PRED" prediction: v1::Prediction,
        b"CNST" constants: v1::Constants,
        b"MAPS" maps: Vec<v1::LinearMap>,
        b"LAYR" layers: Vec<Layer>,
        b"CODE" instructions: Vec<v1::Instruction>,
    }
}

structs! {
    Interval for program::Interval { low: f64, high: f64 }
    Input for program::InputSpec {
        name: String, layout: LayoutId, level: Level, scale: Scale, preprocessing: v1::Preprocessing,
        range: Option<Interval>,
    }
    Output for program::OutputSpec {
        name: String, layout: LayoutId, labels: Vec<String>, range: Option<Interval>,
    }
    /// Follows from the instructions; repeated for clients, who do not read them.
    #[derive(Clone, Copy)]
    OutputFact for OutputFact { level: Level, scale: Scale }
    Layer for program::LayerSpec { name: String, seconds: f64, error: f64, peak: f64 }
}

/// Writes the sections in order.
pub(super) fn write(program: &CheckedProgram, w: &mut Writer) {
    let spec = program.spec();
    let fact = OutputFact { level: program.output_level(), scale: program.output_scale() };
    put_section::<v1::Params>(w, b"PARM", &spec.params);
    put_section::<v1::Origin>(w, b"ORIG", &spec.origin);
    put_section::<Input>(w, b"INPT", &spec.input);
    put_section::<Output>(w, b"OUTP", &spec.output);
    put_section::<OutputFact>(w, b"OUTF", &fact);
    put_section::<Vec<v1::Layout>>(w, b"LAYT", &spec.layouts);
    put_section::<Vec<v1::RotationKey>>(w, b"ROTK", &spec.rotation_keys);
    put_section::<Option<Level>>(w, b"RELK", &spec.relin_level);
    put_section::<Option<Level>>(w, b"CONK", &spec.conjugation_level);
    put_section::<v1::Prediction>(w, b"PRED", &spec.prediction);
    put_section::<v1::Constants>(w, b"CNST", &spec.constants);
    put_section::<Vec<v1::LinearMap>>(w, b"MAPS", &spec.maps);
    put_section::<Vec<Layer>>(w, b"LAYR", &spec.layers);
    put_section::<Vec<v1::Instruction>>(w, b"CODE", &spec.instructions);
}

impl Program {
    /// Reads the sections to the last byte.
    pub(super) fn read_all(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let program = Self::read(r)?;
        finished(r).map(|()| program)
    }

    /// The program in today's form, and what the file says of its output.
    pub(super) fn upgrade(self) -> (ProgramSpec, OutputFact) {
        let spec = ProgramSpec {
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
            prediction: self.prediction.thaw(),
        };
        (spec, self.output_fact)
    }
}

impl OutputFact {
    /// Whether the instructions lead to what the file says.
    pub(super) fn holds(&self, program: &CheckedProgram) -> bool {
        self.level == program.output_level() && self.scale == program.output_scale()
    }
}

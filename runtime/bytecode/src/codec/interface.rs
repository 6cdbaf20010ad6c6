//! The binary form of an interface, `.fhei`: the first sections of a program in a file of their own.
//!
//! Magic, version, parameter fingerprint, program fingerprint, sections, checksum. [`read_interface`] accepts a program as
//! well; it reads the first sections of it, hashes the rest and holds no weights.

use super::frozen::finished;
use super::stream::{SectionWriter, Stream, collected};
use super::wire::Reader;
use super::{DecodeError, checked_fingerprint, v2, v3, v4};
use crate::check::CheckedProgram;
use crate::interface::{Interface, InterfaceSpec};
use crate::params::Fingerprint;
use std::io::{self, Read, Write};

/// First bytes of every interface.
pub const INTERFACE_MAGIC: [u8; 8] = *b"FHEIF\r\n\x1a";
/// The version of interfaces that is written.
pub const INTERFACE_VERSION: u32 = 3;
/// Most bytes of an interface.
pub const INTERFACE_LIMIT: u64 = 4 << 20;

const INTERFACE_CONTEXT: &str = "fhec 1 interface file";

/// Writes an interface file.
///
/// # Errors
/// When the bytes cannot be written.
pub fn write_interface(interface: &Interface, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let mut w = SectionWriter::new(out, INTERFACE_CONTEXT);
    w.raw(&INTERFACE_MAGIC)?;
    w.raw(&INTERFACE_VERSION.to_le_bytes())?;
    w.raw(&interface.params().fingerprint().0)?;
    w.raw(&interface.program().0)?;
    v4::Interface::freeze(interface.spec()).write(&mut w)?;
    w.finish().map(drop)
}

/// The bytes of an interface file.
pub fn encode_interface(interface: &Interface) -> Vec<u8> {
    collected(|bytes| write_interface(interface, bytes))
}

/// The interface in an interface file or a program file.
///
/// # Errors
/// When there are more than `limit` bytes, or they are damaged, malformed, or an interface that is not well formed.
pub fn read_interface(input: impl Read, limit: u64) -> Result<Interface, DecodeError> {
    let mut stream = Stream::new(input, limit);
    let magic = match stream.array() {
        Ok(magic) => magic,
        Err(DecodeError::Malformed { .. }) => return Err(DecodeError::NotAnInterface),
        Err(error) => return Err(error),
    };
    match magic {
        INTERFACE_MAGIC => stream.start(INTERFACE_CONTEXT, &magic),
        super::MAGIC => stream.start(super::CHECKSUM_CONTEXT, &magic),
        _ => return Err(DecodeError::NotAnInterface),
    }
    let version = u32::from_le_bytes(stream.array()?);
    match (magic, version) {
        (INTERFACE_MAGIC, 1..=3) => from_interface(stream, version),
        (INTERFACE_MAGIC, _) => Err(DecodeError::InterfaceVersion(version)),
        (_, 1) => from_whole_program(stream, version),
        (_, 2..=4) => from_program(stream, version),
        _ => Err(DecodeError::Version(version)),
    }
}

/// A version without the sections that clients need: the whole program is read and checked.
fn from_whole_program(stream: Stream<impl Read>, version: u32) -> Result<Interface, DecodeError> {
    let mut bytes = super::MAGIC.to_vec();
    bytes.extend_from_slice(&version.to_le_bytes());
    let limit = stream.rest(&mut bytes)?;
    super::decode(&bytes, limit).map(|program| program.interface())
}

fn from_interface(mut stream: Stream<impl Read>, version: u32) -> Result<Interface, DecodeError> {
    let (params, program): ([u8; 32], [u8; 32]) = (stream.array()?, stream.array()?);
    let (start, body) = stream.read_to_the_end(INTERFACE_LIMIT)?;
    let mut r = Reader::after(&body, start);
    // Interface files are one version behind programs.
    let spec = read_sections(&mut r, version + 1, Fingerprint(program))?;
    finished(&r)?;
    let written = (spec.input.layout, spec.output.layout, spec.layouts.len());
    let interface = interface(spec, Fingerprint(params))?;
    // One form per interface: none of the layouts that a program has besides.
    let spec = interface.spec();
    match written == (spec.input.layout, spec.output.layout, spec.layouts.len()) {
        true => Ok(interface),
        false => Err(r.error("layouts of no use")),
    }
}

fn from_program(mut stream: Stream<impl Read>, version: u32) -> Result<Interface, DecodeError> {
    let n_sections = match version {
        2 => v2::Interface::N_SECTIONS,
        3 => v3::Interface::N_SECTIONS,
        _ => v4::Interface::N_SECTIONS,
    };
    let params: [u8; 32] = stream.array()?;
    let (start, body) = stream.sections(n_sections, INTERFACE_LIMIT)?;
    let program = stream.skip_to_the_end()?;
    let spec = read_sections(&mut Reader::after(&body, start), version, Fingerprint(program))?;
    interface(spec, Fingerprint(params))
}

/// The sections of an interface as a version of programs has them.
fn read_sections(
    r: &mut Reader<'_>,
    version: u32,
    program: Fingerprint,
) -> Result<InterfaceSpec, DecodeError> {
    match version {
        2 => v2::Interface::read(r).map(|sections| sections.upgrade(program)),
        3 => v3::Interface::read(r).map(|sections| sections.upgrade(program)),
        _ => v4::Interface::read(r).map(|sections| sections.upgrade(program)),
    }
}

fn interface(spec: InterfaceSpec, params: Fingerprint) -> Result<Interface, DecodeError> {
    checked_fingerprint(&spec.params, params)?;
    Ok(Interface::new(spec)?)
}

impl CheckedProgram {
    /// What a client needs of this program.
    pub fn interface(&self) -> Interface {
        let spec = self.spec();
        let interface = Interface::new(InterfaceSpec {
            program: self.fingerprint(),
            params: spec.params.clone(),
            origin: spec.origin.clone(),
            input: spec.input.clone(),
            output: spec.output.clone(),
            output_level: self.output_level(),
            output_scale: self.output_scale(),
            layouts: spec.layouts.clone(),
            rotation_keys: spec.rotation_keys.clone(),
            relin_level: spec.relin_level,
            conjugation_level: spec.conjugation_level,
            lower_keys: spec.lower_keys.clone(),
            prediction: spec.prediction.clone(),
        });
        interface.expect("the interface of a checked program is well formed")
    }

    /// Fingerprint of the program file: of the one that it was read from, else of the one that would be written.
    pub fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| {
            let bytes = super::encode(self);
            super::program_fingerprint(&bytes).expect("an encoded program ends with its checksum")
        })
    }
}

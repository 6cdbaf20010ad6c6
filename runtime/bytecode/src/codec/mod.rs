//! The binary form of a program, `.fhebc`. The specification is `docs/FORMAT.md`.
//!
//! Magic, version, parameter fingerprint, sections with lengths, checksum. Encoding is deterministic: equal
//! programs give equal bytes, and every accepted file encodes back to itself. The decoder takes a size limit,
//! trusts no length, never panics whatever the bytes, and hands out only programs that passed the checker.
// Numbers come from files: none may lose a part of itself.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod frozen;
mod instructions;
mod interface;
mod packed;
mod scalars;
mod stream;
mod v1;
mod v2;
mod v3;
mod v4;
mod wire;

use crate::check::{CheckErrors, CheckedProgram};
use crate::params::{Fingerprint, Level, Params, ParamsSpec};
use crate::program::ProgramSpec;
use crate::scale::Scale;
use std::io::{self, Read, Write};
use stream::{SectionWriter, Stream, collected};
use wire::Reader;

pub use interface::{
    INTERFACE_LIMIT, INTERFACE_MAGIC, INTERFACE_VERSION, encode_interface, read_interface, write_interface,
};

/// First bytes of every program.
pub const MAGIC: [u8; 8] = *b"FHEBC\r\n\x1a";
/// The version that is written.
pub const VERSION: u32 = 4;
/// Default size limit of a decoder, in bytes.
pub const DEFAULT_LIMIT: u64 = 1 << 30;

const HEADER_BYTES: usize = 8 + 4 + 32;
const CHECKSUM_BYTES: usize = 32;
const CHECKSUM_CONTEXT: &str = "fhec 1 program file";

/// Why bytes are not a program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Larger than the caller accepts.
    #[error("program of {found} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// Bytes found.
        found: u64,
        /// Bytes accepted.
        limit: u64,
    },
    /// The operating system gave no bytes.
    #[error("cannot be read: {0}")]
    Read(io::ErrorKind),
    /// Some other kind of file.
    #[error("not a program file")]
    NotAProgram,
    /// Some other kind of file.
    #[error("neither an interface nor a program file")]
    NotAnInterface,
    /// A version from the future.
    #[error("interface version {0} is not supported (this build reads up to {INTERFACE_VERSION})")]
    InterfaceVersion(u32),
    /// A version from the future.
    #[error("program version {0} is not supported (this build reads up to {VERSION})")]
    Version(u32),
    /// The bytes changed after they were written.
    #[error("checksum mismatch: the program file is damaged")]
    Checksum,
    /// A section is malformed.
    #[error("malformed section {section} at byte {offset}: {what}")]
    Malformed {
        /// Tag of the section.
        section: String,
        /// Position in the file.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Header and parameters disagree.
    #[error("parameter fingerprint {found} in the header, {computed} by the parameters")]
    Fingerprint {
        /// As written.
        found: Fingerprint,
        /// As computed.
        computed: Fingerprint,
    },
    /// The level or scale that the file states is not the one that the instructions lead to.
    #[error("the output is at {level} with scale {scale}, the file says otherwise")]
    Output {
        /// Level by the instructions.
        level: Level,
        /// Scale by the instructions.
        scale: Scale,
    },
    /// The program is well formed but wrong.
    #[error(transparent)]
    Check(#[from] CheckErrors),
}

/// A decoded file of any version.
enum AnyVersion {
    V1(v1::Program),
    V2(v2::Program),
    V3(v3::Program),
    V4(v4::Program),
}

impl AnyVersion {
    fn read(version: u32, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match version {
            1 => v1::Program::read_all(r).map(AnyVersion::V1),
            2 => v2::Program::read_all(r).map(AnyVersion::V2),
            3 => v3::Program::read_all(r).map(AnyVersion::V3),
            4 => v4::Program::read_all(r).map(AnyVersion::V4),
            _ => Err(DecodeError::Version(version)),
        }
    }

    /// The program in today's form, and what the file says of its output.
    fn upgrade(self) -> (ProgramSpec, Option<v2::OutputFact>) {
        match self {
            AnyVersion::V1(program) => (program.upgrade(), None),
            AnyVersion::V2(program) => {
                let (spec, fact) = program.upgrade();
                (spec, Some(fact))
            }
            AnyVersion::V3(program) => {
                let (spec, fact) = program.upgrade();
                (spec, Some(fact))
            }
            AnyVersion::V4(program) => {
                let (spec, fact) = program.upgrade();
                (spec, Some(fact))
            }
        }
    }
}

/// Writes a program file, and gives its fingerprint.
///
/// # Errors
/// When the bytes cannot be written.
pub fn write_program(program: &CheckedProgram, out: &mut (impl Write + ?Sized)) -> io::Result<Fingerprint> {
    let mut writer = SectionWriter::new(out, CHECKSUM_CONTEXT);
    writer.raw(&MAGIC)?;
    writer.raw(&VERSION.to_le_bytes())?;
    writer.raw(&program.params().fingerprint().0)?;
    v4::Program::freeze(program).write(&mut writer)?;
    writer.finish().map(Fingerprint)
}

/// The bytes of a program file.
pub fn encode(program: &CheckedProgram) -> Vec<u8> {
    collected(|bytes| write_program(program, bytes).map(drop))
}

/// The program in a file, checked.
///
/// # Errors
/// When there are more than `limit` bytes, or they are damaged, malformed, or a program that fails the checker.
pub fn read_program(input: impl Read, limit: u64) -> Result<CheckedProgram, DecodeError> {
    let mut bytes = Vec::new();
    let limit = Stream::new(input, limit).rest(&mut bytes)?;
    decode(&bytes, limit)
}

/// The program in `bytes`, checked.
///
/// # Errors
/// When the bytes are more than `limit`, damaged, malformed, or a program that fails the checker.
pub fn decode(bytes: &[u8], limit: u64) -> Result<CheckedProgram, DecodeError> {
    if bytes.len() as u64 > limit {
        return Err(DecodeError::TooLarge { found: bytes.len() as u64, limit });
    }
    if !bytes.starts_with(&MAGIC) || bytes.len() < HEADER_BYTES + CHECKSUM_BYTES {
        return Err(DecodeError::NotAProgram);
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if !(1..=VERSION).contains(&version) {
        return Err(DecodeError::Version(version));
    }
    let (body, written) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    let checksum = checksum(body);
    if checksum != written {
        return Err(DecodeError::Checksum);
    }
    decode_body(version, body, checksum)
}

fn decode_body(version: u32, body: &[u8], file: [u8; 32]) -> Result<CheckedProgram, DecodeError> {
    let mut found = [0; 32];
    found.copy_from_slice(&body[12..HEADER_BYTES]);
    let (program, output) = AnyVersion::read(version, &mut Reader::new(body, HEADER_BYTES))?.upgrade();
    checked_fingerprint(&program.params, Fingerprint(found))?;
    let program = CheckedProgram::new(program)?;
    match output {
        Some(output) if !output.holds(&program) => {
            Err(DecodeError::Output { level: program.output_level(), scale: program.output_scale() })
        }
        _ => Ok(program.with_fingerprint(Fingerprint(file))),
    }
}

/// Fails if the header does not name these parameters; malformed ones are the checker's to report.
fn checked_fingerprint(params: &ParamsSpec, found: Fingerprint) -> Result<(), DecodeError> {
    match Params::new(params.clone()) {
        Ok(params) if params.fingerprint() != found => {
            Err(DecodeError::Fingerprint { found, computed: params.fingerprint() })
        }
        _ => Ok(()),
    }
}

/// The fingerprint of a program file: its checksum.
pub fn program_fingerprint(bytes: &[u8]) -> Option<Fingerprint> {
    let tail = bytes.get(bytes.len().checked_sub(CHECKSUM_BYTES)?..)?;
    tail.try_into().ok().map(Fingerprint)
}

fn checksum(body: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new_derive_key(CHECKSUM_CONTEXT).update(body).finalize().as_bytes()
}

#[cfg(test)]
mod interface_tests;
#[cfg(test)]
mod tests;

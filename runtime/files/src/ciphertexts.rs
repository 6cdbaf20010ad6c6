//! Ciphertext files: encrypted inputs or results of one program, one or several samples.
//!
//! ```text
//! program fingerprint 32 | role u8 | port u32 (role 3) | samples u32 | ciphertexts per sample u32 | request 32 | names
//! ciphertexts
//! ciphertext: level u16 | scale f64 | form u8 | seed 32 and one polynomial (form 1), or two polynomials (form 2)
//! ```
//! Version 1 has neither request nor names. A polynomial is its towers one after the other, residues packed to the
//! bits of their prime, in the ring of the ciphertext's level.

use std::io::{Read, Write};

use fhe_bytecode::{Fingerprint, InputSpec, Interface, Level, Scale};

use super::codec::{BodyReader, BodyWriter, TRAILER, bad_field, residue_bytes};
use super::error::FormatError;
use super::header::{HEADER_LEN, Header, Kind};
use super::names;
use fhe_ckks::{Ciphertext, Context, KeyId, PublicSeed, SeededCiphertext};

const FORM_SEEDED: u8 = 1;
const FORM_FULL: u8 = 2;

/// Which side of a program ciphertexts are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Encrypted by the client, for the server.
    Input,
    /// Computed by the server, for the client.
    Result,
    /// One of the model's several inputs, by its position among them, and zero elsewhere: the sum of all is an input.
    Part(u32),
}

impl Role {
    const INPUT: u8 = 1;
    const RESULT: u8 = 2;
    const PART: u8 = 3;

    fn write<W: Write>(self, writer: &mut BodyWriter<W>) -> Result<(), FormatError> {
        match self {
            Self::Input => writer.u8(Self::INPUT),
            Self::Result => writer.u8(Self::RESULT),
            Self::Part(port) => {
                writer.u8(Self::PART)?;
                writer.u32(port)
            }
        }
    }

    pub(crate) fn read<R: Read>(reader: &mut BodyReader<R>) -> Result<Self, FormatError> {
        match reader.u8()? {
            Self::INPUT => Ok(Self::Input),
            Self::RESULT => Ok(Self::Result),
            Self::PART => Ok(Self::Part(reader.u32()?)),
            code => Err(bad_field("role", code)),
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "encrypted input",
            Self::Result => "encrypted result",
            Self::Part(_) => "one of several encrypted inputs",
        }
    }
}

/// What every sample of a file has to look like for a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Fingerprint of the program.
    pub program: Fingerprint,
    /// Input or result.
    pub role: Role,
    /// Ciphertexts of one sample.
    pub n_ciphertexts: usize,
    /// Level of every ciphertext.
    pub level: Level,
    /// Scale of every ciphertext.
    pub scale: Scale,
}

impl Expected {
    /// Encrypted inputs of the program.
    pub fn input(interface: &Interface) -> Self {
        let InputSpec { level, scale, .. } = *interface.input();
        let n_ciphertexts = interface.input_ciphertexts();
        Self { program: interface.program(), role: Role::Input, n_ciphertexts, level, scale }
    }

    /// One of several inputs of the program, encrypted by itself.
    pub fn part(interface: &Interface, port: u32) -> Self {
        Self { role: Role::Part(port), ..Self::input(interface) }
    }

    /// Encrypted results of the program.
    pub fn result(interface: &Interface) -> Self {
        let (level, scale) = (interface.output_level(), interface.output_scale());
        let n_ciphertexts = interface.output_ciphertexts();
        Self { program: interface.program(), role: Role::Result, n_ciphertexts, level, scale }
    }
}

/// A ciphertext as stored: fresh ones keep half of themselves as a seed.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// Fresh from encryption.
    Seeded(SeededCiphertext),
    /// Computed.
    Full(Ciphertext),
}

impl Stored {
    /// The ciphertext to compute with.
    pub fn expand(self, context: &Context) -> Ciphertext {
        match self {
            Self::Seeded(seeded) => seeded.expand(context),
            Self::Full(full) => full,
        }
    }
}

/// The content of a ciphertext file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ciphertexts {
    /// The key they are encrypted under.
    pub key_id: KeyId,
    /// Samples, each a list of ciphertexts.
    pub samples: Vec<Vec<Stored>>,
    /// Names of the samples, for people: none, or one for each.
    pub names: Vec<String>,
    /// Of results: the request that they answer; none in files of version 1.
    pub request: Option<Fingerprint>,
}

impl Ciphertexts {
    /// Samples without names.
    pub fn new(key_id: KeyId, samples: Vec<Vec<Stored>>) -> Self {
        Self { key_id, samples, names: Vec::new(), request: None }
    }

    /// Refuses results that answer another request, or more or fewer inputs than it has.
    ///
    /// # Errors
    /// If they do not answer `request`.
    pub fn check_answers(&self, request: &Request) -> Result<(), FormatError> {
        let (found, expected) = (self.samples.len(), request.n_samples);
        match self.request {
            None => Err(FormatError::NoRequest),
            Some(hash) if hash != request.hash => {
                Err(FormatError::WrongRequest { found: hash, expected: request.hash })
            }
            Some(_) if found != expected => Err(FormatError::WrongSamples { found, expected }),
            Some(_) => Ok(()),
        }
    }
}

/// What a result has to answer: a file of encrypted inputs, told by its hash, which covers program, key and samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The hash at the end of the file.
    pub hash: Fingerprint,
    /// Its number of samples.
    pub n_samples: usize,
}

/// Writes samples that look as `expected`; gives the request that such a file of inputs is.
///
/// # Errors
/// If the samples do not look so, or `to` cannot be written.
pub fn encode_ciphertexts(
    to: impl Write,
    context: &Context,
    expected: &Expected,
    ciphertexts: &Ciphertexts,
) -> Result<Request, FormatError> {
    let mut writer = BodyWriter::new(to);
    Header::of(Kind::Ciphertexts, context.params(), ciphertexts.key_id).write(&mut writer)?;
    writer.bytes(&expected.program.0)?;
    expected.role.write(&mut writer)?;
    let n_samples = ciphertexts.samples.len();
    writer.count(n_samples)?;
    writer.count(expected.n_ciphertexts)?;
    writer.bytes(&ciphertexts.request.map_or([0; 32], |request| request.0))?;
    names::write(&mut writer, &ciphertexts.names, n_samples)?;
    for sample in &ciphertexts.samples {
        if sample.len() != expected.n_ciphertexts {
            return Err(bad_field("number of ciphertexts", sample.len()));
        }
        sample.iter().try_for_each(|stored| encode_one(&mut writer, context, stored))?;
    }
    let (_, hash) = writer.seal()?;
    Ok(Request { hash, n_samples })
}

fn encode_one<W: Write>(
    writer: &mut BodyWriter<W>,
    context: &Context,
    stored: &Stored,
) -> Result<(), FormatError> {
    let (level, scale, form) = match stored {
        Stored::Seeded(seeded) => (seeded.level(), seeded.scale(), FORM_SEEDED),
        Stored::Full(full) => (full.level(), full.scale(), FORM_FULL),
    };
    let context = context.at(level);
    writer.u16(level.0)?;
    writer.f64(scale.value())?;
    writer.u8(form)?;
    match stored {
        Stored::Seeded(seeded) => {
            writer.bytes(&seeded.seed().0)?;
            writer.poly(seeded.residues(), &context.params().primes(level))
        }
        Stored::Full(full) if full.polys().len() == 2 => {
            full.polys().iter().try_for_each(|poly| writer.poly(poly.data(), &context.params().primes(level)))
        }
        Stored::Full(full) => Err(bad_field("number of polynomials", full.polys().len())),
    }
}

/// Reads samples for the parameters of `context` that look as `expected`, from a file of `len` bytes.
///
/// # Errors
/// If the file is damaged, is for other parameters or another program, or has other levels or scales.
pub fn decode_ciphertexts(
    from: impl Read,
    len: u64,
    context: &Context,
    expected: &Expected,
) -> Result<Ciphertexts, FormatError> {
    decode_request(from, len, context, expected).map(|(ciphertexts, _)| ciphertexts)
}

/// As [`decode_ciphertexts`], with the request that a file of inputs is, for its results to name.
///
/// # Errors
/// As [`decode_ciphertexts`].
pub fn decode_request(
    from: impl Read,
    len: u64,
    context: &Context,
    expected: &Expected,
) -> Result<(Ciphertexts, Request), FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    let (header, n_samples) = front(&mut reader, context, expected)?;
    let n_ciphertexts = reader.count(poly_bytes(context, expected.level))?;
    if n_ciphertexts != expected.n_ciphertexts {
        return Err(bad_field("number of ciphertexts", n_ciphertexts));
    }
    let (request, names) = match header.version {
        1 => (None, Vec::new()),
        _ => (named_request(&mut reader, expected.role)?, names::read(&mut reader, n_samples)?),
    };
    let samples = (0..n_samples)
        .map(|_| (0..n_ciphertexts).map(|_| decode_one(&mut reader, context, expected)).collect())
        .collect::<Result<_, _>>()?;
    let hash = reader.finish()?;
    Ok((Ciphertexts { key_id: header.key_id, samples, names, request }, Request { hash, n_samples }))
}

/// The request that a file of inputs is, without the ciphertexts in it.
///
/// # Errors
/// If the file is damaged, no file of inputs, or for other parameters or another program.
pub fn read_request(
    from: impl Read,
    len: u64,
    context: &Context,
    expected: &Expected,
) -> Result<Request, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    let (_, n_samples) = front(&mut reader, context, expected)?;
    reader.skip()?;
    Ok(Request { hash: reader.finish()?, n_samples })
}

/// The role of a file of ciphertexts; says nothing about the rest of it.
///
/// # Errors
/// If the file is none of ciphertexts, or cut short.
pub fn read_role(from: impl Read, len: u64) -> Result<Role, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    Header::read(&mut reader, Kind::Ciphertexts)?;
    reader.array::<32>()?;
    Role::read(&mut reader)
}

/// Header, program, role and number of samples.
fn front<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
    expected: &Expected,
) -> Result<(Header, usize), FormatError> {
    let header = Header::read(reader, Kind::Ciphertexts)?;
    header.check_parameters(context.params())?;
    let program = Fingerprint(reader.array()?);
    if program != expected.program {
        return Err(FormatError::WrongProgram { found: program, expected: expected.program });
    }
    let role = Role::read(reader)?;
    if role != expected.role {
        return Err(FormatError::WrongRole { found: role.name(), expected: expected.role.name() });
    }
    let smallest = poly_bytes(context, expected.level);
    let n_samples = reader.count(smallest.saturating_mul(expected.n_ciphertexts as u64))?;
    Ok((header, n_samples))
}

/// The request that results answer; inputs have zeros there.
pub(crate) fn named_request<R: Read>(
    reader: &mut BodyReader<R>,
    role: Role,
) -> Result<Option<Fingerprint>, FormatError> {
    let hash: [u8; 32] = reader.array()?;
    match role {
        Role::Result => Ok(Some(Fingerprint(hash))),
        Role::Input | Role::Part(_) if hash == [0; 32] => Ok(None),
        Role::Input | Role::Part(_) => Err(bad_field("request", "given for inputs")),
    }
}

/// Program, role, counts, request and the number of names.
const FRONT_BYTES: u64 = 32 + 1 + 4 + 4 + 32 + 4;

/// Most bytes that the names of `n_samples` samples take.
pub fn names_len(n_samples: usize) -> u64 {
    n_samples as u64 * (1 + names::MAX_NAME_BYTES as u64)
}

/// How the ciphertexts of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Fresh from encryption, half of each as a seed.
    Seeded,
    /// Computed.
    Full,
}

/// Bytes of a file with `n_samples` samples that look as `expected`, all of one form; names come on top, see [`names_len`].
pub fn ciphertexts_len(context: &Context, expected: &Expected, n_samples: usize, form: Form) -> u64 {
    let poly = poly_bytes(context, expected.level);
    let residues = match form {
        Form::Seeded => 32 + poly,
        Form::Full => 2 * poly,
    };
    let n_ciphertexts = (n_samples * expected.n_ciphertexts) as u64;
    HEADER_LEN as u64 + FRONT_BYTES + n_ciphertexts * (2 + 8 + 1 + residues) + TRAILER
}

fn decode_one<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
    expected: &Expected,
) -> Result<Stored, FormatError> {
    let level = Level(reader.u16()?);
    if level != expected.level {
        return Err(bad_field("level", level));
    }
    let context = context.at(level);
    let scale = reader.f64()?;
    let scale = match Scale::new(scale) {
        Ok(scale) if scale.agrees(expected.scale) => scale,
        _ => return Err(bad_field("scale", scale)),
    };
    let malformed = |e: fhe_ckks::CkksError| bad_field("ciphertext", e);
    match reader.u8()? {
        FORM_SEEDED => {
            let seed = PublicSeed(reader.array()?);
            let residues = reader.poly(context.params().n(), &context.params().primes(level))?;
            SeededCiphertext::from_residues(context, level, scale, &residues, seed)
                .map(Stored::Seeded)
                .map_err(malformed)
        }
        FORM_FULL => {
            let polys = [
                reader.poly(context.params().n(), &context.params().primes(level))?,
                reader.poly(context.params().n(), &context.params().primes(level))?,
            ];
            Ciphertext::from_residues(context, level, scale, &polys).map(Stored::Full).map_err(malformed)
        }
        form => Err(bad_field("form", form)),
    }
}

fn poly_bytes(context: &Context, level: Level) -> u64 {
    let params = context.at(level).params();
    params.primes(level).iter().map(|&q| residue_bytes(params.n(), q)).sum()
}

#[cfg(test)]
#[path = "ciphertexts_tests.rs"]
mod tests;

//! Ciphertext files: encrypted inputs or results of one program, one or several samples.
//!
//! ```text
//! program fingerprint 32 | role u8 | samples u32 | ciphertexts per sample u32 | ciphertexts
//! ciphertext: level u16 | scale f64 | form u8 | seed 32 and one polynomial (form 1), or two polynomials (form 2)
//! ```
//! A polynomial is its towers one after the other, residues packed to the bits of their prime.

use std::io::{Read, Write};

use fhe_bytecode::{Fingerprint, InputSpec, Interface, Level, Scale};

use super::codec::{BodyReader, BodyWriter, TRAILER, bad_field, residue_bytes};
use super::error::FormatError;
use super::header::{HEADER_LEN, Header, Kind};
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
}

impl Role {
    fn code(self) -> u8 {
        match self {
            Self::Input => 1,
            Self::Result => 2,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        [Self::Input, Self::Result].into_iter().find(|role| role.code() == code)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Input => "encrypted input",
            Self::Result => "encrypted result",
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
        let n_ciphertexts = interface.input_layout().n_cts();
        Self { program: interface.program(), role: Role::Input, n_ciphertexts, level, scale }
    }

    /// Encrypted results of the program.
    pub fn result(interface: &Interface) -> Self {
        let (level, scale) = (interface.output_level(), interface.output_scale());
        let n_ciphertexts = interface.output_layout().n_cts();
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
}

/// Writes samples that look as `expected`.
///
/// # Errors
/// If the samples do not look so, or `to` cannot be written.
pub fn encode_ciphertexts(
    to: impl Write,
    context: &Context,
    expected: &Expected,
    ciphertexts: &Ciphertexts,
) -> Result<(), FormatError> {
    let mut writer = BodyWriter::new(to);
    Header::of(Kind::Ciphertexts, context, ciphertexts.key_id).write(&mut writer)?;
    writer.bytes(&expected.program.0)?;
    writer.u8(expected.role.code())?;
    writer.count(ciphertexts.samples.len())?;
    writer.count(expected.n_ciphertexts)?;
    for sample in &ciphertexts.samples {
        if sample.len() != expected.n_ciphertexts {
            return Err(bad_field("number of ciphertexts", sample.len()));
        }
        sample.iter().try_for_each(|stored| encode_one(&mut writer, context, stored))?;
    }
    writer.finish()?;
    Ok(())
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
    writer.u16(level.0)?;
    writer.f64(scale.value())?;
    writer.u8(form)?;
    match stored {
        Stored::Seeded(seeded) => {
            writer.bytes(&seeded.seed().0)?;
            writer.poly(seeded.residues(), towers(context, level))
        }
        Stored::Full(full) if full.polys().len() == 2 => {
            full.polys().iter().try_for_each(|poly| writer.poly(poly.data(), towers(context, level)))
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
    let mut reader = BodyReader::new(from, len)?;
    let header = Header::read(&mut reader, Kind::Ciphertexts)?;
    header.check_parameters(context)?;
    let program = Fingerprint(reader.array()?);
    if program != expected.program {
        return Err(FormatError::WrongProgram { found: program, expected: expected.program });
    }
    match Role::of_code(reader.u8()?) {
        Some(role) if role == expected.role => {}
        Some(role) => {
            return Err(FormatError::WrongRole { found: role.name(), expected: expected.role.name() });
        }
        None => return Err(bad_field("role", "unknown")),
    }
    let smallest = poly_bytes(context, expected.level);
    let n_samples = reader.count(smallest.saturating_mul(expected.n_ciphertexts as u64))?;
    let n_ciphertexts = reader.count(smallest)?;
    if n_ciphertexts != expected.n_ciphertexts {
        return Err(bad_field("number of ciphertexts", n_ciphertexts));
    }
    let samples = (0..n_samples)
        .map(|_| (0..n_ciphertexts).map(|_| decode_one(&mut reader, context, expected)).collect())
        .collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(Ciphertexts { key_id: header.key_id, samples })
}

/// How the ciphertexts of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Fresh from encryption, half of each as a seed.
    Seeded,
    /// Computed.
    Full,
}

/// Bytes of a file with `n_samples` samples that look as `expected`, all of one form.
pub fn ciphertexts_len(context: &Context, expected: &Expected, n_samples: usize, form: Form) -> u64 {
    let poly = poly_bytes(context, expected.level);
    let residues = match form {
        Form::Seeded => 32 + poly,
        Form::Full => 2 * poly,
    };
    let n_ciphertexts = (n_samples * expected.n_ciphertexts) as u64;
    HEADER_LEN as u64 + 32 + 1 + 4 + 4 + n_ciphertexts * (2 + 8 + 1 + residues) + TRAILER
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
    let scale = reader.f64()?;
    let scale = match Scale::new(scale) {
        Ok(scale) if scale.agrees(expected.scale) => scale,
        _ => return Err(bad_field("scale", scale)),
    };
    let malformed = |e: fhe_ckks::CkksError| bad_field("ciphertext", e);
    match reader.u8()? {
        FORM_SEEDED => {
            let seed = PublicSeed(reader.array()?);
            let residues = reader.poly(context.params().n(), towers(context, level))?;
            SeededCiphertext::from_residues(context, level, scale, &residues, seed)
                .map(Stored::Seeded)
                .map_err(malformed)
        }
        FORM_FULL => {
            let polys = [
                reader.poly(context.params().n(), towers(context, level))?,
                reader.poly(context.params().n(), towers(context, level))?,
            ];
            Ciphertext::from_residues(context, level, scale, &polys).map(Stored::Full).map_err(malformed)
        }
        form => Err(bad_field("form", form)),
    }
}

fn towers(context: &Context, level: Level) -> &[u64] {
    let towers = context.params().towers();
    &towers[..level.n_towers().min(towers.len())]
}

fn poly_bytes(context: &Context, level: Level) -> u64 {
    towers(context, level).iter().map(|&q| residue_bytes(context.params().n(), q)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_damage, toy_context, toy_key};
    use super::*;
    use fhe_secret::SeedSource;

    const PROGRAM: Fingerprint = Fingerprint([7; 32]);

    fn expected() -> Expected {
        let scale = Scale::from_log2(20.0);
        Expected { program: PROGRAM, role: Role::Input, n_ciphertexts: 2, level: Level(2), scale }
    }

    fn ciphertexts(context: &Context) -> Ciphertexts {
        let key = toy_key(context, 1);
        let mut seeds = SeedSource::deterministic(2);
        let values = vec![0.5; context.slots()];
        let plain = context.encoder().encode(&values, expected().scale, expected().level).unwrap();
        let mut seeded = || key.encrypt(context, &plain, &mut seeds).unwrap();
        let full = Stored::Full(seeded().expand(context));
        Ciphertexts { key_id: key.id(), samples: vec![vec![Stored::Seeded(seeded()), full]] }
    }

    fn encoded(context: &Context) -> Vec<u8> {
        let mut data = Vec::new();
        encode_ciphertexts(&mut data, context, &expected(), &ciphertexts(context)).unwrap();
        data
    }

    #[test]
    fn ciphertexts_survive_the_file() {
        let context = toy_context();
        let data = encoded(&context);
        let read = decode_ciphertexts(&data[..], data.len() as u64, &context, &expected()).unwrap();
        assert_eq!(read, ciphertexts(&context));
    }

    #[test]
    fn lengths_are_known_before_anything_is_written() {
        let context = toy_context();
        let expected = Expected { n_ciphertexts: 1, ..expected() };
        let [sample] = &ciphertexts(&context).samples[..] else { panic!("one sample") };
        for (stored, form) in sample.iter().zip([Form::Seeded, Form::Full]) {
            for n_samples in [0, 1, 3] {
                let samples = vec![vec![stored.clone()]; n_samples];
                let all = Ciphertexts { samples, ..ciphertexts(&context) };
                let mut data = Vec::new();
                encode_ciphertexts(&mut data, &context, &expected, &all).unwrap();
                assert_eq!(data.len() as u64, ciphertexts_len(&context, &expected, n_samples, form));
            }
        }
    }

    /// Reading under another expectation gives an error that says so.
    fn check_refused(change: impl FnOnce(&mut Expected), message: &str) {
        let context = toy_context();
        let data = encoded(&context);
        let mut other = expected();
        change(&mut other);
        let error =
            decode_ciphertexts(&data[..], data.len() as u64, &context, &other).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn ciphertexts_of_another_program_role_level_scale_or_count_are_refused() {
        check_refused(|e| e.program = Fingerprint([8; 32]), "was made for program 0707070707070707");
        check_refused(|e| e.role = Role::Result, "holds encrypted input, but encrypted result is needed");
        check_refused(|e| e.level = Level(1), "level is L2");
        check_refused(|e| e.scale = Scale::from_log2(21.0), "scale is 1048576");
        check_refused(|e| e.n_ciphertexts = 1, "number of ciphertexts is 2");
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        check_damage(&encoded(&context), |data| {
            decode_ciphertexts(data, data.len() as u64, &context, &expected()).map(drop)
        });
    }
}

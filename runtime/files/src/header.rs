//! The first bytes of every file: what it is, and for which parameters and key.
//!
//! ```text
//! magic 8 | version u16 | flags u16 | parameter fingerprint 32 | key id 16 | body | body length u64 | blake3 32
//! ```
//! All integers are little-endian. The hash covers everything before it. Flag bit 0 marks parameters below the
//! security bar; the other bits are zero.

use std::fmt;
use std::io::{Read, Write};

use fhe_bytecode::{Fingerprint, Params};

use super::codec::{BodyReader, BodyWriter};
use super::error::FormatError;
use fhe_ckks::KeyId;

/// Format version this release writes; it reads all up to it.
pub const VERSION: u16 = 2;
const FLAG_INSECURE: u16 = 1;
/// Bytes of the header.
pub const HEADER_LEN: usize = 8 + 2 + 2 + 32 + 16;

/// What a file holds, told by its magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A secret key: stays with the client.
    SecretKey,
    /// Evaluation keys: for the server.
    EvaluationKeys,
    /// Ciphertexts: inputs or results.
    Ciphertexts,
}

impl Kind {
    const ALL: [Self; 3] = [Self::SecretKey, Self::EvaluationKeys, Self::Ciphertexts];

    /// The first eight bytes of such a file.
    pub const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::SecretKey => b"fhe-sec\n",
            Self::EvaluationKeys => b"fhe-evk\n",
            Self::Ciphertexts => b"fhe-cts\n",
        }
    }

    /// The kind of a file that begins with `magic`.
    pub fn of_magic(magic: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| magic.starts_with(kind.magic()))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SecretKey => "a secret key",
            Self::EvaluationKeys => "a file of evaluation keys",
            Self::Ciphertexts => "a ciphertext file",
        })
    }
}

/// Everything the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the file holds.
    pub kind: Kind,
    /// Version of its format.
    pub version: u16,
    /// Whether the parameters are below the security bar.
    pub is_insecure: bool,
    /// Fingerprint of the parameters.
    pub parameters: Fingerprint,
    /// The key the content belongs to.
    pub key_id: KeyId,
}

impl Header {
    /// The header of a file of `kind` for these parameters.
    pub fn of(kind: Kind, params: &Params, key_id: KeyId) -> Self {
        let (is_insecure, parameters) = (!params.is_secure(), params.fingerprint());
        Self { kind, version: VERSION, is_insecure, parameters, key_id }
    }

    /// Refuses a file for other parameters than these; needs no tables of them.
    ///
    /// # Errors
    /// If they are others.
    pub fn check_parameters(&self, params: &Params) -> Result<(), FormatError> {
        let expected = Self::of(self.kind, params, self.key_id);
        if self.parameters != expected.parameters {
            return Err(FormatError::WrongParameters {
                found: self.parameters,
                expected: expected.parameters,
            });
        }
        if self.is_insecure != expected.is_insecure {
            return Err(FormatError::BadField {
                field: "insecure flag",
                value: self.is_insecure.to_string(),
            });
        }
        Ok(())
    }

    /// Writes the header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write<W: Write>(&self, to: &mut BodyWriter<W>) -> Result<(), FormatError> {
        to.bytes(self.kind.magic())?;
        to.u16(self.version)?;
        to.u16(if self.is_insecure { FLAG_INSECURE } else { 0 })?;
        to.bytes(&self.parameters.0)?;
        to.bytes(&self.key_id.0)
    }

    /// Reads the header of a file of kind `expected`.
    ///
    /// # Errors
    /// If the file is of another kind or version, or cut short.
    pub fn read<R: Read>(from: &mut BodyReader<R>, expected: Kind) -> Result<Self, FormatError> {
        let magic = from.array::<8>().map_err(|_| FormatError::WrongKind { found: None, expected })?;
        match Kind::of_magic(&magic) {
            Some(kind) if kind == expected => {}
            found => return Err(FormatError::WrongKind { found, expected }),
        }
        let version = from.u16()?;
        if !(1..=VERSION).contains(&version) {
            return Err(FormatError::UnsupportedVersion { found: version, supported: VERSION });
        }
        let flags = from.u16()?;
        if flags & !FLAG_INSECURE != 0 {
            return Err(FormatError::BadField { field: "flags", value: format!("{flags:#x}") });
        }
        Ok(Self {
            kind: expected,
            version,
            is_insecure: flags & FLAG_INSECURE != 0,
            parameters: Fingerprint(from.array()?),
            key_id: KeyId(from.array()?),
        })
    }
}

/// Reads the header of a file of `kind` that has `len` bytes; says nothing about the rest of it.
///
/// # Errors
/// If the file is of another kind or version.
pub fn decode_header(from: impl Read, len: u64, kind: Kind) -> Result<Header, FormatError> {
    Header::read(&mut BodyReader::new(from, len)?, kind)
}

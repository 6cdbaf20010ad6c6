//! Names of samples: `names u32`, none or as many as samples, then per name `length u8 | UTF-8`.
//!
//! Names are for people. What a terminal would obey is spelled out when they are written, and refused when read.

use std::io::{Read, Write};

use fhe_bytecode::text::harmless;

use super::codec::{BodyReader, BodyWriter, bad_field};
use super::error::FormatError;

/// Bytes of a name.
pub(crate) const MAX_NAME_BYTES: usize = u8::MAX as usize;

/// Writes names, cut to what a name may have.
pub(crate) fn write<W: Write>(
    writer: &mut BodyWriter<W>,
    names: &[String],
    n_samples: usize,
) -> Result<(), FormatError> {
    if !names.is_empty() && names.len() != n_samples {
        return Err(bad_field("number of names", names.len()));
    }
    writer.count(names.len())?;
    for name in names {
        let name = harmless(name);
        let end = name.floor_char_boundary(MAX_NAME_BYTES);
        let name = &name.as_bytes()[..end];
        writer.u8(u8::try_from(name.len()).map_err(|_| bad_field("length of a name", name.len()))?)?;
        writer.bytes(name)?;
    }
    Ok(())
}

/// Reads names.
pub(crate) fn read<R: Read>(
    reader: &mut BodyReader<R>,
    n_samples: usize,
) -> Result<Vec<String>, FormatError> {
    let n_names = reader.count(1)?;
    if n_names != 0 && n_names != n_samples {
        return Err(bad_field("number of names", n_names));
    }
    (0..n_names).map(|_| read_one(reader)).collect()
}

fn read_one<R: Read>(reader: &mut BodyReader<R>) -> Result<String, FormatError> {
    let mut bytes = vec![0; usize::from(reader.u8()?)];
    reader.fill(&mut bytes)?;
    let name = String::from_utf8(bytes).map_err(|_| bad_field("name", "no text"))?;
    match harmless(&name) == name {
        true => Ok(name),
        false => Err(bad_field("name", harmless(&name))),
    }
}

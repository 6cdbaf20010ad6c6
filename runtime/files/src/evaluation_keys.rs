//! Evaluation key files: what a server needs to relinearize and rotate, half of each key as a seed.
//!
//! ```text
//! keys u32 | keys
//! key: use u32 (0 relinearize, else rotation steps) | level u16 | seed 32 | one polynomial per digit
//! ```
//! Uses are strictly ascending. A polynomial has the towers up to its level, then the special primes.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use fhe_bytecode::Level;

use super::codec::{BodyReader, BodyWriter, TRAILER, bad_field, residue_bytes};
use super::error::FormatError;
use super::header::{HEADER_LEN, Header, Kind};
use fhe_ckks::{Context, EvaluationKeys, KeyId, KeyRequest, KeySwitchKey, KeyUse, PublicSeed, Rotation};

/// Writes evaluation keys one at a time, so that only one has to be in memory.
pub struct EvaluationKeysWriter<'c, W: Write> {
    writer: BodyWriter<W>,
    context: &'c Context,
}

impl<'c, W: Write> EvaluationKeysWriter<'c, W> {
    /// Begins a file of `n_keys` keys that belong to the secret key `id`.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn new(to: W, context: &'c Context, id: KeyId, n_keys: usize) -> Result<Self, FormatError> {
        let mut writer = BodyWriter::new(to);
        Header::of(Kind::EvaluationKeys, context, id).write(&mut writer)?;
        writer.count(n_keys)?;
        Ok(Self { writer, context })
    }

    /// Writes the next key; keys come in ascending order of use.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, key_use: KeyUse, key: &KeySwitchKey) -> Result<(), FormatError> {
        encode_one(&mut self.writer, self.context, key_use, key)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the end cannot be written.
    pub fn finish(self) -> Result<(), FormatError> {
        self.writer.finish().map(drop)
    }
}

/// Writes a set of keys.
///
/// # Errors
/// If `to` cannot be written.
pub fn encode_evaluation_keys(
    to: impl Write,
    context: &Context,
    keys: &EvaluationKeys,
) -> Result<(), FormatError> {
    let mut writer = EvaluationKeysWriter::new(to, context, keys.id(), keys.iter().count())?;
    keys.iter().try_for_each(|(key_use, key)| writer.write(key_use, key))?;
    writer.finish()
}

fn encode_one<W: Write>(
    writer: &mut BodyWriter<W>,
    context: &Context,
    key_use: KeyUse,
    key: &KeySwitchKey,
) -> Result<(), FormatError> {
    writer.u32(match key_use {
        KeyUse::Relinearize => 0,
        KeyUse::Rotate(rotation) => rotation.steps() as u32,
    })?;
    writer.u16(key.level().0)?;
    writer.bytes(&key.seed().0)?;
    let moduli = moduli(context, key.level());
    key.residues().try_for_each(|digit| writer.poly(&digit, &moduli))
}

/// Reads keys for the parameters of `context` from a file of `len` bytes.
///
/// # Errors
/// If the file is damaged or for other parameters.
pub fn decode_evaluation_keys(
    from: impl Read,
    len: u64,
    context: &Context,
) -> Result<EvaluationKeys, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    let header = Header::read(&mut reader, Kind::EvaluationKeys)?;
    header.check_parameters(context)?;
    let smallest = key_bytes(context, Level(0));
    let n_keys = reader.count(smallest)?;
    let mut keys = BTreeMap::new();
    for _ in 0..n_keys {
        let (key_use, key) = decode_one(&mut reader, context)?;
        if keys.last_key_value().is_some_and(|(last, _)| *last >= key_use) {
            return Err(bad_field("use of a key", "not in order"));
        }
        keys.insert(key_use, key);
    }
    reader.finish()?;
    Ok(EvaluationKeys::from_parts(context, header.key_id, keys))
}

/// Bytes of a file with the keys of `request`.
pub fn evaluation_keys_len(context: &Context, request: &KeyRequest) -> u64 {
    let one = |(_, level): (KeyUse, Level)| 4 + 2 + 32 + key_bytes(context, level);
    HEADER_LEN as u64 + 4 + request.iter().map(one).sum::<u64>() + TRAILER
}

fn decode_one<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
) -> Result<(KeyUse, KeySwitchKey), FormatError> {
    let key_use = match reader.u32()? as usize {
        0 => KeyUse::Relinearize,
        steps if steps < context.slots() => KeyUse::Rotate(Rotation::new(steps as i64, context)),
        steps if steps == context.slots() => KeyUse::Rotate(Rotation::conjugation(context)),
        steps => return Err(bad_field("rotation", steps)),
    };
    let level = Level(reader.u16()?);
    context.check_level(level).map_err(|_| bad_field("level", level))?;
    let seed = PublicSeed(reader.array()?);
    reader.expect(key_bytes(context, level))?;
    let moduli = moduli(context, level);
    let digits = (0..context.params().n_digits(level))
        .map(|_| reader.poly(context.params().n(), &moduli))
        .collect::<Result<Vec<_>, _>>()?;
    let key = KeySwitchKey::from_residues(context, level, seed, &digits);
    Ok((key_use, key.map_err(|e| bad_field("evaluation key", e))?))
}

/// The towers up to `level`, then the special primes.
fn moduli(context: &Context, level: Level) -> Vec<u64> {
    let params = context.params();
    params.towers().iter().take(level.n_towers()).chain(params.special_primes()).copied().collect()
}

fn key_bytes(context: &Context, level: Level) -> u64 {
    let params = context.params();
    let poly: u64 = moduli(context, level).iter().map(|&q| residue_bytes(params.n(), q)).sum();
    poly * params.n_digits(level) as u64
}

#[cfg(test)]
mod tests {
    use fhe_secret::SeedSource;

    use super::super::testing::{check_damage, toy_context, toy_key};
    use super::*;

    fn request(context: &Context) -> KeyRequest {
        let mut request = KeyRequest::default();
        request.add(KeyUse::Relinearize, Level(2));
        request.add(KeyUse::Rotate(Rotation::new(-1, context)), Level(0));
        request.add(KeyUse::Rotate(Rotation::new(3, context)), Level(1));
        request
    }

    fn keys(context: &Context) -> EvaluationKeys {
        let mut seeds = SeedSource::deterministic(2);
        toy_key(context, 1).evaluation_keys(context, &request(context), &mut seeds).unwrap()
    }

    #[test]
    fn keys_survive_the_file() {
        let context = toy_context();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys(&context)).unwrap();
        assert_eq!(data.len() as u64, evaluation_keys_len(&context, &request(&context)));
        let read = decode_evaluation_keys(&data[..], data.len() as u64, &context).unwrap();
        assert!(read == keys(&context));
    }

    #[test]
    fn missing_and_truncated_keys_are_found() {
        let context = toy_context();
        let keys = keys(&context);
        let mut request = request(&context);
        assert_eq!(keys.missing(&request), None);
        request.add(KeyUse::Rotate(Rotation::new(3, &context)), Level(2));
        assert_eq!(keys.missing(&request), Some((KeyUse::Rotate(Rotation::new(3, &context)), Level(2))));
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys(&context)).unwrap();
        check_damage(&data, |data| decode_evaluation_keys(data, data.len() as u64, &context).map(drop));
    }
}

//! Evaluation key files: what a server needs to relinearize and rotate, half of each key as a seed.
//!
//! ```text
//! keys u32 | keys
//! key: use u32 (0 relinearize, else rotation steps) | level u16 | seed 32 | one polynomial per digit
//! ```
//! Uses are strictly ascending. A polynomial has the towers up to its level, then the special primes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use fhe_bytecode::Level;
use fhe_host::Content;

use super::codec::{BodyReader, BodyWriter, bad_field, residue_bytes};
use super::error::{FileError, FileErrorKind};
use super::header::{Header, Kind};
use super::store::{open, write_atomically};
use crate::ckks::{Context, KeySwitchKey, PublicSeed, Rotation, SecretKey, SeedSource};
use crate::vm::{EvaluationKeys, KeyRequest, KeyUse, generate_key};

const CONTENT: Content = Content::Magic(Kind::EvaluationKeys.magic());

/// Makes every key of `request` and writes it at once, so that only one is in memory at a time.
///
/// `progress` is told the part that is done after each key.
///
/// # Errors
/// If a key cannot be made or the file cannot be written.
pub fn generate_evaluation_keys(
    path: &Path,
    context: &Context,
    secret: &SecretKey,
    request: &KeyRequest,
    seeds: &mut SeedSource,
    progress: &mut dyn FnMut(f64),
) -> Result<(), FileError> {
    write_atomically(path, CONTENT, |file| {
        let mut writer = begin(file, context, secret.id(), request.len())?;
        for (done, (key_use, level)) in request.iter().enumerate() {
            let key = generate_key(context, secret, (key_use, level), seeds)
                .map_err(|e| FileErrorKind::Io(std::io::Error::other(e)))?;
            encode_one(&mut writer, context, key_use, &key)?;
            progress((done + 1) as f64 / request.len() as f64);
        }
        writer.finish()?;
        Ok(())
    })
}

/// Writes a set of keys.
///
/// # Errors
/// If the file cannot be written.
pub fn write_evaluation_keys(path: &Path, context: &Context, keys: &EvaluationKeys) -> Result<(), FileError> {
    write_atomically(path, CONTENT, |file| encode(file, context, keys))
}

/// Keys from the bytes of a file; see [`read_evaluation_keys`].
///
/// # Errors
/// As for the file.
pub fn decode_evaluation_keys(data: &[u8], context: &Context) -> Result<EvaluationKeys, FileErrorKind> {
    decode(data, data.len() as u64, context)
}

/// Reads keys for the parameters of `context`.
///
/// # Errors
/// If the file is damaged or for other parameters.
pub fn read_evaluation_keys(path: &Path, context: &Context) -> Result<EvaluationKeys, FileError> {
    let read = || -> Result<EvaluationKeys, FileErrorKind> {
        let (file, len) = open(path, Kind::EvaluationKeys)?;
        decode(BufReader::<File>::with_capacity(1 << 20, file), len, context)
    };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

fn begin<'w>(
    to: &'w mut dyn Write,
    context: &Context,
    id: crate::ckks::KeyId,
    n_keys: usize,
) -> Result<BodyWriter<&'w mut dyn Write>, FileErrorKind> {
    let mut writer = BodyWriter::new(to);
    Header::of(Kind::EvaluationKeys, context, id).write(&mut writer)?;
    writer.count(n_keys)?;
    Ok(writer)
}

fn encode(to: &mut dyn Write, context: &Context, keys: &EvaluationKeys) -> Result<(), FileErrorKind> {
    let mut writer = begin(to, context, keys.id(), keys.iter().count())?;
    keys.iter().try_for_each(|(key_use, key)| encode_one(&mut writer, context, key_use, key))?;
    writer.finish()?;
    Ok(())
}

fn encode_one<W: Write>(
    writer: &mut BodyWriter<W>,
    context: &Context,
    key_use: KeyUse,
    key: &KeySwitchKey,
) -> Result<(), FileErrorKind> {
    writer.u32(match key_use {
        KeyUse::Relinearize => 0,
        KeyUse::Rotate(rotation) => rotation.steps() as u32,
    })?;
    writer.u16(key.level().0)?;
    writer.bytes(&key.seed().0)?;
    let moduli = moduli(context, key.level());
    key.residues().try_for_each(|digit| writer.poly(&digit, &moduli))
}

fn decode<R: Read>(from: R, len: u64, context: &Context) -> Result<EvaluationKeys, FileErrorKind> {
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
    Ok(EvaluationKeys::from_parts(header.key_id, keys))
}

fn decode_one<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
) -> Result<(KeyUse, KeySwitchKey), FileErrorKind> {
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
        EvaluationKeys::generate(context, &toy_key(context, 1), &request(context), &mut seeds).unwrap()
    }

    #[test]
    fn keys_survive_the_file() {
        let (context, folder) = (toy_context(), tempfile::tempdir().unwrap());
        let path = folder.path().join("me.evk");
        let keys = keys(&context);
        write_evaluation_keys(&path, &context, &keys).unwrap();
        assert!(read_evaluation_keys(&path, &context).unwrap() == keys);
    }

    #[test]
    fn keys_made_one_by_one_are_the_same() {
        let (context, folder) = (toy_context(), tempfile::tempdir().unwrap());
        let path = folder.path().join("me.evk");
        let (secret, request) = (toy_key(&context, 1), request(&context));
        let mut last = 0.0;
        let mut seeds = SeedSource::deterministic(2);
        generate_evaluation_keys(&path, &context, &secret, &request, &mut seeds, &mut |part| last = part)
            .unwrap();
        assert!(read_evaluation_keys(&path, &context).unwrap() == keys(&context));
        assert_eq!(last, 1.0);
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
        encode(&mut data, &context, &keys(&context)).unwrap();
        check_damage(&data, |data| decode(data, data.len() as u64, &context).map(drop));
    }
}

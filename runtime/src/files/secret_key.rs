//! The secret key file: N coefficients of a ternary polynomial, one byte each (0, 1, 2 for -1, 0, 1).

use std::io::Read;
use std::path::Path;

use fhe_host::Content;
use zeroize::Zeroizing;

use super::codec::{BodyReader, BodyWriter, TRAILER, bad_field};
use super::error::{FileError, FileErrorKind};
use super::header::{HEADER_LEN, Header, Kind};
use super::store::{open, write_atomically};
use crate::ckks::{Context, SecretKey};

/// Writes a secret key to a new file that only its owner can read.
///
/// # Errors
/// If the file exists already or cannot be written.
pub fn write_secret_key(path: &Path, context: &Context, key: &SecretKey) -> Result<(), FileError> {
    let data = encode(context, key).map_err(|kind| FileError { path: path.to_path_buf(), kind })?;
    write_atomically(path, Content::Secret, |file| Ok(file.write_all(&data)?))
}

/// Reads a secret key made for the parameters of `context`.
///
/// # Errors
/// If others can read the file, it is damaged, or it is for other parameters.
pub fn read_secret_key(path: &Path, context: &Context) -> Result<SecretKey, FileError> {
    let read = || -> Result<SecretKey, FileErrorKind> {
        let (mut file, len) = open(path, Kind::SecretKey)?;
        let mut data = Zeroizing::new(vec![0; expected_len(context)]);
        if len < data.len() as u64 {
            // Too short for a key; the decoder says what is missing, or that this is no key at all.
            data.truncate(len as usize);
        }
        file.read_exact(&mut data)?;
        match len - data.len() as u64 {
            0 => decode_secret_key(&data, context),
            n_bytes => decode_secret_key(&data, context).and(Err(FileErrorKind::TrailingBytes { n_bytes })),
        }
    };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

fn expected_len(context: &Context) -> usize {
    HEADER_LEN + context.params().n() + TRAILER as usize
}

fn encode(context: &Context, key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, FileErrorKind> {
    // Enough room from the start: a growing vector would leave copies behind.
    let mut data = Zeroizing::new(Vec::with_capacity(expected_len(context)));
    let mut writer = BodyWriter::new(&mut *data);
    Header::of(Kind::SecretKey, context, key.id()).write(&mut writer)?;
    let coeffs: Zeroizing<Vec<u8>> = Zeroizing::new(key.coeffs().iter().map(|&c| (c + 1) as u8).collect());
    writer.bytes(&coeffs)?;
    writer.finish()?;
    Ok(data)
}

/// A secret key from the bytes of a file.
///
/// # Errors
/// If the bytes are damaged or for other parameters.
pub fn decode_secret_key(data: &[u8], context: &Context) -> Result<SecretKey, FileErrorKind> {
    let mut reader = BodyReader::new(data, data.len() as u64)?;
    let header = Header::read(&mut reader, Kind::SecretKey)?;
    header.check_parameters(context)?;
    let n = context.params().n();
    reader.expect(n as u64)?;
    let mut bytes = Zeroizing::new(vec![0; n]);
    reader.fill(&mut bytes)?;
    reader.finish()?;
    if bytes.iter().fold(false, |bad, &byte| bad | (byte > 2)) {
        return Err(bad_field("secret coefficient", "out of range"));
    }
    let coeffs = Zeroizing::new(bytes.iter().map(|&byte| byte as i8 - 1).collect());
    SecretKey::from_coeffs(context, header.key_id, coeffs).map_err(|e| bad_field("secret key", e))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_damage, toy_context, toy_key};
    use super::*;

    #[test]
    fn key_survives_the_file() {
        let (context, folder) = (toy_context(), tempfile::tempdir().unwrap());
        let key = toy_key(&context, 1);
        let path = folder.path().join("me.key");
        write_secret_key(&path, &context, &key).unwrap();
        let read = read_secret_key(&path, &context).unwrap();
        assert!(read.id() == key.id() && read.coeffs() == key.coeffs());
    }

    #[test]
    fn longer_file_is_refused() {
        let (context, folder) = (toy_context(), tempfile::tempdir().unwrap());
        let path = folder.path().join("me.key");
        let mut data = encode(&context, &toy_key(&context, 1)).unwrap().to_vec();
        data.push(0);
        write_atomically(&path, Content::Secret, |file| Ok(file.write_all(&data)?)).unwrap();
        let kind = read_secret_key(&path, &context).err().unwrap().kind;
        assert!(matches!(kind, FileErrorKind::TrailingBytes { n_bytes: 1 }));
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        let data = encode(&context, &toy_key(&context, 1)).unwrap();
        check_damage(&data, |data| decode_secret_key(data, &context).map(drop));
    }
}

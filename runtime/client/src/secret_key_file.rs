//! The secret key file: N coefficients of a ternary polynomial, one byte each (0, 1, 2 for -1, 0, 1).

use fhe_ckks::Context;
use fhe_files::codec::{BodyReader, BodyWriter, TRAILER, bad_field};
use fhe_files::{FormatError, HEADER_LEN, Header, Kind};
use fhe_secret::SecretKey;
use zeroize::Zeroizing;

/// Bytes of a secret key file.
pub fn secret_key_len(context: &Context) -> usize {
    HEADER_LEN + context.params().n() + TRAILER as usize
}

/// The bytes of a secret key file; erased when dropped.
///
/// # Errors
/// Never in practice: memory is written.
pub fn encode_secret_key(context: &Context, key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, FormatError> {
    // Enough room from the start: a growing vector would leave copies behind.
    let mut data = Zeroizing::new(Vec::with_capacity(secret_key_len(context)));
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
pub fn decode_secret_key(data: &[u8], context: &Context) -> Result<SecretKey, FormatError> {
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
    use super::*;
    use crate::testing::{check_damage, toy_context, toy_key};

    #[test]
    fn key_survives_the_file() {
        let context = toy_context();
        let key = toy_key(&context, 1);
        let data = encode_secret_key(&context, &key).unwrap();
        assert_eq!(data.len(), secret_key_len(&context));
        let read = decode_secret_key(&data, &context).unwrap();
        assert!(read.id() == key.id() && read.coeffs() == key.coeffs());
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        let data = encode_secret_key(&context, &toy_key(&context, 1)).unwrap();
        check_damage(&data, |data| decode_secret_key(data, &context).map(drop));
    }
}

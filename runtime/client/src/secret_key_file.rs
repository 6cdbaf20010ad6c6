//! The secret key file: the program it was made for, then N coefficients of a ternary polynomial, one byte each (0, 1, 2
//! for -1, 0, 1). Version 1 does not know the program.

use fhe_bytecode::Fingerprint;
use fhe_ckks::Context;
use fhe_files::codec::{BodyReader, BodyWriter, TRAILER_LEN, bad_field};
use fhe_files::{FormatError, HEADER_LEN, Header, Kind};
use fhe_secret::SecretKey;
use zeroize::Zeroizing;

const PROGRAM_BYTES: usize = 32;

/// Bytes of a secret key file; older ones are shorter.
pub fn secret_key_len(context: &Context) -> usize {
    HEADER_LEN + PROGRAM_BYTES + context.params().n() + TRAILER_LEN
}

/// The bytes of the file of a secret key that is made for a program; erased when dropped.
///
/// # Errors
/// Never in practice: memory is written.
pub fn encode_secret_key(
    context: &Context,
    key: &SecretKey,
    program: Fingerprint,
) -> Result<Zeroizing<Vec<u8>>, FormatError> {
    // Enough room from the start: a growing vector would leave copies behind.
    let mut data = Zeroizing::new(Vec::with_capacity(secret_key_len(context)));
    let mut writer = BodyWriter::new(&mut *data);
    Header::of(Kind::SecretKey, context.params(), key.id()).write(&mut writer)?;
    writer.bytes(&program.0)?;
    let coeffs: Zeroizing<Vec<u8>> =
        Zeroizing::new(key.coeffs().iter().map(|&c| (c + 1).cast_unsigned()).collect());
    writer.bytes(&coeffs)?;
    writer.finish()?;
    Ok(data)
}

/// A secret key from the bytes of a file, and the program it was made for, if the file tells it.
///
/// # Errors
/// If the bytes are damaged or for other parameters.
pub fn decode_secret_key(
    data: &[u8],
    context: &Context,
) -> Result<(SecretKey, Option<Fingerprint>), FormatError> {
    let mut reader = BodyReader::new(data, data.len() as u64)?;
    let header = Header::read(&mut reader, Kind::SecretKey)?;
    header.check_parameters(context.params())?;
    let program = match header.version {
        1 => None,
        _ => Some(Fingerprint(reader.array()?)),
    };
    let n = context.params().n();
    reader.expect(n as u64)?;
    let mut bytes = Zeroizing::new(vec![0; n]);
    reader.fill(&mut bytes)?;
    reader.finish()?;
    if bytes.iter().fold(false, |bad, &byte| bad | (byte > 2)) {
        return Err(bad_field("secret coefficient", "out of range"));
    }
    let coeffs = Zeroizing::new(bytes.iter().map(|&byte| byte.cast_signed() - 1).collect());
    let key =
        SecretKey::from_coeffs(context, header.key_id, coeffs).map_err(|e| bad_field("secret key", e))?;
    Ok((key, program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_damage, toy_context, toy_key};

    const PROGRAM: Fingerprint = Fingerprint([7; 32]);

    #[test]
    fn key_survives_the_file() {
        let context = toy_context();
        let key = toy_key(&context, 1);
        let data = encode_secret_key(&context, &key, PROGRAM).unwrap();
        assert_eq!(data.len(), secret_key_len(&context));
        let (read, program) = decode_secret_key(&data, &context).unwrap();
        assert_eq!(program, Some(PROGRAM));
        assert!(read.id() == key.id() && read.coeffs() == key.coeffs());
    }

    /// The file with a change of its body, and its hash made right.
    fn changed(data: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut body = data[..data.len() - TRAILER_LEN].to_vec();
        change(&mut body);
        let mut writer = BodyWriter::new(Vec::new());
        writer.bytes(&body).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn version_one_knows_no_program() {
        let context = toy_context();
        let key = toy_key(&context, 1);
        let old = changed(&encode_secret_key(&context, &key, PROGRAM).unwrap(), |body| {
            body[8..10].copy_from_slice(&1_u16.to_le_bytes());
            body.drain(HEADER_LEN..HEADER_LEN + PROGRAM_BYTES);
        });
        let (read, program) = decode_secret_key(&old, &context).unwrap();
        assert!(program.is_none() && read.id() == key.id() && read.coeffs() == key.coeffs());
    }

    #[test]
    fn coefficients_are_zero_one_or_minus_one() {
        let context = toy_context();
        let data = encode_secret_key(&context, &toy_key(&context, 1), PROGRAM).unwrap();
        let first = HEADER_LEN + PROGRAM_BYTES;
        for (wrong, n) in [(3, 1), (3, 2), (0x80, 1), (0xff, 2)] {
            let data = changed(&data, |body| body[first..first + n].fill(wrong));
            let message = decode_secret_key(&data, &context).err().map(|error| error.to_string());
            let expected = "is damaged: secret coefficient is out of range";
            assert_eq!(message.as_deref(), Some(expected), "{n} times {wrong}");
        }
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        let data = encode_secret_key(&context, &toy_key(&context, 1), PROGRAM).unwrap();
        check_damage(&data, |data| decode_secret_key(data, &context).map(drop));
    }
}

//! Interfaces: round trips, programs as interfaces, limits, and hostile bytes.

use super::*;
use crate::testing::{Rng, sample_program};

fn sample() -> CheckedProgram {
    CheckedProgram::new(sample_program()).unwrap()
}

fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let context = if bytes.starts_with(&MAGIC) { CHECKSUM_CONTEXT } else { "fhec 1 interface file" };
    let sum = *blake3::Hasher::new_derive_key(context).update(&bytes[..body]).finalize().as_bytes();
    bytes[body..].copy_from_slice(&sum);
    bytes
}

#[test]
fn a_file_a_program_and_its_file_give_one_interface() {
    let program = sample();
    let interface = program.interface();
    let bytes = encode_interface(&interface);
    assert_eq!(read_interface(&bytes[..], DEFAULT_LIMIT).unwrap(), interface);
    let file = encode(&program);
    assert_eq!(read_interface(&file[..], DEFAULT_LIMIT).unwrap(), interface);
    assert_eq!(interface.program(), program_fingerprint(&file).unwrap());
    assert_eq!(read_program(&file[..], DEFAULT_LIMIT).unwrap().interface(), interface);
}

#[test]
fn the_fingerprint_follows_the_predictions() {
    let before = sample().fingerprint();
    let prediction = crate::Prediction { seconds: 7.0, ..Default::default() };
    let expectation = crate::Expectation { prediction, layer_seconds: Vec::new() };
    let program = CheckedProgram::with_prediction(sample().spec().clone(), |program| {
        assert_eq!(program.fingerprint(), before);
        expectation
    })
    .unwrap();
    assert_ne!(program.fingerprint(), before);
    assert_eq!(Some(program.fingerprint()), program_fingerprint(&encode(&program)));
}

#[test]
fn an_interface_is_no_program_and_a_key_is_neither() {
    let bytes = encode_interface(&sample().interface());
    assert_eq!(decode(&bytes, DEFAULT_LIMIT).unwrap_err(), DecodeError::NotAProgram);
    for other in [&b"fhe-evk\n and more"[..], b"", b"FHEIF"] {
        assert_eq!(read_interface(other, DEFAULT_LIMIT).unwrap_err(), DecodeError::NotAnInterface);
    }
    let mut future = bytes.clone();
    future[8] = 9;
    assert_eq!(read_interface(&future[..], DEFAULT_LIMIT).unwrap_err(), DecodeError::InterfaceVersion(9));
}

#[test]
fn every_flipped_byte_and_every_truncation_is_noticed() {
    let program = sample();
    for bytes in [encode_interface(&program.interface()), encode(&program)] {
        for at in (0..bytes.len()).step_by(5) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(read_interface(&damaged[..], DEFAULT_LIMIT).is_err(), "byte {at}");
            assert!(read_interface(&bytes[..at], DEFAULT_LIMIT).is_err(), "{at} bytes");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(read_interface(&longer[..], DEFAULT_LIMIT).is_err());
    }
}

#[test]
fn limits_hold_for_files_that_never_end() {
    let start = encode_interface(&sample().interface());
    let endless = start.chain(std::io::repeat(0));
    let error = read_interface(endless, 1 << 20).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: 1_048_576, .. }), "{error}");
    // A section that claims more than an interface may have is refused before it is read.
    let mut program = encode(&sample());
    let section = program.windows(4).position(|tag| tag == b"ORIG").unwrap();
    program[section + 4..section + 12].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let error = read_interface(program.chain(std::io::repeat(0)), u64::MAX).unwrap_err();
    assert!(error.to_string().ends_with("section too large"), "{error}");
}

#[test]
fn the_fingerprint_in_the_header_is_that_of_the_parameters() {
    let mut bytes = encode_interface(&sample().interface());
    bytes[12] ^= 1;
    let error = read_interface(&resealed(bytes)[..], DEFAULT_LIMIT).unwrap_err();
    assert!(matches!(error, DecodeError::Fingerprint { .. }), "{error}");
}

#[test]
fn resealed_mutations_never_panic_and_have_one_form() {
    let bytes = encode_interface(&sample().interface());
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut changed = bytes.clone();
        for _ in 0..=rng.below(2) {
            let at = 44 + rng.below((bytes.len() - 44 - CHECKSUM_BYTES) as u32) as usize;
            match rng.below(4) {
                0 => changed[at] = rng.next() as u8,
                1 => changed[at] ^= 1 << rng.below(8),
                2 => drop(changed.remove(at.min(changed.len() - CHECKSUM_BYTES - 1))),
                _ => changed.insert(at.min(changed.len() - CHECKSUM_BYTES), rng.next() as u8),
            }
        }
        let changed = resealed(changed);
        if let Ok(interface) = read_interface(&changed[..], DEFAULT_LIMIT) {
            assert_eq!(encode_interface(&interface), changed, "seed {seed}: one interface, one form");
            accepted += 1;
        }
    }
    assert!(accepted > 500, "only {accepted} mutations were accepted");
}

//! Round trips, damage, and hostile bytes.

use super::*;
use crate::testing::{Rng, sample_program};

fn sample() -> Vec<u8> {
    encode(&CheckedProgram::new(sample_program()).unwrap())
}

/// Writes a valid checksum under changed bytes, so that the parser itself meets them.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let sum = checksum(&bytes[..body]);
    bytes[body..].copy_from_slice(&sum);
    bytes
}

#[test]
fn decoding_inverts_encoding() {
    let bytes = sample();
    let program = decode(&bytes, DEFAULT_LIMIT).unwrap();
    assert_eq!(*program.spec(), sample_program());
    assert_eq!(encode(&program), bytes);
}

#[test]
fn a_pool_survives_bytes_and_text() {
    let mut spec = sample_program();
    let n = spec.params.towers.len() as u16;
    let levels = (1..=n).map(|n| (0..n).map(crate::TowerIdx).collect()).collect();
    spec.params.pool = Some(crate::Pool { levels, digits: vec![1; usize::from(n)] });
    let program = CheckedProgram::new(spec.clone()).unwrap();
    assert_eq!(*decode(&encode(&program), DEFAULT_LIMIT).unwrap().spec(), spec);
    assert_eq!(ProgramSpec::from_ron(&spec.to_ron().unwrap()).unwrap(), spec);
    let without = CheckedProgram::new(sample_program()).unwrap();
    assert_ne!(program.params().fingerprint(), without.params().fingerprint());
}

#[test]
fn ron_carries_the_same_program() {
    let program = sample_program();
    let text = program.to_ron().unwrap();
    assert_eq!(ProgramSpec::from_ron(&text).unwrap(), program);
}

#[test]
fn every_flipped_byte_is_noticed() {
    let bytes = sample();
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(decode(&damaged, DEFAULT_LIMIT).is_err(), "byte {at}");
    }
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = sample();
    for len in (0..bytes.len()).step_by(5) {
        assert!(decode(&bytes[..len], DEFAULT_LIMIT).is_err(), "{len} bytes");
    }
}

#[test]
fn ten_thousand_resealed_mutations_never_panic() {
    let bytes = sample();
    let mut accepted = 0;
    for seed in 0..10_000 {
        let mut rng = Rng::new(seed);
        let mut changed = bytes.clone();
        for _ in 0..=rng.below(3) {
            let at = HEADER_BYTES + rng.below((bytes.len() - HEADER_BYTES - CHECKSUM_BYTES) as u32) as usize;
            match rng.below(4) {
                0 => changed[at] = rng.next() as u8,
                1 => changed[at] ^= 1 << rng.below(8),
                2 => drop(changed.remove(at.min(changed.len() - CHECKSUM_BYTES - 1))),
                _ => changed.insert(at.min(changed.len() - CHECKSUM_BYTES), rng.next() as u8),
            }
        }
        let changed = resealed(changed);
        if let Ok(program) = decode(&changed, DEFAULT_LIMIT) {
            assert_eq!(encode(&program), changed, "seed {seed}: one program, one form");
            accepted += 1;
        }
    }
    // Most of the file is weights, whose every bit pattern but a few is a weight.
    assert!(accepted > 1000, "only {accepted} mutations reached the checker and passed");
}

#[test]
fn size_limit_comes_first() {
    let bytes = sample();
    let found = bytes.len() as u64;
    assert_eq!(decode(&bytes, 100).unwrap_err(), DecodeError::TooLarge { found, limit: 100 });
}

#[test]
fn other_files_and_versions_are_told_apart() {
    assert_eq!(decode(b"PNG", DEFAULT_LIMIT).unwrap_err(), DecodeError::NotAProgram);
    let mut future = sample();
    future[8] = 9;
    assert_eq!(decode(&future, DEFAULT_LIMIT).unwrap_err(), DecodeError::Version(9));
}

#[test]
fn fingerprint_must_be_that_of_the_parameters() {
    let mut bytes = sample();
    bytes[12] ^= 1;
    let error = decode(&resealed(bytes), DEFAULT_LIMIT).unwrap_err();
    assert!(matches!(error, DecodeError::Fingerprint { .. }), "{error}");
}

#[test]
fn bytes_after_the_last_section_are_refused() {
    let mut bytes = sample();
    bytes.insert(bytes.len() - CHECKSUM_BYTES, 0);
    let error = decode(&resealed(bytes), DEFAULT_LIMIT).unwrap_err();
    assert!(error.to_string().ends_with("bytes after the last section"), "{error}");
}

#[test]
fn the_output_fact_must_be_that_of_the_instructions() {
    let mut bytes = sample();
    let section = bytes.windows(4).position(|tag| tag == b"OUTF").unwrap();
    // Tag, length, level, then the scale: one unit in its last place.
    bytes[section + 4 + 8 + 1] ^= 1;
    let error = decode(&resealed(bytes), DEFAULT_LIMIT).unwrap_err();
    assert!(matches!(error, DecodeError::Output { level: Level(0), .. }), "{error}");
}

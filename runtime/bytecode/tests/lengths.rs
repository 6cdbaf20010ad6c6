//! Program files at the edges: as long as allowed, too short to be one, and with an end that its instructions do not lead to.

use fhe_bytecode::codec::{self, DecodeError, INTERFACE_MAGIC, MAGIC, VERSION};
use fhe_bytecode::{CheckedProgram, Codebook, CodebookId, Fingerprint, Tensor, TensorData};

const CHECKSUM_BYTES: usize = 32;
/// Magic, version and fingerprint.
const HEADER_BYTES: usize = 8 + 4 + 32;

fn golden(name: &str) -> Vec<u8> {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn newest() -> Vec<u8> {
    golden(&format!("v{VERSION}.fhebc"))
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let mut hasher = blake3::Hasher::new_derive_key("fhec 1 program file");
    let checksum = hasher.update(&bytes[..body]).finalize();
    bytes[body..].copy_from_slice(checksum.as_bytes());
    bytes
}

#[test]
fn a_file_of_the_limit_is_read_and_one_byte_more_is_not() {
    let bytes = newest();
    let len = bytes.len() as u64;
    let read =
        |limit: u64| (codec::decode(&bytes, limit).is_ok(), codec::read_program(&bytes[..], limit).is_ok());
    assert_eq!((read(len), read(len + 1)), ((true, true), (true, true)));
    assert!(
        matches!(codec::decode(&bytes, len - 1), Err(DecodeError::TooLarge { found, limit }) if found == len && limit == len - 1)
    );
    assert!(codec::read_program(&bytes[..], len - 1).is_err());
}

#[test]
fn what_is_shorter_than_header_and_checksum_is_no_program() {
    let bytes = newest();
    let least = HEADER_BYTES + CHECKSUM_BYTES;
    for len in [0, 1, 7, 8, 11, 12, 31, 32, 33, HEADER_BYTES, least - 1] {
        assert!(matches!(codec::decode(&bytes[..len], 1 << 20), Err(DecodeError::NotAProgram)), "{len}");
    }
    for len in [least, least + 1] {
        assert!(matches!(codec::decode(&bytes[..len], 1 << 20), Err(DecodeError::Checksum)), "{len}");
    }
    assert!(matches!(codec::decode(&INTERFACE_MAGIC, 1 << 20), Err(DecodeError::NotAProgram)));
    assert!(matches!(
        codec::decode(&[&MAGIC[..], &[0; 100]].concat(), 1 << 20),
        Err(DecodeError::Version(0))
    ));
}

#[test]
fn the_fingerprint_of_a_file_is_its_last_32_bytes() {
    let bytes = newest();
    let last: [u8; 32] = bytes[bytes.len() - 32..].try_into().unwrap();
    assert_eq!(codec::program_fingerprint(&bytes), Some(Fingerprint(last)));
    assert_eq!(codec::program_fingerprint(&bytes[..32]), Some(Fingerprint(bytes[..32].try_into().unwrap())));
    assert_eq!(codec::program_fingerprint(&bytes[..31]), None);
}

/// Clients read the level and the scale of results from the front of a program, so they must be those that its
/// instructions lead to.
#[test]
fn a_program_that_claims_another_end_than_its_own_is_refused() {
    let bytes = newest();
    let program: CheckedProgram = codec::decode(&bytes, 1 << 20).unwrap();
    let scale = program.output_scale().value().to_le_bytes();
    let front = &bytes[..bytes.windows(4).position(|window| window == b"CNST").unwrap()];
    let at = front.windows(8).rposition(|window| window == scale).expect("the scale of the output");
    let mut other = bytes.clone();
    other[at] ^= 1;
    let error = codec::decode(&sealed(other), 1 << 20).map(drop).unwrap_err();
    assert!(matches!(error, DecodeError::Output { .. }), "{error}");
}

#[test]
fn indices_that_end_within_a_byte_or_with_one_survive() {
    for (n, largest) in [(1, 0), (7, 1), (8, 1), (9, 1), (5, 4), (8, 4), (3, 255), (3, 256), (2, 299)] {
        let mut spec = codec::decode(&newest(), 1 << 20).unwrap().spec().clone();
        spec.constants.codebooks.push(Codebook { members: 1, values: vec![0.5; 300] });
        let codebooks = vec![CodebookId(spec.constants.codebooks.len() as u32 - 1)];
        let indices: Vec<u16> = (0..n).map(|i| if i + 1 == n { largest } else { largest / 2 }).collect();
        let data = TensorData::Clustered { codebooks, indices };
        spec.constants.push(Tensor { members: 1, shape: vec![n], data });
        let Ok(program) = CheckedProgram::new(spec) else { panic!("{n} indices up to {largest}") };
        let read = codec::decode(&codec::encode(&program), 1 << 20).unwrap();
        assert!(read.spec() == program.spec(), "{n} indices up to {largest}");
    }
}

#[test]
fn interfaces_are_read_from_programs_and_interface_files_of_every_version_and_no_other() {
    for version in 1..=VERSION {
        let bytes = golden(&format!("v{version}.fhebc"));
        let program = codec::decode(&bytes, 1 << 20).unwrap();
        let interface = codec::read_interface(&bytes[..], 1 << 20).unwrap();
        assert_eq!(interface.spec(), program.interface().spec(), "{version}");
    }
    let mut future = golden("interface-v2.fhei");
    future[8] = 99;
    assert!(matches!(codec::read_interface(&future[..], 1 << 20), Err(DecodeError::InterfaceVersion(99))));
    let mut future = newest();
    future[8] = 99;
    assert!(matches!(codec::read_interface(&future[..], 1 << 20), Err(DecodeError::Version(99))));
    assert!(matches!(
        codec::read_interface(&b"GIF89a, not ours"[..], 1 << 20),
        Err(DecodeError::NotAnInterface)
    ));
}

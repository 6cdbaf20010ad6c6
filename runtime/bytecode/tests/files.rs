//! Golden and corrupt files.
//!
//! `tests/golden` has, for every released version, a program as text and as bytes: today's reader must read
//! the bytes as that text, and the writer must reproduce those of the newest version. Files of older versions are never
//! written again. `tests/corrupt` has small bad files with the error that each must give.

use fhe_bytecode::codec::{self, DEFAULT_LIMIT, INTERFACE_VERSION, VERSION};
use fhe_bytecode::{CheckedProgram, Interface, InterfaceSpec, ProgramSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;

const CHECKSUM_BYTES: usize = 32;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}

fn read(folder_name: &str, file: &str) -> Vec<u8> {
    let path = folder(folder_name).join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_text(version: u32) -> ProgramSpec {
    let text = read("golden", &format!("v{version}.ron"));
    ProgramSpec::from_ron(&String::from_utf8(text).unwrap()).unwrap()
}

fn golden_bytes(version: u32) -> Vec<u8> {
    read("golden", &format!("v{version}.fhebc"))
}

#[test]
fn golden_bytes_of_every_version_read_as_their_text() {
    for version in 1..=VERSION {
        let bytes = golden_bytes(version);
        assert_eq!(bytes[8..12], version.to_le_bytes());
        let program = codec::decode(&bytes, DEFAULT_LIMIT).unwrap();
        assert_eq!(*program.spec(), golden_text(version), "version {version}");
    }
}

#[test]
fn golden_text_is_written_as_its_bytes() {
    let program = CheckedProgram::new(golden_text(VERSION)).unwrap();
    assert_eq!(codec::encode(&program), golden_bytes(VERSION));
}

#[test]
fn older_programs_are_written_in_the_newest_version() {
    let old = codec::decode(&golden_bytes(1), DEFAULT_LIMIT).unwrap();
    let new = codec::decode(&codec::encode(&old), DEFAULT_LIMIT).unwrap();
    assert_eq!(old.spec(), new.spec());
}

/// Interface files are one version behind the programs they come from.
fn golden_interface(version: u32) -> (Vec<u8>, InterfaceSpec) {
    let text = String::from_utf8(read("golden", &format!("interface-v{version}.ron"))).unwrap();
    (read("golden", &format!("interface-v{version}.fhei")), ron::from_str(&text).unwrap())
}

#[test]
fn golden_interfaces_read_as_their_text_and_are_those_of_the_golden_programs() {
    for version in 1..=INTERFACE_VERSION {
        let (bytes, spec) = golden_interface(version);
        let interface = codec::read_interface(&bytes[..], DEFAULT_LIMIT).unwrap();
        assert_eq!(*interface.spec(), spec);
        assert_eq!(codec::read_interface(&golden_bytes(version + 1)[..], DEFAULT_LIMIT).unwrap(), interface);
    }
    let (bytes, spec) = golden_interface(INTERFACE_VERSION);
    assert_eq!(codec::encode_interface(&Interface::new(spec).unwrap()), bytes);
}

#[test]
fn programs_of_every_version_have_an_interface() {
    for version in 1..=VERSION {
        let bytes = golden_bytes(version);
        let interface = codec::read_interface(&bytes[..], DEFAULT_LIMIT).unwrap();
        assert_eq!(Some(interface.program()), codec::program_fingerprint(&bytes), "version {version}");
        assert_eq!(codec::decode(&bytes, DEFAULT_LIMIT).unwrap().interface(), interface);
    }
}

#[test]
fn corrupt_files_give_their_errors() {
    let expected: BTreeMap<String, String> =
        ron::from_str(&String::from_utf8(read("corrupt", "expected.ron")).unwrap()).unwrap();
    assert!(expected.len() >= 8);
    for (file, message) in expected {
        let error = codec::decode(&read("corrupt", &file), DEFAULT_LIMIT).unwrap_err();
        assert_eq!(error.to_string(), message, "{file}");
    }
}

#[test]
#[ignore = "writes the golden and corrupt files; run with cargo xtask golden"]
fn write_files() {
    // Other runs of the ignored tests must not bless what they should judge.
    if std::env::var_os("FHEC_WRITE_GOLDEN").is_none() {
        return;
    }
    let golden = codec::encode(&CheckedProgram::new(golden_text(VERSION)).unwrap());
    std::fs::write(folder("golden").join(format!("v{VERSION}.fhebc")), &golden).unwrap();
    let interface = codec::read_interface(&golden[..], DEFAULT_LIMIT).unwrap();
    let text = ron::ser::to_string_pretty(interface.spec(), ron::ser::PrettyConfig::new()).unwrap();
    std::fs::write(folder("golden").join(format!("interface-v{INTERFACE_VERSION}.ron")), text + "\n")
        .unwrap();
    std::fs::write(
        folder("golden").join(format!("interface-v{INTERFACE_VERSION}.fhei")),
        codec::encode_interface(&interface),
    )
    .unwrap();
    let mut expected = BTreeMap::new();
    for (name, bytes) in corrupt(&golden) {
        std::fs::write(folder("corrupt").join(name), &bytes).unwrap();
        let error = codec::decode(&bytes, DEFAULT_LIMIT).unwrap_err();
        expected.insert(name.to_owned(), error.to_string());
    }
    let text = ron::ser::to_string_pretty(&expected, ron::ser::PrettyConfig::new()).unwrap();
    std::fs::write(folder("corrupt").join("expected.ron"), text + "\n").unwrap();
}

/// Bad variants of a good file.
fn corrupt(golden: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = golden.to_vec();
        change(&mut bytes);
        bytes
    };
    let resealed = |change: &dyn Fn(&mut Vec<u8>)| sealed(changed(change));
    let section = |tag: &[u8; 4]| golden.windows(4).position(|w| w == tag).unwrap();
    let (params, constants, keys) = (section(b"PARM"), section(b"CNST"), section(b"ROTK"));
    vec![
        ("empty.fhebc", vec![]),
        ("other-kind.fhebc", changed(&|b| b[..4].copy_from_slice(b"\x89PNG"))),
        ("future-version.fhebc", changed(&|b| b[8] = 200)),
        ("truncated.fhebc", changed(&|b| b.truncate(b.len() / 2))),
        ("flipped-bit.fhebc", changed(&|b| b[constants + 100] ^= 4)),
        ("wrong-fingerprint.fhebc", resealed(&|b| b[12] ^= 1)),
        ("wrong-section.fhebc", resealed(&|b| b[params] = b'X')),
        ("section-beyond-file.fhebc", resealed(&|b| b[constants + 4 + 6] = 0xFF)),
        ("count-beyond-section.fhebc", resealed(&|b| b[keys + 12] = 0x7F)),
        // The output's layout, followed by an empty list of labels.
        ("overlong-number.fhebc", resealed(&|b| b[section(b"OUTP") + 12 + 7] |= 0x80)),
        ("trailing-bytes.fhebc", resealed(&|b| b.insert(b.len() - CHECKSUM_BYTES, 0))),
        ("digit-size-zero.fhebc", resealed(&|b| b[section(b"ORIG") - 5] = 0)),
    ]
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum =
        *blake3::Hasher::new_derive_key("fhec 1 program file").update(&bytes[..body]).finalize().as_bytes();
    bytes[body..].copy_from_slice(&checksum);
    bytes
}

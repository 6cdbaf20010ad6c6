//! Names of programs and keys: all digits, because whoever relies on some of them can be deceived.

use fhe_bytecode::Fingerprint;
use fhe_ckks::KeyId;

/// The name of a secret key and everything that was made with it.
pub(crate) fn key_name(id: KeyId) -> String {
    hex(&id.0)
}

/// The name of a program: the hash of its file.
pub(crate) fn program_name(fingerprint: Fingerprint) -> String {
    hex(&fingerprint.0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

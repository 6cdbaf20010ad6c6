//! What the targets share: the golden program, and hashes made right, so that what stands behind them is reached.

use std::sync::{Arc, OnceLock};

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};
use fhe_bytecode::{CheckedProgram, Interface};
use fhe_ckks::Context;

const HASH: usize = 32;
const LENGTH: usize = 8;

/// The golden program with its interface and tables.
pub struct Golden {
    pub program: CheckedProgram,
    pub interface: Interface,
    pub context: Arc<Context>,
}

pub fn golden() -> &'static Golden {
    static GOLDEN: OnceLock<Golden> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let program = decode(include_bytes!("../../../golden/v2.fhebc"), DEFAULT_LIMIT).expect("a program");
        let interface = program.interface();
        let context = Context::new(program.params().clone()).expect("parameters of a program");
        Golden { program, interface, context }
    })
}

/// A key or ciphertext file with its length and hash made right.
pub fn sealed(data: &[u8]) -> Vec<u8> {
    let body = data.len().saturating_sub(HASH + LENGTH);
    let mut sealed = data[..body].to_vec();
    sealed.extend_from_slice(&(body as u64).to_le_bytes());
    let hash = blake3::hash(&sealed);
    sealed.extend_from_slice(hash.as_bytes());
    sealed
}

/// A program or interface file with its checksum made right.
pub fn summed(data: &[u8], context: &str) -> Vec<u8> {
    let body = data.len().saturating_sub(HASH);
    let mut summed = data[..body].to_vec();
    let sum = *blake3::Hasher::new_derive_key(context).update(&summed).finalize().as_bytes();
    summed.extend_from_slice(&sum);
    summed
}

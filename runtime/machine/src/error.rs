//! Why a program cannot be evaluated.

use fhe_bytecode::{Fingerprint, Level, Scale};
use fhe_host::show_bytes;

use fhe_ckks::{CkksError, KeyId, KeyUse};

/// Errors of the virtual machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// The keys lack one that the program needs.
    #[error("the evaluation keys have none for {key_use} up to {level}")]
    MissingKey {
        /// What the key is for.
        key_use: KeyUse,
        /// Level it has to reach.
        level: Level,
    },
    /// Keys for other parameters.
    #[error("keys and program disagree about the parameters: {found} and {expected}")]
    WrongParameters {
        /// Parameters in use.
        found: Fingerprint,
        /// Parameters of the program.
        expected: Fingerprint,
    },
    /// Ciphertexts under another key than the evaluation keys.
    #[error("the ciphertexts belong to key {found}, the evaluation keys to {expected}")]
    WrongKey {
        /// Key of the ciphertexts.
        found: KeyId,
        /// Key of the evaluation keys.
        expected: KeyId,
    },
    /// Not as many ciphertexts as the input layout has.
    #[error("{found} input ciphertexts, but the program takes {expected}")]
    InputCount {
        /// Ciphertexts given.
        found: usize,
        /// Ciphertexts of the input layout.
        expected: usize,
    },
    /// An input ciphertext at another level or scale.
    #[error(
        "an input ciphertext is at {found_level}, scale {found_scale}; the program takes {level}, scale {scale}"
    )]
    InputForm {
        /// Level given.
        found_level: Level,
        /// Scale given.
        found_scale: Scale,
        /// Level of the program's input.
        level: Level,
        /// Scale of the program's input.
        scale: Scale,
    },
    /// A tensor of the wrong size to encrypt or compare.
    #[error("{found} values, but the program takes {expected}")]
    TensorLength {
        /// Values given.
        found: usize,
        /// Values of the program's input.
        expected: usize,
    },
    /// The memory budget does not even hold keys and ciphertexts.
    #[error(
        "needs at least {} of memory (keys {}, ciphertexts and sums {}), but {} is allowed",
        show_bytes(*needed), show_bytes(*keys), show_bytes(*working), show_bytes(*budget)
    )]
    TooLittleMemory {
        /// Least bytes.
        needed: u64,
        /// Of these, evaluation keys.
        keys: u64,
        /// Of these, ciphertexts and intermediate sums.
        working: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// The ring arithmetic refused an instruction.
    #[error("instruction {instruction} ({name}) of layer {layer}")]
    Instruction {
        /// Position in the program.
        instruction: usize,
        /// Name of the operation.
        name: &'static str,
        /// Name of the layer.
        layer: String,
        /// What was refused.
        #[source]
        cause: CkksError,
    },
    /// Encryption or decryption failed.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
    /// Something the checker rules out.
    #[error("bug: {0}")]
    Bug(String),
}

//! Why a client cannot encrypt or decrypt.

use fhe_bytecode::{Fingerprint, Interval};
use fhe_ckks::CkksError;

/// Errors of the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A context for other parameters than the program's.
    #[error("keys and program disagree about the parameters: {found} and {expected}")]
    WrongParameters {
        /// Parameters in use.
        found: Fingerprint,
        /// Parameters of the program.
        expected: Fingerprint,
    },
    /// A tensor of the wrong size to encrypt.
    #[error("{found} values, but the program takes {expected}")]
    TensorLength {
        /// Values given.
        found: usize,
        /// Values of the program's input.
        expected: usize,
    },
    /// Not as many ciphertexts as the output layout has.
    #[error("{found} result ciphertexts, but the program gives {expected}")]
    ResultCount {
        /// Ciphertexts given.
        found: usize,
        /// Ciphertexts of the output layout.
        expected: usize,
    },
    /// One input or result where the program has several at once.
    #[error("the program takes {batch} inputs at once and gives as many results")]
    Batch {
        /// Inputs that it takes.
        batch: usize,
    },
    /// A number that the model was not made for.
    #[error("value {index} is {value}, but the model was calibrated on inputs in {range}")]
    OutOfRange {
        /// Its position in the input.
        index: usize,
        /// The number.
        value: f64,
        /// Inputs of the calibration.
        range: Interval,
    },
    /// Encryption or decryption failed.
    #[error(transparent)]
    Ckks(#[from] CkksError),
}

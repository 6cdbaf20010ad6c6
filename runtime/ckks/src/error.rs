//! Why an operation was refused.

use fhe_bytecode::{Level, Scale};

use crate::Galois;

use fhe_ring::RingError;

/// Errors of the CKKS layer; each names what disagreed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CkksError {
    /// A modulus that has no transform; checked parameters never cause it.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Operands at different levels.
    #[error("operands at different levels: {left} and {right}")]
    LevelMismatch {
        /// Level of the first operand.
        left: Level,
        /// Level of the second operand.
        right: Level,
    },
    /// Operands with different scales.
    #[error("operands with different scales: {left} and {right}")]
    ScaleMismatch {
        /// Scale of the first operand.
        left: Scale,
        /// Scale of the second operand.
        right: Scale,
    },
    /// The operation needs more levels than there are.
    #[error("needs {needed} levels below it, but the ciphertext is at {level}")]
    LevelsExhausted {
        /// Levels the operation consumes.
        needed: usize,
        /// Level of the operand.
        level: Level,
    },
    /// A level that the parameters do not have.
    #[error("there is no level {level}; the highest is {max}")]
    NoSuchLevel {
        /// The level asked for.
        level: Level,
        /// The highest level.
        max: Level,
    },
    /// Whoever feeds the operation with plaintexts wants no result any more.
    #[error("cancelled")]
    Cancelled,
    /// An operation on a ciphertext that must be relinearized first, or need not be.
    #[error("the ciphertext has {found} polynomials, the operation takes {expected}")]
    Degree {
        /// Polynomials the operation takes.
        expected: usize,
        /// Polynomials of the operand.
        found: usize,
    },
    /// No key for an automorphism.
    #[error("no key for {0}")]
    MissingKey(Galois),
    /// No key for the way into a smaller ring.
    #[error("no key for the way into a smaller ring")]
    MissingEntry,
    /// A key truncated below the level it is used at.
    #[error("the key reaches up to {key}, the ciphertext is at {needed}")]
    KeyTruncated {
        /// Highest level of the key.
        key: Level,
        /// Level of the operand.
        needed: Level,
    },
    /// A vector that fits no number of slots.
    #[error("{len} values for {slots} slots: the length must be a power of two and at most that")]
    VectorLength {
        /// Length of the vector.
        len: usize,
        /// Slots of the parameters.
        slots: usize,
    },
    /// A value that is not finite, or overflows at its scale.
    #[error("slot {slot} holds {value}, which cannot be encoded at scale {scale}")]
    Unencodable {
        /// First offending slot.
        slot: usize,
        /// Its value.
        value: f64,
        /// The scale asked for.
        scale: Scale,
    },
    /// A plaintext over other primes than the ciphertext.
    #[error("the plaintext has {found} towers, the operation needs {expected}")]
    PlaintextBasis {
        /// Towers the operation needs.
        expected: usize,
        /// Towers of the plaintext.
        found: usize,
    },
    /// Parts of a key or ciphertext that do not fit the parameters.
    #[error("{what} does not fit the parameters")]
    Malformed {
        /// What was being assembled.
        what: &'static str,
    },
    /// A linear map that names an input, output or nothing at all.
    #[error("linear map: {0}")]
    Plan(&'static str),
    /// The source of plaintexts failed.
    #[error("no plaintext for diagonal {diagonal}")]
    Source {
        /// The diagonal asked for.
        diagonal: usize,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(String),
}

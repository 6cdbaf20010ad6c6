//! What an instruction amounts to, for everybody who does not evaluate it on ciphertexts.
//!
//! The clear interpreter needs the numbers that it computes; costs, noise, reports and preparations need its kind.
//! Both follow from the instruction alone, so whoever reads these types has no list of instructions of its own.

use crate::ids::{MapId, TensorId};

/// What becomes of the numbers in the slots of the sources.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    /// The input comes in.
    Input,
    /// A linear map.
    Map(MapId),
    /// Every number times this one.
    Times(f64),
    /// Number by number, of the first and the last source.
    Pairs(Pair),
    /// Number by number, of the source and a constant.
    WithConstant(TensorId, Pair),
    /// They are the result of the program; the registers end.
    Output,
    /// The registers end.
    Free,
}

/// What becomes of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Their sum.
    Sum,
    /// The first without the second.
    Difference,
    /// Their product.
    Product,
}

/// What it is to ciphertexts: what decides time and noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes the input, with its fresh noise.
    Input,
    /// Rotations, products with diagonals, sums.
    Map(MapId),
    /// Products of ciphertexts, with a key switch each.
    Product,
    /// Adds an encoded constant.
    PlainSum(TensorId),
    /// Multiplies by an encoded constant.
    PlainProduct(TensorId),
    /// Multiplies by one rounded number.
    ScalarProduct,
    /// Divides by towers and rounds.
    Rescale,
    /// Goes to a lower level, and rounds where that one has other towers.
    Drop,
    /// Sums: neither time nor noise that counts.
    Exact,
    /// Ends registers.
    End,
}

impl Kind {
    /// Whether it takes nearly all of an evaluation's time.
    pub fn is_heavy(self) -> bool {
        matches!(self, Self::Map(_) | Self::Product)
    }
}

//! Complex diagonals: two real results from one product.
//!
//! Slots are complex and tensors are real, so a complex diagonal d' + i·d'' times a real input gives two real
//! sums at once. That halves the products, the plaintexts and their rotations, for one conjugation and at
//! most one rotation per sum at the end. A map says what the imaginary parts are:
//!
//! - [`Pairing::Halves`]: with h half the window of rotations, a product at rotation r + h is computed h slots
//!   further on at rotation r, in the imaginary part, and y = Re(P) + rot(Im(P), h).
//! - [`Pairing::Outputs`]: neighbouring output ciphertexts share a sum, y_2k = Re(P_k), y_2k+1 = Im(P_k).
//!
//! With Q the conjugate of P, 2·Re(P) = P + Q and 2·Im(P) = -i·(P - Q): an executor computes twice the result, so
//! the weights of a paired map are encoded at half their scale.

use crate::layout::Layout;
use crate::rotation::Rotation;
use crate::scale::Scale;
use serde::{Deserialize, Serialize};

/// What the imaginary parts of a map's sums are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pairing {
    /// Nothing: diagonals are real.
    #[default]
    None,
    /// The far half of the rotations.
    Halves,
    /// The next output ciphertext.
    Outputs,
}

/// Diagonals per output from which pairing pays for the rotation and conjugation at its end.
const MIN_FOR_HALVES: usize = 32;
/// Diagonals per output from which pairing pays for the conjugation at its end.
const MIN_FOR_OUTPUTS: usize = 16;

impl Pairing {
    /// The pairing to try for a map of so many diagonals, of which so many are distinct plaintexts: none where
    /// too few products are saved, or where plaintexts are shared and pairs of them would not be.
    pub fn suggested(n_diagonals: usize, n_plaintexts: usize, n_outputs: usize) -> Self {
        let each = n_diagonals / n_outputs.max(1);
        if 2 * n_plaintexts < n_diagonals {
            Pairing::None
        } else if n_outputs > 1 && each >= MIN_FOR_OUTPUTS {
            Pairing::Outputs
        } else if n_outputs == 1 && each >= MIN_FOR_HALVES {
            Pairing::Halves
        } else {
            Pairing::None
        }
    }

    /// Scale that the weights of a map are encoded at, from the scales of result and source.
    pub fn weight_scale(self, result: Scale, source: Scale) -> Scale {
        let scale = result.over(source);
        if self == Pairing::None { scale } else { scale.halved() }
    }
}

/// Where the product of an output slot and an input slot is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) sum: usize,
    pub(super) slot: usize,
    pub(super) rotation: Rotation,
    pub(super) imaginary: bool,
}

/// The rules of one term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    p_in: usize,
    p_out: usize,
    outputs: bool,
    /// Slots between the two parts, if this term's rotations are paired.
    half: Option<usize>,
}

impl Placement {
    /// The rules of a term from `input` to `output` in a map with the given halves.
    pub(super) fn new(input: &Layout, output: &Layout, pairing: Pairing, half: Option<usize>) -> Self {
        let (p_in, p_out) = (input.period(), output.period());
        // A term whose window is smaller than the map's has nothing to pair: its rotations wrap before.
        let half = half.filter(|&half| p_in.min(p_out) == 2 * half);
        Self { p_in, p_out, outputs: pairing == Pairing::Outputs, half }
    }

    /// Number of rotations that the term tells apart.
    pub(super) fn window(&self) -> usize {
        self.half.unwrap_or(self.p_in.min(self.p_out))
    }

    /// Sum and part of an output ciphertext.
    pub(super) fn sum(&self, output: usize) -> (usize, bool) {
        if self.outputs { (output / 2, output % 2 == 1) } else { (output, false) }
    }

    /// The output that a part of a sum belongs to, and the slots that its products moved away from it.
    pub(super) fn part(&self, sum: usize, imaginary: bool) -> Option<(usize, usize)> {
        match (self.outputs, imaginary) {
            (true, _) => Some((2 * sum + usize::from(imaginary), 0)),
            (false, false) => Some((sum, 0)),
            (false, true) => self.half.map(|half| (sum, half)),
        }
    }

    /// Where the product of an output and an input slot goes.
    pub(super) fn spot(&self, (out_ct, out_slot): (usize, usize), in_slot: usize) -> Spot {
        let (sum, second) = self.sum(out_ct);
        let distance = in_slot as i64 - out_slot as i64;
        let rotation = Rotation::new(distance, self.window());
        let excess = distance - rotation.amount();
        let other_half = self.half.is_some_and(|half| (excess / half as i64) % 2 != 0);
        let slot = if self.p_out < self.p_in {
            // The output has spare copies: the product moves to the one that the rotation reaches.
            (out_slot as i64 + excess).rem_euclid(self.p_in as i64) as usize
        } else if other_half {
            (out_slot + self.half.unwrap_or(0)) & (self.p_out - 1)
        } else {
            out_slot
        };
        Spot { sum, slot, rotation, imaginary: second || other_half }
    }
}

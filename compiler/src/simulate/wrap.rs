//! What a modulus does to values that leave it.
//!
//! At every level coefficients are reduced modulo the product of its towers. A value whose coefficients stay below half of
//! it, over the scale, is unharmed. One that leaves it comes back on the other side, as it does under encryption. Slots
//! bound the coefficients, so most results are seen to be safe without a transform.

use fhe_bytecode::clear::{Event, Hook};
use fhe_bytecode::{CheckedProgram, Level};

use super::embedding::Embedding;

/// Part of the room beyond which a value is near the edge: one bit is left.
const NEAR: f64 = 0.5;

/// The room of every result of a program.
#[derive(Clone, Debug)]
pub(super) struct Moduli {
    /// By instruction: half the modulus, in units of the values.
    rooms: Vec<f64>,
    embedding: Embedding,
}

impl Moduli {
    pub(super) fn new(program: &CheckedProgram) -> Self {
        let room = |index: usize| {
            program.fact(index).map_or(f64::INFINITY, |fact| {
                (log2_modulus(program, fact.level) - 1.0 - fact.scale.log2()).exp2()
            })
        };
        Self {
            rooms: (0..program.spec().instructions.len()).map(room).collect(),
            embedding: Embedding::new(program.params().slots()),
        }
    }

    /// A hook that lets another one change the results, and then reduces them.
    pub(super) fn hook<H: Hook>(&self, inner: H) -> Reduce<'_, H> {
        Reduce { moduli: self, inner, fullest: Fullest { instruction: 0, part: 0.0 } }
    }
}

/// Bits of the modulus of a level.
fn log2_modulus(program: &CheckedProgram, level: Level) -> f64 {
    program.params().log2_q_at(level)
}

/// The result that came closest to its modulus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fullest {
    /// Index of its instruction.
    pub(super) instruction: usize,
    /// Part of the room that it took; above one it wrapped.
    pub(super) part: f64,
}

impl Fullest {
    /// Whether less than one bit was left.
    pub(super) fn is_near(self) -> bool {
        self.part > NEAR
    }

    pub(super) fn has_wrapped(self) -> bool {
        self.part > 1.0
    }

    /// The one that came closer.
    pub(super) fn worse(self, other: Self) -> Self {
        if other.part > self.part { other } else { self }
    }
}

/// Reduces every result after another hook has seen it.
pub(super) struct Reduce<'a, H> {
    moduli: &'a Moduli,
    pub(super) inner: H,
    pub(super) fullest: Fullest,
}

impl<H: Hook> Hook for Reduce<'_, H> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        self.inner.result(event, cts);
        let room = self.moduli.rooms[event.instruction];
        for slots in cts {
            let mut part = peak(slots) / room;
            if part > NEAR {
                let embedding = &self.moduli.embedding;
                let mut coefficients = embedding.coefficients(slots);
                part = peak(&coefficients) / room;
                if part > 1.0 {
                    coefficients.iter_mut().for_each(|c| *c -= 2.0 * room * (*c / (2.0 * room)).round());
                    *slots = embedding.slots(&coefficients);
                }
            }
            if part > self.fullest.part {
                self.fullest = Fullest { instruction: event.instruction, part };
            }
        }
    }
}

fn peak(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

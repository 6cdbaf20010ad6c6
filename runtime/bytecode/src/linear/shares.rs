//! What the two parts of a complex sum have of each other.
//!
//! Inputs are real, their noise is not. In a complex sum the imaginary part of the noise meets the weights of the other part,
//! so that a number takes noise by the weights of whom it shares a sum with. Where those are like its own that is as much
//! again; beside weights a thousand times its own it would be nothing but noise. That matters where results depend on such a
//! number, and not where it hardly moves them, like a channel that is nearly constant.

use std::sync::Arc;

use super::diagonals::{DiagonalId, Diagonals};
use super::pairing::Pairing;
use crate::layout::Layout;
use crate::rotation::Rotation;

/// How many times the squared weights that results depend on may be those that they share a sum with.
const MOST_UNEQUAL: f64 = 256.0;

/// Sums of squared weights behind a number of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Its own weights.
    pub own: f64,
    /// Those that meet the imaginary part of the noise.
    pub other: f64,
}

/// Squares of all diagonals of a term, slot by slot of every sum.
struct Squares {
    parts: [Vec<Vec<f64>>; 2],
}

/// The shares of every number of a result in a layout, term by term.
pub(super) type KnownShares = (Layout, Vec<Arc<[Share]>>);

impl Diagonals {
    /// The shares of every number of the result, term by term: those of one layout are found once.
    pub fn shares(&self, output: &Layout) -> Vec<Arc<[Share]>> {
        let (layout, known) = self.known_shares.get_or_init(|| (output.clone(), self.shares_in(output)));
        if layout == output { known.clone() } else { self.shares_in(output) }
    }

    fn shares_in(&self, output: &Layout) -> Vec<Arc<[Share]>> {
        let (period, shape) = (self.period(), output.shape());
        let half = self.half().map_or(0, |half| half.left(period));
        let share = |squares: &Squares, (ct, first): (usize, usize)| {
            let mut share = Share::default();
            for slot in (first & (output.period() - 1)..period).step_by(output.period()) {
                let at = |part: usize, sum: usize, slot: usize| squares.parts[part][sum][slot & (period - 1)];
                let [own, other] = match self.pairing() {
                    Pairing::None => [at(0, ct, slot), 0.0],
                    Pairing::Outputs => [ct % 2, 1 - ct % 2].map(|part| at(part, ct / 2, slot)),
                    Pairing::Halves => [0, 1].map(|part| at(part, ct, slot) + at(1 - part, ct, slot + half)),
                };
                share.own += own;
                share.other += other;
            }
            share
        };
        let of_term = |term: usize| {
            let squares = self.squares(term);
            let mut shares = Vec::with_capacity(output.members() * shape.len());
            for member in 0..output.members() {
                for channel in 0..shape.channels as usize {
                    for y in 0..shape.height as usize {
                        let place = |x: usize| output.slot(member, channel, y, x);
                        shares.extend((0..shape.width as usize).map(|x| share(&squares, place(x))));
                    }
                }
            }
            Arc::from(shares)
        };
        (0..self.n_terms()).map(of_term).collect()
    }

    /// Whether a number shares a sum with weights so much larger than those that results depend on, in squares, that little
    /// more than noise would be left of them.
    pub(super) fn is_uneven(&self, output: &Layout, acting: f64) -> bool {
        let shares = self.shares(output);
        let n_numbers = shares.first().map_or(0, |term| term.len());
        let other = |number: usize| shares.iter().map(|term| term[number].other).sum::<f64>();
        (0..n_numbers).any(|number| other(number) > MOST_UNEQUAL * acting)
    }

    fn squares(&self, term: usize) -> Squares {
        let period = self.period();
        let zeros = || vec![vec![0.0; period]; self.n_sums()];
        let mut parts = [zeros(), zeros()];
        let (mut re, mut im) = (vec![0.0; period], vec![0.0; period]);
        let ids = (0..self.list().len() as u32).map(DiagonalId).filter(|id| self.term(*id) == term);
        for id in ids {
            let sum = self.list()[id.index()].sum as usize;
            if self.add_squares(id, &mut parts, sum) {
                continue;
            }
            self.write(id, Rotation::ZERO, &mut re, &mut im);
            for (squares, numbers) in parts.iter_mut().zip([&re, &im]) {
                squares[sum].iter_mut().zip(numbers).for_each(|(square, x)| *square += x * x);
            }
        }
        Squares { parts }
    }
}

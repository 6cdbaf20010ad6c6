//! How partial sums take their giant steps: each at once, or together, from one giant step to the next.
//!
//! With giant steps g < h < … the sums S_g, S_h, … become rot(S_g + rot(S_h + …, h - g), g). Every sum is rotated as
//! often as there are giant steps, and every rotation adds the noise of one key switch, as it does where each goes by itself.
//! But rotations by equal amounts share their key, and giant steps mostly are multiples of one number.

use crate::rotation::Rotation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How partial sums take their giant steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Gait {
    /// Each sum is rotated by its giant step.
    #[default]
    Direct,
    /// From the outermost giant steps of both directions to the next one inward.
    Inward,
    /// From the largest giant step to the next smaller one, all of them taken as rotations to the left.
    Down,
}

impl Gait {
    /// All of them.
    pub(super) const ALL: [Gait; 3] = [Gait::Direct, Gait::Inward, Gait::Down];

    /// The rotations that bring sums at these giant steps, which are sorted, to zero: in order, the outermost first.
    pub(super) fn hops(self, giants: &[Rotation], period: usize) -> Vec<Hop> {
        let moving = || giants.iter().copied().filter(|giant| !giant.is_zero());
        match self {
            Self::Direct => moving().map(|from| Hop { from, to: Rotation::ZERO, by: from }).collect(),
            Self::Inward => {
                let (left, right): (Vec<_>, Vec<_>) = moving().partition(|giant| giant.amount() > 0);
                let left = chain(left.into_iter().rev(), period);
                left.into_iter().chain(chain(right.into_iter(), period)).collect()
            }
            Self::Down => {
                let mut left: Vec<Rotation> = moving().collect();
                left.sort_unstable_by_key(|giant| std::cmp::Reverse(giant.left(period)));
                chain(left.into_iter(), period)
            }
        }
    }
}

/// A rotation of what has come to a giant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The giant step it has come to.
    pub from: Rotation,
    /// The giant step that it goes to and waits at, zero for the end.
    pub to: Rotation,
    /// The rotation between both.
    pub by: Rotation,
}

/// From every giant step to the next in order, and from the last to zero.
fn chain(giants: impl Iterator<Item = Rotation>, period: usize) -> Vec<Hop> {
    let mut giants = giants.peekable();
    let mut hops = Vec::new();
    while let Some(from) = giants.next() {
        let to = giants.peek().copied().unwrap_or(Rotation::ZERO);
        hops.push(Hop { from, to, by: Rotation::new(from.amount() - to.amount(), period) });
    }
    hops
}

/// How many of the hops a sum takes that has these giant steps.
pub(super) fn n_hops(hops: &[Hop], giants: impl Iterator<Item = Rotation>) -> usize {
    let mut at: BTreeSet<Rotation> = giants.collect();
    let mut taken = 0;
    for hop in hops {
        if at.remove(&hop.from) {
            at.insert(hop.to);
            taken += 1;
        }
    }
    taken
}

//! The passes in their order. No fixed point over the list: each pass finishes what it starts.

use crate::pass::Pass;
use crate::{
    CompleteSquare, EqualizeChannels, FactorQuadratics, Fuse, MergeLinear, MoveConstants, PruneChannels,
    RecordRanges, Redistribute,
};

/// Which rewrites run. The letters are the paper's: F node fusing (paper §4.1), R weight redistribution (paper §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Node fusing.
    pub fuse: bool,
    /// Redistribution to layers after a donor.
    pub forward: bool,
    /// Redistribution to layers before a donor.
    pub backward: bool,
    /// What the paper does not have: completed squares, moved constants, merged layers, equalized channels.
    pub finish: bool,
}

impl Config {
    /// As imported.
    pub const NONE: Self = Self { fuse: false, forward: false, backward: false, finish: false };
    /// Node fusing only.
    pub const F: Self = Self { fuse: true, ..Self::NONE };
    /// Weight redistribution only.
    pub const R: Self = Self { forward: true, backward: true, ..Self::NONE };
    /// Both.
    pub const FR: Self = Self { fuse: true, ..Self::R };
    /// Everything: what is compiled unless the user says otherwise.
    pub const ALL: Self = Self { finish: true, ..Self::FR };
}

impl Default for Config {
    fn default() -> Self {
        Self::ALL
    }
}

/// The passes of a configuration, in order.
#[must_use]
pub fn pipeline(config: Config) -> Vec<Box<dyn Pass>> {
    let redistribute = Redistribute { forward: config.forward, backward: config.backward };
    let redistributes = config.forward || config.backward;
    let list: [(bool, Box<dyn Pass>); 9] = [
        // Ranges come from batch normalizations, which fusing removes.
        (config.finish, Box::new(RecordRanges)),
        // Fusing first, so that redistribution sees as few donors as possible.
        (config.fuse, Box::new(Fuse)),
        // A dead normalization is now a dead row of a convolution; it must not stand in the way of inverses.
        (config.finish, Box::new(PruneChannels)),
        // Factors move once the nodes are final.
        (redistributes, Box::new(redistribute)),
        // Divisors have moved, so pooling is a plain sum.
        (config.finish, Box::new(MergeLinear)),
        // Monic polynomials become squares.
        (config.finish, Box::new(CompleteSquare)),
        // What is not monic by now stays so: a channel is nearly linear, or no layer takes the coefficient.
        (config.finish && redistributes, Box::new(FactorQuadratics)),
        // The constants that squares leave behind go into biases.
        (config.finish, Box::new(MoveConstants)),
        // What is squared now is final, so its range can be chosen.
        (config.finish, Box::new(EqualizeChannels)),
    ];
    list.into_iter().filter(|(enabled, _)| *enabled).map(|(_, pass)| pass).collect()
}

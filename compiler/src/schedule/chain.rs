//! The modulus chain and the exact scale of every position.
//!
//! Between two rescales the scale goes from X through products (squaring it) and linear maps (times a weight scale W) to
//! S, and the rescale brings it to the next X. Where the stretch has a linear map its W is chosen such that the next
//! X is met exactly; where it has none, the next X is what the moduli give.

use fhe_bytecode::Scale;
use fhe_bytecode::params::{Level, PrimeSearchError};

use super::moduli::Moduli;
use super::room::{LEAST_HEADROOM, Room};
use crate::timed::{Positions, Rung, Step};

/// Smallest scale of weights: with paired diagonals one bit of it is lost, and no scale is below one.
const LEAST_WEIGHT_BITS: f64 = 1.0;
/// Smallest step between two moduli; one of a bit is the least that a checked pool may have.
const LEAST_STEP_BITS: f64 = 3.0;

/// The sizes a chain is made from, in bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Scale of the input.
    pub input: f64,
    /// Scale after each rescale, in order of evaluation; the last is that of the output.
    pub activations: Vec<f64>,
    /// Wanted scale of the weights at each position, from position 1 on; entries of products are not read.
    pub weights: Vec<f64>,
    /// What the moduli have to hold.
    pub rooms: Vec<Room>,
    /// Bits kept free between every value and half the modulus it is in.
    pub headroom: f64,
}

/// Moduli and scales that fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    moduli: Moduli,
    /// Scale of a position after its rescale, from position 0 on.
    scales: Vec<Scale>,
    /// Scale of a position before its rescale, from position 0 on.
    raw: Vec<Scale>,
}

/// Why there is no chain of the wanted sizes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No prime left.
    #[error(transparent)]
    Primes(#[from] PrimeSearchError),
    /// Given towers do not have one prime per rescale.
    #[error("the circuit needs {needed} towers, {given} are given")]
    TowerCount {
        /// Rescales and one.
        needed: usize,
        /// Towers given.
        given: usize,
    },
    /// Given towers are too small for the given scales.
    #[error("a scale of 2^{scale:.1} does not fit the modulus of 2^{modulus:.1} at level {level}")]
    ScaleTooLarge {
        /// The level.
        level: usize,
        /// Bits of the scale.
        scale: f64,
        /// Bits of the modulus.
        modulus: f64,
    },
    /// Given towers are too small for the values.
    #[error(
        "values of 2^{value:.1} at a scale of 2^{scale:.1} leave {free:.1} bits of the modulus at level {level} free, at least {LEAST_HEADROOM} are needed; a larger first tower holds them"
    )]
    ValuesTooLarge {
        /// The level.
        level: usize,
        /// Bits of the largest value.
        value: f64,
        /// Bits of its scale.
        scale: f64,
        /// Bits between the value and half the modulus.
        free: f64,
    },
    /// Given towers leave no room for weights.
    #[error("the towers leave the weights at level {level} a scale of 2^{bits:.1}, which rounds them away")]
    WeightsTooSmall {
        /// The level.
        level: usize,
        /// Bits of the scale.
        bits: f64,
    },
}

impl Chain {
    /// The exact scales under given moduli; weight scales follow from them.
    ///
    /// # Errors
    /// When there are not as many moduli as rungs, or they do not hold the scales and values.
    pub fn new(positions: &Positions, sizes: &Sizes, moduli: Moduli) -> Result<Self, ChainError> {
        let (needed, given) = (positions.n_rescales() as usize + 1, moduli.n_rungs());
        if given != needed {
            return Err(ChainError::TowerCount { needed, given });
        }
        let chain = Self::scaled(positions, sizes, moduli);
        chain.fits(positions, &sizes.rooms)?;
        Ok(chain)
    }

    /// Scales for given towers, one for every rescale; weight scales follow from them.
    ///
    /// # Errors
    /// When the number of towers is not that of the rescales and one, or they do not fit the scales.
    pub fn with_towers(positions: &Positions, sizes: &Sizes, towers: Vec<u64>) -> Result<Self, ChainError> {
        let groups: Vec<Vec<u64>> = towers.into_iter().map(|q| vec![q]).collect();
        Self::new(positions, sizes, Moduli::nested(&groups))
    }

    /// The exact scales under given moduli, whether or not these hold them.
    pub(crate) fn scaled(positions: &Positions, sizes: &Sizes, moduli: Moduli) -> Self {
        let mut scales = vec![Scale::from_log2(sizes.input)];
        let mut raw = scales.clone();
        for (rung, stretch) in stretches(positions) {
            let from = scales.last().expect("the input has a scale").log2();
            // One more unit of weight scale everywhere: how much of it reaches the end.
            let wanted = |p: u32| sizes.weights[p as usize - 1];
            let nominal =
                *walk(positions, stretch.clone(), from, wanted).last().expect("a stretch has a position");
            let shifted = *walk(positions, stretch.clone(), from, |p| wanted(p) + 1.0).last().expect("same");
            let target = sizes.after(rung) + moduli.step_bits(rung);
            let correction = if shifted > nominal { (target - nominal) / (shifted - nominal) } else { 0.0 };
            let exact = walk(positions, stretch, from, |p| wanted(p) + correction);
            for (i, bits) in exact.iter().enumerate() {
                let (reached, last) = (Scale::from_log2(*bits), i + 1 == exact.len());
                raw.push(reached);
                scales.push(if last { moduli.rescaled(rung, reached) } else { reached });
            }
        }
        Self { moduli, scales, raw }
    }

    /// Bits by which the moduli are too small for the values with this headroom; negative if all have more.
    pub(crate) fn missing_bits(&self, rooms: &[Room], headroom: f64) -> f64 {
        let missing = |room: &Room| self.log2_scale(room) + room.bits(headroom) - self.moduli.log2(room.rung);
        rooms.iter().map(missing).fold(f64::NEG_INFINITY, f64::max)
    }

    /// What the checker asks of every scale: it lies within the modulus with the values, and no product makes it smaller.
    fn fits(&self, positions: &Positions, rooms: &[Room]) -> Result<(), ChainError> {
        let within = |scale: Scale, rung: Rung, level: usize| {
            let (scale, modulus) = (scale.log2(), self.moduli.log2(rung));
            if scale < modulus { Ok(()) } else { Err(ChainError::ScaleTooLarge { level, scale, modulus }) }
        };
        within(self.scale(0), positions.rung(0), positions.level(0) as usize)?;
        for position in 1..=positions.depth() {
            let level = positions.level(position - 1) as usize;
            within(self.raw(position), positions.working_rung(position), level)?;
            within(self.scale(position), positions.rung(position), positions.level(position) as usize)?;
            let bits = self.raw(position).log2() - self.scale(position - 1).log2();
            if positions.step(position) == Step::Linear && bits < LEAST_WEIGHT_BITS {
                return Err(ChainError::WeightsTooSmall { level, bits });
            }
        }
        let free = |room: &Room| self.free_bits(room);
        match rooms.iter().min_by(|a, b| free(a).total_cmp(&free(b))) {
            Some(room) if free(room) < LEAST_HEADROOM => Err(ChainError::ValuesTooLarge {
                level: positions.level(room.position.saturating_sub(u32::from(room.raw))) as usize,
                value: room.log2_peak,
                scale: self.log2_scale(room),
                free: free(room),
            }),
            _ => Ok(()),
        }
    }

    /// The modulus of every rung.
    #[must_use]
    pub fn moduli(&self) -> &Moduli {
        &self.moduli
    }

    /// The same chain with its towers in another order.
    pub(crate) fn with_order(self, moduli: Moduli) -> Self {
        Self { moduli, ..self }
    }

    /// The level of ciphertexts at a rung.
    #[must_use]
    pub fn level(&self, rung: Rung) -> Level {
        self.moduli.level(rung)
    }

    /// The level of ciphertexts at every rung.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        (0..self.moduli.n_rungs() as u16).map(|rung| self.level(Rung(rung))).collect()
    }

    /// Bits between a value and half the modulus it is in.
    #[must_use]
    pub fn free_bits(&self, room: &Room) -> f64 {
        self.moduli.log2(room.rung) - self.log2_scale(room) - room.log2_peak - 1.0
    }

    fn log2_scale(&self, room: &Room) -> f64 {
        if room.raw { self.raw(room.position) } else { self.scale(room.position) }.log2()
    }

    /// Scale of a value at a position, after its rescale if there is one.
    #[must_use]
    pub fn scale(&self, position: u32) -> Scale {
        self.scales[position as usize]
    }

    /// Scale of a value at a position, before its rescale.
    #[must_use]
    pub fn raw(&self, position: u32) -> Scale {
        self.raw[position as usize]
    }
}

impl Sizes {
    /// Bits of the scale that is wanted after the rescale from a rung.
    #[must_use]
    pub fn after(&self, rung: Rung) -> f64 {
        self.activations[self.activations.len() - rung.index()]
    }

    /// The moduli that these sizes ask for, in bits for every rung, if there were primes of any size.
    pub(crate) fn moduli(&self, positions: &Positions) -> Vec<f64> {
        let n_rungs = positions.n_rescales() as usize + 1;
        let mut steps = vec![0.0; n_rungs];
        let (mut scales, mut raw) = (vec![self.input], vec![self.input]);
        for (rung, stretch) in stretches(positions) {
            let from = *scales.last().expect("the input has a scale");
            let reached = walk(positions, stretch, from, |p| self.weights[p as usize - 1]);
            let last = *reached.last().expect("a stretch has a position");
            steps[rung.index()] = (last - self.after(rung)).max(LEAST_STEP_BITS);
            raw.extend(&reached);
            scales.extend(&reached[..reached.len() - 1]);
            scales.push(last - steps[rung.index()]);
        }
        let mut sum = 0.0;
        let above: Vec<f64> = steps
            .iter()
            .map(|step| {
                sum += step;
                sum
            })
            .collect();
        // What stays to the end is part of every modulus: it makes room for everything.
        let missing = |room: &Room| {
            let scale = if room.raw { &raw } else { &scales }[room.position as usize];
            scale + room.bits(self.headroom) - above[room.rung.index()]
        };
        let last = self.rooms.iter().map(missing).fold(0.0, f64::max);
        above.into_iter().map(|bits| last + bits).collect()
    }
}

/// The rung that a rescale leaves, and the positions since the one before, in order of evaluation.
pub(crate) fn stretches(positions: &Positions) -> Vec<(Rung, std::ops::RangeInclusive<u32>)> {
    let mut first = 1;
    let mut all = Vec::new();
    for position in 1..=positions.depth() {
        if positions.is_boundary(position) {
            all.push((positions.working_rung(position), first..=position));
            first = position + 1;
        }
    }
    all
}

/// Bits of the scale after each position of a stretch.
pub(crate) fn walk(
    positions: &Positions,
    stretch: std::ops::RangeInclusive<u32>,
    from: f64,
    weight: impl Fn(u32) -> f64,
) -> Vec<f64> {
    let mut bits = from;
    stretch
        .map(|p| {
            bits = match positions.step(p) {
                Step::Product => 2.0 * bits,
                Step::Linear => bits + weight(p),
            };
            bits
        })
        .collect()
}

//! Networks and inputs from a seed.

use super::blocks::Builder;
use super::{Extents, Network, Op, Rank, ValueIdx};
use crate::models::random::Random;

/// Inputs that weights are scaled on, and that a calibrated build is given.
const CALIBRATION: usize = 24;
/// Inputs of the same kind that no build sees.
const FRESH: usize = 3;

/// How far numbers may be from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// Weights, biases and coefficients as training leaves them.
    Ordinary,
    /// Weights, inputs and scores from 1e-3 to 1e3, large biases, channels apart, leading coefficients tiny, zero, negative.
    Wild,
}

/// How large networks may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Activations at most.
    pub activations: usize,
    /// Sum over the activations of the multiplications that each takes with the layer before it.
    pub depth: usize,
    /// Numbers of a vector.
    pub vector: usize,
    /// Rows and columns of an image.
    pub side: usize,
    /// Channels of an image.
    pub channels: usize,
}

impl Limits {
    /// Networks that are compiled and evaluated in a fraction of a second at a ring that protects nothing.
    #[must_use]
    pub fn toy() -> Self {
        Self { activations: 4, depth: 12, vector: 20, side: 9, channels: 4 }
    }

    /// Networks that fit rings of up to 2^14.
    #[must_use]
    pub fn real() -> Self {
        Self { activations: 4, depth: 14, vector: 40, side: 13, channels: 6 }
    }
}

/// A network with inputs of the kind that it is made for.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Where it came from.
    pub seed: u64,
    /// How far its numbers are from one.
    pub temper: Temper,
    /// The network.
    pub network: Network,
    /// What a build measures values on; without it, a build makes inputs up, and the network is made for such inputs.
    pub calibration: Option<Vec<Vec<f64>>>,
    /// Other inputs from where those for calibration came from.
    pub fresh: Vec<Vec<f64>>,
}

/// The network of a seed.
#[must_use]
pub fn draw(seed: u64, temper: Temper, limits: &Limits) -> Drawn {
    let mut random = Random::new(seed);
    let is_calibrated = random.below(2) == 0;
    let (rank, input) = input(&mut random, limits);
    let kind = Kind::draw(&mut random, temper, is_calibrated);
    let samples: Vec<Vec<f64>> =
        (0..CALIBRATION + FRESH).map(|i| kind.sample(&mut random, input, i)).collect();
    let (calibration, fresh) = samples.split_at(CALIBRATION);
    let network = Network { rank, input, layers: Vec::new() };
    let mut builder = Builder::new(network, calibration, temper, *limits, random);
    layers(&mut builder, limits);
    Drawn {
        seed,
        temper,
        network: builder.finish(),
        calibration: is_calibrated.then(|| calibration.to_vec()),
        fresh: fresh.to_vec(),
    }
}

fn input(random: &mut Random, limits: &Limits) -> (Rank, Extents) {
    let between = |random: &mut Random, low: usize, high: usize| low + random.below(high - low + 1);
    match random.below(10) {
        0..4 => (Rank::Vector, [between(random, 2, limits.vector), 1, 1]),
        4..6 => (Rank::Signal, [between(random, 1, 3), 1, between(random, 5, limits.side * 2)]),
        _ => (
            Rank::Image,
            [between(random, 1, 3), between(random, 5, limits.side), between(random, 5, limits.side)],
        ),
    }
}

fn layers(builder: &mut Builder, limits: &Limits) {
    let n_activations = 1 + builder.random.below(limits.activations);
    let mut x = ValueIdx::INPUT;
    while builder.n_activations() < n_activations {
        let before = builder.n_activations();
        x = match builder.random.below(6) {
            0 if n_activations - before >= 2 => builder.residual(x),
            1 => builder.branches(x),
            _ => builder.plain(x),
        };
        if builder.n_activations() == before {
            break;
        }
        x = builder.maybe_pool(x);
    }
    if builder.rank_of_input() != Rank::Vector {
        if builder.random.below(5) < 2 {
            x = builder.push(Op::GlobalPool, &[x]);
        }
        x = builder.push(Op::Flatten, &[x]);
    }
    // Scores are sometimes what an activation leaves.
    if builder.random.below(15) > 0 || builder.len(x) > limits.vector {
        let range = builder.score_range();
        let out = 1 + builder.random.below(10);
        builder.dense(x, out, range);
    }
}

/// Where inputs come from.
struct Kind {
    shape: InputShape,
    size: f32,
}

enum InputShape {
    /// Uniform between minus one and one.
    Even,
    /// Pixels from zero to one.
    Pixels,
    /// Waves and white noise in turn, both of deviation one: what builds make up where nothing is known.
    Normalized,
}

impl Kind {
    fn draw(random: &mut Random, temper: Temper, is_calibrated: bool) -> Self {
        if !is_calibrated {
            return Self { shape: InputShape::Normalized, size: 1.0 };
        }
        let shape = match random.below(3) {
            0 => InputShape::Even,
            1 => InputShape::Pixels,
            _ => InputShape::Normalized,
        };
        let size = match temper {
            Temper::Ordinary => 1.0,
            Temper::Wild => 10f32.powf(random.uniform(-3.0, 3.0)),
        };
        Self { shape, size }
    }

    fn sample(&self, random: &mut Random, [c, h, w]: Extents, index: usize) -> Vec<f64> {
        let n = c * h * w;
        let numbers: Vec<f32> = match self.shape {
            InputShape::Even => (0..n).map(|_| random.uniform(-1.0, 1.0)).collect(),
            InputShape::Pixels => (0..n).map(|_| random.uniform(0.0, 1.0)).collect(),
            InputShape::Normalized if index.is_multiple_of(2) => {
                crate::models::image::Image::waves(c, h, w, random).data
            }
            InputShape::Normalized => random.normals(n, 1.0),
        };
        numbers.into_iter().map(|x| f64::from(x * self.size)).collect()
    }
}

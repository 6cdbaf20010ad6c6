//! Simulation: a program in the clear, with the noise that encryption would add.
//!
//! Every result gets independent normal noise of the variance that the noise model gives its instruction. The exact
//! answer is that of the same program without noise. Results are reduced modulo the modulus of their level, so what would
//! wrap around under encryption wraps around here, and what comes near is counted.

mod embedding;
mod inputs;
mod noise;
mod normal;
mod run;
mod wrap;

pub use inputs::Inputs;
pub use noise::InstructionNoise;
pub(crate) use run::Simulator;
pub use run::{
    Fullest, LayerLoss, SampleResult, Simulation, Summary, Until, disturbed, noisiest_layer, simulate,
    summarize,
};

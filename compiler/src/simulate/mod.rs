//! Simulation: a program in the clear, with the noise that encryption would add.
//!
//! Every result gets independent normal noise of the variance that the noise model gives its instruction. The exact
//! answer is that of the same program without noise.

mod noise;
mod run;

pub use noise::InstructionNoise;
pub use run::{LayerLoss, Simulation, simulate};

//! The runtime: leveled RNS-CKKS and the machine that runs compiled programs on it.
#![deny(unsafe_code)]

pub mod ckks;
pub mod cli;
pub mod files;
pub mod ring;
pub mod vm;

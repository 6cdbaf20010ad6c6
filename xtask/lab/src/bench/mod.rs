//! `cargo xtask bench`: measurements that are archived, never asserted.

mod ckks;
mod cost;
mod processor;
mod sets;

use clap::{Args as ClapArgs, Subcommand};

/// What to measure.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Times of the CKKS operations at the parameter sets A, B and C
    Ckks(ckks::Args),
    /// Constants of the cost model that plans and predictions are made with
    Cost(cost::Args),
}

/// Runs the chosen bench.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.what {
        What::Ckks(args) => ckks::run(args),
        What::Cost(args) => cost::run(args),
    }
}

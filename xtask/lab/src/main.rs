//! The commands of `cargo xtask` that link the whole workspace: measurements, generated models, command pages, the picture.
//!
//! They are a crate of their own so that `cargo xtask` itself is built in seconds; it runs this one when it needs it.

#![forbid(unsafe_code)]

mod bench;
mod models;
mod pages;
mod picture;
mod sweep;
#[path = "../../src/workspace.rs"]
mod workspace;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure speed
    Bench(bench::Args),
    /// Write the networks of the level tables as ONNX files
    Models(models::Args),
    /// Bring the command pages up to date
    Pages,
    /// Take docs/report.png and docs/browser.png anew (needs Chromium and `cargo xtask web`)
    Picture,
    /// Accuracy against time of clustered models and ensembles, as CSV and SVG
    Sweep(sweep::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args).map_err(io::Error::other),
        Command::Models(args) => models::run(&args),
        Command::Pages => pages::write().map(|changed| {
            changed.iter().for_each(|page| println!("{page} was out of date"));
        }),
        Command::Picture => picture::take(),
        Command::Sweep(args) => sweep::run(&args).map_err(io::Error::other),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

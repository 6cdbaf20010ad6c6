//! Repository automation: `cargo xtask <command>`. Everything CI does is one of these commands.

#![forbid(unsafe_code)]

mod bless;
mod capacity;
mod check;
mod cluster;
mod demo;
mod dist;
mod docs;
mod evidence;
mod fuzz;
mod golden;
mod lab;
mod load;
mod python;
mod slow;
mod tidy;
mod web;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Repository automation.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Format check, tidy, lints and tests: the same as CI
    Check,
    /// Build a shipped model and evaluate it on an encrypted picture
    Demo(demo::Args),
    /// Make an archive of both commands for others, or package the library crates
    Dist(dist::Args),
    /// Bring the command pages up to date and run the commands that the documents show
    Docs(docs::Args),
    /// Test gateways, workers and NATS on this machine
    Cluster(cluster::Args),
    /// Measure a server on this machine with one, four and sixteen clients
    Load(load::Args),
    /// Simulate how many machines a service needs
    Capacity(capacity::Args),
    /// Accept the current output as the new snapshots
    Bless,
    /// Run the checks that need time, an idle machine or tools that not everyone has
    Evidence(evidence::Args),
    /// Feed changed files to every reader
    Fuzz(fuzz::Args),
    /// Rewrite the golden and corrupt program files
    Golden,
    /// Build and test the Python package in a virtual environment under target/
    Python(python::Args),
    /// Run the slow tests that the default suite leaves out
    Slow(slow::Args),
    /// Check the tree itself: layers, citations, links, paths, dependencies, fixtures, widths
    Tidy,
    /// Build the client of a browser and its page
    Web(web::Args),
    /// Measure speed
    Bench(lab::Args),
    /// Write the networks of the level tables as ONNX files
    Models(lab::Args),
    /// Accuracy against time of clustered models and ensembles, as CSV and SVG
    Sweep(lab::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check => check::run(),
        Command::Demo(args) => demo::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Docs(args) => docs::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::Bless => bless::run(),
        Command::Evidence(args) => evidence::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Golden => golden::run(),
        Command::Python(args) => python::run(&args),
        Command::Slow(args) => slow::run(&args),
        Command::Tidy => tidy::run(),
        Command::Web(args) => web::run(&args),
        Command::Bench(args) => lab::run("bench", &args),
        Command::Models(args) => lab::run("models", &args),
        Command::Sweep(args) => lab::run("sweep", &args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

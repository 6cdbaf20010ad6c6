//! `cargo xtask fuzz`: runs targets and prints what they found as JSON.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fhec_fuzz::memory::Counting;
use fhec_fuzz::{Config, targets};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Feed changed files to every reader and watch for panics, hangs and memory.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask fuzz", bin_name = "cargo xtask fuzz")]
#[command(after_help = "Examples:
  cargo xtask fuzz all --executions 10000
  cargo xtask fuzz onnx --executions 1000000 --seed 7
  cargo xtask fuzz onnx --seed 7 --start 123456 --executions 1     one execution again")]
struct Args {
    /// Target, or `all`
    #[arg(value_parser = targets::NAMES.into_iter().chain(["all"]).collect::<Vec<_>>())]
    target: String,
    /// Number of inputs
    #[arg(long, default_value_t = 100_000)]
    executions: u64,
    /// First input
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for inputs that fail
    #[arg(long, default_value = "target/fuzz")]
    folder: PathBuf,
    /// Write the results here, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the targets; whether nothing was found.
fn run(args: &Args) -> std::io::Result<bool> {
    // One thread, this one: executions are small, and their time and memory are those of the process.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().map_err(std::io::Error::other)?;
    let names = match args.target.as_str() {
        "all" => targets::NAMES.to_vec(),
        name => vec![name],
    };
    let config = Config {
        executions: args.executions,
        start: args.start,
        seed: args.seed,
        folder: args.folder.clone(),
        quiet: args.quiet,
    };
    let outcomes =
        names.into_iter().map(|name| targets::run_named(name, &config)).collect::<Result<Vec<_>, _>>()?;
    let json = serde_json::to_string_pretty(&outcomes)?;
    println!("{json}");
    if let Some(path) = &args.json {
        std::fs::write(path, json + "\n")?;
    }
    Ok(outcomes.iter().all(|outcome| outcome.findings.is_empty()))
}

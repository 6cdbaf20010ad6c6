//! `cargo xtask demo`: the whole way once, with the commands a user would type.
//!
//! Builds the two commands and nothing else, compiles a shipped model, then makes keys, encrypts a drawn digit, evaluates,
//! decrypts and compares with the clear result.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::workspace;

const MODEL: &str = "onnx-models/lenet-mnist-0.onnx";
const PROGRAM: &str = "target/demo/lenet-mnist.fhebc";

/// Processor time of building both commands from nothing.
const PROCESSOR_MINUTES: usize = 7;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask demo
  cargo xtask demo examples/digits/broad-3.png")]
pub(crate) struct Args {
    /// A picture of one digit, 28 x 28, light on dark
    #[arg(default_value = "examples/digits/broad-7.png")]
    picture: PathBuf,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    // A relative path is meant from where the user stands, but the shipped pictures are found from anywhere.
    let picture = match std::path::absolute(&args.picture)? {
        path if path.exists() => path,
        _ => workspace::root().join(&args.picture),
    };
    if !picture.exists() {
        return Err(io::Error::other(format!("{}: there is no such picture", picture.display())));
    }
    std::fs::create_dir_all(workspace::root().join("target/demo"))?;
    let picture = picture.to_string_lossy();
    if !workspace::root().join("target/release/fhe-run").exists() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        println!(
            "Building the compiler (fhec) and the runtime (fhe-run), once: about {} minutes on {cores} core(s). Cargo shows how far it is.",
            PROCESSOR_MINUTES.div_ceil(cores)
        );
    }
    let begin = Instant::now();
    // With the features of the whole workspace, so that the tests find it built.
    step("cargo", &["build", "--release", "--workspace", "--bin", "fhec", "--bin", "fhe-run"])?;
    println!(
        "Built after {:.0} s. Now the model: from ONNX to a program for encrypted pictures.\n",
        begin.elapsed().as_secs_f64()
    );
    // An image takes milliseconds whatever its precision.
    let more = ["--calibrate", "examples/digits", "--precision", "8"];
    step("target/release/fhec", &[&["build", MODEL, "-o", PROGRAM][..], &more].concat())?;
    println!("Keys, encryption, evaluation and decryption, all in one process for once.\n");
    step("target/release/fhe-run", &["demo", PROGRAM, &picture])?;
    println!("What happened, step by step: docs/tutorial.md. With your own network: docs/training.md.");
    Ok(())
}

/// Shows a command and runs it.
fn step(program: &str, args: &[&str]) -> io::Result<()> {
    println!("$ {program} {}", args.join(" "));
    workspace::run(program, args, &[])?;
    println!();
    Ok(())
}

//! `cargo xtask demo`: the whole way once, with the commands a user would type.
//!
//! Builds a shipped model, then makes keys, encrypts a drawn digit, evaluates, decrypts and compares with the clear result.

use std::io;
use std::path::{Path, PathBuf};

use fhe_input::{ImageShape, Normalization, read_samples};

use crate::workspace;

const MODEL: &str = "onnx-models/lenet-mnist-0.onnx";
const PROGRAM: &str = "target/demo/lenet-mnist.fhebc";
/// Side of the pictures of the shipped model.
const SIDE: usize = 28;

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
    println!("{}", drawing(&picture)?);
    std::fs::create_dir_all(workspace::root().join("target/demo"))?;
    let picture = picture.to_string_lossy();
    step("cargo", &["build", "--release", "--workspace", "--quiet"])?;
    step("target/release/fhec", &["build", MODEL, "-o", PROGRAM, "--calibrate", "examples/digits"])?;
    step("target/release/fhe-run", &["demo", PROGRAM, &picture])
}

/// Shows a command and runs it.
fn step(program: &str, args: &[&str]) -> io::Result<()> {
    println!("$ {program} {}", args.join(" "));
    workspace::run(program, args, &[])?;
    println!();
    Ok(())
}

/// The picture in characters, two rows of pixels a line.
fn drawing(path: &Path) -> io::Result<String> {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let samples = read_samples(path, ImageShape::new(1, SIDE, SIDE)).map_err(io::Error::other)?;
    let pixels = samples.tensor(0, &Normalization::default()).map_err(io::Error::other)?;
    let shade = |row: usize, column: usize| {
        let light = (pixels[row * SIDE + column] + pixels[(row + 1) * SIDE + column]) / 2.0;
        SHADES[((light * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    };
    let lines =
        (0..SIDE).step_by(2).map(|row| (0..SIDE).map(|column| shade(row, column)).collect::<String>());
    Ok(lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n"))
}

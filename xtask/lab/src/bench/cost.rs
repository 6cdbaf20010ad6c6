//! Constants of the cost model, measured on this machine.
//!
//! Every kernel runs on all cores at once, each on its own operands, because cores share the memory. What is counted is
//! the processor time of a thread, where the operating system tells, and the fastest of several batches: other work on the
//! machine makes a kernel slower, never faster.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fhe_bytecode::{CostModel, Cpu, Scale};
use fhe_ckks::{CkksError, Context};
use fhe_ring::kernels::Instructions;
use fhe_ring::scalar::{End, Start, Term};
use fhe_ring::{Ahead, Automorphism, BaseConverter, Coefficients, Held, Words};

use super::processor::processor_time;
use super::sets::SETS;
use crate::workspace;

/// Where the constants live.
const FILE: &str = "runtime/bytecode/src/plan/cpu.rs";
/// Words of a vector that stays in a core's cache with all its companions.
const NEAR: usize = 1 << 10;
/// Words of the operands that no cache holds.
const FAR: usize = 12 << 20;
/// Terms of the inner products.
const TERMS: usize = 8;
/// Towers of a digit.
const DIGIT: usize = 4;
/// Batches, of which the fastest counts.
const BATCHES: usize = 9;
/// Least time of a batch.
const BATCH: Duration = Duration::from_millis(40);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write the constants into the cost model's source file
    #[arg(long)]
    write: bool,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let native = Cpu::native();
    let mut kinds = Cpu::ALL.into_iter().take_while(|kind| *kind != native).chain([native]);
    kinds.try_for_each(|kind| measured(kind, args.write))
}

/// Measures one kind of CPU.
fn measured(kind: Cpu, is_written: bool) -> Result<(), String> {
    let set = SETS.iter().find(|set| set.has_linear_map()).ok_or("no set for this")?;
    let instructions = match kind {
        Cpu::Scalar => Instructions::Scalar,
        Cpu::Avx2 => Instructions::Avx2,
        Cpu::Avx512 => Instructions::Avx512,
        Cpu::Avx512Ifma => Instructions::Best,
    };
    let context =
        Context::with_instructions(set.params()?, instructions).map_err(|error| error.to_string())?;
    eprintln!("{}: {}, {} threads", kind.name(), set.describe(), rayon::current_num_threads());
    let measured = rayon::broadcast(|_| Kernels::measure(&context));
    let measured = measured.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let n = measured.len() as f64;
    let mean = |pick: fn(&Kernels) -> f64| measured.iter().map(pick).sum::<f64>() / n;
    let constants = [
        ("ntt_ns", mean(|k| k.ntt)),
        ("mac_ns", mean(|k| k.mac)),
        ("byte_ns", mean(|k| k.byte)),
        ("convert_ns", mean(|k| k.convert)),
        ("permute_ns", mean(|k| k.permute)),
        ("embed_ns", mean(|k| k.embed)),
        ("round_ns", mean(|k| k.round)),
    ];
    for (name, value) in constants {
        println!("{name:<12} {value:.3}   (is {:.3})", current(&kind.costs(), name));
    }
    if is_written { write(kind, &constants) } else { Ok(()) }
}

/// Nanoseconds on one core, in the units of [`CostModel`].
#[derive(Clone, Copy, Debug)]
struct Kernels {
    ntt: f64,
    mac: f64,
    byte: f64,
    convert: f64,
    permute: f64,
    embed: f64,
    round: f64,
}

impl Kernels {
    fn measure(context: &Context) -> Result<Self, CkksError> {
        let ring = context.ring();
        let (n, tower) = (ring.n(), &ring.towers()[0]);
        let q = tower.modulus.value();
        let log_n = f64::from(n.ilog2());
        let far: Vec<u64> = (0..FAR as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q).collect();
        let doubles: Vec<u64> = far[..FAR / 2].iter().map(|&v| (v as f64).to_bits()).collect();
        let mut out = [vec![0; n], vec![0; n]];

        let mut residues = far[..n].to_vec();
        let ntt = fastest(|| tower.ntt.forward(&mut residues)) / (n as f64 * log_n);

        let coeffs = (0..n).map(|i| ((i * 37) % 1001) as f64 - 500.0).collect();
        let coeffs = Coefficients::new(coeffs).expect("small integers");
        let mut held = Held::Integers;
        let transform = fastest(|| {
            held = tower.ntt.forward_for_products(&tower.kernels, &mut out[0], &coeffs);
        }) / n as f64;

        let mut dot = |len: usize, starts: &mut dyn Iterator<Item = usize>| {
            let [first, second] = &mut out;
            fastest(|| {
                let start = starts.next().unwrap_or(0);
                let y = |i: usize| Words::Integers(&far[start + i * len..start + (i + 1) * len]);
                // What a transform leaves for products; integers are residues here, which takes as long.
                let plain = if held == Held::Doubles { &doubles } else { &far };
                let x = |i: usize| held.of(&plain[start / 2 + i * len..start / 2 + (i + 1) * len]);
                let terms: Vec<Term<'_>> =
                    (0..TERMS).map(|t| Term { x: x(t), y: [y(2 * t), y(2 * t + 1)] }).collect();
                tower.kernels.dot2([&mut first[..len], &mut second[..len]], &terms, Start::Sums);
            }) / (len * TERMS) as f64
        };
        let near = dot(NEAR, &mut std::iter::repeat(0));
        let step = 2 * TERMS * n;
        let streamed = dot(n, &mut (0..).map(|i| i % (FAR / step) * step));

        let automorphism = Automorphism::new(n, 5);
        let mut at = (0..).map(|i| i % (FAR / n - 1) * n);
        let permute = fastest(|| {
            let start = at.next().unwrap_or(0);
            automorphism.apply(&mut out[0], &far[start..start + n]);
        }) / n as f64;

        let converter = BaseConverter::new(ring, 0..DIGIT);
        let sources: Vec<Vec<u64>> = ring.towers()[..DIGIT]
            .iter()
            .enumerate()
            .map(|(i, t)| far[i * n..(i + 1) * n].iter().map(|v| v % t.modulus.value()).collect())
            .collect();
        let sources: Vec<&[u64]> = sources.iter().map(Vec::as_slice).collect();
        let lifted = converter.lift(ring, &sources);
        // The transform takes the sources as they are; what it takes longer than a plain one is the conversion.
        let converted = fastest(|| {
            converter.forward(ring, &lifted, DIGIT, &mut out[0], End::Residues, Ahead::nothing());
        }) / n as f64;
        let convert = (converted - ntt * log_n).max(0.0) / DIGIT as f64;

        let slots = context.slots();
        let values: Vec<f64> = (0..slots).map(|i| (i as f64 * 0.1).sin()).collect();
        let scale = Scale::from_log2(16.0);
        context.encoder().round_complex(&values, &values, scale)?;
        let embed = fastest(|| {
            let _ = black_box(context.encoder().round_complex(&values, &values, scale));
        }) / (slots as f64 * (log_n - 1.0));

        let bytes = 3.0 * 8.0;
        Ok(Self {
            ntt,
            mac: near / 2.0,
            byte: (streamed - near).max(0.0) / bytes,
            convert,
            permute,
            embed,
            round: (transform - ntt * log_n).max(0.0),
        })
    }
}

/// Nanoseconds of one call in the fastest batch.
fn fastest(mut call: impl FnMut()) -> f64 {
    call();
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let (begin, begin_processor, mut calls) = (Instant::now(), processor_time(), 0u32);
        while begin.elapsed() < BATCH {
            call();
            calls += 1;
        }
        let elapsed = match (processor_time(), begin_processor) {
            (Some(end), Some(begin)) => end - begin,
            _ => begin.elapsed(),
        };
        best = best.min(elapsed.as_secs_f64() * 1e9 / f64::from(calls));
    }
    best
}

fn current(model: &CostModel, name: &str) -> f64 {
    match name {
        "ntt_ns" => model.ntt_ns,
        "mac_ns" => model.mac_ns,
        "byte_ns" => model.byte_ns,
        "convert_ns" => model.convert_ns,
        "permute_ns" => model.permute_ns,
        "embed_ns" => model.embed_ns,
        "round_ns" => model.round_ns,
        _ => f64::NAN,
    }
}

/// Replaces the constants in the source file of the cost model.
fn write(kind: Cpu, constants: &[(&str, f64)]) -> Result<(), String> {
    let path: PathBuf = workspace::root().join(FILE);
    let fault = |error: std::io::Error| format!("{FILE}: {error}");
    let text = std::fs::read_to_string(&path).map_err(fault)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let begin = format!("const {}: CostModel", kind.name().to_uppercase().replace('-', "_"));
    let start = lines.iter().position(|line| line.starts_with(&begin));
    let start = start.ok_or_else(|| format!("{FILE}: no constants of {}", kind.name()))?;
    for (name, value) in constants {
        let line = lines[start..]
            .iter_mut()
            .find(|line| line.trim_start().starts_with(&format!("{name}: ")))
            .ok_or_else(|| format!("{FILE}: no constant {name}"))?;
        let indent = line.len() - line.trim_start().len();
        *line = format!("{}{name}: {value:.3},", " ".repeat(indent));
    }
    std::fs::write(&path, lines.join("\n") + "\n").map_err(fault)?;
    eprintln!("{FILE} has the new constants");
    Ok(())
}

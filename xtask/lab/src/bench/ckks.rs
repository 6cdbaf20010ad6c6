//! Times of the CKKS operations: medians, one thread and all, top and half level.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use fhe_ckks::linear::{self, Diagonal, Hop, LinearGroup, LinearPlan, LinearTerm, PlaintextSource};
use fhe_ckks::{
    Ciphertext, CkksError, Context, Encoding, Evaluator, GaloisKeys, Level, Plaintext, RelinKey, Rotation,
    Scale,
};
use fhe_fixed_seeds::fixed_seeds;
use fhe_ring::kernels::Instructions;
use fhe_secret::{SecretKey, SeedSource};
use serde::Serialize;

use super::processor::processor_time;
use super::sets::{SETS, Set};

/// Options of `cargo xtask bench ckks`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only these sets (A, B, C, R)
    #[arg(long, value_delimiter = ',', value_name = "SET")]
    sets: Vec<String>,
    /// Only operations whose name contains this
    #[arg(long, value_name = "TEXT")]
    op: Option<String>,
    /// Only the top level and one thread
    #[arg(long)]
    quick: bool,
    /// Seconds to spend on each number
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    time: f64,
    /// Measure processor time instead of elapsed time: one thread only, for a machine that others use too
    #[arg(long)]
    cpu_time: bool,
    /// Instructions that kernels may use
    #[arg(long, value_enum, default_value_t = Cpu::Best)]
    cpu: Cpu,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Cpu {
    /// Whatever the CPU has
    Best,
    /// Our kernels with AVX512
    Avx512,
    /// Our kernels with AVX2 and FMA
    Avx2,
    /// Our kernels in scalar code
    Scalar,
}

/// One measured number.
#[derive(Debug, Serialize)]
struct Measurement {
    set: &'static str,
    op: &'static str,
    level: &'static str,
    threads: usize,
    median_ms: f64,
    /// The fastest call: what a machine that others use too would do alone.
    min_ms: f64,
}

/// Baby and giant steps of the linear map that stands for one 3x3 convolution of 16 channels.
const BABIES: usize = 16;
const GIANTS: usize = 9;

/// Rotations that share one decomposition.
const HOISTED: usize = 8;

/// Everything one set needs.
struct Bench {
    context: Arc<Context>,
    secret: SecretKey,
    relin: RelinKey,
    keys: GaloisKeys,
    values: Vec<f64>,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.quick || args.cpu_time || all == 1 { vec![1] } else { vec![1, all] };
    let mut results = Vec::new();
    for set in SETS.iter().filter(|set| args.sets.is_empty() || args.sets.iter().any(|name| name == set.name))
    {
        let bench = Bench::new(set, args).map_err(|error| error.to_string())?;
        let engine = bench.context.ring().towers()[0].ntt.engine_name();
        println!("{}, transforms by {engine}", set.describe());
        for &threads in &threads {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
            let measured =
                pool.install(|| bench.measure(set, args, threads)).map_err(|error| error.to_string())?;
            results.extend(measured);
        }
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

impl Bench {
    fn new(set: &Set, args: &Args) -> Result<Self, Box<dyn std::error::Error>> {
        let instructions = match args.cpu {
            Cpu::Best => Instructions::Best,
            Cpu::Avx512 => Instructions::Avx512,
            Cpu::Avx2 => Instructions::Avx2,
            Cpu::Scalar => Instructions::Scalar,
        };
        let context = Context::with_instructions(set.params()?, instructions)?;
        let top = context.params().max_level();
        let mut seeds = fixed_seeds(0);
        let secret = SecretKey::generate(&context, &mut seeds)?;
        let relin = secret.relin_key(&context, top, &mut seeds)?;
        // The keys of the linear map are gigabytes; only the set that is about it makes them.
        let hoisted = 1..=HOISTED;
        let map = (1..BABIES).chain((1..GIANTS).map(|g| g * BABIES));
        let steps: Vec<usize> = if set.has_linear_map() { map.collect() } else { hoisted.collect() };
        let steps = steps.into_iter();
        let wanted: Vec<_> = steps.map(|s| (Rotation::new(s as i64, &context), top)).collect();
        let keys = secret.rotation_keys(&context, &wanted, &mut seeds)?;
        let values = (0..context.slots()).map(|i| (i as f64 * 0.1).sin()).collect();
        Ok(Self { context, secret, relin, keys, values })
    }

    fn measure(&self, set: &Set, args: &Args, threads: usize) -> Result<Vec<Measurement>, CkksError> {
        let top = self.context.params().max_level();
        let levels = [("top", top), ("half", Level(top.0 / 2))];
        let mut results = Vec::new();
        for (name, level) in levels.into_iter().take(if args.quick { 1 } else { 2 }) {
            let operands = Operands::new(self, level)?;
            for (op, call) in operations() {
                let wanted = args.op.as_ref().is_none_or(|text| op.contains(text.as_str()));
                if !wanted || (op.starts_with("linear") && !set.has_linear_map()) {
                    continue;
                }
                let (median_ms, min_ms) = time(args, || call(self, &operands))?;
                println!(
                    "{:>3} {op:<16} {name:<5} {threads:>2} threads {median_ms:>10.3} ms, fastest {min_ms:>10.3}",
                    set.name
                );
                results.push(Measurement { set: set.name, op, level: name, threads, median_ms, min_ms });
            }
        }
        Ok(results)
    }
}

/// Inputs of the operations at one level.
struct Operands {
    plain: Plaintext,
    /// Large numbers at scale one, so that a product can be repeated.
    weights: Plaintext,
    product: Mutex<Ciphertext>,
    fresh: Ciphertext,
    squared: Ciphertext,
    diagonal: Arc<Encoding>,
    residues: Vec<u64>,
}

impl Operands {
    fn new(bench: &Bench, level: Level) -> Result<Self, CkksError> {
        let encoder = bench.context.encoder();
        let scale = Scale::from_log2(30.0);
        let plain = encoder.encode(&bench.values, scale, level)?;
        let weights: Vec<f64> = bench.values.iter().map(|value| value * scale.value()).collect();
        let fresh = bench.secret.encrypt(&bench.context, &plain, &mut fixed_seeds(2))?.expand(&bench.context);
        let evaluator = Evaluator::new(&bench.context);
        Ok(Self {
            weights: encoder.encode(&weights, Scale::ONE, level)?,
            product: Mutex::new(fresh.clone()),
            squared: evaluator.square(&fresh)?,
            diagonal: Arc::new(encoder.round(&bench.values, Scale::from_log2(16.0))?),
            residues: fresh.polys()[0].tower(0).to_vec(),
            plain,
            fresh,
        })
    }
}

/// Gives the same diagonal for every name; encoding it anew costs what a real source pays.
struct OneDiagonal<'a> {
    bench: &'a Bench,
    kept: Option<&'a Arc<Encoding>>,
}

impl PlaintextSource for OneDiagonal<'_> {
    fn diagonal(&self, _: usize) -> Result<Diagonal, CkksError> {
        Ok(Diagonal::Encoding(match self.kept {
            Some(kept) => kept.clone(),
            None => Arc::new(self.bench.context.encoder().round(&self.bench.values, Scale::from_log2(16.0))?),
        }))
    }
}

type Operation = fn(&Bench, &Operands) -> Result<(), CkksError>;

fn operations() -> Vec<(&'static str, Operation)> {
    vec![
        ("ntt_fwd", |bench, operands| {
            bench.context.ring().towers()[0].ntt.forward(&mut operands.residues.clone());
            Ok(())
        }),
        ("encode", |bench, operands| {
            let level = operands.fresh.level();
            bench.context.encoder().encode(&bench.values, Scale::from_log2(30.0), level).map(drop)
        }),
        ("encrypt", |bench, operands| {
            bench.secret.encrypt(&bench.context, &operands.plain, &mut SeedSource::os()).map(drop)
        }),
        ("decrypt", |bench, operands| bench.secret.decrypt(&bench.context, &operands.fresh).map(drop)),
        ("add", |bench, operands| {
            Evaluator::new(&bench.context).add(&operands.fresh, &operands.fresh).map(drop)
        }),
        ("mul_plain", |bench, operands| {
            let mut product = operands.product.lock().unwrap_or_else(PoisonError::into_inner);
            Evaluator::new(&bench.context).mul_plain_assign(&mut product, &operands.weights)
        }),
        ("mul_plain_new", |bench, operands| {
            Evaluator::new(&bench.context).mul_plain(&operands.fresh, &operands.weights).map(drop)
        }),
        ("square_relin", |bench, operands| {
            let evaluator = Evaluator::new(&bench.context);
            evaluator.relinearize(&evaluator.square(&operands.fresh)?, &bench.relin).map(drop)
        }),
        ("rescale", |bench, operands| {
            let evaluator = Evaluator::new(&bench.context);
            evaluator.rescale(&operands.fresh).map(drop)
        }),
        ("relin", |bench, operands| {
            Evaluator::new(&bench.context).relinearize(&operands.squared, &bench.relin).map(drop)
        }),
        ("rotate", |bench, operands| {
            let rotation = Rotation::new(1, &bench.context);
            Evaluator::new(&bench.context).rotate(&operands.fresh, rotation, &bench.keys).map(drop)
        }),
        ("rotate8_hoisted", |bench, operands| {
            let rotations: Vec<Rotation> =
                (1..=HOISTED).map(|s| Rotation::new(s as i64, &bench.context)).collect();
            Evaluator::new(&bench.context).rotate_hoisted(&operands.fresh, &rotations, &bench.keys).map(drop)
        }),
        ("linear144", |bench, operands| linear_map(bench, operands, None)),
        ("linear144_kept", |bench, operands| linear_map(bench, operands, Some(&operands.diagonal))),
    ]
}

fn linear_map(bench: &Bench, operands: &Operands, kept: Option<&Arc<Encoding>>) -> Result<(), CkksError> {
    let rotation = |s: usize| Rotation::new(s as i64, &bench.context);
    let groups = (0..GIANTS)
        .map(|g| LinearGroup {
            output: 0,
            giant: rotation(g * BABIES),
            terms: (0..BABIES).map(|b| LinearTerm { input: 0, baby: rotation(b), diagonal: 0 }).collect(),
        })
        .collect();
    let hops = (1..GIANTS).map(|g| Hop::direct(rotation(g * BABIES))).collect();
    let plan = LinearPlan { n_outputs: 1, groups, hops, ..LinearPlan::default() };
    let source = OneDiagonal { bench, kept };
    let inputs = std::slice::from_ref(&operands.fresh);
    linear::evaluate(&Evaluator::new(&bench.context), inputs, &plan, &source, &bench.keys).map(drop)
}

/// Milliseconds of one call: the median and the minimum of at least three and as many as fit the time.
///
/// Processor time ticks coarsely, so there both are the mean.
fn time(args: &Args, mut call: impl FnMut() -> Result<(), CkksError>) -> Result<(f64, f64), CkksError> {
    call()?;
    let (begin, begin_processor) = (Instant::now(), processor_time());
    let mut times = Vec::new();
    while times.len() < 3 || (begin.elapsed().as_secs_f64() < args.time && times.len() < 100_000) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    if args.cpu_time {
        let spent = processor_time().unwrap_or_default() - begin_processor.unwrap_or_default();
        let mean = spent.as_secs_f64() * 1e3 / times.len() as f64;
        return Ok((mean, mean));
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[0]))
}

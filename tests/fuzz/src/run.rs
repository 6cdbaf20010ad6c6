//! The loop: makes inputs, runs a target on them, watches time, memory and panics.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fhe_host::memory::processor_seconds;
use fhec_tests::models::random::Random;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::memory;
use crate::watch::{PanicHook, Watch, panic_message};

/// Time after which an execution counts as a hang.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Executions that take longer are repeated, and their processor time counts: other work on the machine is no hang.
const REPEATED: Duration = Duration::from_millis(50);
/// Findings of one kind and message that are saved.
const SAVED_EACH: u64 = 3;

/// A reader and what follows it.
pub trait Target {
    /// What the reader hands out.
    type Read;

    /// Name on the command line.
    const NAME: &'static str;

    /// Makes an input, by changing a sound one.
    fn input(&self, random: &mut Random) -> Vec<u8>;

    /// Reads an input; `None` if it was refused.
    fn read(&self, input: &[u8]) -> Option<Self::Read>;

    /// Most bytes the reader may hold at one time for an input of this length.
    fn memory_bound(&self, len: usize) -> usize;

    /// Uses what was accepted, or a sample of it.
    ///
    /// # Errors
    /// What a use found that the reader should have refused.
    fn exercise(&self, read: Self::Read, random: &mut Random) -> Result<(), String>;
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of executions.
    pub executions: u64,
    /// First execution, to repeat a finding alone.
    pub start: u64,
    /// Seed of all inputs.
    pub seed: u64,
    /// Folder for inputs that fail.
    pub folder: PathBuf,
    /// Whether to show progress.
    pub quiet: bool,
}

/// What was wrong with an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It panicked.
    Panic,
    /// It took more time than [`PATIENCE`].
    Hang,
    /// The reader held more memory than its bound.
    Memory,
    /// Something accepted could not be used.
    Fault,
}

/// Executions that failed alike.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was wrong.
    pub kind: Kind,
    /// More about it.
    pub message: String,
    /// How often.
    pub count: u64,
    /// First execution.
    pub index: u64,
    /// File with the input of the first execution.
    pub file: PathBuf,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The target.
    pub target: &'static str,
    /// The seed.
    pub seed: u64,
    /// First execution.
    pub start: u64,
    /// Executions done.
    pub executions: u64,
    /// Inputs that the reader accepted.
    pub accepted: u64,
    /// Longest execution, in milliseconds.
    pub slowest_ms: f64,
    /// That execution.
    pub slowest_index: u64,
    /// Most bytes a reader held at one time.
    pub peak_bytes: usize,
    /// Length of that input.
    pub peak_input_bytes: usize,
    /// Seconds the run took.
    pub seconds: f64,
    /// What failed.
    pub findings: Vec<Finding>,
}

/// Runs a target. Not for several threads at a time: time and memory are those of the process.
pub fn run<T: Target>(target: &T, config: &Config) -> std::io::Result<Outcome> {
    std::fs::create_dir_all(&config.folder)?;
    let bar = progress_bar(T::NAME, config);
    let watch = Watch::start(T::NAME, config.seed, &config.folder)?;
    let _hook = PanicHook::install();
    let began = Instant::now();
    let mut outcome = Outcome {
        target: T::NAME,
        seed: config.seed,
        start: config.start,
        executions: config.executions,
        accepted: 0,
        slowest_ms: 0.0,
        slowest_index: config.start,
        peak_bytes: 0,
        peak_input_bytes: 0,
        seconds: 0.0,
        findings: Vec::new(),
    };
    let mut findings: BTreeMap<(Kind, String), Finding> = BTreeMap::new();
    for index in config.start..config.start + config.executions {
        watch.begin(index)?;
        let mut input = Vec::new();
        let mut timed = || {
            let mut random = Random::new(mixed(config.seed, index));
            let began = Instant::now();
            let executed = catch_unwind(AssertUnwindSafe(|| {
                input = target.input(&mut random);
                execute(target, &input, &mut random)
            }));
            (executed, began.elapsed())
        };
        let (executed, mut elapsed) = timed();
        if elapsed > REPEATED {
            let before = processor_seconds();
            elapsed = elapsed.min(timed().1);
            if let (Some(before), Some(after)) = (before, processor_seconds()) {
                elapsed = elapsed.min(Duration::from_secs_f64((after - before).max(0.0)));
            }
        }
        let mut failed = Vec::new();
        match executed {
            Err(payload) => failed.push((Kind::Panic, panic_message(payload.as_ref()))),
            Ok(execution) => {
                outcome.accepted += u64::from(execution.accepted);
                if execution.peak > outcome.peak_bytes {
                    (outcome.peak_bytes, outcome.peak_input_bytes) = (execution.peak, input.len());
                }
                if execution.peak > target.memory_bound(input.len()) {
                    failed.push((Kind::Memory, "more than the bound".to_owned()));
                }
                failed.extend(execution.fault.map(|fault| (Kind::Fault, fault)));
            }
        }
        if elapsed > PATIENCE {
            failed.push((Kind::Hang, format!("more than {PATIENCE:?}")));
        }
        let milliseconds = elapsed.as_secs_f64() * 1e3;
        if milliseconds > outcome.slowest_ms {
            (outcome.slowest_ms, outcome.slowest_index) = (milliseconds, index);
        }
        for (kind, message) in failed {
            let file = config.folder.join(format!("{}-{}-{index}.bin", T::NAME, config.seed));
            let finding = findings.entry((kind, message.clone())).or_insert_with(|| Finding {
                kind,
                message,
                count: 0,
                index,
                file: file.clone(),
            });
            finding.count += 1;
            if finding.count <= SAVED_EACH {
                std::fs::write(&file, &input)?;
            }
            if finding.count == 1 {
                bar.suspend(|| eprintln!("{kind:?} at {index}, seed {}: {}", config.seed, finding.message));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.findings = findings.into_values().collect();
    Ok(outcome)
}

struct Execution {
    accepted: bool,
    peak: usize,
    fault: Option<String>,
}

fn execute<T: Target>(target: &T, input: &[u8], random: &mut Random) -> Execution {
    let (read, peak) = memory::peak_during(|| target.read(input));
    let accepted = read.is_some();
    let fault = read.and_then(|read| target.exercise(read, random).err());
    Execution { accepted, peak, fault }
}

/// A seed for one execution, far from its neighbours'.
fn mixed(seed: u64, index: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index
}

fn progress_bar(name: &'static str, config: &Config) -> ProgressBar {
    if config.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta}");
    let bar = ProgressBar::new(config.executions).with_message(name);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

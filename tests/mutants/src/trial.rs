//! Tests, which mutants each of them meets, and whether they notice one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::instrument::Mutant;

/// Address space of a test, in KiB: a mutant may ask for everything.
const MEMORY_KIB: u64 = 6 << 20;
/// Processor time of tests with a mutant, beyond ten times what they take without one.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much longer than that may pass before tests that wait for ever are ended, on a machine with other work.
const WAITING: u32 = 20;
/// Signals that end a process whose processor time is over.
const OUT_OF_TIME: [i32; 2] = [24, 9];
/// So many tests that meet a mutant run together, the quickest ones first.
const TOGETHER: usize = 8;

/// One test of a test program.
pub struct Test {
    program: PathBuf,
    name: String,
    took: Duration,
    meets: BTreeSet<usize>,
}

/// What tests say of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One failed.
    Noticed,
    /// One did not end.
    Endless,
    /// All passed.
    Survives,
    /// None of them comes there.
    NotMet,
}

/// Runs every test once, alone.
///
/// # Panics
/// When one fails.
pub fn tests(folder: &Path, programs: &[PathBuf]) -> Vec<Test> {
    let mut tests: Vec<Test> = programs.iter().flat_map(|program| meeting(folder, program)).collect();
    tests.sort_by_key(|test| test.took);
    tests
}

fn meeting(folder: &Path, program: &Path) -> Vec<Test> {
    let ignored = listed(program, &["--ignored"]);
    let names = listed(program, &[]).into_iter().filter(|name| !ignored.contains(name));
    let file = program.with_extension("met");
    names
        .map(|name| {
            let _ = fs::remove_file(&file);
            let began = Instant::now();
            let environment = ("FHEC_MUTANTS_MET", file.display().to_string());
            let verdict = run(folder, program, &[&name], environment, Duration::from_secs(600));
            assert!(verdict == Verdict::Survives, "{name} fails without a mutant");
            let met = fs::read_to_string(&file).unwrap_or_default();
            let meets = met.lines().filter_map(|id| id.parse().ok()).collect();
            Test { program: program.to_path_buf(), name, took: began.elapsed(), meets }
        })
        .collect()
}

fn listed(program: &Path, which: &[&str]) -> BTreeSet<String> {
    let listed = Command::new(program).args(["--list", "--format", "terse"]).args(which).output();
    let listed = listed.expect("a test program");
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    lines.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
}

/// What tests say of mutants, on all cores; all but the noticed ones are printed when they are known.
pub fn judge_all(folder: &Path, tests: &[Test], mutants: &[&Mutant]) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = judge(folder, tests, mutant.id);
            if verdict != Verdict::Noticed {
                println!("{verdict:?}: {} {}:{}: {}", mutant.id, mutant.file, mutant.line, mutant.what);
            }
            done.push(verdict);
        }
        done
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("judging does not panic")).collect()
    })
}

/// What the tests that meet a mutant say of it, the quick ones first.
fn judge(folder: &Path, tests: &[Test], mutant: usize) -> Verdict {
    let mut left: Vec<&Test> = tests.iter().filter(|test| test.meets.contains(&mutant)).collect();
    let mut verdict = Verdict::NotMet;
    while let Some(first) = left.first() {
        // One program a run.
        let program = &first.program;
        let (now, later): (Vec<&Test>, Vec<&Test>) = {
            let mut taken = 0;
            left.iter().copied().partition(|test| {
                taken += usize::from(test.program == *program);
                test.program == *program && taken <= TOGETHER
            })
        };
        let names: Vec<&str> = now.iter().map(|test| test.name.as_str()).collect();
        let took: Duration = now.iter().map(|test| test.took).sum();
        let environment = ("FHEC_MUTANT", mutant.to_string());
        verdict = run(folder, program, &names, environment, took * 10 + PATIENCE);
        if verdict != Verdict::Survives {
            return verdict;
        }
        left = later;
    }
    verdict
}

/// Runs tests by their names.
fn run(
    folder: &Path,
    program: &Path,
    names: &[&str],
    environment: (&str, String),
    patience: Duration,
) -> Verdict {
    let limits = format!("ulimit -c 0 -v {MEMORY_KIB} -t {}", patience.as_secs() + 1);
    let mut child = Command::new("bash")
        .args(["-c", &format!("{limits}; exec \"$0\" -q --exact \"$@\"")])
        .arg(program)
        .args(names)
        .current_dir(folder)
        .env(environment.0, environment.1)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a test starts");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return match status.signal() {
                Some(signal) if OUT_OF_TIME.contains(&signal) => Verdict::Endless,
                _ if status.success() => Verdict::Survives,
                _ => Verdict::Noticed,
            };
        }
        if began.elapsed() > patience * WAITING {
            let _ = child.kill();
            let _ = child.wait();
            return Verdict::Endless;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

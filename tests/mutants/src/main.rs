//! Mutants of the checker and of the readers: small changes of the code, each of which some test should notice.
//!
//! All mutants of a crate are built at once, as branches that an environment variable switches on, so the cost of a mutant is
//! that of running tests, not of building them. `fhec-mutants [PACKAGE]... [--every N]`, from anywhere in the tree: all mutants,
//! or every N-th of them. Work is done in a copy under `target/mutants`.
#![forbid(unsafe_code)]

mod instrument;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use instrument::{Mutant, instrument};

/// A crate, the files that get mutants, and the tests that should notice them, by the begin of their names.
struct Subject {
    package: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        package: "fhe-bytecode",
        folder: "runtime/bytecode",
        files: &["src/check", "src/codec", "src/params/mod.rs", "src/params/pool.rs", "src/program/port.rs"],
        tests: &["check::", "params::", "program::", "interface::", "clear::", "codec::"],
    },
    Subject { package: "fhe-files", folder: "runtime/files", files: &["src"], tests: &[] },
    Subject {
        package: "fhe-client",
        folder: "runtime/client",
        files: &["src/secret_key_file.rs", "src/resolution.rs", "src/answer.rs"],
        tests: &[],
    },
];
/// The part of all mutants that tests must notice.
const GOAL: f64 = 0.9;
/// Address space of a test, in KiB: a mutant may ask for everything.
const MEMORY_KIB: u64 = 6 << 20;
/// What a test may take beyond ten times what it takes without a mutant.
const PATIENCE: Duration = Duration::from_secs(20);
/// The switch, at the end of the crate's first file.
const SWITCH: &str = "
#[doc(hidden)]
#[allow(missing_docs, dead_code, unreachable_pub)]
pub fn mutant(id: u32) -> bool {
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ON.get_or_init(|| std::env::var(\"FHEC_MUTANT\").ok().and_then(|id| id.parse().ok()).unwrap_or(0)) == id
}
";

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let every = args.iter().position(|arg| arg == "--every").map(|at| args.drain(at..).nth(1));
    let every: usize = every.map_or(1, |n| n.and_then(|n| n.parse().ok()).expect("--every N"));
    let root = root();
    let copy = root.join("target/mutants/tree");
    copy_tree(&root, &copy);
    let (mut n_all, mut n_killed) = (0, 0);
    for subject in SUBJECTS.iter().filter(|s| args.is_empty() || args.iter().any(|arg| arg == s.package)) {
        let (mutants, tests) = build(&copy, subject);
        let chosen: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.id % every == 0).collect();
        println!("{}: {} mutants, {} chosen", subject.package, mutants.len(), chosen.len());
        let runs: Vec<(Run, Duration)> = runs(subject, tests)
            .into_iter()
            .map(|run| {
                let began = Instant::now();
                assert!(
                    passes(&copy, subject, &run, 0, Duration::from_secs(600)),
                    "{run:?} fails without a mutant"
                );
                (run, began.elapsed())
            })
            .collect();
        for mutant in chosen {
            let is_noticed =
                runs.iter().any(|(run, took)| !passes(&copy, subject, run, mutant.id, *took * 10 + PATIENCE));
            n_all += 1;
            n_killed += usize::from(is_noticed);
            if !is_noticed {
                println!("survives: {} {}:{}: {}", mutant.id, mutant.file, mutant.line, mutant.what);
            }
        }
        println!("{n_killed} of {n_all} noticed so far");
    }
    let part = n_killed as f64 / f64::from(n_all.max(1));
    println!("{n_killed} of {n_all} mutants noticed, {:.1} %", 100.0 * part);
    if part >= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lies two folders deep").to_path_buf()
}

/// Copies what the repository has; files that are the same stay, so that nothing is built again for them.
fn copy_tree(from: &Path, to: &Path) {
    let listed =
        Command::new("git").args(["ls-files", "-z"]).current_dir(from).output().expect("git lists the files");
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        if let Ok(bytes) = fs::read(from.join(name)) {
            write_changed(&to.join(name), &bytes);
        }
    }
}

fn write_changed(path: &Path, bytes: &[u8]) {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Builds the tests of a crate with mutants in it, without those that do not compile.
fn build(copy: &Path, subject: &Subject) -> (Vec<Mutant>, Vec<PathBuf>) {
    let folder = copy.join(subject.folder);
    let files: Vec<PathBuf> = subject.files.iter().flat_map(|file| sources(&folder.join(file))).collect();
    let texts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).expect("a source file")).collect();
    let mut without: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let first = folder.join("src/lib.rs");
    loop {
        let mut mutants = Vec::new();
        let mut has_first = false;
        for (file, text) in files.iter().zip(&texts) {
            let name = file.strip_prefix(copy).expect("a file of the copy").display().to_string();
            let bad = without.get(&name).cloned().unwrap_or_default();
            let mut new = instrument(&name, text, &bad, &mut mutants);
            if *file == first {
                (has_first, new) = (true, new + SWITCH);
            }
            write_changed(file, new.as_bytes());
        }
        if !has_first {
            let text = fs::read_to_string(&first).expect("a crate");
            write_changed(&first, (text.replace(SWITCH, "") + SWITCH).as_bytes());
        }
        match compile(copy, subject) {
            Ok(tests) => return (mutants, tests),
            Err(places) => {
                for (file, line) in places {
                    println!("{file}:{line}: a mutant does not compile");
                    assert!(
                        without.entry(file).or_default().insert(line),
                        "{} does not compile",
                        subject.package
                    );
                }
            }
        }
    }
}

/// Source files below a path that are not tests.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = name.ends_with("tests.rs") || ["testing.rs", "error.rs"].contains(&name.as_str());
        return if is_test || !name.ends_with(".rs") { Vec::new() } else { vec![path.to_path_buf()] };
    }
    let mut all: Vec<PathBuf> =
        fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    all.iter().flat_map(|path| sources(path)).collect()
}

/// The test programs of a crate, or the lines that do not compile.
fn compile(copy: &Path, subject: &Subject) -> Result<Vec<PathBuf>, BTreeSet<(String, usize)>> {
    let output = Command::new("cargo")
        .args([
            "test",
            "--release",
            "--no-run",
            "--lib",
            "--tests",
            "--message-format=json",
            "-p",
            subject.package,
        ])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_file_name("build"))
        .env("RUSTFLAGS", "--cap-lints=allow -Copt-level=1")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    let (mut tests, mut bad) = (Vec::new(), BTreeSet::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if let Some(test) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true) {
            tests.push(PathBuf::from(test));
        }
        if message["message"]["level"] == "error" {
            for span in message["message"]["spans"].as_array().into_iter().flatten() {
                if let (Some(file), Some(line)) = (span["file_name"].as_str(), span["line_start"].as_u64()) {
                    bad.insert((file.to_owned(), line as usize));
                }
            }
        }
    }
    if output.status.success() { Ok(tests) } else { Err(bad) }
}

/// A test program, and the tests of it that run.
#[derive(Debug)]
struct Run {
    test: PathBuf,
    filter: Option<&'static str>,
}

/// All runs, the quick ones first: those of single modules, then other programs.
fn runs(subject: &Subject, mut tests: Vec<PathBuf>) -> Vec<Run> {
    let library = subject.package.replace('-', "_");
    let is_library =
        |test: &PathBuf| test.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&library));
    tests.sort_by_key(|test| !is_library(test));
    tests
        .into_iter()
        .flat_map(|test| match is_library(&test) && !subject.tests.is_empty() {
            true => {
                subject.tests.iter().map(|filter| Run { test: test.clone(), filter: Some(filter) }).collect()
            }
            false => vec![Run { test, filter: None }],
        })
        .collect()
}

/// Whether tests pass with a mutant.
fn passes(copy: &Path, subject: &Subject, run: &Run, mutant: usize, patience: Duration) -> bool {
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\" -q")])
        .arg(&run.test)
        .args(run.filter)
        .current_dir(copy.join(subject.folder))
        .env("FHEC_MUTANT", mutant.to_string())
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a test starts");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status.success();
        }
        if began.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! `cargo xtask evidence`: the checks that are no part of CI, because they need time, an idle machine or tools that not everyone
//! has. `docs/notes/reliability.md` has what they gave.

use std::io;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::workspace;

/// The target of the sanitizers.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where instrumented builds go, apart from the usual ones.
const BUILD: (&str, &str) = ("CARGO_TARGET_DIR", "target/evidence");

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which checks; all that have their tools, if none is named
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Known answers, computed again from the documents (python3)
    Known,
    /// The security table, computed again (python3)
    Security,
    /// Whether time tells secrets (an idle machine)
    Timing,
    /// Vector kernels, and the scheme over them, under the address sanitizer (nightly)
    Asan,
    /// Readers and scalar arithmetic under Miri (nightly, miri)
    Miri,
    /// Readers under coverage-guided fuzzing (nightly, a C++ compiler)
    Guided,
    /// Mutants of checker and readers (an hour)
    Mutants,
    /// Known weaknesses of dependencies (cargo-deny and its database)
    Advisories,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let asked = !args.steps.is_empty();
    let steps = if asked { &args.steps } else { Step::value_variants() };
    let mut skipped = Vec::new();
    for &step in steps {
        let name = step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string());
        if !asked && !step.has_tools() {
            skipped.push(name);
            continue;
        }
        println!("== {name}");
        step.run()?;
    }
    if !skipped.is_empty() {
        println!("skipped, because a tool is missing: {}", skipped.join(", "));
    }
    Ok(())
}

impl Step {
    /// Whether the command that the step needs answers.
    fn has_tools(self) -> bool {
        let (program, args): (&str, &[&str]) = match self {
            Self::Known | Self::Security => ("python3", &["--version"]),
            Self::Timing | Self::Mutants => return true,
            Self::Asan | Self::Guided => ("cargo", &["+nightly", "--version"]),
            Self::Miri => ("cargo", &["+nightly", "miri", "--version"]),
            Self::Advisories => ("cargo", &["deny", "--version"]),
        };
        let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn run(self) -> io::Result<()> {
        match self {
            Self::Known => repeat(
                "docs/notes/known_answers.py",
                &["runtime/ring/src/tests/known.rs", "runtime/secret/tests/scheme/known.rs"],
                |line| line.split_whitespace().filter(|word| is_hash(word)).map(str::to_string).collect(),
            ),
            Self::Security => {
                repeat("docs/notes/security_estimate.py", &["docs/notes/security-table.md"], |line| {
                    // The page has a column more in its second table.
                    let row = line.strip_prefix("| 2^").map(|_| line.trim_end_matches(" |").to_string());
                    row.into_iter().collect()
                })
            }
            Self::Timing => {
                let test = ["test", "--release", "-p", "fhe-secret", "--lib", "timing", "--"];
                let how = ["--ignored", "--nocapture", "--test-threads=1"];
                workspace::run("cargo", &[&test[..], &how].concat(), &[])
            }
            Self::Asan => {
                let test = ["+nightly", "test", "--release", "--target", TARGET, "--lib", "--tests"];
                let of = ["-p", "fhe-ring", "-p", "fhe-ckks", "-p", "fhe-secret"];
                let how = [("RUSTFLAGS", "-Zsanitizer=address"), BUILD];
                workspace::run("cargo", &[&test[..], &of].concat(), &how)
            }
            Self::Miri => miri(),
            Self::Guided => guided(),
            Self::Mutants => {
                let run = ["run", "--release", "--manifest-path", "tests/mutants/Cargo.toml"];
                workspace::run("cargo", &run, &[BUILD])
            }
            Self::Advisories => workspace::run("cargo", &["deny", "check", "advisories"], &[]),
        }
    }
}

/// Coverage counters and comparisons, as libFuzzer wants them.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// Each reader for a minute, from the files of the repository on; what is found beyond them stays under `target`.
fn guided() -> io::Result<()> {
    let manifest = "tests/fuzz/guided/Cargo.toml";
    let targets: [(&str, &[&str]); 7] = [
        ("program", &["tests/golden"]),
        ("interface", &["tests/golden"]),
        ("secret_key", &["tests/golden/files-v1", "tests/golden/files-v2"]),
        ("evaluation_keys", &["tests/golden/files-v1", "tests/golden/files-v2"]),
        ("ciphertexts", &["tests/golden/files-v1", "tests/golden/files-v2"]),
        ("samples", &["tests/fuzz/guided/samples"]),
        ("onnx", &["onnx-models/exporters"]),
    ];
    for (target, seeds) in targets {
        let found = format!("target/evidence/corpus-{target}");
        std::fs::create_dir_all(workspace::root().join(&found))?;
        let run = [
            "+nightly",
            "run",
            "--release",
            "--target",
            TARGET,
            "--manifest-path",
            manifest,
            "--bin",
            target,
        ];
        let how = ["--", "-max_total_time=60", "-timeout=5", "-rss_limit_mb=1024", "-max_len=65536", &found];
        workspace::run("cargo", &[&run[..], &how, seeds].concat(), &[("RUSTFLAGS", COVERAGE), BUILD])?;
    }
    Ok(())
}

/// Clock and files as they are; floating point as processors compute it, without the errors that Miri may add.
const MIRI: &str = "-Zmiri-disable-isolation -Zmiri-deterministic-floats";

/// The tests that Miri can run in minutes: package, which of its programs, which tests. Small sizes, no vectors, one thread.
const UNDER_MIRI: [(&str, &[&str], &[&str]); 5] = [
    (
        "fhe-ring",
        &["--lib"],
        &[
            "modulus::",
            "packed::",
            "root::",
            "buffer::",
            "ahead::",
            "tower_set::",
            "tests::shared::lists",
            "tests::shared::empty",
            "tests::shared::factors",
            "tests::shared::rows",
            "tests::transform::product_of_transforms_is_the_negacyclic_product",
            "--skip=real_ring",
        ],
    ),
    (
        "fhe-files",
        &["--lib"],
        &[
            "codec::",
            "names::",
            "evaluation_keys::tests::keys_survive",
            "evaluation_keys::tests::missing",
            "ciphertexts::tests::ciphertexts_survive",
            "ciphertexts::tests::results_answer",
            "ciphertexts::tests::names_are",
        ],
    ),
    ("fhe-client", &["--lib"], &["secret_key_file::tests::key_survives", "tail::", "resolution::"]),
    // A program of its own, because those of the other tests have networks in them.
    ("fhe-bytecode", &["--test", "tiny"], &[]),
    ("fhe-bytecode", &["--lib"], &["text::", "scale::", "rotation::"]),
];

fn miri() -> io::Result<()> {
    for (package, of, filters) in UNDER_MIRI {
        let test = ["+nightly", "miri", "test", "-p", package, "--no-default-features"];
        let args = [&test[..], of, &["--"], filters].concat();
        workspace::run("cargo", &args, &[("MIRIFLAGS", MIRI), BUILD])?;
    }
    Ok(())
}

/// Runs a script; what `facts` finds in its lines must stand in one of the files.
fn repeat(script: &str, files: &[&str], facts: impl Fn(&str) -> Vec<String>) -> io::Result<()> {
    let output = Command::new("python3").arg(script).current_dir(workspace::root()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{script}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(workspace::root().join(file)))
        .collect::<io::Result<Vec<_>>>()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let facts: Vec<String> = printed.lines().flat_map(facts).collect();
    if facts.is_empty() {
        return Err(io::Error::other(format!("{script} prints nothing to compare")));
    }
    match facts.iter().find(|fact| !texts.iter().any(|text| text.contains(fact.as_str()))) {
        Some(fact) => {
            Err(io::Error::other(format!("{script} gives {fact}, which {} lack", files.join(" and "))))
        }
        None => {
            println!("{script}: all {} results stand in {}", facts.len(), files.join(" and "));
            Ok(())
        }
    }
}

/// A hash of 32 bytes in hexadecimal.
fn is_hash(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

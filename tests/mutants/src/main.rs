//! Mutants of the checker and of the readers: small changes of the code, each of which some test should notice.
//!
//! All mutants of a crate are built at once, as branches that an environment variable switches on, so the cost of a mutant is
//! that of running the tests that come to its place, not of building them. `fhec-mutants [PACKAGE]... [NUMBER]... [--every N]`,
//! from anywhere in the tree: all mutants, or every N-th of them, or those of these numbers. Work is done in a copy under
//! `target/mutants`.
#![forbid(unsafe_code)]

mod changes;
mod instrument;
mod tree;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use instrument::Mutant;
use trial::Verdict;

/// A crate, and the files that get mutants.
struct Subject {
    package: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        package: "fhe-bytecode",
        folder: "runtime/bytecode",
        files: &["src/check", "src/codec", "src/params/mod.rs", "src/params/pool.rs", "src/program/port.rs"],
    },
    Subject { package: "fhe-files", folder: "runtime/files", files: &["src"] },
    Subject {
        package: "fhe-client",
        folder: "runtime/client",
        files: &["src/secret_key_file.rs", "src/resolution.rs", "src/answer.rs"],
    },
];
/// The part of all mutants that tests must notice.
const GOAL: f64 = 0.9;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let every = args.iter().position(|arg| arg == "--every").map(|at| args.drain(at..).nth(1));
    let every: usize = every.map_or(1, |n| n.and_then(|n| n.parse().ok()).expect("--every N"));
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    args.retain(|arg| arg.parse::<usize>().is_err());
    let root = root();
    let copy = root.join("target/mutants/tree");
    tree::copy_tree(&root, &copy);
    let (mut n_all, mut n_killed) = (0, 0);
    for subject in SUBJECTS.iter().filter(|s| args.is_empty() || args.iter().any(|arg| arg == s.package)) {
        let (mutants, programs) = tree::build(&copy, subject);
        let folder = copy.join(subject.folder);
        let tests = trial::tests(&folder, &programs);
        println!("{}: {} mutants, {} tests", subject.package, mutants.len(), tests.len());
        let is_chosen = |id: usize| id % every == 0 && (numbers.is_empty() || numbers.contains(&id));
        let chosen: Vec<&Mutant> = mutants.iter().filter(|mutant| is_chosen(mutant.id)).collect();
        let verdicts = trial::judge_all(&folder, &tests, &chosen);
        let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let (n_tried, n_noticed, n_endless) =
            (chosen.len(), count(Verdict::Noticed), count(Verdict::Endless));
        println!("{}: {n_tried} tried, {n_noticed} noticed, {n_endless} without end", subject.package);
        n_all += n_tried;
        n_killed += n_noticed + n_endless;
    }
    let part = n_killed as f64 / n_all.max(1) as f64;
    println!("{n_killed} of {n_all} mutants noticed, {:.1} %", 100.0 * part);
    if part >= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lies two folders deep").to_path_buf()
}

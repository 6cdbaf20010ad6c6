//! A copy of the repository, and the tests of a crate built in it with all its mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Subject;
use crate::instrument::{Mutant, instrument};

/// The switch, at the end of the crate's first file: one mutant is on, or those that are met are written down.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, dead_code, unreachable_pub)]
pub fn mutant(id: u32) -> bool {
    use std::io::Write;
    type Met = std::sync::Mutex<(std::collections::BTreeSet<u32>, std::fs::File)>;
    static ON: std::sync::OnceLock<(u32, Option<Met>)> = std::sync::OnceLock::new();
    let (on, met) = ON.get_or_init(|| {
        let on = std::env::var("FHEC_MUTANT").ok().and_then(|id| id.parse().ok());
        let met = std::env::var_os("FHEC_MUTANTS_MET");
        (on.unwrap_or(0), met.map(|path| (Default::default(), std::fs::File::create(path).unwrap()).into()))
    });
    if let Some(met) = met {
        let (ids, file) = &mut *met.lock().unwrap();
        if ids.insert(id) {
            writeln!(file, "{id}").unwrap();
        }
    }
    *on == id
}
"#;

/// Copies what the repository has; files that are the same stay, so that nothing is built again for them.
pub fn copy_tree(from: &Path, to: &Path) {
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
pub fn build(copy: &Path, subject: &Subject) -> (Vec<Mutant>, Vec<PathBuf>) {
    let folder = copy.join(subject.folder);
    let files: Vec<PathBuf> = subject.files.iter().flat_map(|file| sources(&folder.join(file))).collect();
    let texts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).expect("a source file")).collect();
    let names: Vec<String> = files
        .iter()
        .map(|file| file.strip_prefix(copy).expect("a file of the copy").display().to_string())
        .collect();
    let known = copy.with_file_name(format!("without-{}", subject.package));
    let mut without = recalled(&known, &names, &texts);
    let first = folder.join("src/lib.rs");
    loop {
        let mut mutants = Vec::new();
        let mut has_first = false;
        for ((file, name), text) in files.iter().zip(&names).zip(&texts) {
            let bad = without.get(name).cloned().unwrap_or_default();
            let mut new = instrument(name, text, &bad, &mut mutants);
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
            Ok(tests) => {
                remember(&known, &without, &names, &texts);
                return (mutants, tests);
            }
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

/// Lines that did not compile with mutants when they were last built, by their text: every line found anew costs a build.
fn recalled(known: &Path, names: &[String], texts: &[String]) -> BTreeMap<String, BTreeSet<usize>> {
    let known = fs::read_to_string(known).unwrap_or_default();
    let known: BTreeSet<(&str, &str)> = known.lines().filter_map(|line| line.split_once('\t')).collect();
    let bad = |name: &str, text: &str| {
        let lines = text.lines().enumerate().filter(|(_, line)| known.contains(&(name, line.trim())));
        lines.map(|(i, _)| i + 1).collect::<BTreeSet<usize>>()
    };
    names.iter().zip(texts).map(|(name, text)| (name.clone(), bad(name, text))).collect()
}

fn remember(known: &Path, without: &BTreeMap<String, BTreeSet<usize>>, names: &[String], texts: &[String]) {
    let lines = names.iter().zip(texts).flat_map(|(name, text)| {
        let bad = without.get(name).into_iter().flatten();
        bad.filter_map(move |line| Some(format!("{name}\t{}\n", text.lines().nth(line - 1)?.trim())))
    });
    write_changed(known, lines.collect::<String>().as_bytes());
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

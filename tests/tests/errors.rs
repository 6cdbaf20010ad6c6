//! The catalogue of errors: every command in `docs/errors.md` gives exactly the message and exit code that stand there.
//!
//! `cargo xtask bless` writes what the commands say today into the page.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fhec_tests::binaries::{binary, succeed};
use fhec_tests::models::tiny::tiny;
use fhec_tests::onnx::OnnxWriter;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md")
}

/// A folder with everything that the commands of the page name.
fn prepare(folder: &Path) {
    let write = |name: &str, data: &[u8]| fs::write(folder.join(name), data).unwrap();
    write("model.onnx", &tiny(1.0));
    write("other.onnx", &tiny(0.999));
    write("relu.onnx", &relu());
    write("nan.onnx", &tiny(f32::NAN));
    write("notes.txt", b"this is no model\n");
    write("notes.bak", b"this is no picture\n");
    write("empty.onnx", b"");
    write("input.csv", b"1,0.5,-1,0\n");
    write("short.csv", b"1,0.5\n");
    write("many.csv", "1,0.5,-1,0\n".repeat(101).as_bytes());
    write("nan.csv", b"a,b,c,d\n1,nan,-1,0\n");
    write("wrong.ron", b"(params: (log_n: 12))");
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    picture.extend_from_slice(&[
        0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 8, 0, 0, 0, 0, 0x31, 0xa2, 0x54, 0xba,
    ]);
    write("huge.png", &picture);
    for line in [
        "fhec build model.onnx -o model.fhebc -q",
        "fhec build other.onnx -o other.fhebc -q",
        "fhec build model.onnx -o toy.fhebc --toy --log-n 5 -q",
        "fhe-run keygen model.fhebc --secret-key me.key --eval-keys me.evk -q",
        "fhe-run keygen model.fhebc --secret-key you.key --eval-keys you.evk -q",
        "fhe-run encrypt model.fhebc input.csv --secret-key me.key -o input.ct -q",
        "fhe-run eval model.fhebc input.ct --eval-keys me.evk -o result.ct -q",
    ] {
        succeed(folder, line);
    }
    let damaged = |from: &str, to: &str, change: fn(&mut Vec<u8>)| {
        let mut data = fs::read(folder.join(from)).unwrap();
        change(&mut data);
        write(to, &data);
    };
    damaged("model.fhebc", "damaged.fhebc", |data| data[200] ^= 1);
    damaged("model.fhebc", "future.fhebc", |data| data[8] = 9);
    damaged("input.ct", "damaged.ct", |data| *data.last_mut().unwrap() ^= 1);
    damaged("input.ct", "cut.ct", |data| data.truncate(1000));
    damaged("me.key", "open.key", |_| ());
    fs::set_permissions(folder.join("open.key"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
}

fn relu() -> Vec<u8> {
    let mut w = OnnxWriter::new("relu");
    let x = w.input("x", &[None, Some(4)]);
    let weight = w.tensor("w", &[4, 2], &[0.5; 8]);
    let y = w.node("MatMul", &[&x, &weight]);
    let y = w.node("Relu", &[&y]);
    w.finish(&y, &[None, Some(2)])
}

/// What a command line says on standard error, and its exit code.
fn said(folder: &Path, line: &str) -> String {
    let binaries = binary("fhe-run").parent().unwrap().to_path_buf();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("PATH", path).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
    let output = shell.arg("-c").arg(line).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
    format!("{}\nexit code {code}", without_ids(text.trim_end()))
}

/// The text with what differs from run to run replaced: key ids, fingerprints, and how much memory there is.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    let replaced = |(i, word): (usize, &&str)| {
        let bare = word.trim_end_matches(|c: char| c.is_ascii_punctuation() || c.is_whitespace());
        let is_size = words.get(i + 1).is_some_and(|unit| unit.starts_with("MiB"));
        match (is_id(bare), is_size) {
            (true, _) => word.replace(bare, "0123456789abcdef"),
            (_, true) => "N ".to_owned(),
            _ => (*word).to_owned(),
        }
    };
    words.iter().enumerate().map(replaced).collect()
}

/// The page with what each of its commands says today, and the number of commands.
fn rendered(page: &str, folder: &Path) -> (String, usize) {
    let (mut out, mut n) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        if let Some(command) = line.strip_prefix("$ ") {
            out += &said(folder, command);
            out += "\n```\n";
            n += 1;
            lines.by_ref().find(|line| *line == "```").expect("the block ends");
        }
    }
    (out, n)
}

#[test]
fn catalogue_says_what_the_commands_say() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let written = fs::read_to_string(page()).unwrap();
    let (found, n) = rendered(&written, folder.path());
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(page(), &found).unwrap();
        return;
    }
    assert!(n >= 30, "only {n} commands");
    for (found, written) in found.lines().zip(written.lines()) {
        assert_eq!(found, written, "cargo xtask bless rewrites the page");
    }
    assert_eq!(found, written);
}

#[test]
fn every_error_of_the_catalogue_has_a_remedy_and_a_documented_code() {
    let page = fs::read_to_string(page()).unwrap();
    for block in page.split("```text\n$ ").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let is_usage = block.contains("exit code 2");
        assert!(block.contains("help: ") || is_usage, "no remedy in:\n{block}");
        assert!(["exit code 1\n", "exit code 2\n"].iter().any(|code| block.ends_with(code)), "{block}");
    }
}

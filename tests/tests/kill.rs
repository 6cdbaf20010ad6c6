//! `kill -9` at any moment leaves the old file or the whole new one.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode, program_fingerprint};
use fhe_bytecode::{CheckedProgram, Fingerprint};
use fhe_ckks::{Context, key_request};
use fhe_files::{Expected, Role};
use fhe_runtime::store::{read_ciphertexts, read_evaluation_keys, read_secret_key};
use fhec_tests::binaries::{command, succeed};
use fhec_tests::models::random::Random;
use fhec_tests::models::tiny::tiny;

/// A folder with two programs, keys, inputs and results.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, scale) in [("a", 1.0), ("b", 0.75)] {
            std::fs::write(folder.path(&format!("{name}.onnx")), tiny(scale)).unwrap();
            succeed(folder.0.path(), &format!("fhec build {name}.onnx -o {name}.fhebc --toy --log-n 10"));
        }
        std::fs::write(folder.path("in.csv"), "1,0.5,-1,0\n".repeat(64)).unwrap();
        succeed(folder.0.path(), KEYGEN);
        succeed(folder.0.path(), ENCRYPT);
        succeed(folder.0.path(), EVAL);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn program(&self) -> (CheckedProgram, Fingerprint) {
        let bytes = self.bytes("a.fhebc");
        (decode(&bytes, DEFAULT_LIMIT).unwrap(), program_fingerprint(&bytes).unwrap())
    }

    fn context(&self) -> Arc<Context> {
        Context::new(self.program().0.params().clone()).unwrap()
    }

    fn temporary(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| is_temporary(path)).collect()
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

const KEYGEN: &str = "fhe-run keygen a.fhebc --secret-key me.key --eval-keys me.evk --insecure";
const ENCRYPT: &str = "fhe-run encrypt a.fhebc in.csv --index 0..64 --secret-key me.key -o in.ct";
const EVAL: &str = "fhe-run eval a.fhebc in.ct --eval-keys me.evk -o out.ct";

/// Kills `line` at `n` moments, half of them spread over its run, half as soon as it has begun to write a file; `check`
/// looks at what is left each time. Gives the number of kills that hit an unfinished file.
fn kill(folder: &Folder, line: &str, n: usize, check: impl Fn()) -> usize {
    let began = Instant::now();
    succeed(folder.0.path(), line);
    let whole = began.elapsed();
    check();
    let mut random = Random::new(n as u64);
    let mut n_hit = 0;
    for i in 0..n {
        folder.temporary().iter().for_each(|path| std::fs::remove_file(path).unwrap());
        let mut child =
            command(folder.0.path(), line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let spread = whole.mul_f64(f64::from(random.uniform(0.0, 1.0)));
        if i % 2 == 0 {
            std::thread::sleep(spread);
        } else {
            while folder.temporary().is_empty() && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(50));
            }
            std::thread::sleep(spread / 20);
        }
        // The process may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        n_hit += usize::from(!folder.temporary().is_empty());
        check();
    }
    n_hit
}

fn kill_build(n: usize) -> usize {
    let folder = Folder::new();
    let (old, new) = (folder.bytes("a.fhebc"), folder.bytes("b.fhebc"));
    std::fs::write(folder.path("p.fhebc"), &old).unwrap();
    kill(&folder, "fhec build b.onnx -o p.fhebc --toy --log-n 10", n, || {
        let found = folder.bytes("p.fhebc");
        assert!(found == old || found == new, "half a program");
        std::fs::write(folder.path("p.fhebc"), &old).unwrap();
    })
}

fn kill_keygen(n: usize) -> usize {
    let folder = Folder::new();
    let context = folder.context();
    let request = key_request(&context, &folder.program().0);
    // Keys are never overwritten, so every run needs new names.
    let line = "fhe-run keygen a.fhebc --secret-key new.key --eval-keys new.evk --insecure";
    kill(&folder, line, n, || {
        read_evaluation_keys(&folder.path("me.evk"), &context, &request, &mut |_| {}).unwrap();
        let (secret, keys) = (folder.path("new.key"), folder.path("new.evk"));
        if keys.exists() {
            read_evaluation_keys(&keys, &context, &request, &mut |_| {}).unwrap();
            std::fs::remove_file(keys).unwrap();
        }
        if secret.exists() {
            read_secret_key(&secret, &context).unwrap();
            std::fs::remove_file(secret).unwrap();
        }
    })
}

fn ciphertexts(folder: &Folder, name: &str, role: Role) {
    let (program, fingerprint) = folder.program();
    let input = &program.spec().input;
    let (n_ciphertexts, level, scale) = match role {
        Role::Input | Role::Part(_) => (program.input_layout().n_cts(), input.level, input.scale),
        Role::Result => (program.output_layout().n_cts(), program.output_level(), program.output_scale()),
    };
    let expected = Expected { program: fingerprint, role, n_ciphertexts, level, scale };
    let read = read_ciphertexts(&folder.path(name), &folder.context(), &expected).unwrap();
    assert_eq!(read.samples.len(), 64);
}

fn kill_encrypt(n: usize) -> usize {
    let folder = Folder::new();
    kill(&folder, ENCRYPT, n, || ciphertexts(&folder, "in.ct", Role::Input))
}

fn kill_eval(n: usize) -> usize {
    let folder = Folder::new();
    kill(&folder, EVAL, n, || ciphertexts(&folder, "out.ct", Role::Result))
}

type Writer = (&'static str, fn(usize) -> usize);

const WRITERS: [Writer; 4] =
    [("fhec build", kill_build), ("keygen", kill_keygen), ("encrypt", kill_encrypt), ("eval", kill_eval)];

#[test]
fn a_few_kills_leave_the_old_file_or_the_whole_new_one() {
    for (_, kill) in WRITERS {
        kill(4);
    }
}

#[test]
#[ignore = "a hundred kills per command; run with cargo xtask slow"]
fn a_hundred_kills_leave_the_old_file_or_the_whole_new_one() {
    for (name, kill) in WRITERS {
        let n_hit = kill(100);
        eprintln!("{name}: 100 kills, {n_hit} of them with an unfinished file");
        assert!(n_hit > 0, "{name}: no kill hit a write");
    }
}

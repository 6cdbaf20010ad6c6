//! `fhe-run remote` against a server in this process, at a toy ring.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};
use fhe_machine::Profile;
use fhe_serve::background::Background;
use fhe_serve::front::Front;
use fhe_serve::jobs::{Evaluator, Report};
use fhe_serve::limits::Limits;
use fhe_serve::server::Options;
use fhe_serve::tokens::{Quota, Tokens};

const N_VALUES: usize = 2 * 8 * 8;

/// A folder with a store, a client's folder and an input.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let row = tensor().iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        std::fs::write(folder.path("in.csv"), format!("{row}\n")).unwrap();
        std::fs::create_dir(folder.path("store")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn serve(&self, evaluator: Option<Box<Evaluator>>) -> Background {
        Background::start(&self.options(), evaluator).unwrap()
    }

    fn options(&self) -> Options {
        Options {
            programs: vec![program()],
            store: self.path("store"),
            memory: 256 << 20,
            n_workers: 1,
            allow_insecure: true,
            front: Front {
                listen: "127.0.0.1:0".parse().unwrap(),
                tokens: self.path("store/tokens.json"),
                tls: None,
                behind_proxy: false,
                page: None,
                limits: Limits::default(),
            },
        }
    }

    fn remote(&self, server: SocketAddr, more: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-run"));
        command.args(["remote", &format!("http://{server}"), "--insecure", "--home"]).arg(self.path("home"));
        command
            .args(more.split_whitespace())
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .output()
            .unwrap()
    }

    /// Unrounded scores of the input.
    fn scores(&self, server: SocketAddr) -> Vec<f64> {
        let result = self.path("scores.json");
        let _ = std::fs::remove_file(&result);
        let output = self.remote(server, "in.csv --format json --raw --result scores.json");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
        found["scores"][0].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect()
    }
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/v2.fhebc")
}

fn tensor() -> Vec<f64> {
    (0..N_VALUES).map(|i| (i * 37 % 97) as f64 / 97.0 - 0.5).collect()
}

fn clear_scores() -> Vec<f64> {
    let program = decode(&std::fs::read(program()).unwrap(), DEFAULT_LIMIT).unwrap();
    ClearProgram::new(&program).run(&tensor(), &mut ()).unwrap()
}

#[track_caller]
fn check_scores(found: &[f64]) {
    let expected = clear_scores();
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-2, "{found:?}, expected {expected:?}");
    }
}

#[track_caller]
fn check_refused(output: &Output, message: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(message), "{text}, expected {message:?}");
}

#[test]
fn scores_are_those_of_the_clear_program_and_keys_are_sent_once() {
    let folder = Folder::new();
    let server = folder.serve(None);
    let output = folder.remote(server.address(), "--keys-only --json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys = folder.path("home/keys").join(summary["program"].as_str().unwrap());
    let secret = keys.join("secret.key");
    let before = std::fs::read(&secret).unwrap();
    assert!(!keys.join("evaluation.evk").exists(), "the server has them");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
    check_scores(&folder.scores(server.address()));
    check_scores(&folder.scores(server.address()));
    assert_eq!(std::fs::read(&secret).unwrap(), before);
    let stored = folder.path("store/keys/anonymous").join(summary["program"].as_str().unwrap());
    assert_eq!(std::fs::read_dir(stored).unwrap().count(), 1, "one client has one set of keys");
    // Classes by default, and no score.
    let output = folder.remote(server.address(), "in.csv");
    assert!(output.status.success() && !output.stdout.is_empty());
}

#[test]
fn a_program_that_changed_is_told_and_asked_about() {
    let folder = Folder::new();
    let server = folder.serve(None);
    assert!(folder.remote(server.address(), "--keys-only").status.success());
    let known = std::fs::read_dir(folder.path("home/servers")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&known, format!("http://{}\n{}\n", server.address(), "0".repeat(64))).unwrap();
    let refused = folder.remote(server.address(), "in.csv");
    check_refused(&refused, "served program 0000000000000000 last time");
    check_refused(&refused, "--accept-program");
    assert!(folder.remote(server.address(), "in.csv --accept-program").status.success());
    assert!(folder.remote(server.address(), "in.csv").status.success());
}

#[test]
fn a_result_of_another_request_is_refused() {
    let folder = Folder::new();
    let server = folder.serve(None);
    assert!(folder.remote(server.address(), "in.csv").status.success());
    drop(server);
    // A server that answers every request with the result of the first one.
    let job = std::fs::read_dir(folder.path("store/jobs/anonymous")).unwrap();
    let old =
        job.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "result"));
    let old = std::fs::read(old.unwrap()).unwrap();
    let replay: Box<Evaluator> =
        Box::new(move |_| Ok(Report { result: old.clone(), profile: Profile::default() }));
    let server = folder.serve(Some(replay));
    check_refused(&folder.remote(server.address(), "in.csv"), "the server's result");
}

#[test]
fn a_token_is_needed_where_there_are_tokens() {
    let folder = Folder::new();
    let path = folder.path("store/tokens.json");
    let mut tokens = Tokens::load(&path).unwrap();
    let quota = Quota { key_bytes: 1 << 30, queued_jobs: 4, requests_per_minute: 1000 };
    let secret = tokens.add("clinic".parse().unwrap(), quota, None).unwrap();
    tokens.save(&path).unwrap();
    std::fs::write(folder.path("token"), format!("{secret}\n")).unwrap();
    let server = folder.serve(None);
    check_refused(&folder.remote(server.address(), "in.csv"), "--token-file");
    assert!(folder.remote(server.address(), "in.csv --token-file token").status.success());
}

#[test]
fn what_a_cut_left_is_gone_on_with() {
    let folder = Folder::new();
    let server = folder.serve(None);
    // Cuts every connection after some bytes, more with every one, until whole keys get through.
    let proxy = Cutting::start(server.address(), 100_000);
    check_scores(&folder.scores(proxy.address));
    assert!(proxy.n_cut.load(Ordering::SeqCst) >= 1, "something was cut");
}

#[test]
fn nobody_there_is_an_error_with_a_way_out() {
    let folder = Folder::new();
    let output = folder.remote("127.0.0.1:1".parse().unwrap(), "in.csv --max-key-bytes 1KiB");
    check_refused(&output, "check the address");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-run"));
    let output =
        command.args(["remote", "gopher://a", "in.csv"]).current_dir(folder.0.path()).output().unwrap();
    check_refused(&output, "is no address of a server");
}

#[test]
fn keys_beyond_the_allowance_are_not_made() {
    let folder = Folder::new();
    let server = folder.serve(None);
    check_refused(&folder.remote(server.address(), "in.csv --max-key-bytes 1KiB"), "--max-key-bytes");
    assert!(!folder.path("store/keys/anonymous").exists());
}

#[test]
fn a_server_does_not_say_how_much_is_held_of_its_result() {
    let folder = Folder::new();
    let server = folder.serve(None);
    // Keys first: nothing is said of their size once the server has them.
    for (what, words) in [
        ("key_file_bytes", "the file of evaluation keys has 9"),
        ("result_bytes", "an encrypted result has 9"),
        ("input_bytes", "an encrypted input has 9"),
    ] {
        let liar = lying(server.address(), what);
        check_refused(&folder.remote(liar, "in.csv"), words);
    }
}

/// A way to a server that tells another size of its programs: nineteen digits.
fn lying(server: SocketAddr, what: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().take(1000).flatten() {
            let server = TcpStream::connect(server).unwrap();
            let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || pass(client, server, usize::MAX));
            std::thread::spawn(move || {
                let mut first = vec![0; 16 << 10];
                let n = from_server.read(&mut first).unwrap_or(0);
                let text = String::from_utf8_lossy(&first[..n]).into_owned();
                let field = format!("\"{what}\":");
                let answer = match (text.split_once("\r\n\r\n"), text.split_once(&field)) {
                    (Some(_), Some((before, after))) => {
                        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                        let body = format!("{before}{field}9000000000000000000{rest}");
                        let body = body.split_once("\r\n\r\n").unwrap().1.to_owned();
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                        format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
                    }
                    _ => first[..n].to_vec(),
                };
                let _ = to_client.write_all(&answer);
                pass(from_server, to_client, usize::MAX);
            });
        }
    });
    address
}

/// A way to a server that cuts the first connections which send much.
struct Cutting {
    address: SocketAddr,
    n_cut: &'static AtomicUsize,
}

impl Cutting {
    fn start(server: SocketAddr, first_limit: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let n_cut: &'static AtomicUsize = Box::leak(Box::default());
        let limit: &'static Mutex<usize> = Box::leak(Box::new(Mutex::new(first_limit)));
        std::thread::spawn(move || {
            for client in listener.incoming().take(1000).flatten() {
                let server = TcpStream::connect(server).unwrap();
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pass(from_server, to_client, usize::MAX));
                std::thread::spawn(move || {
                    let allowed = *limit.lock().unwrap();
                    if !pass(client, server, allowed) {
                        n_cut.fetch_add(1, Ordering::SeqCst);
                        *limit.lock().unwrap() *= 2;
                    }
                });
            }
        });
        Self { address, n_cut }
    }
}

/// Passes bytes on until the end or the limit; says whether it was the end.
fn pass(mut from: TcpStream, mut to: TcpStream, limit: usize) -> bool {
    let mut passed = 0;
    let mut piece = vec![0; 16 << 10];
    let is_end = loop {
        match from.read(&mut piece) {
            Ok(0) | Err(_) => break true,
            Ok(n) if passed + n > limit => break false,
            Ok(n) => {
                passed += n;
                if to.write_all(&piece[..n]).is_err() {
                    break true;
                }
            }
        }
    };
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    is_end
}

/// `cargo test --release -p fhe-runtime --features tls --test remote`: `cargo xtask slow` runs it.
#[cfg(feature = "tls")]
#[test]
fn over_tls_a_server_is_believed_if_its_authority_is_trusted() {
    let folder = Folder::new();
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("serve/tests/serve/tls");
    let mut options = folder.options();
    options.front.tls = Some((certificates.join("cert.pem"), certificates.join("key.pem")));
    let server = Background::start(&options, None).unwrap();
    let remote = |more: &[&str]| {
        let url = format!("https://localhost:{}", server.address().port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-run"));
        command.args(["remote", &url, "in.csv", "--insecure", "--home"]).arg(folder.path("home"));
        command.args(more).current_dir(folder.0.path()).env("NO_COLOR", "1").output().unwrap()
    };
    let authority = certificates.join("ca.pem").display().to_string();
    let options = ["--ca-cert", &authority, "--format", "json", "--raw", "--result", "scores.json"];
    let output = remote(&options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("scores.json")).unwrap()).unwrap();
    let scores: Vec<f64> =
        found["scores"][0].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
    check_scores(&scores);
    // Mozilla knows nothing of it, and a key is no authority.
    let key = certificates.join("key.pem").display().to_string();
    check_refused(&remote(&["--ca-cert", &key]), "more than certificates");
    check_refused(&remote(&[]), "UnknownIssuer");
}

/// With the feature `tls` (`cargo xtask cluster --tls`).
#[cfg(feature = "tls")]
#[test]
fn over_tls_the_users_authority_is_trusted_and_no_other() {
    let folder = Folder::new();
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("serve/tests/serve/tls").join(name);
    let mut options = folder.options();
    options.front.tls = Some((file("cert.pem"), file("key.pem")));
    let server = Background::start(&options, None).unwrap();
    let remote = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-run"));
        command.args(["remote", &format!("https://{}", server.address()), "in.csv", "--insecure"]).args(more);
        command.arg("--home").arg(folder.path("home")).current_dir(folder.0.path()).output().unwrap()
    };
    let (ca, leaf) = (file("ca.pem").display().to_string(), file("cert.pem").display().to_string());
    let trusted = remote(&["--ca-cert", &ca]);
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    for more in [&[][..], &["--ca-cert", &leaf]] {
        let refused = remote(more);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.to_lowercase().contains("certificate"), "{said}");
    }
    let missing = remote(&["--ca-cert", "not-there.pem"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("not-there.pem"));
}

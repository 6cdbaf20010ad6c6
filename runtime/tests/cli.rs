//! The real binary in temporary folders.

#[path = "cli/samples.rs"]
mod samples;
#[path = "../machine/tests/common/toy.rs"]
mod toy;
#[path = "cli/trust.rs"]
mod trust;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fhe_bytecode::{CheckedProgram, Packing, codec};
use tempfile::TempDir;
use toy::{expected, toy_program, value};

/// A folder with a toy program and two inputs.
struct Folder(TempDir);

impl Folder {
    fn new(packing: Packing) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.path("toy.fhebc"), codec::encode(&promising(packing, BOUND))).unwrap();
        let row = |first: usize| input(first).iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        std::fs::write(folder.path("in.csv"), format!("{}\n{}\n", row(500), row(900))).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-run"));
        command.current_dir(self.0.path()).args(args.split_whitespace()).output().unwrap()
    }

    /// Runs a command that must succeed and gives its standard output.
    fn ok(&self, args: &str) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with `code` and say `message`.
    fn fails(&self, args: &str, code: i32, message: &str) {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args}: {stderr}");
        assert!(stderr.contains(message), "{args}: {stderr}");
    }

    fn with_keys(self) -> Self {
        self.ok("keygen toy.fhebc --secret-key me.key --eval-keys me.evk --insecure");
        self
    }

    fn with_result(self) -> Self {
        self.ok("encrypt toy.fhebc in.csv --index 0..2 --secret-key me.key -o in.ct");
        self.ok("eval toy.fhebc in.ct --eval-keys me.evk -o out.ct");
        self
    }
}

/// What the toy program is off by at most.
const BOUND: f64 = 1e-3;

/// The toy program with a predicted error.
fn promising(packing: Packing, max_abs_error: f64) -> CheckedProgram {
    let mut spec = toy_program(packing).spec().clone();
    spec.prediction.max_abs_error = max_abs_error;
    CheckedProgram::new(spec).unwrap()
}

fn input(first: usize) -> Vec<f64> {
    (0..32).map(|i| value(i + first)).collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn best(scores: &[f64]) -> usize {
    (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap()
}

/// Seeds that repeat are in a crate of tests; the command does not even contain them.
#[test]
fn the_command_has_no_seeds_that_repeat() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_fhe-run")).unwrap();
    let contains = |text: &str| binary.windows(text.len()).any(|window| window == text.as_bytes());
    // The test can tell: the purposes of other generators are there.
    assert!(contains("fhec 1 ternary secret") && contains("fhec 1 encryption error"));
    assert!(!contains("deterministic seeds"));
}

#[test]
fn four_steps_give_the_classes_of_direct_evaluation() {
    for packing in [Packing::Packed, Packing::Hw] {
        let folder = Folder::new(packing).with_keys().with_result();
        let shown = json(&folder.ok("decrypt toy.fhebc out.ct --secret-key me.key --format json"));
        for (i, first) in [500, 900].into_iter().enumerate() {
            let top = &shown["predictions"][i]["top"][0];
            assert_eq!(top["index"], best(&expected(&input(first))));
        }
        assert!(shown.get("scores").is_none());
    }
}

#[test]
fn raw_values_come_only_when_asked_for() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let args = "decrypt toy.fhebc out.ct --secret-key me.key";
    let shown = json(&folder.ok(&format!("{args} --format json --raw")));
    for (found, expected) in shown["scores"][0].as_array().unwrap().iter().zip(expected(&input(500))) {
        assert!((found.as_f64().unwrap() - expected).abs() < 1e-3);
    }
    folder.fails(&format!("{args} --format npy --result out.npy"), 2, "add --raw");
    folder.ok(&format!("{args} --format npy --raw --result out.npy"));
    assert!(std::fs::read(folder.path("out.npy")).unwrap().starts_with(b"\x93NUMPY"));
    assert!(folder.ok(args).contains("confidence"));
}

#[test]
fn insecure_program_needs_the_flag_and_is_announced() {
    let folder = Folder::new(Packing::Packed);
    let message = "toy ring of degree 2^10 protects nothing\n  help: add --insecure";
    folder.fails("keygen toy.fhebc --secret-key me.key --eval-keys me.evk", 1, message);
    assert!(!folder.path("me.key").exists() && !folder.path("me.evk").exists());
    let folder = folder.with_keys();
    let output = folder.run("encrypt toy.fhebc in.csv --secret-key me.key -o in.ct --quiet");
    assert!(String::from_utf8_lossy(&output.stderr).contains("INSECURE"));
    assert_eq!(json(&folder.ok("info me.evk --format json"))["insecure"], true);
}

#[test]
fn secret_key_is_never_overwritten_nor_taken_by_eval() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let again = "keygen toy.fhebc --secret-key me.key --eval-keys other.evk --insecure";
    folder.fails(again, 1, "exists already");
    assert!(!folder.path("other.evk").exists());
    folder.fails("eval toy.fhebc in.ct --eval-keys me.key -o x.ct", 1, "eval touches no secret");
    folder.fails("eval toy.fhebc me.key --eval-keys me.evk -o x.ct", 1, "eval touches no secret");
}

#[cfg(unix)]
#[test]
fn secret_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(Packing::Packed).with_keys();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path("me.key")), 0o600);
    std::fs::set_permissions(folder.path("me.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    folder.fails(
        "encrypt toy.fhebc in.csv --secret-key me.key -o in.ct",
        1,
        "others can read it (mode 0644)",
    );
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    folder.ok("keygen toy.fhebc --secret-key you.key --eval-keys you.evk --insecure");
    folder.fails("eval toy.fhebc in.ct --eval-keys you.evk -o x.ct", 1, "the ciphertexts belong to key");
    folder.fails("decrypt toy.fhebc out.ct --secret-key you.key", 1, "belongs to key");
    folder.fails("eval toy.fhebc out.ct --eval-keys me.evk -o x.ct", 1, "holds encrypted result");
    folder.fails("eval toy.fhebc me.evk --eval-keys me.evk -o x.ct", 1, "is a file of evaluation keys");
    std::fs::write(folder.path("hw.fhebc"), codec::encode(&toy_program(Packing::Hw))).unwrap();
    folder.fails("eval hw.fhebc in.ct --eval-keys me.evk -o x.ct", 1, "was made for program");
    folder.fails("eval toy.fhebc in.ct --eval-keys me.evk -o x.ct --memory 64KiB", 1, "needs at least");
    assert!(!folder.path("x.ct").exists());
}

#[test]
fn damaged_files_are_refused() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    for (name, args) in [
        ("toy.fhebc", "info toy.fhebc"),
        ("me.evk", "eval toy.fhebc in.ct --eval-keys me.evk -o x.ct"),
        ("in.ct", "eval toy.fhebc in.ct --eval-keys me.evk -o x.ct"),
    ] {
        let good = std::fs::read(folder.path(name)).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        std::fs::write(folder.path(name), bad).unwrap();
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(1), "{name}");
        std::fs::write(folder.path(name), good).unwrap();
    }
}

#[test]
fn wrong_inputs_are_explained() {
    let folder = Folder::new(Packing::Packed).with_keys();
    std::fs::write(folder.path("short.csv"), "1,2,3\n").unwrap();
    let encrypt = |rest: &str| format!("encrypt toy.fhebc {rest} --secret-key me.key -o in.ct");
    folder.fails(&encrypt("short.csv"), 1, "holds 1 rows of 3 numbers, but the model takes [2,4,4]");
    folder.fails(&encrypt("in.csv --index 7"), 1, "sample 7 does not exist: the file has 2");
    folder.fails(&encrypt("none.csv"), 1, "none.csv");
    folder.fails(&encrypt("toy.fhebc"), 1, "unknown format");
    folder.fails("encrypt toy.fhebc", 2, "Usage");
    folder.fails("eval", 2, "Usage");
}

#[test]
fn infer_and_demo_tell_the_class_and_leave_no_file() {
    let folder = Folder::new(Packing::Packed);
    let before = std::fs::read_dir(folder.0.path()).unwrap().count();
    let shown = json(&folder.ok("infer toy.fhebc in.csv --index 1 --insecure --format json"));
    assert_eq!(shown["predictions"][0]["top"][0]["index"], best(&expected(&input(900))));
    let text = folder.ok("demo toy.fhebc in.csv --insecure");
    for word in ["security", "precision", "same class as in the clear", "time", "memory"] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), before);
}

#[test]
fn bench_reports_time_memory_and_error() {
    let folder = Folder::new(Packing::Packed);
    let args = "bench toy.fhebc --insecure --runs 2 --threads 2 --format json --profile p.json --quiet";
    let report = json(&folder.ok(args));
    assert!(report["median_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(report["threads"], 2);
    assert!(report["max_abs_error"].as_f64().unwrap() < 1e-3);
    #[cfg(target_os = "linux")]
    assert!(report["peak_rss_bytes"].as_u64().unwrap() > 0);
    let profile = json(&std::fs::read_to_string(folder.path("p.json")).unwrap());
    let layers: Vec<_> =
        profile["layers"].as_array().unwrap().iter().map(|layer| layer["layer"].clone()).collect();
    assert_eq!(layers, ["conv", "act", "fc"]);
    for layer in report["layers"].as_array().unwrap() {
        assert!(layer["measured_seconds"].as_f64().unwrap() > 0.0, "{layer}");
        assert!(layer["predicted_seconds"].as_f64().is_some(), "{layer}");
    }
}

#[test]
fn error_beyond_the_predicted_one_ends_with_exit_code_1() {
    let folder = Folder::new(Packing::Packed);
    folder.ok("infer toy.fhebc in.csv --index 0..2 --insecure --check");
    std::fs::write(folder.path("bold.fhebc"), codec::encode(&promising(Packing::Packed, 1e-30))).unwrap();
    let told = "the program promises at most 1.00e-30";
    folder.fails("demo bold.fhebc in.csv --insecure", 1, told);
    folder.fails("bench bold.fhebc in.csv --runs 1 --warmup 0 --insecure", 1, "run 1 of 1 is not right");
    let infer = "infer bold.fhebc in.csv --index 0..2 --insecure";
    folder.fails(&format!("{infer} --check"), 1, "2 of 2 results differ, first that of input 0");
    // Results are printed all the same, and without the flag nobody asked.
    let output = folder.run("demo bold.fhebc in.csv --insecure --format json");
    assert_eq!(json(&String::from_utf8_lossy(&output.stdout))["same_class_as_clear"], true);
    folder.ok(infer);
}

#[test]
fn every_step_sums_up_as_json_on_request() {
    let folder = Folder::new(Packing::Packed);
    let keys = folder.ok("keygen toy.fhebc --secret-key me.key --eval-keys me.evk --insecure --format json");
    let made = json(&keys)["key"].clone();
    let encrypted = folder.ok("encrypt toy.fhebc in.csv --secret-key me.key -o in.ct --format json");
    assert_eq!((&json(&encrypted)["key"], &json(&encrypted)["inputs"]), (&made, &2.into()));
    let evaluated = json(&folder.ok("eval toy.fhebc in.ct --eval-keys me.evk -o out.ct --format json"));
    assert!(evaluated["results"] == 2 && evaluated["seconds"].as_f64().is_some_and(|s| s > 0.0));
    let demo = json(&folder.ok("demo toy.fhebc in.csv --insecure --format json"));
    assert!(demo["same_class_as_clear"] == true && demo["is_secure"] == false);
}

#[test]
fn the_version_names_the_formats_of_files() {
    let text = Folder::new(Packing::Packed).ok("--version");
    assert!(text.contains("program format 4, key and ciphertext format 2"), "{text}");
}

#[test]
fn profiles_tell_time_and_memory_of_every_operation() {
    let folder = Folder::new(Packing::Packed);
    folder.ok("bench toy.fhebc --runs 1 --insecure --profile profile.json");
    let profile = json(&std::fs::read_to_string(folder.path("profile.json")).unwrap());
    let events = profile["events"].as_array().expect("events");
    assert!(events.iter().all(|e| e["seconds"].is_f64() && e["operation"].is_string()));
    let is_told = |e: &serde_json::Value| e["resident_bytes"].as_u64().is_some_and(|b| b > 1 << 16);
    assert!(cfg!(not(target_os = "linux")) || events.iter().all(is_told));
}

#[test]
fn chrome_trace_is_written_on_request() {
    let folder = Folder::new(Packing::Packed);
    folder.ok("infer toy.fhebc in.csv --insecure --profile run.trace.json");
    let trace = json(&std::fs::read_to_string(folder.path("run.trace.json")).unwrap());
    assert!(trace["traceEvents"].as_array().unwrap().iter().any(|event| event["name"] == "square"));
}

#[test]
fn a_client_needs_no_weights() {
    let folder = Folder::new(Packing::Packed);
    let interface = promising(Packing::Packed, BOUND).interface();
    std::fs::write(folder.path("toy.fhei"), codec::encode_interface(&interface)).unwrap();
    folder.ok("keygen toy.fhei --secret-key me.key --eval-keys me.evk --insecure");
    folder.ok("encrypt toy.fhei in.csv --index 0..2 --secret-key me.key -o in.ct");
    folder.ok("eval toy.fhebc in.ct --eval-keys me.evk -o out.ct");
    let by = |file: &str| folder.ok(&format!("decrypt {file} out.ct --secret-key me.key --format json"));
    assert_eq!(by("toy.fhei"), by("toy.fhebc"));
    assert!(folder.ok("info toy.fhei").contains("an interface"));
    folder.fails("eval toy.fhei in.ct --eval-keys me.evk -o b.ct", 1, "not a program file");
    folder.fails(
        "keygen in.csv --secret-key b.key --eval-keys b.evk",
        1,
        "neither an interface nor a program",
    );
}

#[test]
fn info_describes_every_kind() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    for (file, kind) in [
        ("toy.fhebc", "a program"),
        ("me.key", "a secret key"),
        ("me.evk", "a file of evaluation keys"),
        ("in.ct", "a ciphertext file"),
    ] {
        assert!(folder.ok(&format!("info {file}")).contains(kind), "{file}");
    }
}

#[cfg(unix)]
#[test]
fn interruption_leaves_no_half_written_file() {
    let folder = Folder::new(Packing::Hw);
    let temporary = || {
        let entries = std::fs::read_dir(folder.0.path()).unwrap();
        entries.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "tmp")).count()
    };
    let mut keygen = Command::new(env!("CARGO_BIN_EXE_fhe-run"))
        .current_dir(folder.0.path())
        .args("keygen toy.fhebc --secret-key me.key --eval-keys me.evk --insecure --quiet".split(' '))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while temporary() == 0 && keygen.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &keygen.id().to_string()]).status().unwrap();
    let output = keygen.wait_with_output().unwrap();
    let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(temporary(), 0);
    assert!(code != Some(130) || said.contains("interrupted: "), "{said}");
    // A fast machine may have been done before the signal came.
    assert!(code == Some(130) && !folder.path("me.key").exists() || code == Some(0), "{code:?}");
}

#[cfg(unix)]
#[test]
fn finished_results_of_a_batch_survive_an_interruption_and_are_gone_on_from() {
    let folder = Folder::new(Packing::Hw).with_keys();
    let row = input(500).iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    std::fs::write(folder.path("many.csv"), format!("{row}\n").repeat(200)).unwrap();
    folder.ok("encrypt toy.fhebc many.csv --index 0..200 --secret-key me.key -o many.ct");
    folder.ok("eval toy.fhebc many.ct --eval-keys me.evk -o whole.ct");
    let arguments = "eval toy.fhebc many.ct --eval-keys me.evk -o out.ct --format json";
    let mut eval = Command::new(env!("CARGO_BIN_EXE_fhe-run"))
        .current_dir(folder.0.path())
        .args(arguments.split(' '))
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let partial = folder.path("out.ct.partial");
    let is_begun = || std::fs::metadata(&partial).is_ok_and(|metadata| metadata.len() > 0);
    while !is_begun() && eval.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &eval.id().to_string()]).status().unwrap();
    let output = eval.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("out.ct.partial; the same command goes on from there"), "{said}");
    assert!(!folder.path("out.ct").exists());
    // A record that was cut in the middle is evaluated again.
    let kept = std::fs::read(&partial).unwrap();
    std::fs::write(&partial, [&kept[..], &kept[..kept.len().min(1000)]].concat()).unwrap();
    let summary = json(&folder.ok(arguments));
    assert!(summary["resumed"].as_u64().is_some_and(|n| (1..200).contains(&n)), "{summary}");
    assert!(!partial.exists());
    assert_eq!(
        std::fs::read(folder.path("out.ct")).unwrap(),
        std::fs::read(folder.path("whole.ct")).unwrap()
    );
    // What was kept for another request is not taken.
    std::fs::write(&partial, &kept).unwrap();
    folder.ok("encrypt toy.fhebc in.csv --index 0..2 --secret-key me.key -o in.ct");
    let summary = json(&folder.ok("eval toy.fhebc in.ct --eval-keys me.evk -o out.ct --format json"));
    assert_eq!(summary["resumed"], 0);
}

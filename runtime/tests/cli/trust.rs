//! Nothing from the other party hurts: what is shown, what belongs together, what is refused before work.

use std::path::Path;
use std::process::Command;

use fhe_bytecode::params::ntt_primes_below;
use fhe_bytecode::{
    CheckedProgram, Interface, Interval, Layout, LayoutId, Level, Packing, Port, ProgramSpec, Rotation,
    RotationKey, Tail, TailStep, codec,
};

use super::toy::toy_program;
use super::{Folder, json};

/// A folder whose program is changed, with keys and a result.
fn changed(change: impl FnOnce(&mut ProgramSpec)) -> Folder {
    let folder = Folder::new(Packing::Packed);
    let mut spec = toy_program(Packing::Packed).spec().clone();
    change(&mut spec);
    let program = CheckedProgram::new(spec).unwrap();
    std::fs::write(folder.path("toy.fhebc"), codec::encode(&program)).unwrap();
    folder.with_keys()
}

fn stderr(folder: &Folder, args: &str) -> String {
    String::from_utf8(folder.run(args).stderr).unwrap()
}

#[test]
fn scores_need_a_flag_and_carry_a_warning() {
    let folder = changed(|spec| spec.prediction.max_abs_error = 1e-300).with_result();
    let args = "decrypt toy.fhebc out.ct --secret-key me.key";
    let shown = json(&folder.ok(&format!("{args} --format json")));
    assert!(shown["predictions"][0]["top"][0].get("score").is_none(), "{shown}");
    assert!(shown["predictions"][0]["confidence"].is_f64());
    assert_eq!(shown["predictions"][0]["name"], "in.csv#0");
    let shown = json(&folder.ok(&format!("{args} --format json --scores")));
    assert!(shown["warning"].as_str().unwrap().contains("secret key"));
    let warns = |args: &str| stderr(&folder, args).contains("scores are decrypted values");
    assert!(warns(&format!("{args} --format csv --scores")) && !warns(&format!("{args} --format csv")));
    let unit = shown["unit"].as_f64().unwrap();
    // N = 1024 at scale 2^25: the author's 1e-300 does not count, eight deviations of a fresh error do.
    assert_eq!(unit, 1e-4);
    for class in shown["predictions"][0]["top"].as_array().unwrap() {
        let steps = class["score"].as_f64().unwrap() / unit;
        assert!((steps - steps.round()).abs() < 1e-6, "{class}");
    }
}

#[cfg(unix)]
#[test]
fn raw_values_are_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let args = "decrypt toy.fhebc out.ct --secret-key me.key --raw --format json --result raw.json";
    assert!(stderr(&folder, args).contains("give the secret key away"));
    let mode = std::fs::metadata(folder.path("raw.json")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    folder.fails(args, 1, "never overwritten");
}

#[test]
fn results_answer_the_request_or_are_refused() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let decrypt = |request: &str| format!("decrypt toy.fhebc out.ct --secret-key me.key --request {request}");
    folder.ok(&decrypt("in.ct"));
    // The same inputs, encrypted again, are another request.
    folder.ok("encrypt toy.fhebc in.csv --index 0..2 --secret-key me.key -o again.ct");
    folder.fails(&decrypt("again.ct"), 1, "answers request");
    folder.fails(&decrypt("out.ct"), 1, "holds encrypted result, but encrypted input is needed");
}

#[test]
fn a_key_remembers_its_program() {
    let folder = changed(|spec| spec.origin.model = "one".to_owned());
    let other = codec::encode(&toy_program(Packing::Packed));
    std::fs::write(folder.path("other.fhebc"), other).unwrap();
    let encrypt = |program: &str| format!("encrypt {program} in.csv --secret-key me.key -o in.ct");
    assert!(!stderr(&folder, &encrypt("toy.fhebc")).contains("was made for program"));
    assert!(stderr(&folder, &encrypt("other.fhebc")).contains("was made for program"));
}

#[test]
fn inputs_far_outside_are_refused_unless_insisted_on() {
    let folder = changed(|spec| spec.input.range = Some(Interval { low: -0.1, high: 0.1 }));
    let encrypt = "encrypt toy.fhebc in.csv --secret-key me.key -o in.ct";
    folder.fails(encrypt, 1, "the model was calibrated on inputs in [-0.1, 0.1]");
    folder.fails(encrypt, 1, "--any-range insists");
    folder.ok(&format!("{encrypt} --any-range"));
    folder.fails("infer toy.fhebc in.csv --insecure", 1, "calibrated on inputs");
}

#[test]
fn inputs_a_little_outside_are_told() {
    let encrypt = "encrypt toy.fhebc in.csv --secret-key me.key -o in.ct";
    let infer = "infer toy.fhebc in.csv --insecure --format json";
    for (end, is_told) in [(0.3, true), (5.0, false)] {
        let folder = changed(|spec| spec.input.range = Some(Interval { low: -end, high: end }));
        let said = stderr(&folder, encrypt);
        assert_eq!(said.contains("numbers that the model was not calibrated on"), is_told, "{said}");
        let shown = json(&folder.ok(infer));
        assert_eq!(shown["predictions"][0]["outside_input"].is_string(), is_told, "{shown}");
    }
}

#[test]
fn made_up_input_with_scores_of_its_own_is_not_judged() {
    let bench = "bench toy.fhebc --insecure --runs 1 --warmup 0 --format json";
    let wrong = |range: Interval| {
        changed(move |spec| {
            spec.output.range = Some(range);
            spec.prediction.max_abs_error = 1e-12;
        })
    };
    let elsewhere = wrong(Interval { low: 90.0, high: 91.0 });
    assert!(json(&elsewhere.ok(bench))["is_right"].is_null());
    assert!(stderr(&elsewhere, bench).contains("is not judged"));
    assert!(stderr(&elsewhere, "demo toy.fhebc --insecure").contains("is not judged"));
    let here = wrong(Interval { low: -1e3, high: 1e3 });
    here.fails(bench, 1, "the program promises at most");
    here.fails("demo toy.fhebc --insecure", 1, "the program promises at most");
}

#[test]
fn scores_outside_the_calibrated_ones_are_marked_in_every_format() {
    let folder = changed(|spec| spec.output.range = Some(Interval { low: 90.0, high: 91.0 })).with_result();
    let args = "decrypt toy.fhebc out.ct --secret-key me.key";
    assert!(folder.ok(args).contains("are outside the calibrated scores [90, 91]"));
    assert!(folder.ok(&format!("{args} --scores")).contains("(doubtful)"));
    let raw = format!("{args} --raw --format npy --result raw.npy");
    assert!(stderr(&folder, &raw).contains("are outside the calibrated scores"));
    let shown = json(&folder.ok(&format!("{args} --format json")));
    assert_eq!(shown["predictions"][0]["doubts"][0]["doubt"], "outside-calibration");
}

/// A bit for every score, or a class for every two of them, tells an author about as much as scores do.
#[test]
fn without_scores_the_best_class_and_two_bits_of_doubt_are_all_that_is_told() {
    let n_scores = toy_program(Packing::Packed).output_layout().shape().len();
    let four = Port { name: "four".to_owned(), dims: vec![1, 4], channels_last: false, offset: 0 };
    let pairs = Tail {
        name: "pairs".to_owned(),
        port: 0,
        steps: vec![TailStep::ArgMax { length: 2, inner: 1 }],
        classes: Vec::new(),
    };
    let folder = changed(|spec| {
        spec.output.range = Some(Interval { low: 90.0, high: 91.0 });
        (spec.output.ports, spec.output.tails) = (vec![four], vec![pairs]);
    });
    let folder = folder.with_result();
    let args = "decrypt toy.fhebc out.ct --secret-key me.key --format json";
    let shown = json(&folder.ok(args));
    let [best, other] = &shown["predictions"][0]["doubts"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!(best["index"], shown["predictions"][0]["top"][0]["index"]);
    assert!(other.get("index").is_none() && other.get("label").is_none(), "{shown}");
    assert!(shown["predictions"][0].get("outputs").is_none(), "{shown}");
    let scores = json(&folder.ok(&format!("{args} --scores")));
    assert_eq!(scores["predictions"][0]["doubts"].as_array().unwrap().len(), n_scores);
    assert_eq!(scores["predictions"][0]["outputs"][0]["classes"].as_array().unwrap().len(), 2);
}

#[test]
fn keys_are_budgeted_before_work_and_never_replaced() {
    let folder = Folder::new(Packing::Packed).with_keys();
    let before = std::fs::read(folder.path("me.evk")).unwrap();
    let keygen = |keys: &str, rest: &str| {
        format!("keygen toy.fhebc --secret-key new.key --eval-keys {keys} --insecure {rest}")
    };
    folder.fails(&keygen("me.evk", ""), 1, "exists already");
    assert_eq!(std::fs::read(folder.path("me.evk")).unwrap(), before);
    folder.fails(&keygen("new.evk", "--max-key-bytes 1KiB"), 1, "--max-key-bytes allows 1.00 KiB");
    assert!(!folder.path("new.key").exists() && !folder.path("new.evk").exists());
    let said = stderr(&folder, &keygen("new.evk", ""));
    let bytes = std::fs::metadata(folder.path("new.evk")).unwrap().len();
    assert!(said.contains(&format!("will take {} on disk", fhe_host::show_bytes(bytes))), "{said}");
}

#[test]
fn eval_refuses_keys_that_the_program_does_not_ask_for() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let hw = codec::encode(&toy_program(Packing::Hw));
    std::fs::write(folder.path("hw.fhebc"), hw).unwrap();
    folder.ok("encrypt hw.fhebc in.csv --secret-key me.key -o hw.ct");
    let output = folder.run("eval hw.fhebc hw.ct --eval-keys me.evk -o x.ct");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ask for") || said.contains("asks for"), "{said}");
}

/// A few hundred bytes can name parameters whose tables take a gigabyte. What does not fit them is refused before.
#[cfg(unix)]
#[test]
fn tables_of_parameters_are_made_last() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let program = toy_program(Packing::Packed);
    let mut spec = program.interface().spec().clone();
    spec.params.log_n = 17;
    spec.params.towers = ntt_primes_below(45, 17, 70, &[]).unwrap();
    spec.params.special_primes = ntt_primes_below(46, 17, 1, &[]).unwrap();
    (spec.params.toy, spec.params.insecure) = (false, false);
    let wide = Layout::vector(Packing::Packed, 5, 1, 1 << 16).unwrap();
    spec.layouts = vec![wide.spec().clone()];
    (spec.input.layout, spec.output.layout) = (LayoutId(0), LayoutId(0));
    spec.input.preprocessing = Default::default();
    spec.rotation_keys = vec![RotationKey { rotation: Rotation::new(1, 1 << 16), level: Level(69) }];
    let interface = codec::encode_interface(&Interface::new(spec).unwrap());
    assert!(interface.len() < 2000, "{} bytes", interface.len());
    std::fs::write(folder.path("huge.fhei"), interface).unwrap();
    for (args, message) in [
        ("decrypt huge.fhei out.ct --secret-key me.key", "parameters"),
        ("encrypt huge.fhei in.csv --secret-key me.key -o x.ct", "the model takes"),
        (
            "keygen huge.fhei --secret-key n.key --eval-keys n.evk --max-key-bytes 1GiB",
            "--max-key-bytes allows",
        ),
        ("info huge.fhei", ""),
    ] {
        // 150 MB of addresses are enough for the command and not for a fifth of the tables.
        let line = format!("ulimit -v 150000 && exec {} --threads 1 {args}", env!("CARGO_BIN_EXE_fhe-run"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(folder.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = if message.is_empty() { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{args}: {said}");
        assert!(said.contains(message), "{args}: {said}");
    }
}

/// The toy program with `evil` where `place` lets it in, in a file that is sound otherwise.
fn with_text(evil: &str, place: fn(&mut ProgramSpec, String)) -> Vec<u8> {
    let mut spec = toy_program(Packing::Packed).spec().clone();
    let harmless = "~".repeat(evil.len());
    place(&mut spec, harmless.clone());
    let mut bytes = codec::encode(&CheckedProgram::new(spec).unwrap());
    let at = bytes.windows(evil.len()).position(|window| window == harmless.as_bytes()).unwrap();
    bytes[at..at + evil.len()].copy_from_slice(evil.as_bytes());
    let body = bytes.len() - 32;
    let sum =
        *blake3::Hasher::new_derive_key("fhec 1 program file").update(&bytes[..body]).finalize().as_bytes();
    bytes[body..].copy_from_slice(&sum);
    bytes
}

/// No character of what a command says is obeyed by a terminal.
fn assert_harmless(output: &std::process::Output, args: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).unwrap();
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(obeyed), "{args}: {text:?}");
    }
}

#[test]
fn programs_with_text_that_a_terminal_obeys_are_refused() {
    let places: [fn(&mut ProgramSpec, String); 5] = [
        |spec, text| spec.output.labels = vec![text; 5],
        |spec, text| spec.origin.model = text,
        |spec, text| spec.layers[0].name = text,
        |spec, text| spec.input.name = text,
        |spec, text| spec.output.name = text,
    ];
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    for (i, place) in places.into_iter().enumerate() {
        for evil in ["\u{1b}[2J\u{9b}31m", "line\nerror: fake", "\u{202e}exe"] {
            std::fs::write(folder.path("evil.fhebc"), with_text(evil, place)).unwrap();
            // A client that reads no further than the interface does not see layers, and need not.
            let is_layer = i == 2;
            for args in [
                "info evil.fhebc",
                "infer evil.fhebc in.csv --insecure",
                "bench evil.fhebc --runs 1 --insecure",
                "eval evil.fhebc in.ct --eval-keys me.evk -o x.ct",
                "keygen evil.fhebc --secret-key new.key --eval-keys new.evk --insecure",
                "decrypt evil.fhebc out.ct --secret-key me.key",
            ] {
                let output = folder.run(args);
                assert_harmless(&output, args);
                if is_layer && (args.starts_with("keygen") || args.starts_with("decrypt")) {
                    continue;
                }
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{args}: {said}");
                assert!(said.contains("that a terminal would obey"), "{args}: {said}");
            }
            let _ = std::fs::remove_file(folder.path("new.key"));
            let _ = std::fs::remove_file(folder.path("new.evk"));
        }
    }
}

#[test]
fn names_of_files_reach_no_terminal_raw() {
    let folder = Folder::new(Packing::Packed).with_keys();
    std::fs::rename(folder.path("in.csv"), folder.path("\u{1b}in.csv")).unwrap();
    let line = format!("encrypt toy.fhebc {}in.csv --secret-key me.key -o in.ct", '\u{1b}');
    folder.ok(&line);
    folder.ok("eval toy.fhebc in.ct --eval-keys me.evk -o out.ct");
    for args in [
        "decrypt toy.fhebc out.ct --secret-key me.key --scores",
        "decrypt toy.fhebc out.ct --secret-key me.key --format json",
        "infer toy.fhebc \u{1b}in.csv --insecure",
        "infer toy.fhebc none\u{1b}.csv --insecure",
        "infer none\u{1b}.csv in.csv",
    ] {
        assert_harmless(&folder.run(args), args);
    }
}

#[test]
fn text_outputs_replace_no_file_of_another_kind() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    std::fs::write(folder.path("photo.png"), b"\x89PNG\r\n\x1a\n and more").unwrap();
    std::fs::write(folder.path("run.sh"), "#!/bin/sh\n").unwrap();
    std::fs::write(folder.path("id.pem"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    std::fs::write(folder.path("page.html"), "<!DOCTYPE html>\n").unwrap();
    for file in ["me.evk", "me.key", "toy.fhebc", "photo.png", "run.sh", "id.pem", "page.html"] {
        let before = std::fs::read(folder.path(file)).unwrap();
        let decrypt = format!("decrypt toy.fhebc out.ct --secret-key me.key --result {file}");
        folder.fails(&decrypt, 1, "exists");
        let bench = format!("bench toy.fhebc --runs 1 --warmup 0 --insecure --profile {file}");
        folder.fails(&bench, 1, "exists");
        assert!(std::fs::read(folder.path(file)).unwrap() == before, "{file}");
    }
    // Results of a batch are kept beside the output, but in no file of somebody else's.
    let notes = "what I wanted to remember";
    std::fs::write(folder.path("new.ct.partial"), notes).unwrap();
    folder.fails("eval toy.fhebc in.ct --eval-keys me.evk -o new.ct", 1, "exists and is another kind");
    assert_eq!(std::fs::read_to_string(folder.path("new.ct.partial")).unwrap(), notes);
}

#[cfg(unix)]
#[test]
fn termination_leaves_no_half_written_file() {
    let folder = Folder::new(Packing::Hw);
    let is_temporary = |path: &Path| path.extension().is_some_and(|ending| ending == "tmp");
    let temporary = || {
        let entries = std::fs::read_dir(folder.path(".")).unwrap();
        entries.filter(|entry| is_temporary(&entry.as_ref().unwrap().path())).count()
    };
    let mut keygen = Command::new(env!("CARGO_BIN_EXE_fhe-run"))
        .current_dir(folder.path("."))
        .args("keygen toy.fhebc --secret-key me.key --eval-keys me.evk --insecure --quiet".split(' '))
        .spawn()
        .unwrap();
    while temporary() == 0 && keygen.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Command::new("kill").args(["-TERM", &keygen.id().to_string()]).status().unwrap();
    let code = keygen.wait().unwrap().code();
    assert_eq!(temporary(), 0);
    assert!(code == Some(130) && !folder.path("me.key").exists() || code == Some(0), "{code:?}");
}

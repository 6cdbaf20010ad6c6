//! Samples keep their names, from their files to every form of a result; outputs are looked at before work begins.

use fhe_bytecode::Packing;

use super::{Folder, input, json};

fn names(shown: &serde_json::Value) -> Vec<&str> {
    shown["predictions"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect()
}

#[test]
fn all_samples_of_a_file_are_taken_unless_they_are_many() {
    let folder = Folder::new(Packing::Packed).with_keys();
    let summary = |index: &str| {
        let args = format!("encrypt toy.fhebc in.csv {index} --secret-key me.key -o in.ct --format json");
        let found = json(&folder.ok(&args));
        (found["inputs"].as_u64().unwrap(), found["samples"].as_u64().unwrap())
    };
    assert_eq!(summary(""), (2, 2));
    assert_eq!(summary("--index 1"), (1, 2));
    let said = folder.run("encrypt toy.fhebc in.csv --index 1 --secret-key me.key -o in.ct").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("in.ct: 1 of 2 sample(s) encrypted (--index chooses)"), "{said}");
    let row = input(500).iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    std::fs::write(folder.path("many.csv"), format!("{row}\n").repeat(101)).unwrap();
    let encrypt = "encrypt toy.fhebc many.csv --secret-key me.key -o many.ct";
    folder.fails(encrypt, 2, "many.csv: holds 101 samples, and --index does not say which are meant");
    folder.ok(&format!("{encrypt} --index all"));
}

#[test]
fn names_reach_every_form_of_a_result() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let decrypt = "decrypt toy.fhebc out.ct --secret-key me.key --request in.ct";
    let expected = ["in.csv#0", "in.csv#1"];
    assert_eq!(names(&json(&folder.ok(&format!("{decrypt} --format json")))), expected);
    let text = folder.ok(decrypt);
    assert!(text.starts_with("in.csv#0: ") && text.contains("\nin.csv#1: "), "{text}");
    let table = folder.ok(&format!("{decrypt} --format csv"));
    let first: Vec<&str> = table.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(first, ["name", "in.csv#0", "in.csv#1"], "{table}");
    let scores = folder.ok(&format!("{decrypt} --format csv --scores --top 2"));
    assert!(
        scores
            .starts_with("name,class,confidence,undecided,doubtful,truth,class_1,score_1,class_2,score_2\n")
    );
    let raw = folder.ok(&format!("{decrypt} --format csv --raw"));
    assert_eq!(raw.lines().map(|line| line.split(',').count()).collect::<Vec<_>>(), [6; 3], "{raw}");
    let inferred = folder.ok("infer toy.fhebc in.csv --insecure --format csv");
    assert_eq!(inferred.lines().count(), 3, "{inferred}");
}

#[test]
fn names_are_those_that_the_client_gave() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    // A server that calls samples otherwise: the bytes of a name, and the hash over the file.
    let mut data = std::fs::read(folder.path("out.ct")).unwrap();
    let at = data.windows(8).position(|window| window == b"in.csv#0").unwrap();
    data[at..at + 8].copy_from_slice(b"in.csv#9");
    let end = data.len() - 32;
    let hash = blake3::hash(&data[..end]);
    data[end..].copy_from_slice(hash.as_bytes());
    std::fs::write(folder.path("out.ct"), data).unwrap();
    let decrypt = "decrypt toy.fhebc out.ct --secret-key me.key --format json";
    assert_eq!(names(&json(&folder.ok(decrypt))), ["in.csv#9", "in.csv#1"]);
    let asked = json(&folder.ok(&format!("{decrypt} --request in.ct")));
    assert_eq!(names(&asked), ["in.csv#0", "in.csv#1"]);
}

#[test]
fn info_says_what_ciphertexts_are() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    let info = |file: &str| json(&folder.ok(&format!("info {file} --format json")));
    let (program, input, result) = (info("toy.fhebc"), info("in.ct"), info("out.ct"));
    assert_eq!((&input["holds"], &result["holds"]), (&"encrypted input".into(), &"encrypted result".into()));
    for found in [&input, &result] {
        assert_eq!((&found["samples"], &found["program"]), (&2.into(), &program["program"]));
        assert_eq!(found["names"], serde_json::json!(["in.csv#0", "in.csv#1"]));
    }
    assert!(input.get("answers_request").is_none() && result["answers_request"].is_string());
    assert!(info("me.evk")["evaluation_keys"].as_u64().unwrap() > 1);
    let text = folder.ok("info in.ct");
    assert!(text.contains("in.csv#0, in.csv#1"), "{text}");
}

#[test]
fn outputs_are_looked_at_before_the_work() {
    let folder = Folder::new(Packing::Packed).with_keys().with_result();
    std::fs::create_dir(folder.path("folder")).unwrap();
    for args in [
        "infer toy.fhebc in.csv --insecure --result none/here.txt",
        "infer toy.fhebc in.csv --insecure --profile none/profile.json",
        "bench toy.fhebc in.csv --insecure --profile me.evk",
        "demo toy.fhebc in.csv --insecure --profile none/profile.json",
        "eval toy.fhebc in.ct --eval-keys me.evk -o new.ct --profile none/profile.json",
        "eval toy.fhebc in.ct --eval-keys me.evk -o none/new.ct",
        "eval toy.fhebc in.ct --eval-keys me.evk -o me.evk",
        "decrypt toy.fhebc out.ct --secret-key me.key --result toy.fhebc",
    ] {
        let output = folder.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args}: {said}");
        // What an evaluation says first is how much memory it is going to need.
        assert!(!said.contains("memory:") && output.stdout.is_empty(), "{args}: {said}");
    }
    assert!(!folder.path("new.ct").exists());
}

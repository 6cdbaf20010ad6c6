//! Crates follow layers: who may depend on whom, and that the server's side links no code for secret keys.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// The crates of the runtime, lowest first, and the crates of this workspace that each may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("fhe-bytecode", &[]),
    ("fhe-host", &[]),
    ("fhe-input", &[]),
    ("fhe-ring", &[]),
    ("fhe-ckks", &["fhe-bytecode", "fhe-ring"]),
    ("fhe-files", &["fhe-bytecode", "fhe-ckks", "fhe-ring"]),
    ("fhe-machine", &["fhe-bytecode", "fhe-ckks", "fhe-host", "fhe-ring"]),
    ("fhe-secret", &["fhe-bytecode", "fhe-ckks", "fhe-ring"]),
    ("fhe-client", &["fhe-bytecode", "fhe-ckks", "fhe-files", "fhe-secret"]),
    (
        "fhe-runtime",
        &[
            "fhe-bytecode",
            "fhe-ckks",
            "fhe-client",
            "fhe-files",
            "fhe-host",
            "fhe-input",
            "fhe-machine",
            "fhe-secret",
        ],
    ),
];

/// What evaluates: everything a server needs, and nothing that knows a secret.
const SERVER: &[&str] = &["fhe-ring", "fhe-ckks", "fhe-files", "fhe-machine"];

/// Secret keys and decryption, randomness of the operating system, and what belongs to commands.
const NOT_ON_A_SERVER: &[&str] =
    &["fhe-secret", "fhe-client", "getrandom", "clap", "indicatif", "comfy-table", "tempfile", "ctrlc"];

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

/// Names of all crates that `package` links, itself included.
fn linked(package: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"]);
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn crates_depend_on_lower_layers_only() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--offline", "--no-deps", "--format-version", "1"]))
            .unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    for (name, allowed) in LAYERS {
        let package =
            packages.iter().find(|package| package["name"] == *name).expect("a crate of this workspace");
        let normal = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        let ours: BTreeSet<&str> = normal
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| dependency["name"].as_str().unwrap())
            .collect();
        assert_eq!(ours, allowed.iter().copied().collect(), "dependencies of {name}");
    }
}

#[test]
fn server_links_no_secret_key_code() {
    for package in SERVER {
        let linked = linked(package);
        assert!(linked.contains(*package), "cargo tree names the crate itself");
        let found: Vec<_> = NOT_ON_A_SERVER.iter().filter(|name| linked.contains(**name)).collect();
        assert!(found.is_empty(), "{package} links {found:?}");
    }
    // The test can tell: a client does link them.
    assert!(linked("fhe-client").contains("getrandom"));
}

#[test]
fn unsafe_code_is_in_the_ring_only() {
    for (name, _) in LAYERS.iter().filter(|(name, _)| *name != "fhe-ring") {
        let folder = match name.strip_prefix("fhe-") {
            Some("runtime") | None => "runtime/src".to_owned(),
            Some(layer) => format!("runtime/{layer}/src"),
        };
        let path = format!("{}/../{folder}/lib.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a crate root");
        assert!(text.contains("#![forbid(unsafe_code)]"), "{path}");
    }
}

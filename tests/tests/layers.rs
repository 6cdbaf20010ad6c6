//! Neither the compiler nor the server's side links code for secret keys. Who may depend on whom is the table's, and
//! `cargo xtask tidy` holds it.

use std::collections::BTreeSet;
use std::process::Command;

use fhec_tests::layers::{NOT_IN_A_TOOL, NOT_ON_A_SERVER, SECRET_CODE, SERVER, SERVER_COMMAND, TOOLS};

/// Names of all crates that `package` links, itself included.
fn linked(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints text");
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn server_links_no_secret_key_code() {
    for package in SERVER {
        let linked = linked(package);
        assert!(linked.contains(*package), "cargo tree names the crate itself");
        let found: Vec<_> = NOT_ON_A_SERVER.iter().filter(|name| linked.contains(**name)).collect();
        assert!(found.is_empty(), "{package} links {found:?}");
    }
    let command = linked(SERVER_COMMAND);
    assert!(command.contains(SERVER_COMMAND), "cargo tree names the crate itself");
    let found: Vec<_> = SECRET_CODE.iter().filter(|name| command.contains(**name)).collect();
    assert!(found.is_empty(), "{SERVER_COMMAND} links {found:?}");
    // The test can tell: a client does link them.
    assert!(linked("fhe-runtime").contains("fhe-secret"));
    assert!(linked("fhe-client").contains("getrandom"));
}

/// Seeds that repeat are for tests and benches: the code is not there in anything that is installed.
#[test]
fn no_tool_links_seeds_that_repeat() {
    for package in TOOLS {
        let linked = linked(package);
        assert!(linked.contains(*package), "cargo tree names the crate itself");
        let found: Vec<_> = NOT_IN_A_TOOL.iter().filter(|name| linked.contains(**name)).collect();
        assert!(found.is_empty(), "{package} links {found:?}");
    }
    // The test can tell: a bench does link them.
    assert!(linked("xtask-lab").contains("fhe-fixed-seeds"));
}

#[test]
fn compiler_links_neither_keys_nor_ring_arithmetic() {
    let linked = linked("fhec");
    let never = ["fhe-ring", "fhe-ckks", "fhe-secret", "fhe-client", "fhe-machine", "fhe-runtime"];
    let found: Vec<_> = never.iter().filter(|name| linked.contains(**name)).collect();
    assert!(linked.contains("fhe-bytecode") && found.is_empty(), "fhec links {found:?}");
}

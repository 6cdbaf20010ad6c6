//! What the commands are made of: a CycloneDX list of every crate that is linked, with version, license and hash.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace;

/// The list for some crates of the workspace on one target.
pub(super) fn cyclonedx(packages: &[&str], target: &str) -> io::Result<Value> {
    let args = ["metadata", "--offline", "--format-version", "1", "--filter-platform", target];
    let output = Command::new("cargo").args(args).current_dir(workspace::root()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))?;
    Ok(list(&metadata, packages, &checksums(&lock)))
}

fn list(metadata: &Value, packages: &[&str], hashes: &BTreeMap<(String, String), String>) -> Value {
    let linked = linked(metadata, packages);
    let all = metadata["packages"].as_array().into_iter().flatten();
    let components: Vec<Value> = all
        .filter(|package| package["id"].as_str().is_some_and(|id| linked.contains(id)))
        .map(|package| component(package, hashes))
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "fhec", "version": env!("CARGO_PKG_VERSION") } },
        "components": components,
    })
}

fn component(package: &Value, hashes: &BTreeMap<(String, String), String>) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut found = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{ "expression": text("license").replace('/', " OR ") }],
    });
    if let Some(hash) = hashes.get(&(name, version)) {
        found["hashes"] = json!([{ "alg": "SHA-256", "content": hash }]);
    }
    found
}

/// Ids of all packages that some packages link: normal dependencies, and theirs.
fn linked(metadata: &Value, packages: &[&str]) -> BTreeSet<String> {
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let all = metadata["packages"].as_array().into_iter().flatten();
    let mut waiting: Vec<&str> = all
        .filter(|package| {
            packages.iter().any(|name| package["name"] == **name) && package["source"].is_null()
        })
        .filter_map(|package| package["id"].as_str())
        .collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id.to_owned()) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let is_normal = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        waiting.extend(dependencies.filter(is_normal).filter_map(|dependency| dependency["pkg"].as_str()));
    }
    found
}

/// Hashes of the packages of a lock file.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| -> Option<String> {
        let line = block.lines().find(|line| line.starts_with(name))?;
        line.split('"').nth(1).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| {
            Some(((field(block, "name = ")?, field(block, "version = ")?), field(block, "checksum = ")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_with_license_and_hash() {
        let package = |id: &str, source: Value| json!({ "id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source });
        let deps = |names: &[(&str, Value)]| -> Vec<Value> {
            names.iter().map(|(id, kind)| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] })).collect()
        };
        let metadata = json!({
            "packages": [package("ours", Value::Null), package("a", json!("registry")), package("b", json!("registry")), package("build", json!("registry"))],
            "resolve": { "nodes": [
                { "id": "ours", "deps": deps(&[("a", Value::Null), ("build", json!("build"))]) },
                { "id": "a", "deps": deps(&[("b", Value::Null)]) },
                { "id": "b", "deps": [] }, { "id": "build", "deps": [] } ] },
        });
        let hashes = checksums("[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n");
        let found = list(&metadata, &["ours"], &hashes);
        let names: Vec<&str> =
            found["components"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["ours", "a", "b"]);
        assert_eq!(found["components"][1]["hashes"][0]["content"], "abc");
        assert_eq!(found["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}

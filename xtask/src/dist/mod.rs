//! `cargo xtask dist`: an archive with both commands, their completions, manual pages and a list of what they are made of.

mod sbom;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// The commands, and the packages that have them.
const COMMANDS: [&str; 2] = ["fhec", "fhe-run"];
const PACKAGES: [&str; 2] = ["fhec-command", "fhe-runtime"];
/// Shells that completions are made for.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// What of the repository goes along.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask dist
  cargo xtask dist --packages")]
pub(crate) struct Args {
    /// Check instead that the library crates can be packaged
    #[arg(long)]
    packages: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    if args.packages {
        return package();
    }
    let target = target()?;
    let name = format!("fhec-{}-{target}", env!("CARGO_PKG_VERSION"));
    let dist = workspace::root().join("target/dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // With the features of the whole workspace: what is shipped is what the tests ran.
    let commands: Vec<&str> = COMMANDS.iter().flat_map(|command| ["--bin", command]).collect();
    workspace::run("cargo", &[&["build", "--release", "--workspace"], &commands[..]].concat(), &[])?;
    for part in ["bin", "completions", "man"] {
        fs::create_dir_all(folder.join(part))?;
    }
    for command in COMMANDS {
        let built = workspace::root().join("target/release").join(command);
        fs::copy(&built, folder.join("bin").join(command))?;
        for shell in SHELLS {
            let script = said(&built, &["completions", shell])?;
            fs::write(folder.join("completions").join(format!("{command}.{shell}")), script)?;
        }
        fs::write(folder.join("man").join(format!("{command}.1")), said(&built, &["man"])?)?;
    }
    for document in DOCUMENTS {
        fs::copy(workspace::root().join(document), folder.join(document))?;
    }
    let made_of = serde_json::to_string_pretty(&sbom::cyclonedx(&PACKAGES, &target)?)?;
    fs::write(folder.join("sbom.cdx.json"), made_of + "\n")?;
    archive(&dist, &name)
}

/// Packs the folder and writes a checksum beside the archive.
fn archive(dist: &Path, name: &str) -> io::Result<()> {
    let file = format!("{name}.tar.gz");
    let path = dist.display().to_string();
    // Same files, same bytes: no owner, no time, names in order.
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    workspace::run(
        "tar",
        &[&["-C", &path], &same[..], &["-czf", &format!("{path}/{file}"), name]].concat(),
        &[],
    )?;
    let output = Command::new("sha256sum").arg(&file).current_dir(dist).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::write(dist.join(format!("{file}.sha256")), &output.stdout)?;
    println!("{path}/{file}\n{}", String::from_utf8_lossy(&output.stdout).trim_end());
    Ok(())
}

/// What a built command prints.
fn said(command: &PathBuf, args: &[&str]) -> io::Result<Vec<u8>> {
    let output = Command::new(command).args(args).output()?;
    match output.status.success() && !output.stdout.is_empty() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(format!("{} {} gave nothing", command.display(), args.join(" ")))),
    }
}

/// The target that cargo builds for by default.
fn target() -> io::Result<String> {
    let output = Command::new("rustc").args(["--version", "--verbose"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| io::Error::other("rustc does not name its host"))
}

/// Packages every crate that has a description, without building them once more.
fn package() -> io::Result<()> {
    let output = Command::new("cargo")
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(workspace::root())
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let described = packages.filter(|package| package["description"].is_string());
    let names: Vec<String> = described.filter_map(|p| p["name"].as_str()).map(str::to_owned).collect();
    let chosen: Vec<&str> = names.iter().flat_map(|name| ["--package", name]).collect();
    let how = ["package", "--no-verify", "--allow-dirty"];
    workspace::run("cargo", &[&how, &chosen[..]].concat(), &[])
}

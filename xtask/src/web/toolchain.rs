//! A compiler for wasm32: the usual one, or Debian's, whose packages are unpacked and not installed.
//!
//! Debian's `rustc-web` has the target but not its standard library; that is built once from `rust-web-src` and put where the
//! compiler looks for it, so that everything after this is an ordinary build.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::paths;

/// What is built for.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";
/// Debian's packages; versions must match each other, so they come from one place.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// Who compiles.
pub(super) enum Toolchain {
    /// The compiler that cargo uses anyway.
    Own(String),
    /// Debian's, unpacked in this folder.
    Debian { folder: PathBuf, linker: PathBuf },
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(version) => write!(f, "{version}, with its own {TARGET}"),
            Self::Debian { folder, .. } => write!(f, "Debian's rustc-web, unpacked in {}", folder.display()),
        }
    }
}

impl Toolchain {
    /// The compiler that there is, or can be had; Debian's if that is asked for.
    pub(super) fn find(tools: &Path, is_debian: bool) -> Result<Self, String> {
        if !is_debian && has_target()? {
            return Ok(Self::Own(said("rustc", &["--version"])?));
        }
        let folder = tools.join("debian");
        let tried = if is_debian { "" } else { "rustc has no wasm32, rustup cannot add it, and " };
        debian(&folder).map_err(|why| format!("{tried}Debian's rustc-web cannot be had: {why}"))?;
        Ok(Self::Debian { folder, linker: linker()? })
    }

    /// What cargo is to be told.
    pub(super) fn env(&self) -> Vec<(String, String)> {
        match self {
            Self::Own(_) => Vec::new(),
            Self::Debian { folder, linker } => vec![
                ("RUSTC".to_owned(), compiler(folder).display().to_string()),
                ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(), linker.display().to_string()),
            ],
        }
    }
}

/// Whether the usual compiler has the target, or rustup can add it.
fn has_target() -> Result<bool, String> {
    let library = PathBuf::from(said("rustc", &["--print", "sysroot"])?).join("lib/rustlib").join(TARGET);
    let is_there = || library.join("lib").is_dir();
    Ok(is_there() || (said("rustup", &["target", "add", TARGET]).is_ok() && is_there()))
}

/// What a command prints, if it succeeds.
fn said(program: &str, args: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(args).stderr(Stdio::piped()).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// The linker that rustc brings.
fn linker() -> Result<PathBuf, String> {
    let host = said("rustc", &["--print", "host-tuple"])?;
    let path = PathBuf::from(said("rustc", &["--print", "sysroot"])?).join("lib/rustlib").join(host);
    let path = path.join("bin/rust-lld");
    if path.exists() { Ok(path) } else { Err(format!("there is no {}", path.display())) }
}

fn compiler(folder: &Path) -> PathBuf {
    folder.join("rustc")
}

/// Unpacks Debian's compiler and builds its standard library, unless that was done before.
fn debian(folder: &Path) -> Result<(), String> {
    let done = folder.join("done");
    if done.exists() {
        return Ok(());
    }
    println!("unpacking Debian's rustc-web in {}; this takes a minute or two", folder.display());
    let _ = fs::remove_dir_all(folder);
    let debs = folder.join("debs");
    fs::create_dir_all(&debs).map_err(|error| error.to_string())?;
    for package in wanted()? {
        within(&debs, "apt-get", &["download", "-q", &package])?;
    }
    let root = folder.join("root");
    for entry in fs::read_dir(&debs).map_err(|error| error.to_string())? {
        let deb = entry.map_err(|error| error.to_string())?.path();
        within(folder, "dpkg", &["-x", &deb.display().to_string(), &root.display().to_string()])?;
    }
    write_compiler(folder, &root)?;
    build_library(folder, &root)?;
    fs::write(done, "").map_err(|error| error.to_string())
}

/// The packages, and the shared libraries that they need from the same release.
fn wanted() -> Result<Vec<String>, String> {
    let how =
        ["--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces"];
    let depends = said("apt-cache", &[&["depends"], &how[..], &["--no-enhances", "rustc-web"]].concat())?;
    // Packages that others depend on stand at the begin of a line.
    let is_library = |name: &&str| name.starts_with("libstd-rust-web") || name.starts_with("libllvm");
    let libraries = depends.lines().filter(is_library).map(str::to_owned);
    let mut all: Vec<String> = PACKAGES.iter().map(|name| (*name).to_owned()).chain(libraries).collect();
    all.sort();
    all.dedup();
    Ok(all)
}

fn within(folder: &Path, program: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(args).current_dir(folder).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or(program).to_owned()),
    }
}

/// A command that finds the unpacked libraries.
fn write_compiler(folder: &Path, root: &Path) -> Result<(), String> {
    let path = compiler(folder);
    let root = root.display();
    let libraries = said("dpkg-architecture", &["-qDEB_HOST_MULTIARCH"])
        .unwrap_or_else(|_| format!("{}-linux-gnu", std::env::consts::ARCH));
    let script = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{root}/usr/lib/{libraries}' exec '{root}/usr/bin/rustc' \"$@\"\n"
    );
    fs::write(&path, script).map_err(|error| error.to_string())?;
    within(folder, "chmod", &["+x", &path.display().to_string()])
}

/// Builds the standard library for the target and puts it where the compiler looks for it.
fn build_library(folder: &Path, root: &Path) -> Result<(), String> {
    let seed = folder.join("seed");
    let manifest = "[workspace]\n[package]\nname = \"seed\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\n\
                    crate-type = [\"cdylib\"]\n";
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(seed.join("src")).map_err(io)?;
    fs::write(seed.join("Cargo.toml"), manifest).map_err(io)?;
    fs::write(seed.join("src/lib.rs"), "").map_err(io)?;
    let target = seed.join("target").display().to_string();
    let args =
        ["build", "--release", "-Zbuild-std=std,panic_abort", "--target", TARGET, "--target-dir", &target];
    let mut flags = paths::hidden().map_err(io)?;
    flags.push(paths::replaced(root, "debian"));
    let built = Command::new("cargo")
        .args(args)
        .current_dir(&seed)
        .env("RUSTC", compiler(folder))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker()?)
        .env(paths::FLAGS, flags.join(paths::SEPARATOR))
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .map_err(io)?;
    if !built.success() {
        return Err("its standard library does not build".to_owned());
    }
    let to = root.join("usr/lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&to).map_err(io)?;
    let built = PathBuf::from(target).join(TARGET).join("release/deps");
    for entry in fs::read_dir(built).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|ending| ending == "rlib") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default())).map_err(io)?;
        }
    }
    Ok(())
}

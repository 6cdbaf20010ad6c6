//! `cargo xtask python`: the Python package, built and tested in virtual environments under target/.
//!
//! The wheel is built in the workspace's own target, so that what the tests compiled is not compiled again. Without Python, or
//! without the packages that tests need, they are skipped, and say so.

mod environment;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use self::environment::{Environment, folder};
use crate::{lab, workspace};

const FOLDER: &str = "runtime/python";
const TRAINING: &str = "examples/training";
/// What building and testing need; bounded below by what the package supports, and not by a lock.
const PACKAGES: &[&str] = &[
    "maturin>=1.9,<2",
    "numpy>=1.26",
    "pytest>=8",
    "mypy>=1.13",
    "nbclient>=0.10",
    "nbformat>=5.10",
    "ipykernel>=6.29",
];
/// Stands between maturin and cargo.
const CARGO: &str = include_str!("cargo.sh");
/// A namespace without a network but its own: Ray listens on the machine's address whatever it is told.
const ALONE: &[&str] = &["--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask python
  cargo xtask python --wheel
  cargo xtask python --portable
  cargo xtask python --slow
  cargo xtask python --torch
  cargo xtask python --ray
  PYTHON=python3.13 cargo xtask python")]
pub(crate) struct Args {
    /// Build the wheel and end
    #[arg(long)]
    wheel: bool,
    /// Build a wheel for any Linux of the last ten years (manylinux2014, by zig from the package ziglang) and end
    #[arg(long, conflicts_with = "wheel")]
    portable: bool,
    /// Run the tests that take minutes: a fresh environment with NumPy alone, full-size networks, times beside the commands'
    #[arg(long, conflicts_with_all = ["wheel", "portable"])]
    slow: bool,
    /// Test the training package and its notebook (PyTorch from PyPI: 6 GB on the disk)
    #[arg(long, conflicts_with_all = ["wheel", "portable", "slow"])]
    torch: bool,
    /// Test the adapter for Ray Serve on a local cluster
    #[arg(long, conflicts_with_all = ["wheel", "portable", "slow", "torch"])]
    ray: bool,
    /// Fail where something would be skipped
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let mut packages = PACKAGES.to_vec();
    packages.extend(args.portable.then_some("ziglang"));
    let Some(tools) = or_skipped("the Python package", Environment::new("venv", &packages), args.strict)?
    else {
        return Ok(());
    };
    let wheel = wheel(&tools, args.portable)?;
    println!("{}: {:.1} MB", wheel.display(), std::fs::metadata(&wheel)?.len() as f64 / 1e6);
    if args.wheel || args.portable {
        return Ok(());
    }
    // The tests compare with the commands.
    let commands = ["--bin", "fhec", "--bin", "fhe-run", "--bin", "fhe-serve"];
    let build = [&["build", "--release", "--workspace", "--quiet"][..], &commands].concat();
    workspace::run("cargo", &build, &[])?;
    if args.torch {
        return torch(&wheel, args.strict);
    }
    if args.ray {
        return ray(&wheel, args.strict);
    }
    tools.replace(&wheel).map_err(io::Error::other)?;
    let tests = format!("{FOLDER}/tests");
    if args.slow {
        let wheel = wheel.display().to_string();
        return tools.run(&pytest(&["-m", "slow", "-s", &tests]), &[("FHEC_WHEEL", &wheel)]);
    }
    tools.run(&pytest(&[&tests]), &[])?;
    tools.run(&["-m", "mypy.stubtest", "fhec", "--concise"], &[])?;
    tools.run(&["-m", "mypy", "--strict", "--no-incremental", "--cache-dir", "/dev/null", "-p", "fhec"], &[])
}

fn pytest<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["-m", "pytest", "-q", "-p", "no:cacheprovider"], args].concat()
}

/// The training package with PyTorch, and the way from a network with ReLU to encrypted scores.
fn torch(wheel: &Path, strict: bool) -> io::Result<()> {
    let constraints = format!("{TRAINING}/requirements.txt");
    let training = format!("{TRAINING}[torch,data,dev]");
    let packages = ["-c", &constraints, "-e", &training];
    let Some(environment) = or_skipped("the training package", Environment::new("torch", &packages), strict)?
    else {
        return Ok(());
    };
    environment.replace(wheel).map_err(io::Error::other)?;
    environment.run(&pytest(&[TRAINING]), &[])?;
    environment.run(&pytest(&["-m", "torch", &format!("{FOLDER}/tests")]), &[])
}

/// The adapter for Ray Serve, two replicas of it, and one of them killed.
fn ray(wheel: &Path, strict: bool) -> io::Result<()> {
    let packages = ["ray[serve]>=2.40", "numpy>=1.26", "pytest>=8"];
    let Some(environment) = or_skipped("the adapter for Ray", Environment::new("ray", &packages), strict)?
    else {
        return Ok(());
    };
    environment.replace(wheel).map_err(io::Error::other)?;
    let (python, tests) = (environment.name(), format!("{FOLDER}/tests"));
    let command = [ALONE, &[&python], &pytest(&["-m", "ray", "-s", &tests])].concat();
    workspace::run("unshare", &command, &[])
}

/// Writes a script for others to call.
fn script(name: &str, text: &str) -> io::Result<PathBuf> {
    let path = folder().join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    Ok(path)
}

/// What was found, or a line that says what is left out.
fn or_skipped<T>(what: &str, found: Result<T, String>, strict: bool) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(why) if strict => Err(io::Error::other(why)),
        Err(why) => {
            println!("SKIPPED: {what} was not tested: {why}");
            Ok(None)
        }
    }
}

/// Builds the wheel and gives its path. One for everybody has the same objects, linked against an older C library: `cc` is zig
/// then, and maturin refuses the wheel if a symbol is newer than its name promises.
fn wheel(tools: &Environment, portable: bool) -> io::Result<PathBuf> {
    let cargo = script("cargo", CARGO)?;
    let linker = format!("exec maturin zig cc -- -target {}-linux-gnu.2.17 \"$@\"\n", std::env::consts::ARCH);
    let cc = script("zig/cc", &format!("#!/bin/sh\n{linker}"))?;
    if portable {
        // What is there already was linked against the C library of this machine.
        let _ = std::fs::remove_file(lab::target().join("release/deps/lib_fhec.so"));
    }
    let path = tools.path_with(cc.parent().unwrap_or(Path::new("")));
    let cargo = cargo.display().to_string();
    let folder = folder().join(if portable { "portable" } else { "wheels" });
    // One wheel at a time, so that the newest is the only one.
    let _ = std::fs::remove_dir_all(&folder);
    let (manifest, out) = (format!("{FOLDER}/Cargo.toml"), folder.display().to_string());
    let mut build = vec!["-m", "maturin", "build", "--release", "--quiet", "-m", &manifest, "--out", &out];
    build.extend(["--compatibility", if portable { "manylinux2014" } else { "linux" }]);
    let ours = [("CARGO", &*cargo), ("PATH", &*path)];
    tools.run(&build, if portable { &ours } else { &ours[..1] })?;
    let mut found = std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    found
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .ok_or_else(|| io::Error::other("maturin wrote no wheel"))
}

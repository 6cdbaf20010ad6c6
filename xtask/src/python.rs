//! `cargo xtask python`: the Python package, built and tested in a virtual environment under target/.
//!
//! The wheel is built in the workspace's own target, so that what the tests compiled is not compiled again. Without Python, or
//! without the packages that the tests need, everything is skipped and says so.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{lab, workspace};

const FOLDER: &str = "runtime/python";
/// What building and testing need; pinned below by what the package supports, not by a lock.
const PACKAGES: &[&str] = &["maturin>=1.9,<2", "numpy>=1.26", "pytest>=8", "mypy>=1.13"];
/// The oldest Python that the wheel is for.
const OLDEST: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask python
  cargo xtask python --wheel
  cargo xtask python --portable
  PYTHON=python3.13 cargo xtask python")]
pub(crate) struct Args {
    /// Build the wheel and end
    #[arg(long)]
    wheel: bool,
    /// Build a wheel for any Linux of the last ten years (manylinux2014, needs the package ziglang) and end
    #[arg(long)]
    portable: bool,
    /// Fail where something would be skipped
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let environment = match Environment::new(args.portable) {
        Ok(environment) => environment,
        Err(why) if args.strict => return Err(io::Error::other(why)),
        Err(why) => {
            println!("SKIPPED: the Python package was neither built nor tested: {why}");
            return Ok(());
        }
    };
    let wheel = environment.wheel(args.portable)?;
    let size = std::fs::metadata(&wheel)?.len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    if args.wheel || args.portable {
        return Ok(());
    }
    environment.python(&[
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
        &wheel.display().to_string(),
    ])?;
    let tests = workspace::root().join(FOLDER).join("tests").display().to_string();
    environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", &tests])?;
    environment.python(&["-m", "mypy.stubtest", "fhec", "--concise"])?;
    environment.python(&[
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--cache-dir",
        "/dev/null",
        "-p",
        "fhec",
    ])
}

/// A virtual environment with everything that is needed.
struct Environment {
    python: PathBuf,
    out: PathBuf,
}

impl Environment {
    fn new(portable: bool) -> Result<Self, String> {
        let system = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let is_there = Command::new(&system).args(["-c", OLDEST]).status();
        if !is_there.is_ok_and(|status| status.success()) {
            return Err(format!("`{system}` is no Python from 3.11 on (set PYTHON to name one)"));
        }
        let out = lab::target().join("python");
        let folder = out.join("venv");
        let python = folder.join("bin").join("python");
        let quiet = |program: &Path, args: &[&str]| match Command::new(program).args(args).output() {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => {
                Err(String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or("no reason").to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        if !python.exists() {
            quiet(Path::new(&system), &["-m", "venv", &folder.display().to_string()])
                .map_err(|why| format!("no virtual environment can be made: {why}"))?;
        }
        let mut install = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        install.extend(PACKAGES);
        install.extend(portable.then_some("ziglang"));
        quiet(&python, &install).map_err(|why| format!("packages cannot be installed: {why}"))?;
        Ok(Self { python, out })
    }

    fn python(&self, args: &[&str]) -> io::Result<()> {
        workspace::run(&self.python.display().to_string(), args, &[])
    }

    /// Builds the wheel and gives its path.
    fn wheel(&self, portable: bool) -> io::Result<PathBuf> {
        let folder = self.out.join("wheels");
        // One wheel at a time, so that the newest is the only one.
        let _ = std::fs::remove_dir_all(&folder);
        let (manifest, out) = (format!("{FOLDER}/Cargo.toml"), folder.display().to_string());
        let mut build =
            vec!["-m", "maturin", "build", "--release", "--quiet", "-m", &manifest, "--out", &out];
        match portable {
            true => build.extend(["--zig", "--compatibility", "manylinux2014"]),
            false => build.extend(["--compatibility", "linux"]),
        }
        self.python(&build)?;
        let mut found = std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        found
            .find(|path| path.extension().is_some_and(|e| e == "whl"))
            .ok_or_else(|| io::Error::other("maturin wrote no wheel"))
    }
}

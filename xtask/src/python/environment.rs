//! Virtual environments under target/, made when they are missing and brought up to date when they are there.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{lab, workspace};

/// The oldest Python that the wheel is for.
const OLDEST: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// A virtual environment.
pub(super) struct Environment {
    python: PathBuf,
}

/// Where environments and wheels are.
pub(super) fn folder() -> PathBuf {
    lab::target().join("python")
}

impl Environment {
    /// The environment called `name` with `packages`, or why there is none.
    pub(super) fn new(name: &str, packages: &[&str]) -> Result<Self, String> {
        let system = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let is_there = Command::new(&system).args(["-c", OLDEST]).status();
        if !is_there.is_ok_and(|status| status.success()) {
            return Err(format!("`{system}` is no Python from 3.11 on (set PYTHON to name one)"));
        }
        let folder = folder().join(name);
        let python = folder.join("bin").join("python");
        if !python.exists() {
            quiet(Path::new(&system), &["-m", "venv", &folder.display().to_string()])
                .map_err(|why| format!("no virtual environment can be made: {why}"))?;
        }
        let environment = Self { python };
        environment.install(packages).map_err(|why| format!("packages cannot be installed: {why}"))?;
        Ok(environment)
    }

    /// Installs packages, as pip names them; what is there already stays.
    pub(super) fn install(&self, packages: &[&str]) -> Result<(), String> {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        quiet(&self.python, &[&pip[..], packages].concat())
    }

    /// Puts a wheel in the place of the one before it, whose version may be the same.
    pub(super) fn replace(&self, wheel: &Path) -> Result<(), String> {
        self.install(&["--no-deps", "--force-reinstall", &wheel.display().to_string()])
    }

    /// Runs Python in the root of the workspace.
    pub(super) fn run(&self, args: &[&str], env: &[(&str, &str)]) -> io::Result<()> {
        workspace::run(&self.name(), args, env)
    }

    /// The search path for programs with a folder and its own before those of everybody.
    pub(super) fn path_with(&self, folder: &Path) -> String {
        let own = self.python.parent().unwrap_or(Path::new(""));
        let everybody = std::env::var("PATH").unwrap_or_default();
        format!("{}:{}:{everybody}", folder.display(), own.display())
    }

    /// The path of its Python.
    pub(super) fn name(&self) -> String {
        self.python.display().to_string()
    }
}

/// Runs a program without its output; the last line of its complaints if it fails.
fn quiet(program: &Path, args: &[&str]) -> Result<(), String> {
    match Command::new(program).args(args).current_dir(workspace::root()).output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            Err(said.lines().last().unwrap_or("no reason given").to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

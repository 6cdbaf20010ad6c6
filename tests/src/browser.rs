//! A real browser: Chromium, driven by playwright-core from Node. The scripts are in `tests/browser`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// What `.ci/browser` leaves behind.
const MARK: &str = "target/browser-installed";

/// An installed Chromium, and what drives it.
#[derive(Debug)]
pub struct Browser {
    chromium: PathBuf,
}

impl Browser {
    /// The browser and its driver, if they are installed.
    ///
    /// # Errors
    /// What is missing.
    pub fn installed() -> Result<Self, String> {
        let chromium = NAMES.iter().find_map(|name| on_the_path(name)).ok_or("Chromium")?;
        on_the_path("node").ok_or("Node")?;
        match scripts().join("node_modules/playwright-core").is_dir() {
            true => Ok(Self { chromium }),
            false => Err("playwright-core".to_owned()),
        }
    }

    /// The same for a test that needs one. Without it the test says loudly that it is skipped.
    ///
    /// # Panics
    /// With `CI=true`, where `.ci/browser` has installed one that is not found any more.
    #[must_use]
    pub fn required() -> Option<Self> {
        match Self::installed() {
            Ok(browser) => Some(browser),
            Err(missing) => {
                skip(&format!("this test needs {missing}"));
                None
            }
        }
    }

    /// Runs a script of `tests/browser` with settings.
    ///
    /// # Panics
    /// When it does not succeed.
    pub fn run(&self, script: &str, settings: &Value) {
        let done = self.try_run(script, settings);
        done.unwrap_or_else(|why| panic!("{script}: {why}"));
    }

    /// The same without a panic.
    ///
    /// # Errors
    /// When it does not succeed; what is wrong was printed.
    pub fn try_run(&self, script: &str, settings: &Value) -> Result<(), String> {
        let mut settings = settings.clone();
        settings["chromium"] = self.chromium.display().to_string().into();
        let status = Command::new("node")
            .arg(scripts().join(script))
            .env("BROWSER_SETTINGS", settings.to_string())
            .stdin(Stdio::null())
            .status()
            .map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(status.to_string()) }
    }
}

/// Says loudly that a test is skipped.
///
/// # Panics
/// With `CI=true`, where `.ci/browser` has installed what is missing.
pub fn skip(why: &str) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci || !root().join(MARK).exists(), "`.ci/browser` has run, but {why}");
    eprintln!("\n==== SKIPPED: {why} (`.ci/browser` installs it) ====\n");
}

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("browser")
}

fn on_the_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

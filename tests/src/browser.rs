//! A headless Chromium, driven over the pipe of its DevTools protocol.
//!
//! Messages are JSON objects that end in a zero byte. A shell connects the pipe's file descriptors 3 and 4 to the input and
//! output of the process, so nothing but the standard library is needed.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// Nothing but the page: no network of its own, no first-run pages.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

/// A running browser with one page.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// Events in the order of arrival.
    events: Vec<Value>,
    /// Its profile; removed with it.
    _folder: tempfile::TempDir,
}

impl Browser {
    /// The command of an installed Chromium.
    #[must_use]
    pub fn installed() -> Option<&'static str> {
        let runs = |name: &&str| {
            let quiet =
                Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            quiet.is_ok_and(|status| status.success())
        };
        NAMES.into_iter().find(runs)
    }

    /// The command of an installed Chromium, for a test that needs one. Without it the test says loudly that it is skipped.
    ///
    /// # Panics
    /// With `CI=true`, where `.ci/browser` has installed one that is not found any more.
    #[must_use]
    pub fn required() -> Option<&'static str> {
        let found = Self::installed();
        if found.is_none() {
            let mark = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/browser-installed");
            let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!is_ci || !mark.exists(), "`.ci/browser` installed Chromium, but it does not run");
            eprintln!("\n==== SKIPPED: this test needs Chromium (`.ci/browser` installs it) ====\n");
        }
        found
    }

    /// Starts a browser with a window of this size.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &str, width: u32, height: u32) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2", command])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let broken = || io::Error::other("the browser has no pipe");
        let to = process.stdin.take().ok_or_else(broken)?;
        let from = BufReader::new(process.stdout.take().ok_or_else(broken)?);
        let mut browser =
            Self { process, to, from, session: None, last_id: 0, events: Vec::new(), _folder: folder };
        let targets = browser.call("Target.getTargets", json!({}))?;
        let pages = targets["targetInfos"].as_array().into_iter().flatten();
        let page = pages.into_iter().find(|t| t["type"] == "page").ok_or_else(broken)?["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": page, "flatten": true }))?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        browser.resize(width, height)?;
        Ok(browser)
    }

    /// Changes the size of the window.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn resize(&mut self, width: u32, height: u32) -> io::Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Lets the page believe that its reader prefers dark or light colors.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn prefer(&mut self, scheme: &str) -> io::Result<()> {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features })).map(drop)
    }

    /// Opens a file and waits until it is loaded.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn open(&mut self, path: &Path) -> io::Result<()> {
        self.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) }))?;
        while !self.events.iter().any(|e| e["method"] == "Page.loadEventFired") {
            let event = self.receive()?;
            self.events.push(event);
        }
        Ok(())
    }

    /// The value of an expression in the page.
    ///
    /// # Errors
    /// When it throws.
    pub fn evaluate(&mut self, expression: &str) -> io::Result<Value> {
        let how = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", how)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(io::Error::other(format!("{expression}: {thrown}"))),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Moves the pointer.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn point_at(&mut self, x: f64, y: f64) -> io::Result<()> {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y })).map(drop)
    }

    /// Turns the wheel upwards with Ctrl held.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn zoom_in_at(&mut self, x: f64, y: f64) -> io::Result<()> {
        let turn =
            json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -240, "modifiers": 2 });
        self.call("Input.dispatchMouseEvent", turn).map(drop)
    }

    /// Everything that a page should not have: console messages, log entries, exceptions, requests beyond the page itself.
    #[must_use]
    pub fn complaints(&self) -> Vec<&Value> {
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => event["params"]["type"] != "Document",
            _ => false,
        };
        self.events.iter().filter(is_complaint).collect()
    }

    /// A picture of a part of the page, as PNG in base64: left, top, width, height in pixels of the page.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn screenshot(&mut self, [x, y, width, height]: [f64; 4]) -> io::Result<String> {
        let clip = json!({ "x": x, "y": y, "width": width, "height": height, "scale": 1 });
        let how = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let answer = self.call("Page.captureScreenshot", how)?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    /// The page as it would be printed: PDF in base64.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn pdf(&mut self) -> io::Result<String> {
        let how = json!({ "preferCSSPageSize": true, "printBackground": true });
        let answer = self.call("Page.printToPDF", how)?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    fn call(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes())?;
        self.to.write_all(&[0])?;
        self.to.flush()?;
        loop {
            let answer = self.receive()?;
            if answer["id"] != self.last_id {
                self.events.push(answer);
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(io::Error::other(format!("{method}: {error}"))),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    fn receive(&mut self) -> io::Result<Value> {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes)?;
        if bytes.pop() != Some(0) {
            return Err(io::Error::other("the browser has ended"));
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Nothing can be done about a browser that does not end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

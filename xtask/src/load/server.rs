//! A server on a port of its own, the commands that meet it, and what it says of itself.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{lab, workspace};

/// Ports that are tried.
const N_PORTS: usize = 3;

/// A server that ends with this.
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts one and waits until it is ready.
    pub(super) fn start(program: &Path, store: &Path, memory: &str, more: &[&str]) -> io::Result<Self> {
        for _ in 0..N_PORTS {
            // A port that was free may be another's a moment later.
            let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
            let mut command = tool("fhe-serve");
            command.arg("run").arg(program).arg("--store").arg(store).args(["--memory", memory]).args(more);
            command.args(["--listen", &address.to_string(), "--log-level", "error"]);
            let mut server = Self { child: command.spawn()?, address };
            if server.is_ready_in_time()? {
                return Ok(server);
            }
        }
        Err(io::Error::other("the server does not start"))
    }

    /// Whether it came so far that it answers, and did not end.
    fn is_ready_in_time(&mut self) -> io::Result<bool> {
        let ends = Instant::now() + Duration::from_secs(300);
        while Instant::now() < ends {
            let is_ready = self.send("GET", "/readyz", b"").is_ok_and(|(status, _)| status == 200);
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if is_ready {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(false)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a request; gives status and body of the answer.
    pub(super) fn send(&self, method: &str, path: &str, body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.ok_or_else(|| io::Error::other("no answer"))?;
        let status = String::from_utf8_lossy(&answer[..end]).split(' ').nth(1).and_then(|n| n.parse().ok());
        Ok((status.ok_or_else(|| io::Error::other("no status"))?, answer.split_off(end + 4)))
    }

    /// The body of an answer that is JSON.
    pub(super) fn json(&self, path: &str) -> io::Result<Value> {
        Ok(serde_json::from_slice(&self.send("GET", path, b"")?.1)?)
    }

    /// Bytes of memory by kind.
    pub(super) fn memory(&self) -> io::Result<impl Fn(&str) -> f64 + use<>> {
        let text = String::from_utf8_lossy(&self.send("GET", "/metrics", b"")?.1).into_owned();
        Ok(move |kind: &str| {
            let line = format!("fhe_memory_bytes{{kind=\"{kind}\"}} ");
            text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0.0)
        })
    }

    /// The most memory that the process ever had.
    pub(super) fn peak(&self) -> io::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
        kib.map(|kib| kib * 1024.0).ok_or_else(|| io::Error::other("the system does not tell the peak"))
    }

    /// A client with a folder for its keys.
    pub(super) fn client(&self, home: &Path) -> Command {
        let mut command = tool("fhe-run");
        command.arg("remote").arg(self.url()).arg("--home").arg(home).arg("--quiet");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of the commands, as it was built.
pub(super) fn tool(name: &str) -> Command {
    let mut command = Command::new(lab::target().join("release").join(name));
    command.current_dir(workspace::root());
    command
}

/// Runs a command to its end and gives what it printed.
pub(super) fn done(command: &mut Command) -> io::Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(format!("{command:?} ended with {}", output.status))),
    }
}

//! HTTP by hand: what a test sends is exactly what it says, good or bad.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON in {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// Fails unless the answer has this status and, if it is a refusal, this code.
    #[track_caller]
    pub(crate) fn expect(self, status: u16, code: &str) -> Self {
        let found = if code.is_empty() { String::new() } else { self.code() };
        let body = String::from_utf8_lossy(&self.body);
        assert!(self.status == status && found == code, "{} {body}, expected {status} {code}", self.status);
        self
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends bytes as they are and reads until the server closes; nothing if it closes without an answer.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = connect(address);
    // A server that has refused already need not read the rest.
    let _ = stream.write_all(bytes);
    read(&mut stream)
}

/// Reads an answer until the server closes.
pub(crate) fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut all = Vec::new();
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => all.extend_from_slice(&piece[..n]),
        }
        if let Some(answer) = parse(&all).filter(|(_, is_whole)| *is_whole) {
            return Some(answer.0);
        }
    }
    parse(&all).map(|(answer, _)| answer)
}

/// An answer and whether it is complete.
fn parse(all: &[u8]) -> Option<(Answer, bool)> {
    let end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return parse(&all[end + 4..]);
    }
    let body = all[end + 4..].to_vec();
    let answer = Answer { status, head, body };
    let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
    let is_whole = length.is_some_and(|length| answer.body.len() >= length) || status == 204;
    Some((answer, is_whole))
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if method != "GET" || !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

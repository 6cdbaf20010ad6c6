//! A server over HTTP: requests that are tried again when the connection breaks or the server is busy, a bounded number of times.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use fhe_bytecode::text::harmless;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

use super::RemoteError;

/// Times that a request is tried.
const N_TRIES: u32 = 4;
/// Most seconds between two tries.
const MAX_PAUSE: u64 = 30;
/// Most bytes of an answer that is no result.
const ANSWER_LIMIT: u64 = 4 << 20;

/// A server and the right to use it.
pub(super) struct Server {
    agent: Agent,
    url: String,
    authorization: Option<Zeroizing<String>>,
}

/// What a server says of a program.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Program {
    pub id: String,
    pub name: String,
    pub key_file_bytes: u64,
    pub input_bytes: u64,
    pub result_bytes: u64,
}

/// What a server says of keys.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Keys {
    pub state: String,
    pub received_bytes: u64,
    pub error: Option<Problem>,
}

/// What a server says of a job.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Job {
    pub id: String,
    pub state: String,
    pub layer: Option<String>,
    pub fraction: f64,
    pub eta_seconds: Option<f64>,
    pub error: Option<Problem>,
}

/// What is wrong.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Problem {
    pub code: String,
    pub message: String,
}

impl Server {
    /// A server at an address. Nothing is sent yet.
    pub(super) fn new(
        url: &str,
        token: Option<Zeroizing<String>>,
        authorities: Option<&Path>,
    ) -> Result<Self, RemoteError> {
        let schemes: &[&str] = if cfg!(feature = "tls") { &["http://", "https://"] } else { &["http://"] };
        let host = schemes.iter().find_map(|scheme| url.strip_prefix(scheme));
        if host.is_none_or(|host| host.is_empty() || host.contains(['?', '#', '@', ' '])) {
            return Err(RemoteError::Url { url: url.to_owned() });
        }
        let config = Agent::config_builder();
        #[cfg(feature = "tls")]
        let config = match authorities {
            Some(path) => config.tls_config(super::trust::only(path)?),
            None => config,
        };
        #[cfg(not(feature = "tls"))]
        let _ = authorities;
        let agent = config
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(120)))
            .build()
            .into();
        let authorization = token.map(|token| Zeroizing::new(format!("Bearer {}", *token)));
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), authorization })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The programs that it has.
    pub(super) fn programs(&self) -> Result<Vec<Program>, RemoteError> {
        let programs: Vec<Program> = json(self.get("/v1/programs")?)?;
        match programs.iter().all(|program| is_hex(&program.id, 64)) {
            true => Ok(programs),
            false => Err(RemoteError::Answer("a program's id is no hash".to_owned())),
        }
    }

    /// The interface of a program.
    pub(super) fn interface(&self, program: &Program, limit: u64) -> Result<Vec<u8>, RemoteError> {
        bytes(self.get(&format!("/v1/programs/{}/interface", program.id))?, limit)
    }

    /// Where keys are; nothing if there are none.
    pub(super) fn keys(&self, program: &Program, key: &str, wait: bool) -> Result<Option<Keys>, RemoteError> {
        let wait = if wait { "?wait=60" } else { "" };
        match self.get(&format!("/v1/programs/{}/keys/{key}{wait}", program.id)) {
            Ok(response) => json(response).map(Some),
            Err(RemoteError::Refused { code, .. }) if code == "no-such-keys" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a part of a file of keys. A part that was cut is not tried again here: the server says what it has.
    pub(super) fn put_keys(
        &self,
        program: &Program,
        key: &str,
        range: &str,
        part: &[u8],
    ) -> Result<Keys, RemoteError> {
        let url = format!("{}/v1/programs/{}/keys/{key}", self.url, program.id);
        let mut request = self.agent.put(url).header("Content-Range", range);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization.as_str());
        }
        let response = request.send(part).map_err(|cause| self.broken(&cause))?;
        json(accepted(response)?)
    }

    /// Submits an encrypted input. The same input is the same job, so a request that was cut is sent again as it was.
    pub(super) fn submit(&self, program: &Program, key: &str, input: &[u8]) -> Result<Job, RemoteError> {
        let url = format!("{}/v1/programs/{}/jobs?key={key}", self.url, program.id);
        let job: Job = json(self.again(|| {
            let mut request = self.agent.post(&url);
            if let Some(authorization) = &self.authorization {
                request = request.header("Authorization", authorization.as_str());
            }
            request.send(input)
        })?)?;
        match is_hex(&job.id, 64) {
            true => Ok(job),
            false => Err(RemoteError::Answer("a job's id is no hash".to_owned())),
        }
    }

    /// How far a job is.
    pub(super) fn job(&self, id: &str) -> Result<Job, RemoteError> {
        json(self.get(&format!("/v1/jobs/{id}"))?)
    }

    /// A job as it goes on: lines of events, until the server ends them.
    pub(super) fn events(&self, id: &str) -> Result<impl Read + use<>, RemoteError> {
        Ok(self.get(&format!("/v1/jobs/{id}/events"))?.into_body().into_reader())
    }

    /// The result of a job, which has exactly `len` bytes.
    pub(super) fn result(&self, id: &str, len: u64) -> Result<Vec<u8>, RemoteError> {
        let bytes = bytes(self.get(&format!("/v1/jobs/{id}/result"))?, len)?;
        match bytes.len() as u64 == len {
            true => Ok(bytes),
            false => Err(RemoteError::Answer(format!("a result of {} bytes instead of {len}", bytes.len()))),
        }
    }

    fn get(&self, path: &str) -> Result<Response<Body>, RemoteError> {
        let url = format!("{}{path}", self.url);
        self.again(|| {
            let mut request = self.agent.get(&url);
            if let Some(authorization) = &self.authorization {
                request = request.header("Authorization", authorization.as_str());
            }
            request.call()
        })
    }

    /// Tries until the server answers, waiting as long as it asks for, and a bounded number of times.
    fn again(
        &self,
        send: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, RemoteError> {
        let mut pause = 1;
        for n_left in (0..N_TRIES).rev() {
            let (error, asked) = match send() {
                Ok(response) => {
                    let asked = retry_after(&response);
                    match accepted(response) {
                        Ok(response) => return Ok(response),
                        Err(error @ RemoteError::Refused { status: 429 | 503, .. }) => (error, asked),
                        Err(error) => return Err(error),
                    }
                }
                Err(cause) => (self.broken(&cause), None),
            };
            if n_left == 0 {
                return Err(error);
            }
            std::thread::sleep(Duration::from_secs(asked.unwrap_or(pause).clamp(1, MAX_PAUSE)));
            pause *= 2;
        }
        unreachable!("the last try returns")
    }

    fn broken(&self, cause: &ureq::Error) -> RemoteError {
        RemoteError::Connection { url: self.url.clone(), cause: cause.to_string() }
    }
}

fn retry_after(response: &Response<Body>) -> Option<u64> {
    response.headers().get("retry-after")?.to_str().ok()?.parse().ok()
}

/// An answer that is no refusal.
fn accepted(response: Response<Body>) -> Result<Response<Body>, RemoteError> {
    let status = response.status();
    if matches!(status, StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(response);
    }
    let problem: Problem = json(response).unwrap_or_default();
    Err(RemoteError::Refused {
        status: status.as_u16(),
        code: harmless(&problem.code),
        message: harmless(&problem.message),
    })
}

fn bytes(mut response: Response<Body>, limit: u64) -> Result<Vec<u8>, RemoteError> {
    let read = response.body_mut().with_config().limit(limit.saturating_add(1)).read_to_vec();
    read.map_err(|cause| RemoteError::Answer(cause.to_string()))
}

fn json<T: DeserializeOwned>(response: Response<Body>) -> Result<T, RemoteError> {
    let bytes = bytes(response, ANSWER_LIMIT)?;
    serde_json::from_slice(&bytes).map_err(|cause| RemoteError::Answer(cause.to_string()))
}

fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_host_or_with_more_are_refused() {
        for bad in ["", "localhost:8080", "ftp://a", "http://", "http://a b", "http://u:p@a", "http://a?b"] {
            assert!(Server::new(bad, None, None).is_err(), "{bad}");
        }
        assert_eq!(Server::new("http://a:1/", None, None).ok().unwrap().url(), "http://a:1");
    }
}

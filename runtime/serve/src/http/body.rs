//! Bodies: streamed to files, exactly as long as they have to be, and never slower than a client can be.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use fhe_files::Kind;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::{Instant, timeout, timeout_at};

use super::refusal::Refusal;
use crate::backend::Sink;
use crate::limits::Limits;

/// Time for the first bytes of a body before its request is looked at; those that come later are looked at where they are read.
const FIRST: Duration = Duration::from_millis(250);

/// The body with its first bytes looked at, if they are there; nothing if they are those of a secret key.
pub(super) async fn without_secret(body: Body) -> Option<Body> {
    let mut rest = body.into_data_stream();
    let mut first = Vec::new();
    let mut begin = Begin::default();
    let ends = Instant::now() + FIRST;
    while !begin.is_known() {
        match timeout_at(ends, rest.next()).await {
            Ok(Some(Ok(bytes))) => {
                begin.add(&bytes);
                first.push(Ok(bytes));
            }
            Ok(Some(Err(error))) => first.push(Err(error)),
            Ok(None) | Err(_) => break,
        }
    }
    if begin.is_secret() {
        return None;
    }
    Some(Body::from_stream(stream::iter(first).chain(rest)))
}

/// The first bytes of a body: as many as tell a secret key.
#[derive(Default)]
struct Begin(Vec<u8>);

impl Begin {
    const LEN: usize = Kind::SecretKey.magic().len();

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().take(Self::LEN - self.0.len()));
    }

    fn is_known(&self) -> bool {
        self.0.len() == Self::LEN
    }

    fn is_secret(&self) -> bool {
        self.0 == Kind::SecretKey.magic()
    }
}

/// A secret key came.
pub(super) fn secret() -> Refusal {
    tracing::warn!("a secret key was sent here and thrown away");
    let message = "this is a secret key: it was thrown away; never send it to anyone, and make a new one";
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "secret-key", message)
}

/// The length that a request says its body has.
pub(super) fn declared_len(headers: &HeaderMap) -> Result<u64, Refusal> {
    let value = headers.get(header::CONTENT_LENGTH).ok_or_else(|| {
        Refusal::new(StatusCode::LENGTH_REQUIRED, "no-length", "say how long the body is: Content-Length")
    })?;
    let len = value.to_str().ok().and_then(|text| text.parse().ok());
    len.ok_or_else(|| Refusal::bad_request("bad-length", "Content-Length is no number"))
}

/// Refuses a body of another length, before it is read.
pub(super) fn check_len(found: u64, expected: u64, what: &str) -> Result<(), Refusal> {
    let message = format!("{what} has exactly {expected} bytes here, not {found}");
    match found.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(Refusal::bad_request("wrong-length", message)),
        std::cmp::Ordering::Greater => {
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "wrong-length", message))
        }
    }
}

/// Writes a body to where it goes; what came before an error stays there. Gives the number of bytes.
pub(super) async fn receive(
    body: Body,
    to: &mut (impl Sink + ?Sized),
    limits: &Limits,
    mut look: impl FnMut(&[u8]) -> Result<(), Refusal>,
) -> (u64, Result<(), Refusal>) {
    let mut written = 0;
    let result = copy(body, to, limits, &mut look, &mut written).await;
    (written, result)
}

async fn copy(
    body: Body,
    to: &mut (impl Sink + ?Sized),
    limits: &Limits,
    look: &mut impl FnMut(&[u8]) -> Result<(), Refusal>,
    written: &mut u64,
) -> Result<(), Refusal> {
    let mut stream = body.into_data_stream();
    let (mut since, mut before) = (Instant::now(), 0);
    let mut begin = Begin::default();
    while let Some(bytes) = next(&mut stream, limits.idle).await? {
        begin.add(&bytes);
        if begin.is_secret() {
            return Err(secret());
        }
        look(&bytes)?;
        let len = bytes.len() as u64;
        to.write(bytes).await?;
        *written += len;
        let elapsed = since.elapsed();
        if elapsed >= limits.idle {
            if ((*written - before) as f64) < elapsed.as_secs_f64() * limits.body_rate as f64 {
                return Err(too_slow());
            }
            (since, before) = (Instant::now(), *written);
        }
    }
    Ok(())
}

/// The next piece of a body; nothing at its end.
async fn next(stream: &mut BodyDataStream, idle: Duration) -> Result<Option<Bytes>, Refusal> {
    match timeout(idle, stream.next()).await {
        Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
        Ok(Some(Err(_))) => Err(Refusal::bad_request("cut", "the body ended before its end")),
        Ok(None) => Ok(None),
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly")
}

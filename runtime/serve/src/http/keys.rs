//! Evaluation keys: sent in one piece or several, checked, ready.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Extension, Json};
use fhe_ckks::KeyId;
use fhe_files::{HEADER_LEN, Kind, decode_header};
use serde::Deserialize;
use utoipa::IntoParams;

use super::App;
use super::body::{check_len, declared_len, receive};
use super::programs::find;
use super::refusal::Refusal;
use crate::access::Caller;
use crate::backend::NoUpload;
use crate::catalog::Entry;
use crate::ids::KeyRef;
use crate::jobs::Problem;
use crate::uploads::{KeyState, Keys};

/// Whether to wait for an end.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Seconds to wait for the check at most.
    #[serde(default)]
    #[param(minimum = 0, maximum = 300)]
    wait: u16,
}

fn at(
    app: &App,
    caller: &Caller,
    (program, key): &(String, String),
) -> Result<(Arc<Entry>, KeyRef), Refusal> {
    let entry = find(app, program)?;
    let key = key.parse().map_err(|error| Refusal::bad_request("bad-name", format!("{error}")))?;
    Ok((Arc::clone(entry), KeyRef { owner: caller.owner.clone(), program: entry.id, key }))
}

pub(super) fn no_keys() -> Refusal {
    Refusal::not_found(
        "no-such-keys",
        "there are no evaluation keys of this name for this program; send them first",
    )
}

/// All evaluation keys of this client
#[utoipa::path(get, path = "/v1/keys", tag = "keys", responses(
    (status = 200, body = [Keys]),
    (status = 401, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<Keys>>, Refusal> {
    Ok(Json(app.keys.list(&caller.owner).await?))
}

/// Where evaluation keys are; while they are on their way, how many bytes came
#[utoipa::path(get, path = "/v1/programs/{program}/keys/{key}", tag = "keys",
    params(
        ("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$"),
        ("key" = String, Path, description = "id of the key", pattern = "^[0-9a-f]{32}$"),
        Wait,
    ),
    responses(
        (status = 200, body = Keys),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem),
    ))]
pub(super) async fn state(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<(String, String)>,
    wait: Result<Query<Wait>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Keys>, Refusal> {
    let (entry, key) = at(&app, &caller, &path)?;
    let Query(wait) = wait.map_err(|error| Refusal::bad_request("bad-query", error.body_text()))?;
    settled(&app, &entry, &key, wait).await.map(Json)
}

/// The state of keys, after their check if that is waited for.
async fn settled(app: &App, entry: &Arc<Entry>, key: &KeyRef, wait: Wait) -> Result<Keys, Refusal> {
    let wait = app.limits.wait.min(Duration::from_secs(wait.wait.into()));
    app.keys.get(entry, key, wait).await?.ok_or_else(no_keys)
}

impl From<NoUpload> for Refusal {
    fn from(reason: NoUpload) -> Self {
        let conflict = |code, message: &str| Refusal::new(StatusCode::CONFLICT, code, message);
        match reason {
            NoUpload::Busy => conflict("busy", "these keys are being sent or checked by another request"),
            NoUpload::Exists => conflict("exists", "these keys are here already; delete them to send others"),
            NoUpload::WrongOffset(so_far) => {
                conflict("wrong-offset", &format!("{so_far} bytes came so far: go on there"))
            }
            NoUpload::Full => {
                let message = "too many keys are being sent: try again in a moment";
                Refusal::later(StatusCode::SERVICE_UNAVAILABLE, "uploads-full", 5, message)
            }
            NoUpload::Store(error) => error.into(),
        }
    }
}

/// Which bytes of a file a request has.
struct Part {
    first: u64,
    len: u64,
}

/// The whole file, or what `Content-Range: bytes FIRST-LAST/TOTAL` says.
fn part(headers: &HeaderMap, total: u64) -> Result<Part, Refusal> {
    let len = declared_len(headers)?;
    let Some(value) = headers.get(header::CONTENT_RANGE) else {
        check_len(len, total, "a file of evaluation keys for this program")?;
        return Ok(Part { first: 0, len });
    };
    let bad = || Refusal::bad_request("bad-range", "write Content-Range: bytes FIRST-LAST/TOTAL");
    let text = value.to_str().map_err(|_| bad())?.strip_prefix("bytes ").ok_or_else(bad)?;
    let (range, said_total) = text.split_once('/').ok_or_else(bad)?;
    let (first, last) = range.split_once('-').ok_or_else(bad)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
    let (first, last, said_total) = (number(first)?, number(last)?, number(said_total)?);
    check_len(said_total, total, "a file of evaluation keys for this program")?;
    if first > last || last >= total {
        return Err(bad());
    }
    check_len(len, last - first + 1, "the body of this range")?;
    Ok(Part { first, len })
}

/// Send evaluation keys, or go on with them
///
/// The whole file, or a part of it that begins where the last one ended. What came of a request that was cut stays.
#[utoipa::path(put, path = "/v1/programs/{program}/keys/{key}", tag = "keys",
    params(
        ("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$"),
        ("key" = String, Path, description = "id of the key", pattern = "^[0-9a-f]{32}$"),
        ("Content-Range" = Option<String>, Header, description = "bytes FIRST-LAST/TOTAL of a part"),
        Wait,
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "ready", body = Keys),
        (status = 202, description = "on their way, or being checked", body = Keys),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 408, body = Problem), (status = 409, body = Problem), (status = 411, body = Problem),
        (status = 413, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem),
    ))]
pub(super) async fn upload(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<(String, String)>,
    wait: Result<Query<Wait>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Keys>), Refusal> {
    let (entry, key) = at(&app, &caller, &path)?;
    let Query(wait) = wait.map_err(|error| Refusal::bad_request("bad-query", error.body_text()))?;
    let part = part(&headers, entry.key_file_bytes)?;
    check_room(&app, &caller, &entry, &key).await?;
    let mut upload = app.keys.begin(&entry, &key, part.first).await?;
    let mut head = HeadCheck { entry: &entry, key: &key, at: part.first, bytes: Vec::new() };
    let (received, outcome) = receive(body, &mut *upload, &app.limits, |bytes| head.look(bytes)).await;
    app.metrics.received(received);
    match outcome {
        Err(refusal) if refusal.status == StatusCode::UNPROCESSABLE_ENTITY => {
            upload.refuse(refusal.problem.clone()).await?;
            return Err(refusal);
        }
        Err(refusal) => {
            upload.keep().await?;
            return Err(refusal);
        }
        Ok(()) if received != part.len => {
            upload.keep().await?;
            return Err(Refusal::bad_request("cut", "the body ended before its end"));
        }
        Ok(()) if part.first + received == entry.key_file_bytes => upload.complete().await?,
        Ok(()) => upload.keep().await?,
    }
    let keys = settled(&app, &entry, &key, wait).await?;
    match (keys.state, &keys.error) {
        (KeyState::Ready, _) => Ok((StatusCode::OK, Json(keys))),
        (KeyState::Refused, Some(reason)) => {
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, &reason.code, reason.message.clone()))
        }
        _ => Ok((StatusCode::ACCEPTED, Json(keys))),
    }
}

/// Refuses keys for which the client's quota has no room.
async fn check_room(app: &Arc<App>, caller: &Caller, entry: &Entry, key: &KeyRef) -> Result<(), Refusal> {
    if app.is_draining.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(super::jobs::draining());
    }
    let (quota, total) = (caller.quota.key_bytes, entry.key_file_bytes);
    let others = app.keys.bytes_of(&key.owner, key).await?;
    match others.saturating_add(total) > quota {
        true => {
            let message = format!(
                "{others} bytes of keys are here, {total} more would exceed the {quota} of this token"
            );
            Err(Refusal::later(StatusCode::TOO_MANY_REQUESTS, "quota-key-bytes", 60, message))
        }
        false => Ok(()),
    }
}

/// Looks at the head of a file as it comes, so that another client's keys are not received for nothing.
struct HeadCheck<'a> {
    entry: &'a Entry,
    key: &'a KeyRef,
    at: u64,
    bytes: Vec<u8>,
}

impl HeadCheck<'_> {
    fn look(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.at != 0 || self.bytes.len() == HEADER_LEN {
            return Ok(());
        }
        let missing = HEADER_LEN - self.bytes.len();
        self.bytes.extend(bytes.iter().take(missing));
        if self.bytes.len() < HEADER_LEN {
            return Ok(());
        }
        let bad = |message: String| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-keys", message);
        let header = decode_header(&self.bytes[..], self.entry.key_file_bytes, Kind::EvaluationKeys)
            .map_err(|error| bad(format!("the file {error}")))?;
        header
            .check_parameters(self.entry.model.context().params())
            .map_err(|error| bad(format!("the file of evaluation keys {error}")))?;
        let expected = KeyId(self.key.key.0);
        match header.key_id == expected {
            true => Ok(()),
            false => Err(bad(format!(
                "the evaluation keys belong to key {}, not to key {expected}",
                header.key_id
            ))),
        }
    }
}

/// Delete evaluation keys, and end their jobs
#[utoipa::path(delete, path = "/v1/programs/{program}/keys/{key}", tag = "keys",
    params(
        ("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$"),
        ("key" = String, Path, description = "id of the key", pattern = "^[0-9a-f]{32}$"),
    ),
    responses(
        (status = 204, description = "gone"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let (_, key) = at(&app, &caller, &path)?;
    match app.keys.remove(&key).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_keys()),
    }
}

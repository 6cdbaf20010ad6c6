//! Jobs: submit, look, result, cancel, delete.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use utoipa::IntoParams;

use super::App;
use super::body::{check_len, declared_len, receive};
use super::keys::no_keys;
use super::programs::find;
use super::refusal::Refusal;
use super::visit::Visit;
use crate::access::Caller;
use crate::catalog::Entry;
use crate::ids::{JobId, JobRef, KeyRef};
use crate::jobs::{Failure, Job, JobState, NewJob, Problem, Submitted, problem, read_input};
use crate::store::Staged;
use fhe_files::names_len;

/// What to evaluate with, and whether to wait.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Submission {
    /// Id of the key that the input is encrypted under.
    #[param(pattern = "^[0-9a-f]{32}$")]
    key: String,
    /// Seconds to wait for the result at most; a client that goes away while it waits cancels the job.
    #[serde(default)]
    #[param(minimum = 0, maximum = 300)]
    wait: u16,
}

pub(super) fn draining() -> Refusal {
    let message = "the server is about to end: try again in a moment";
    Refusal::later(StatusCode::SERVICE_UNAVAILABLE, "draining", 5, message)
}

pub(super) fn no_job() -> Refusal {
    Refusal::not_found("no-such-job", "there is no job of this name, or it ended long ago")
}

pub(super) fn job_ref(caller: &Caller, job: &str) -> Result<JobRef, Refusal> {
    let id = job.parse().map_err(|error| Refusal::bad_request("bad-name", format!("{error}")))?;
    Ok(JobRef { owner: caller.owner.clone(), id })
}

/// Evaluate a program on an encrypted input
///
/// The body is a file of one encrypted sample. The same request is the same job: it is evaluated once.
#[utoipa::path(post, path = "/v1/programs/{program}/jobs", tag = "jobs",
    params(
        ("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$"),
        Submission,
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "at its end", body = Job),
        (status = 202, description = "accepted", body = Job),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 408, body = Problem), (status = 411, body = Problem), (status = 413, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(program): Path<String>,
    query: Result<Query<Submission>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let entry = Arc::clone(find(&app, &program)?);
    let Query(query) = query.map_err(|error| Refusal::bad_request("bad-query", error.body_text()))?;
    let key = query.key.parse().map_err(|error| Refusal::bad_request("bad-name", format!("{error}")))?;
    let key = KeyRef { owner: caller.owner.clone(), program: entry.id, key };
    if !app.keys.is_ready(&key).await? {
        return Err(no_keys());
    }
    let declared = declared_len(&headers)?;
    // The name of a sample may come on top.
    let expected = declared.clamp(entry.input_bytes, entry.joined_bytes + names_len(1));
    check_len(declared, expected, "an encrypted input of this program")?;
    let (staged, hash) = receive_input(&app, &caller, expected, body).await?;
    check_input(&app, &entry, &key, &staged).await?;
    let at = JobRef { owner: caller.owner.clone(), id: JobId::of(entry.id, key.key, &hash) };
    let new =
        NewJob { at: at.clone(), key, input: staged.path().to_path_buf(), quota: caller.quota.queued_jobs };
    let wait = app.limits.wait.min(Duration::from_secs(query.wait.into()));
    let mut visit = Visit::submit(Arc::clone(&app), at.clone(), new, staged, wait);
    let job = match visit.submitted().await? {
        Submitted::New(job) | Submitted::Known(job) => job,
        Submitted::Full => {
            let message = "too many jobs wait: try again in a moment";
            return Err(Refusal::later(StatusCode::SERVICE_UNAVAILABLE, "queue-full", 2, message));
        }
        Submitted::OverQuota => {
            let message = format!("this token has {} jobs waiting or running", caller.quota.queued_jobs);
            return Err(Refusal::later(StatusCode::TOO_MANY_REQUESTS, "quota-jobs", 2, message));
        }
        Submitted::Draining => return Err(draining()),
    };
    let job = visit.waited(job).await?;
    let status = if job.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, [(header::LOCATION, format!("/v1/jobs/{}", at.id))], Json(job)).into_response())
}

/// Writes an input to the store; gives the hash at its end.
async fn receive_input(
    app: &App,
    caller: &Caller,
    expected: u64,
    body: Body,
) -> Result<(Staged, [u8; 32]), Refusal> {
    let (staged, file) = app.queue.stage_input(&caller.owner)?;
    let mut file = tokio::fs::File::from_std(file);
    let mut tail = Vec::new();
    let (received, outcome) = receive(body, &mut file, &app.limits, |bytes| {
        tail.extend_from_slice(&bytes[bytes.len().saturating_sub(32)..]);
        tail.drain(..tail.len().saturating_sub(32));
        Ok(())
    })
    .await;
    app.metrics.received(received);
    outcome?;
    file.flush().await?;
    match tail.try_into() {
        Ok(hash) if received == expected => Ok((staged, hash)),
        _ => Err(Refusal::bad_request("cut", "the body ended before its end")),
    }
}

/// Reads all of an input, so that an accepted job is one that can be evaluated.
async fn check_input(
    app: &Arc<App>,
    entry: &Arc<Entry>,
    key: &KeyRef,
    staged: &Staged,
) -> Result<(), Refusal> {
    let _turn = app.checks.acquire().await;
    let (entry, key, path) = (Arc::clone(entry), key.key, staged.path().to_path_buf());
    match spawn_blocking(move || read_input(&entry, key, &path).map(drop)).await? {
        Ok(()) => Ok(()),
        Err(Failure::Problem(problem)) => {
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, &problem.code, problem.message))
        }
        Err(Failure::Cancelled) => Err(draining()),
    }
}

/// All jobs of this client
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", responses(
    (status = 200, body = [Job]),
    (status = 401, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<Job>>, Refusal> {
    Ok(Json(app.queue.list(&caller.owner).await?))
}

/// How far a job is
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "jobs",
    params(("job" = String, Path, description = "id of the job", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, body = Job),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn state(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(job): Path<String>,
) -> Result<Json<Job>, Refusal> {
    let at = job_ref(&caller, &job)?;
    Ok(Json(app.queue.get(&at).await?.ok_or_else(no_job)?))
}

/// The encrypted result of a job
#[utoipa::path(get, path = "/v1/jobs/{job}/result", tag = "jobs",
    params(("job" = String, Path, description = "id of the job", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, description = "a ciphertext file", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 409, description = "not yet, or cancelled", body = Problem),
        (status = 422, description = "failed by its input or keys", body = Problem),
        (status = 429, body = Problem),
        (status = 500, description = "failed by the server", body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn result(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(job): Path<String>,
) -> Result<Response, Refusal> {
    let at = job_ref(&caller, &job)?;
    let job = app.queue.get(&at).await?.ok_or_else(no_job)?;
    let bytes = match job.state {
        JobState::Done => app.queue.result(&at).await?,
        JobState::Queued | JobState::Running => {
            return Err(Refusal::later(StatusCode::CONFLICT, "not-yet", 1, "the job is not at its end"));
        }
        JobState::Cancelled => {
            return Err(Refusal::new(StatusCode::CONFLICT, "cancelled", "the job was cancelled"));
        }
        JobState::Failed => return Err(failed(job.error)),
    };
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// A job's failure as an answer: the client's, the load's, or ours.
fn failed(error: Option<Problem>) -> Refusal {
    let error =
        error.unwrap_or_else(|| problem("internal", "the job failed for a reason that was not written"));
    let status = match error.code.as_str() {
        "bad-input" | "bad-keys" | "no-such-program" => StatusCode::UNPROCESSABLE_ENTITY,
        "queue-timeout" | "job-timeout" | "store" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(status, &error.code, error.message)
}

/// Cancel a job between two layers
#[utoipa::path(post, path = "/v1/jobs/{job}/cancel", tag = "jobs",
    params(("job" = String, Path, description = "id of the job", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, body = Job),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(job): Path<String>,
) -> Result<Json<Job>, Refusal> {
    let at = job_ref(&caller, &job)?;
    app.queue.cancel(&at).await?;
    Ok(Json(app.queue.get(&at).await?.ok_or_else(no_job)?))
}

/// Delete a job that is at its end, and its result
#[utoipa::path(delete, path = "/v1/jobs/{job}", tag = "jobs",
    params(("job" = String, Path, description = "id of the job", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 204, description = "gone"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 409, description = "not at its end: cancel it first", body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(job): Path<String>,
) -> Result<StatusCode, Refusal> {
    let at = job_ref(&caller, &job)?;
    let job = app.queue.get(&at).await?.ok_or_else(no_job)?;
    if !job.state.is_final() {
        let message = "the job is not at its end: cancel it first";
        return Err(Refusal::later(StatusCode::CONFLICT, "not-yet", 1, message));
    }
    app.queue.remove(&at).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! A job as server-sent events: its state at once, then every change, and an end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use tokio::sync::watch;

use super::App;
use super::jobs::{job_ref, no_job};
use super::refusal::Refusal;
use crate::access::Caller;
use crate::jobs::{Job, Problem};

/// What comes next.
enum Next {
    /// The job as it is.
    Now(Box<Job>, Option<watch::Receiver<Job>>),
    /// What it becomes.
    Change(watch::Receiver<Job>),
    /// Nothing.
    End,
}

/// Follow a job: server-sent events named `job`, each with the job as JSON; the last one is its end
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "jobs",
    params(("job" = String, Path, description = "id of the job", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, description = "events", body = String, content_type = "text/event-stream"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem),
    ))]
pub(super) async fn follow(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(job): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let at = job_ref(&caller, &job)?;
    // In this order: a job that ends in between is at its end when it is looked at.
    let view = app.queue.watch(&at).await?;
    let job = app.queue.get(&at).await?.ok_or_else(no_job)?;
    let events = stream::unfold(Next::Now(Box::new(job), view), |next| async move {
        let (job, view) = match next {
            Next::Now(job, view) => (*job, view),
            Next::Change(mut view) => {
                view.changed().await.ok()?;
                let job = view.borrow_and_update().clone();
                (job, Some(view))
            }
            Next::End => return None,
        };
        let event = Event::default().event("job").json_data(&job).ok()?;
        let next = match view {
            Some(view) if !job.state.is_final() => Next::Change(view),
            _ => Next::End,
        };
        Some((Ok(event), next))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

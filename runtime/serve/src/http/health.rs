//! For those who look after the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::App;
use super::jobs::draining;
use super::refusal::Refusal;
use crate::jobs::Problem;
use crate::metrics::Now;

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "operation",
    responses((status = 200, description = "it does", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether the server takes jobs
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "it does", body = String, content_type = "text/plain"),
    (status = 503, description = "it is about to end", body = Problem),
))]
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Refusal> {
    if app.is_draining.load(Ordering::Relaxed) { Err(draining()) } else { Ok("ok\n") }
}

/// Counters, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operation",
    responses((status = 200, description = "text", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Refusal> {
    let text = app.metrics.text(&now(&app).await).map_err(std::io::Error::other)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
}

async fn now(app: &App) -> Now {
    let (queued, running) = app.queue.counts().await;
    Now {
        queued: queued as u64,
        running: running as u64,
        connections: app.n_connections.load(Ordering::Relaxed) as u64,
        ..Now::of(&app.ledger, &app.catalog)
    }
}

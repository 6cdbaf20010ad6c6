//! The contract over HTTP: routes, and what every request passes.

mod body;
mod events;
mod guard;
mod health;
mod jobs;
mod keys;
mod openapi;
mod page;
mod programs;
mod refusal;
mod visit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::access::Access;
use crate::backend::{KeyStore, Queue};
use crate::catalog::Catalog;
use crate::limits::Limits;
use crate::memory::Ledger;
use crate::metrics::Metrics;

pub use openapi::document;
pub use page::{Page, PageSource};
pub use refusal::Refusal;

/// Everything that requests need.
pub struct App {
    /// The programs.
    pub catalog: Arc<Catalog>,
    /// The memory.
    pub ledger: Arc<Ledger>,
    /// The jobs.
    pub queue: Arc<dyn Queue>,
    /// The keys.
    pub keys: Arc<dyn KeyStore>,
    /// Who may.
    pub access: Access,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// The bounds.
    pub limits: Limits,
    /// Files of a page to serve beside the contract.
    pub page: Option<Page>,
    /// Whether the server is about to end.
    pub is_draining: AtomicBool,
    /// Connections that are open.
    pub n_connections: AtomicUsize,
    /// Inputs that are checked at a time.
    pub checks: Semaphore,
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/v1/programs", get(programs::list))
        .route("/v1/programs/{program}", get(programs::one))
        .route("/v1/programs/{program}/interface", get(programs::interface))
        .route("/v1/programs/{program}/keys/{key}", get(keys::state).put(keys::upload).delete(keys::delete))
        .route("/v1/programs/{program}/jobs", post(jobs::submit))
        .route("/v1/keys", get(keys::list))
        .route("/v1/jobs", get(jobs::list))
        .route("/v1/jobs/{job}", get(jobs::state).delete(jobs::delete))
        .route("/v1/jobs/{job}/events", get(events::follow))
        .route("/v1/jobs/{job}/result", get(jobs::result))
        .route("/v1/jobs/{job}/cancel", post(jobs::cancel))
        .layer(from_fn(guard::refuse_secrets))
        .layer(from_fn_with_state(Arc::clone(&app), guard::authenticate));
    let open = Router::new()
        .route("/v1/openapi.json", get(openapi::serve))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics));
    let pages = match app.page.is_some() {
        true => Router::new()
            .route("/", get(page::home))
            .route("/page/", get(page::index))
            .route("/page/{*path}", get(page::asset)),
        false => Router::new(),
    };
    guarded
        .merge(open)
        .merge(pages)
        .fallback(guard::no_such_route)
        .method_not_allowed_fallback(guard::wrong_method)
        .layer(CatchPanicLayer::custom(refusal::panicked))
        .layer(from_fn(guard::no_sniffing))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(from_fn_with_state(Arc::clone(&app), guard::count))
        .with_state(app)
}

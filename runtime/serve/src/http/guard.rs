//! What every request passes: who may, no secret keys, counters and the log.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::body::{secret, without_secret};
use super::refusal::{Reason, Refusal};
use crate::access::Caller;

/// Lets holders of a token in.
pub(super) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match app.access.enter(bearer(request.headers())) {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = next.run(request).await;
            response.extensions_mut().insert(caller);
            response
        }
        Err(denied) => Refusal::from(denied).into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses a body that begins as a secret key does, on any route, before anything keeps a byte of it.
pub(super) async fn refuse_secrets(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match without_secret(body).await {
        Some(body) => next.run(Request::from_parts(parts, body)).await,
        None => secret().into_response(),
    }
}

/// Browsers take answers for what they say they are.
pub(super) async fn no_sniffing(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Counts and logs a request: ids, sizes and times, never bodies.
pub(super) async fn count(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("none", |path| path.as_str()).to_owned();
    // A path has ids only; what else it has is a client's to say and not for the log.
    let path = if route == "none" { String::new() } else { request.uri().path().to_owned() };
    let response = next.run(request).await;
    let status = response.status().as_u16();
    app.metrics.answered(&route, status);
    let reason = response.extensions().get::<Reason>().map_or("", |reason| reason.0.as_str());
    if !reason.is_empty() {
        app.metrics.refused(reason);
    }
    let owner = response.extensions().get::<Caller>().map(|caller| caller.owner.to_string());
    let ms = began.elapsed().as_secs_f64() * 1e3;
    tracing::info!(%method, path, status, reason, owner = owner.as_deref().unwrap_or(""), ms, "request");
    response
}

/// Nothing is there.
pub(super) async fn no_such_route() -> Refusal {
    Refusal::not_found("no-such-route", "there is nothing here; /v1/openapi.json says what there is")
}

/// Something is there, but not for this method.
pub(super) async fn wrong_method() -> Refusal {
    let message = "this route has no such method; /v1/openapi.json says what there is";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", message)
}

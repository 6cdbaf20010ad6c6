//! Refusals: a status, one word for programs, a sentence for people.

use std::any::Any;
use std::io;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::access::Denied;
use crate::jobs::{Problem, problem};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Status of the answer.
    pub status: StatusCode,
    /// What is wrong.
    pub problem: Problem,
    /// Seconds after which it may be tried again.
    pub retry_after: Option<u64>,
}

/// The code of a refusal, for the counters.
#[derive(Clone)]
pub(super) struct Reason(pub String);

impl Refusal {
    /// A refusal that stays one.
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, problem: problem(code, message), retry_after: None }
    }

    /// A refusal for now.
    pub fn later(status: StatusCode, code: &str, seconds: u64, message: impl Into<String>) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, code, message) }
    }

    /// Something that is not there, or is somebody else's: the answer is the same.
    pub fn not_found(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// Something that a client should have written otherwise.
    pub fn bad_request(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }
}

impl From<io::Error> for Refusal {
    /// The store failed: the details are for the log.
    fn from(error: io::Error) -> Self {
        tracing::error!(%error, "the store failed");
        Self::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "store",
            5,
            "the server cannot use its store at the moment",
        )
    }
}

impl From<tokio::task::JoinError> for Refusal {
    fn from(_: tokio::task::JoinError) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the request stopped: this is a bug in fhe-serve",
        )
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let unauthorized = |code, message: &str| Self::new(StatusCode::UNAUTHORIZED, code, message);
        match denied {
            Denied::Missing => unauthorized("no-token", "send a token: Authorization: Bearer TOKEN"),
            Denied::Unknown => unauthorized("unknown-token", "this token is not known here"),
            Denied::Expired => unauthorized("expired-token", "this token has expired"),
            Denied::TooMany(seconds) => {
                let message = "this token has made its requests of a minute";
                Self::later(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", seconds, message)
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let reason = Reason(self.problem.code.clone());
        let mut response = (self.status, Json(self.problem)).into_response();
        response.extensions_mut().insert(reason);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A panic while a request was answered is that request's alone.
pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response {
    let message = "the request stopped: this is a bug in fhe-serve";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
}

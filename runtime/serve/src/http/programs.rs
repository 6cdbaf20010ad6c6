//! What is served.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::refusal::Refusal;
use crate::catalog::Entry;
use crate::ids::ProgramId;
use crate::jobs::Problem;

/// A program.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Program {
    /// Hash of the program file.
    #[schema(value_type = String)]
    pub id: ProgramId,
    /// Name of its model, as its author wrote it.
    pub name: String,
    /// Bytes of its interface.
    pub interface_bytes: u64,
    /// Bytes of a file of evaluation keys, exactly.
    pub key_file_bytes: u64,
    /// Bytes of an encrypted input, exactly.
    pub input_bytes: u64,
    /// Bytes of an encrypted result, exactly.
    pub result_bytes: u64,
    /// Seconds of an evaluation, as its author expects them.
    pub predicted_seconds: f64,
}

impl Program {
    fn of(entry: &Entry) -> Self {
        Self {
            id: entry.id,
            name: entry.name.clone(),
            interface_bytes: entry.interface.len() as u64,
            key_file_bytes: entry.key_file_bytes,
            input_bytes: entry.input_bytes,
            result_bytes: entry.result_bytes,
            predicted_seconds: entry.model.program().spec().prediction.seconds,
        }
    }
}

/// The program of a path, if it is served.
pub(super) fn find<'a>(app: &'a App, program: &str) -> Result<&'a Arc<Entry>, Refusal> {
    let id = program.parse().map_err(|error| Refusal::bad_request("bad-name", format!("{error}")))?;
    app.catalog.get(id).ok_or_else(|| {
        Refusal::not_found(
            "no-such-program",
            "no program with this hash is served; /v1/programs lists those that are",
        )
    })
}

/// Programs that are served
#[utoipa::path(get, path = "/v1/programs", tag = "programs", responses(
    (status = 200, body = [Program]),
    (status = 401, body = Problem), (status = 429, body = Problem),
))]
pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<Program>> {
    Json(app.catalog.iter().map(|entry| Program::of(entry)).collect())
}

/// One program
#[utoipa::path(get, path = "/v1/programs/{program}", tag = "programs",
    params(("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, body = Program),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem),
    ))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Path(program): Path<String>,
) -> Result<Json<Program>, Refusal> {
    Ok(Json(Program::of(find(&app, &program)?)))
}

/// What a client needs of a program: an interface file
#[utoipa::path(get, path = "/v1/programs/{program}/interface", tag = "programs",
    params(("program" = String, Path, description = "hash of the program", pattern = "^[0-9a-f]{64}$")),
    responses(
        (status = 200, description = "an interface file", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem),
    ))]
pub(super) async fn interface(
    State(app): State<Arc<App>>,
    Path(program): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let entry = find(&app, &program)?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], entry.interface.clone()))
}

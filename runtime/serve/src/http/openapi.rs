//! The contract as an OpenAPI document, generated from the routes.

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(title = "fhe-serve", description = "Evaluates compiled networks on encrypted inputs; holds no secret."),
    paths(
        super::programs::list, super::programs::one, super::programs::interface,
        super::keys::list, super::keys::state, super::keys::upload, super::keys::delete,
        super::jobs::submit, super::jobs::list, super::jobs::state, super::jobs::result, super::jobs::cancel,
        super::jobs::delete, super::events::follow,
        super::health::alive, super::health::ready, super::health::metrics,
    ),
    modifiers(&Bearer),
    security((), ("bearer" = [])),
)]
struct Document;

/// How a client says who it is.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        document.components.get_or_insert_default().add_security_scheme("bearer", scheme);
    }
}

/// The document.
///
/// # Errors
/// Never in practice: it is plain data.
pub fn document() -> serde_json::Result<String> {
    Ok(Document::openapi().to_pretty_json()? + "\n")
}

pub(super) async fn serve() -> Result<impl IntoResponse, super::Refusal> {
    let text = document().map_err(std::io::Error::other)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text))
}

//! A page beside the contract: files of one folder, read at the start, under a policy that lets them talk to this server only.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Path as UrlPath, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};

use super::App;
use super::refusal::Refusal;

/// Scripts, WebAssembly and connections from here only; no frames, no forms, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Most bytes of a page.
const LIMIT: u64 = 64 << 20;
/// What a page starts with.
const INDEX: &str = "index.html";

/// The files of a page, by name.
#[derive(Debug)]
pub struct Page {
    files: BTreeMap<String, (&'static str, Vec<u8>)>,
}

impl Page {
    /// Reads the files of a folder; those in folders below it are none of the page.
    ///
    /// # Errors
    /// If a file cannot be read, is of a kind that browsers would not know, or there is no `index.html`.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut left = LIMIT;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type()?.is_file() || name.starts_with('.') {
                continue;
            }
            let kind = kind_of(&name)
                .ok_or_else(|| io::Error::other(format!("{name}: no kind of file for a page")))?;
            let bytes = fhe_host::read_bounded(&entry.path(), left)?;
            left = left
                .checked_sub(bytes.len() as u64)
                .ok_or_else(|| io::Error::other("the page has more than 64 MiB"))?;
            files.insert(name, (kind, bytes));
        }
        match files.contains_key(INDEX) {
            true => Ok(Self { files }),
            false => Err(io::Error::other(format!("there is no {INDEX}"))),
        }
    }
}

fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "wasm" => "application/wasm",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => return None,
    })
}

fn file(app: &App, name: &str) -> Result<Response, Refusal> {
    let found = app.page.as_ref().and_then(|page| page.files.get(name));
    let (kind, bytes) =
        found.ok_or_else(|| Refusal::not_found("no-such-file", "the page has no such file"))?;
    let headers = [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, bytes.clone()).into_response())
}

/// Leads to the page, so that the names in it are below `/page/`.
pub(super) async fn home() -> Redirect {
    Redirect::temporary("/page/")
}

/// The page itself.
pub(super) async fn index(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    file(&app, INDEX)
}

/// A file of the page.
pub(super) async fn asset(
    State(app): State<Arc<App>>,
    UrlPath(path): UrlPath<String>,
) -> Result<Response, Refusal> {
    file(&app, &path)
}

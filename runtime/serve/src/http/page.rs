//! A page beside the contract: files of one folder, or those that were built into this server, under a policy that lets
//! them talk to this server only. They are read and compressed at the start.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};

use flate2::Compression;
use flate2::bufread::GzEncoder;

use super::App;
use super::refusal::Refusal;

/// Scripts, WebAssembly and connections from here only; no frames, no forms, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Most bytes of a page.
const LIMIT: u64 = 64 << 20;
/// What a page starts with.
const INDEX: &str = "index.html";

/// Where a page comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageSource {
    /// A folder of files.
    Folder(PathBuf),
    /// The client that was built into this server (feature `page`).
    Own,
}

impl std::fmt::Display for PageSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Own => f.write_str("--page"),
        }
    }
}

/// The files of a page, by name.
#[derive(Debug)]
pub struct Page {
    files: BTreeMap<String, File>,
}

#[derive(Debug)]
struct File {
    kind: &'static str,
    bytes: Vec<u8>,
    packed: Vec<u8>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// As [`Page::load`], or if this server was built without one.
    pub fn of(source: &PageSource) -> io::Result<Self> {
        match source {
            PageSource::Folder(folder) => Self::load(folder),
            PageSource::Own => Self::own(),
        }
    }

    /// Reads the files of a folder; those in folders below it are none of the page.
    ///
    /// # Errors
    /// If a file cannot be read, is of a kind that browsers would not know, or there is no `index.html`.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut left = LIMIT;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type()?.is_file() || name.starts_with('.') {
                continue;
            }
            let bytes = fhe_host::read_bounded(&entry.path(), left)?;
            left = left
                .checked_sub(bytes.len() as u64)
                .ok_or_else(|| io::Error::other("the page has more than 64 MiB"))?;
            files.push((name, bytes));
        }
        Self::new(files)
    }

    #[cfg(feature = "page")]
    fn own() -> io::Result<Self> {
        /// A file of the folder that `cargo xtask web --embed` names.
        macro_rules! file {
            ($name:literal) => {
                ($name.to_owned(), include_bytes!(concat!(env!("FHE_SERVE_PAGE"), "/", $name)).to_vec())
            };
        }
        Self::new(vec![
            file!("index.html"),
            file!("icon.svg"),
            file!("page.css"),
            file!("page.js"),
            file!("drawing.js"),
            file!("show.js"),
            file!("client.js"),
            file!("client.d.ts"),
            file!("worker.js"),
            file!("server.js"),
            file!("storage.js"),
            file!("upload.js"),
            file!("fhec_web.js"),
            file!("fhec_web.d.ts"),
            file!("fhec_web.wasm"),
            file!("fhec_web_simd.wasm"),
            file!("fhec_web_relaxed.wasm"),
        ])
    }

    #[cfg(not(feature = "page"))]
    fn own() -> io::Result<Self> {
        Err(io::Error::other(
            "this fhe-serve has no page in it: `cargo xtask web` writes one to target/web (then --page=target/web), and \
             `cargo xtask web --embed` builds a server that has it",
        ))
    }

    fn new(files: Vec<(String, Vec<u8>)>) -> io::Result<Self> {
        let file = |(name, bytes): (String, Vec<u8>)| {
            let kind = kind_of(&name)
                .ok_or_else(|| io::Error::other(format!("{name}: no kind of file for a page")))?;
            let mut packed = Vec::new();
            GzEncoder::new(&bytes[..], Compression::best()).read_to_end(&mut packed)?;
            Ok((name, File { kind, bytes, packed }))
        };
        let files = files.into_iter().map(file).collect::<io::Result<BTreeMap<_, _>>>()?;
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
        "ts" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

fn file(app: &App, name: &str, wanted: &HeaderMap) -> Result<Response, Refusal> {
    let found = app.page.as_ref().and_then(|page| page.files.get(name));
    let file = found.ok_or_else(|| Refusal::not_found("no-such-file", "the page has no such file"))?;
    let headers = [
        (header::CONTENT_TYPE, file.kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::VARY, "accept-encoding"),
    ];
    let accepted = wanted.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let is_packed =
        accepted.is_some_and(|accepted| accepted.split(',').any(|coding| coding.trim() == "gzip"));
    Ok(match is_packed {
        true => (headers, [(header::CONTENT_ENCODING, "gzip")], file.packed.clone()).into_response(),
        false => (headers, file.bytes.clone()).into_response(),
    })
}

/// Leads to the page, so that the names in it are below `/page/`.
pub(super) async fn home() -> Redirect {
    Redirect::temporary("/page/")
}

/// The page itself.
pub(super) async fn index(State(app): State<Arc<App>>, wanted: HeaderMap) -> Result<Response, Refusal> {
    file(&app, INDEX, &wanted)
}

/// A file of the page.
pub(super) async fn asset(
    State(app): State<Arc<App>>,
    UrlPath(path): UrlPath<String>,
    wanted: HeaderMap,
) -> Result<Response, Refusal> {
    file(&app, &path, &wanted)
}

//! Whom the client trusts, where that is not everyone whom Mozilla does.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::RemoteError;

/// Most bytes of a file of certificates.
const LIMIT: u64 = 4 << 20;

/// Trusts the authorities of a file, and no others.
pub(super) fn only(path: &Path) -> Result<TlsConfig, RemoteError> {
    let wrong = |cause| RemoteError::Home { path: path.to_path_buf(), cause };
    let bytes = fhe_host::read_bounded(path, LIMIT).map_err(wrong)?;
    let mut roots = Vec::new();
    for item in parse_pem(&bytes) {
        match item.map_err(|error| wrong(io::Error::other(error)))? {
            PemItem::Certificate(certificate) => roots.push(certificate),
            _ => {
                return Err(wrong(io::Error::other(
                    "it has more than certificates: give the authority's alone",
                )));
            }
        }
    }
    match roots.is_empty() {
        true => Err(wrong(io::Error::other("there is no certificate in PEM form"))),
        false => Ok(TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(roots))).build()),
    }
}

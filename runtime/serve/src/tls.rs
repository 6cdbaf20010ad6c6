//! Certificates for TLS, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{self, ServerConfig};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be used.
    #[error("{}: no certificate or key in PEM form: {cause}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: pem::Error,
    },
    /// Certificate and key that cannot be used together.
    #[error("certificate and key: {0}")]
    Config(#[from] rustls::Error),
}

/// Reads a chain of certificates and its key.
pub(crate) fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let wrong = |path: &Path| {
        let path = path.to_path_buf();
        move |cause| TlsError::Pem { path, cause }
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(wrong(certificates))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(wrong(key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

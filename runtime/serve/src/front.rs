//! How a server meets its clients: address, TLS, tokens, page, bounds.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::access::Access;
use crate::http::{Page, PageSource};
use crate::limits::Limits;
use crate::server::ServerError;
use crate::tls;

/// What clients meet.
#[derive(Debug, Clone)]
pub struct Front {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The token file.
    pub tokens: PathBuf,
    /// Certificates and key for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether a proxy in front does TLS.
    pub behind_proxy: bool,
    /// A page to serve.
    pub page: Option<PageSource>,
    /// The bounds.
    pub limits: Limits,
}

/// A front whose files were read and which is safe to open.
pub(crate) struct Ready {
    pub listen: SocketAddr,
    pub limits: Limits,
    pub access: Access,
    pub tls: Option<TlsAcceptor>,
    pub page: Option<Page>,
}

impl Front {
    /// Reads certificates, tokens and page; refuses an address that others reach without tokens or TLS.
    pub(crate) fn prepare(&self) -> Result<Ready, ServerError> {
        let is_local = self.listen.ip().is_loopback();
        let tls = match &self.tls {
            Some((certificates, key)) => Some(tls::acceptor(certificates, key)?),
            None if !is_local && !self.behind_proxy => return Err(ServerError::Plain(self.listen)),
            None => None,
        };
        let access = Access::new(&self.tokens, is_local && !self.behind_proxy)?;
        if (!is_local || self.behind_proxy) && !access.has_tokens() {
            return Err(ServerError::Open(self.listen));
        }
        let page = match &self.page {
            Some(source) => Some(
                Page::of(source).map_err(|cause| ServerError::Page { source_of: source.clone(), cause })?,
            ),
            None => None,
        };
        Ok(Ready { listen: self.listen, limits: self.limits, access, tls, page })
    }
}

impl Ready {
    /// Listens.
    pub(crate) async fn listen(&self) -> Result<TcpListener, ServerError> {
        let failed =
            |cause: io::Error| ServerError::Io { what: format!("cannot listen on {}", self.listen), cause };
        TcpListener::bind(self.listen).await.map_err(failed)
    }
}

//! One connection of a client.

use std::pin::pin;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::limits::Limits;

/// One connection, with a deadline for every head and for the handshake.
pub(crate) async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    routes: Router,
    limits: &Limits,
    ended: watch::Receiver<bool>,
) {
    // Small answers do not wait for more.
    let _ = stream.set_nodelay(true);
    match tls {
        None => talk(stream, routes, limits, ended).await,
        Some(tls) => match tokio::time::timeout(limits.head, tls.accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, routes, limits, ended).await,
            Ok(Err(error)) => tracing::debug!(%error, "no handshake"),
            Err(_) => tracing::debug!("no handshake in time"),
        },
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    routes: Router,
    limits: &Limits,
    mut ended: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(64 << 10);
    let mut talk = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    let is_over = tokio::select! {
        result = talk.as_mut() => Some(result),
        _ = ended.wait_for(|ended| *ended) => None,
    };
    let result = match is_over {
        Some(result) => result,
        None => {
            talk.as_mut().graceful_shutdown();
            talk.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}

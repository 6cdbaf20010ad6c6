//! TLS of the server's own, with a certificate that is made for tests (`tls/README.md`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fhe_serve::front::Front;
use fhe_serve::limits::Limits;
use fhe_serve::server::{Options, Server, ServerError};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fixture::{Running, front, options, start};
use crate::wire::{connect, raw, read, request};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/tls").join(name)
}

fn with_tls(store: &Path) -> Options {
    let limits = Limits { head: Duration::from_millis(500), ..Limits::default() };
    let tls = Some((file("cert.pem"), file("key.pem")));
    Options { front: Front { tls, limits, ..front(store) }, ..options(store) }
}

/// One request by a client that trusts `root` only; nothing if there is no handshake.
fn ask(address: SocketAddr, root: &str, name: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(root)).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(address));
    stream.write_all(&request("GET", "/v1/programs", &[], b"")).map_err(|error| error.to_string())?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn alive(server: &Running) {
    let answer = ask(server.address, "ca.pem", "localhost").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("key_file_bytes"), "{answer}");
}

#[test]
fn clients_talk_to_a_server_whose_authority_they_trust() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&with_tls(folder.path()));
    alive(&server);
    // Another name, and an authority that did not sign.
    let wrong_name = ask(server.address, "ca.pem", "fhe.example").unwrap_err();
    assert!(wrong_name.contains("not valid for name"), "{wrong_name}");
    let wrong_root = ask(server.address, "cert.pem", "localhost");
    assert!(wrong_root.is_err(), "{wrong_root:?}");
    alive(&server);
}

#[test]
fn what_is_no_tls_gets_no_answer_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&with_tls(folder.path()));
    let plain = raw(server.address, &request("GET", "/v1/programs", &[], b""));
    assert!(plain.is_none(), "{plain:?}");
    // Handshakes that do not go on are cut.
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(server.address);
            stream.write_all(&[0x16, 3, 1]).unwrap();
            stream
        })
        .collect();
    alive(&server);
    for stream in &mut slow {
        assert!(read(stream).is_none());
    }
    alive(&server);
}

#[test]
fn certificates_that_cannot_be_used_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases =
        [("key.pem", "key.pem"), ("cert.pem", "ca.pem"), ("nowhere.pem", "key.pem"), ("ca.pem", "key.pem")];
    for (certificates, key) in cases {
        let tls = Some((file(certificates), file(key)));
        let options = Options { front: Front { tls, ..front(folder.path()) }, ..options(folder.path()) };
        let error = runtime.block_on(Server::start(&options)).err().unwrap();
        assert!(matches!(error, ServerError::Tls(_)), "{certificates} {key}: {error}");
    }
}

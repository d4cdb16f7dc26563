//! Tests of dialling with TLS: within one timeout, with a cause when it fails.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use model::Cause;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transport::Stream;
use transport::dial::{DialError, DialOptions, dial, dial_with};

use crate::pki::{NAME, Pki, pki};

fn options(config: Arc<ClientConfig>, connect_timeout: Duration) -> DialOptions {
    let tls = Some((config, ServerName::try_from(NAME).unwrap()));
    DialOptions { connect_timeout, user_timeout: None, tls }
}

const LONG: Duration = Duration::from_secs(10);

fn listen() -> (tokio::net::TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (tokio::net::TcpListener::from_std(listener).unwrap(), address)
}

async fn accept(listener: &tokio::net::TcpListener) -> Stream {
    let (tcp, _) = listener.accept().await.unwrap();
    Stream::from_std(tcp.into_std().unwrap()).unwrap()
}

/// Returns the error of dialling our server with a client that trusts `authority`.
async fn failure(authority: &Pki) -> DialError {
    let (listener, address) = listen();
    let serve = async { accept(&listener).await.accept_tls(pki().server(), &[]).await };
    let options = options(authority.client(), LONG);
    let (dialled, _served) = tokio::join!(dial(address, &options), serve);
    dialled.unwrap_err()
}

#[tokio::test]
async fn the_preface_goes_first_and_in_clear_text() {
    let (listener, address) = listen();
    let serve = async {
        let stream = accept(&listener).await;
        let mut preface = [0; 9];
        (&stream).read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PROXY ...");
        let stream = stream.accept_tls(pki().server(), &[]).await.unwrap();
        (&stream).write_all(b"hello").await.unwrap();
        stream
    };
    let options = options(pki().client(), LONG);
    let (dialled, _served) = tokio::join!(dial_with(address.into(), &options, b"PROXY ..."), serve);
    let mut text = [0; 5];
    (&dialled.unwrap()).read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"hello");
}

#[tokio::test]
async fn a_certificate_that_is_not_believed_has_its_cause() {
    let error = failure(&Pki::new("Another Authority")).await;
    assert_eq!(error.cause, Cause::TlsCertificateError);
    assert_eq!(
        error.to_string(),
        "tls_certificate_error: the peer's certificate is from an authority that is not trusted \
         (UnknownIssuer)"
    );
}

#[tokio::test]
async fn clear_text_and_an_alert_have_theirs() {
    let (listener, address) = listen();
    let serve = async {
        let stream = accept(&listener).await;
        (&stream).write_all(b"220 mail.test ESMTP\r\n").await.unwrap();
        stream
    };
    let clear = options(pki().client(), LONG);
    let (dialled, _served) = tokio::join!(dial(address, &clear), serve);
    assert_eq!(dialled.unwrap_err().cause, Cause::TlsProtocolError);

    let mut config = pki().client_config();
    config.alpn_protocols = vec![b"gopher".to_vec()];
    let serve = async { accept(&listener).await.accept_tls(pki().server(), &[]).await };
    let gopher = options(Arc::new(config), LONG);
    let (dialled, _served) = tokio::join!(dial(address, &gopher), serve);
    assert_eq!(dialled.unwrap_err().cause, Cause::TlsAlertReceived);
}

#[tokio::test]
async fn a_silent_server_runs_into_the_timeout() {
    // The kernel accepts the connection, but nothing answers the handshake.
    let (_listener, address) = listen();
    let hasty = options(pki().client(), Duration::from_secs(1));
    let error = dial(address, &hasty).await.unwrap_err();
    assert_eq!(error.cause, Cause::ConnectionTimeout);
    assert!(error.to_string().contains("TLS handshake"), "{error}");
}

//! Tests of what is negotiated, and how each refusal is reported on both sides.

use std::future::poll_fn;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transport::{Stream, TlsError};

use crate::pki::{NAME, Pki, pki};
use crate::{Shaken, pair, shake, tcp};

fn error(shaken: Shaken) -> TlsError {
    shaken.unwrap_err().error
}

async fn say(from: &Stream, to: &Stream, text: &[u8]) {
    let (mut from, mut to) = (from, to);
    from.write_all(text).await.unwrap();
    let mut read = vec![0; text.len()];
    to.read_exact(&mut read).await.unwrap();
    assert_eq!(read, text);
}

#[tokio::test]
async fn both_sides_know_what_was_agreed_on_and_go_on_with_it_later() {
    let versions = [(&rustls::version::TLS12, "TLSv1.2"), (&rustls::version::TLS13, "TLSv1.3")];
    for (version, name) in versions {
        let server = Arc::new(pki().server_config(false, false, &[version]));
        let mut client = pki().client_config();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let client = Arc::new(client);
        for resumed in [false, true] {
            let (near, far) = shake(&client, &server).await;
            let (near, far) = (near.unwrap(), far.unwrap());
            let (here, there) = (near.tls().unwrap(), far.tls().unwrap());
            assert_eq!((here.version, there.version), (name, name));
            assert!(here.cipher.starts_with("TLS"), "{}", here.cipher);
            assert_eq!(here.cipher, there.cipher);
            assert_eq!(here.alpn.as_deref(), Some(&b"http/1.1"[..]));
            assert_eq!(there.alpn, here.alpn);
            assert_eq!(there.server_name.as_deref(), Some(NAME));
            assert_eq!(here.server_name, None);
            assert!(here.peer_certificate.is_some() && there.peer_certificate.is_none());
            assert_eq!((here.resumed, there.resumed), (resumed, resumed), "{name}");
            assert!(!near.can_splice());
            // Tickets come with the response.
            say(&near, &far, b"question").await;
            say(&far, &near, b"answer").await;
        }
    }
}

#[tokio::test]
async fn a_clients_certificate_is_known() {
    let server = Arc::new(pki().server_config(false, true, rustls::ALL_VERSIONS));
    let (near, far) = shake(&pki().client_with_certificate(), &server).await;
    assert!(far.unwrap().tls().unwrap().peer_certificate.is_some());
    near.unwrap();
}

#[tokio::test]
async fn a_client_without_a_required_certificate_gets_an_alert() {
    let server = Arc::new(pki().server_config(false, true, rustls::ALL_VERSIONS));
    let (near, far) = shake(&pki().client(), &server).await;
    let refused = far.unwrap_err();
    assert!(matches!(refused.error, TlsError::CertificateMissing), "{}", refused.error);
    // In TLS 1.3 the client is done before the server has verified it.
    let failed = (&near.unwrap()).read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(failed.kind(), std::io::ErrorKind::ConnectionAborted);
    assert_eq!(failed.to_string(), "the peer requires a certificate (CertificateRequired)");
}

#[tokio::test]
async fn an_unknown_authority_is_reported_on_both_sides() {
    let (near, far) = shake(&Pki::new("Another Authority").client(), &pki().server()).await;
    let near = error(near);
    assert!(matches!(near, TlsError::Certificate(CertificateError::UnknownIssuer)), "{near}");
    let far = error(far);
    assert!(matches!(far, TlsError::Alert(AlertDescription::UnknownCA)), "{far}");
    assert_eq!(far.text(), "the peer does not know the authority of the certificate shown");
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let server = Arc::new(pki().server_config(true, false, rustls::ALL_VERSIONS));
    let (near, far) = shake(&pki().client(), &server).await;
    let near = error(near);
    assert_eq!(near.text(), "the peer's certificate has expired", "{near}");
    let far = error(far);
    assert!(matches!(far, TlsError::Alert(AlertDescription::CertificateExpired)), "{far}");
}

#[tokio::test]
async fn another_name_is_refused() {
    let (near, far) = tcp();
    let name = ServerName::try_from("other.test").unwrap();
    let (near, far) =
        tokio::join!(near.connect_tls(pki().client(), name), far.accept_tls(pki().server(), &[]));
    assert_eq!(error(near).text(), "the peer's certificate is for another name");
    assert!(matches!(error(far), TlsError::Alert(_)));
}

#[tokio::test]
async fn no_common_protocol_is_reported_on_both_sides() {
    let mut client = pki().client_config();
    client.alpn_protocols = vec![b"gopher".to_vec()];
    let (near, far) = shake(&Arc::new(client), &pki().server()).await;
    assert!(error(near).text().contains("ALPN"));
    assert!(error(far).text().contains("ALPN"));
}

#[tokio::test]
async fn clear_text_may_be_answered_in_clear_text() {
    let (near, far) = tcp();
    (&near).write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let refused = far.accept_tls(pki().server(), &[]).await.unwrap_err();
    assert!(matches!(refused.error, TlsError::NotTls), "{}", refused.error);
    say(&refused.stream, &near, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
}

#[tokio::test]
async fn a_clear_text_server_is_distinguished_from_a_tls_server() {
    let (near, far) = tcp();
    let serve = async {
        (&far).write_all(b"220 mail.test ESMTP\r\n").await.unwrap();
        far
    };
    let name = ServerName::try_from(NAME).unwrap();
    let (near, _far) = tokio::join!(near.connect_tls(pki().client(), name), serve);
    assert!(matches!(error(near), TlsError::NotTls));
}

#[tokio::test]
async fn a_peer_that_closes_during_the_handshake_is_reported() {
    let (near, far) = tcp();
    drop(near);
    assert!(matches!(error(far.accept_tls(pki().server(), &[]).await), TlsError::Closed));

    let (near, far) = tcp();
    near.reset();
    assert!(matches!(error(far.accept_tls(pki().server(), &[]).await), TlsError::Io(_)));
}

#[tokio::test]
async fn garbage_within_tls_is_answered_with_an_alert() {
    let (near, far) = tcp();
    // A handshake record with a message of an unknown type.
    (&near).write_all(&[0x16, 3, 1, 0, 5, 0xee, 0, 0, 1, 0]).await.unwrap();
    let refused = far.accept_tls(pki().server(), &[]).await.unwrap_err();
    assert!(matches!(refused.error, TlsError::Protocol(_)), "{}", refused.error);
    poll_fn(|cx| refused.stream.poll_close_write(cx)).await.unwrap();
    let mut alert = Vec::new();
    (&near).read_to_end(&mut alert).await.unwrap();
    assert_eq!((alert.len(), alert[0], alert[5]), (7, 0x15, 2), "one fatal alert");
}

#[tokio::test]
async fn what_was_read_before_is_part_of_the_handshake() {
    let (near, far) = tcp();
    let name = ServerName::try_from(NAME).unwrap();
    let serve = async {
        // As after a PROXY header: an unknown part of the hello has already been read.
        let mut prefix = [0; 100];
        (&far).read_exact(&mut prefix).await.unwrap();
        far.accept_tls(pki().server(), &prefix).await
    };
    let (near, far) = tokio::join!(near.connect_tls(pki().client(), name), serve);
    say(&near.unwrap(), &far.unwrap(), b"hello").await;
}

#[tokio::test]
async fn what_follows_the_handshake_at_once_is_not_lost() {
    let (near, far) = tcp();
    let name = ServerName::try_from(NAME).unwrap();
    let ask = async {
        let near = near.connect_tls(pki().client(), name).await.unwrap();
        (&near).write_all(b"at once").await.unwrap();
        poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
        near
    };
    let (_near, far) = tokio::join!(ask, far.accept_tls(pki().server(), &[]));
    let far = far.unwrap();
    assert!(!far.is_silent());
    let mut all = Vec::new();
    (&far).read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"at once");
}

#[tokio::test]
async fn tls_within_tls_is_refused() {
    let (near, _far) = pair().await;
    let refused = near.accept_tls(pki().server(), &[]).await.unwrap_err();
    assert!(matches!(refused.error, TlsError::Io(_)));
}

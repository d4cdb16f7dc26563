//! What a client sees of a TLS handshake: the protocol, the cipher suite, or why it failed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use e2e::clients::{curl, s_client};
use e2e::{App, Authority, Pair, Scene, Weir, server_tables};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const SOON: Duration = Duration::from_secs(10);
const ASK: &str = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

/// A configuration whose public listener speaks TLS with this certificate, and `more` keys.
fn config(scene: &Scene, pair: &Pair, more: &str, app: SocketAddr) -> String {
    let servers = server_tables("app", [app]);
    let tls = format!("tls = {{ certificates = [{}]{more} }}", pair.table());
    scene.config(
        "workers = 2",
        &format!("{tls}\n[[route]]\nservice = \"app\"\n[service.app]\n{servers}"),
    )
}

#[test]
fn a_client_of_http_1_0_agrees_on_it() {
    let Some(scene) = Scene::new("handshake-alpn", &["python3", "curl", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, &pair, "", app.address()));
    let url = format!("https://{}/", weir.front());
    let seen =
        curl(&scene, &["--http1.0", "-k", "-s", "-o", "/dev/null", "-w", "%{http_code}", &url]);
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), "200"), "{seen:?}");
    for (offered, agreed) in [("http/1.0", "http/1.0"), ("http/1.0,http/1.1,h2", "h2")] {
        let seen = s_client(&scene, weir.front(), &["-alpn", offered], ASK);
        assert!(seen.stdout.contains(&format!("ALPN protocol: {agreed}")), "{seen:?}");
    }
}

#[test]
fn an_alert_arrives_though_the_client_was_still_sending() {
    let Some(scene) = Scene::new("handshake-alert", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (ca, other) = (Authority::new(&scene, "ca"), Authority::new(&scene, "other"));
    let (pair, stranger) = (ca.issue("a", &["a.example.com"]), other.issue("b", &["someone"]));
    let clients = format!(", client_certificates = {{ {} }}", ca.ca());
    let weir = Weir::start(&scene, &config(&scene, &pair, &clients, app.address()));

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca.pem()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_file(&stranger.chain).unwrap()],
            PrivateKeyDer::from_pem_file(&stranger.key).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    for _ in 0..5 {
        let name = "a.example.com".try_into().unwrap();
        let session = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let stream = TcpStream::connect(weir.front()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        // To the client its handshake is over when the server refuses it: it sends on, more than
        // the server reads at a time.
        stream.write_all(&vec![b'x'; 200 * 1024]).expect("to be able to send");
        let error = stream.read(&mut [0; 1]).expect_err("an alert").to_string();
        assert!(error.contains("alert"), "{error}");
    }
}

#[test]
fn the_listeners_order_of_ciphers_counts_where_it_has_one() {
    let Some(scene) = Scene::new("handshake-ciphers", &["python3", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let ciphers = ", ciphers = [\"TLS_CHACHA20_POLY1305_SHA256\", \"TLS_AES_128_GCM_SHA256\", \
                   \"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256\", \
                   \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\"]";
    let weir = Weir::start(&scene, &config(&scene, &pair, ciphers, app.address()));
    let agreed = |words: &[&str]| {
        let seen = s_client(&scene, weir.front(), words, ASK);
        let line = seen.stdout.lines().find_map(|line| line.split_once("Cipher is "));
        line.map(|(_, cipher)| cipher.to_owned()).unwrap_or_default()
    };
    const OF_13: &str =
        "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
    assert_eq!(agreed(&["-ciphersuites", OF_13]), "TLS_CHACHA20_POLY1305_SHA256");
    const OF_12: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305";
    assert_eq!(agreed(&["-tls1_2", "-cipher", OF_12]), "ECDHE-ECDSA-CHACHA20-POLY1305");
    assert_eq!(agreed(&["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"]), "(NONE)");
}

//! Tests of probes over TLS, and with a PROXY protocol header.

use model::{ProxyVersion, ServiceTls};
use tls::rustls::{HandshakeKind, ServerConfig};
use tokio_rustls::TlsAcceptor;
use wire::proxy_protocol::{self, Origin, Parsed};

use super::pki::{self, NAME};
use super::*;

/// A server of HTTP/1.1 over TLS that answers 200.
struct Secured {
    address: SocketAddr,
    seen: Rc<Seen>,
    handshakes: Rc<Handshakes>,
}

/// What was seen in its handshakes.
#[derive(Default)]
struct Handshakes {
    done: Cell<usize>,
    resumed: Cell<usize>,
    with_certificate: Cell<usize>,
    names: RefCell<HashMap<String, usize>>,
    /// The contents of PROXY headers, where they are expected.
    origins: RefCell<Vec<Origin>>,
}

impl Secured {
    async fn start(config: Arc<ServerConfig>, expects_proxy: bool) -> Secured {
        let listener = TcpListener::bind((own_loopback(), 0)).await.expect("a port of loopback");
        let address = listener.local_addr().expect("bound");
        let (seen, handshakes) = (Rc::new(Seen::default()), Rc::new(Handshakes::default()));
        let acceptor = TlsAcceptor::from(config);
        tokio::task::spawn_local({
            let (seen, handshakes) = (seen.clone(), handshakes.clone());
            async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    seen.connections.set(seen.connections.get() + 1);
                    let (seen, handshakes) = (seen.clone(), handshakes.clone());
                    let acceptor = acceptor.clone();
                    tokio::task::spawn_local(async move {
                        if expects_proxy {
                            let origin = read_origin(&mut stream).await;
                            handshakes.origins.borrow_mut().push(origin);
                        }
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        handshakes.note(stream.get_ref().1);
                        serve(stream, &Cell::new(Mode::Answer(200)), &seen).await;
                    });
                }
            }
        });
        Secured { address, seen, handshakes }
    }
}

impl Handshakes {
    fn note(&self, connection: &tls::rustls::ServerConnection) {
        self.done.set(self.done.get() + 1);
        let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        self.resumed.set(self.resumed.get() + usize::from(resumed));
        let shown = connection.peer_certificates().is_some();
        self.with_certificate.set(self.with_certificate.get() + usize::from(shown));
        let name = connection.server_name().unwrap_or("no name").to_owned();
        *self.names.borrow_mut().entry(name).or_default() += 1;
    }
}

/// Reads a PROXY header and not a byte more.
async fn read_origin(stream: &mut (impl AsyncRead + Unpin)) -> Origin {
    let mut bytes = Vec::new();
    loop {
        bytes.push(stream.read_u8().await.expect("a byte"));
        match proxy_protocol::parse(&bytes).expect("a PROXY header") {
            Parsed::Partial => {}
            Parsed::Complete { header, consumed } => {
                assert_eq!(consumed, bytes.len());
                return header.origin;
            }
        }
    }
}

/// TLS settings of a server with the right certificate.
fn right() -> Arc<ServerConfig> {
    pki::server(pki::certificate(NAME, false), false, &[b"http/1.1"])
}

/// Returns a TLS service whose check requests a page every 10 ms, or only connects.
fn over_tls(tls: ServiceTls) -> Service {
    Service { tls: Some(Arc::new(tls)), ..checked_by(http(None, true), (10, 5000)) }
}

#[test]
fn nine_of_ten_probes_use_a_kept_connection_over_tls_and_the_tenth_a_full_handshake() {
    block_on(async {
        let server = Secured::start(right(), false).await;
        let service = over_tls(pki::service(Some(NAME)));
        let all = vec![of_service(1, server.address, &server.address.to_string(), &service)];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 40).await;
        assert_eq!(rig.failed, 0);
        assert_eq!((server.seen.requests.get(), server.seen.connections.get()), (40, 4));
        assert_eq!((server.handshakes.done.get(), server.handshakes.resumed.get()), (4, 0));
        assert_eq!(server.handshakes.names.borrow().get(NAME), Some(&4));
        assert_eq!(time_wait(server.address), 0);
    });
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    block_on(async {
        let down = |why: &str| (Health::Down, format!("{why} 3 times"));
        let expired = pki::server(pki::certificate(NAME, true), false, &[]);
        let expired = Secured::start(expired, false).await;
        let named = over_tls(pki::service(Some(NAME)));
        let said = verdict(&named, expired.address).await;
        assert_eq!(said, down("the peer's certificate has expired"));

        let server = Secured::start(right(), false).await;
        let other = over_tls(pki::service(Some("other.test")));
        let said = verdict(&other, server.address).await;
        assert_eq!(said, down("the peer's certificate is for another name"));
        // Without a name, a server is verified by its address.
        let unnamed = over_tls(pki::service(None));
        let said = verdict(&unnamed, server.address).await;
        assert_eq!(said, down("the peer's certificate is for another name"));

        // Without verification every certificate is accepted.
        let unverified = over_tls(ServiceTls { verify: false, ..pki::service(Some(NAME)) });
        assert_eq!(verdict(&unverified, expired.address).await.0, Health::Up);
        assert_eq!(verdict(&named, server.address).await.0, Health::Up);
    });
}

#[test]
fn a_server_given_by_name_is_asked_for_by_it() {
    block_on(async {
        let server = Secured::start(right(), false).await;
        let service = over_tls(pki::service(None));
        let name = format!("{NAME}:{}", server.address.port());
        let all = vec![of_service(1, server.address, &name, &service)];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 1).await;
        assert_eq!(rig.failed, 0);
        assert_eq!(server.handshakes.names.borrow().get(NAME), Some(&1));
    });
}

#[test]
fn the_certificate_of_the_service_is_shown() {
    block_on(async {
        let config = pki::server(pki::certificate(NAME, false), true, &[]);
        let server = Secured::start(config, false).await;
        let without = pki::service(Some(NAME));
        let with = ServiceTls {
            certificate: Some(pki::certificate("weir.test", false)),
            ..without.clone()
        };
        assert_eq!(verdict(&over_tls(with), server.address).await.0, Health::Up);
        assert!(server.handshakes.with_certificate.get() > 0);
        let said = verdict(&over_tls(without), server.address).await;
        assert_eq!(said, (Health::Down, "the peer requires a certificate 3 times".to_owned()));
    });
}

#[test]
fn a_tcp_check_of_a_tls_service_completes_the_handshake() {
    block_on(async {
        let tls = Some(Arc::new(pki::service(Some(NAME))));
        let service = Service { tls, ..checked_by(CheckKind::Tcp, (10, 5000)) };
        let server = Secured::start(right(), false).await;
        let all = vec![of_service(1, server.address, &server.address.to_string(), &service)];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 10).await;
        assert_eq!((rig.failed, rig.health(1)), (0, Health::Up));
        assert_eq!((server.seen.connections.get(), server.seen.requests.get()), (10, 0));
        assert_eq!(time_wait(server.address), 0);

        let expired = pki::server(pki::certificate(NAME, true), false, &[]);
        let expired = Secured::start(expired, false).await;
        let said = verdict(&service, expired.address).await;
        assert_eq!(said, (Health::Down, "the peer's certificate has expired 3 times".to_owned()));

        // A server that accepts the connection and does not speak TLS is down.
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of loopback");
        let address = listener.local_addr().expect("bound");
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"220 mail.test ESMTP\r\n").await;
            }
        });
        let said = verdict(&service, address).await;
        assert_eq!(said, (Health::Down, "the peer does not speak TLS 3 times".to_owned()));
    });
}

#[test]
fn a_proxy_header_that_tells_of_no_client_comes_before_tls() {
    block_on(async {
        for (version, origin) in
            [(ProxyVersion::V1, Origin::Unknown), (ProxyVersion::V2, Origin::Local)]
        {
            let server = Secured::start(right(), true).await;
            let service = over_tls(pki::service(Some(NAME)));
            let service = Service { send_proxy: Some(version), ..service };
            let all = vec![of_service(1, server.address, &server.address.to_string(), &service)];
            let mut rig = Rig::new(all, 8);
            rig.until(|rig| rig.done == 15).await;
            assert_eq!(rig.failed, 0);
            // Once per connection, not per request.
            assert_eq!(*server.handshakes.origins.borrow(), [origin; 2]);
        }
    });
}

#[test]
fn services_that_ask_for_two_names_are_probed_apart_and_of_one_name_together() {
    block_on(async {
        let certificate = pki::certificate("*.app.test", false);
        let server = Secured::start(pki::server(certificate, false, &[]), false).await;
        let all = [Some("a.app.test"), Some("b.app.test"), Some("a.app.test")];
        let all = all.map(|name| Service {
            tls: Some(Arc::new(pki::service(name))),
            ..checked_by(http(None, true), (20, 5000))
        });
        let name = server.address.to_string();
        let all =
            (1..).zip(&all).map(|(id, service)| of_service(id, server.address, &name, service));
        let mut rig = Rig::new(all.collect(), 8);
        rig.until(|rig| rig.done == 20).await;
        assert_eq!(rig.failed, 0);
        let names = server.handshakes.names.borrow();
        assert_eq!(names.len(), 2);
        // Ten probes each, plus or minus the jitter.
        assert!(names.values().all(|&count| count <= 2), "{names:?}");
        let report = rig.prober.report();
        assert_eq!(report.probes(), 2);
        let near = report.rows[0].near_duplicates[0].to_string();
        assert!(near.contains("differ in TLS: a.app.test vs b.app.test"), "{near}");
    });
}

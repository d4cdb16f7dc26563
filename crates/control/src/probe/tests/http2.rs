//! Tests of probes over HTTP/2, and the HTTP/2 server that these and the gRPC tests use.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use model::HttpVersion;
use tls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use super::pki::{self, NAME};
use super::*;

/// Returns the answer to a request with this body: the head, the body, the trailers.
pub(super) type Answer = dyn Fn(&Request<()>, &[u8]) -> (Response<()>, Bytes, Option<HeaderMap>);

/// An HTTP/2 server.
pub(super) struct Server2 {
    pub(super) address: SocketAddr,
    pub(super) seen: Rc<Seen2>,
}

#[derive(Default)]
pub(super) struct Seen2 {
    pub(super) connections: Cell<usize>,
    pub(super) requests: Cell<usize>,
    /// Of the last request.
    pub(super) last: RefCell<Option<(Request<()>, Vec<u8>)>>,
}

impl Server2 {
    /// Uses TLS if configured. After `goaway_after` requests, a connection sends GOAWAY.
    pub(super) async fn start(
        tls: Option<Arc<ServerConfig>>,
        goaway_after: usize,
        answer: Rc<Answer>,
    ) -> Server2 {
        let listener = TcpListener::bind((own_loopback(), 0)).await.expect("a port of loopback");
        let address = listener.local_addr().expect("bound");
        let seen = Rc::new(Seen2::default());
        let counted = seen.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.connections.set(counted.connections.get() + 1);
                let (seen, answer, tls) = (counted.clone(), answer.clone(), tls.clone());
                tokio::task::spawn_local(async move {
                    match tls {
                        None => serve2(stream, goaway_after, &seen, answer).await,
                        Some(config) => {
                            if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                                serve2(stream, goaway_after, &seen, answer).await;
                            }
                        }
                    }
                });
            }
        });
        Server2 { address, seen }
    }
}

async fn serve2(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    goaway_after: usize,
    seen: &Rc<Seen2>,
    answer: Rc<Answer>,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut count = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        count += 1;
        if count == goaway_after {
            connection.graceful_shutdown();
        }
        let (seen, answer) = (seen.clone(), answer.clone());
        tokio::task::spawn_local(one(request, respond, seen, answer));
    }
}

async fn one(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    seen: Rc<Seen2>,
    answer: Rc<Answer>,
) {
    let (parts, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = incoming.data().await {
        body.extend_from_slice(&piece);
    }
    let request = Request::from_parts(parts, ());
    seen.requests.set(seen.requests.get() + 1);
    let (head, bytes, trailers) = answer(&request, &body);
    *seen.last.borrow_mut() = Some((request, body));
    let ends_at_once = bytes.is_empty() && trailers.is_none();
    let Ok(mut send) = respond.send_response(head, ends_at_once) else { return };
    if ends_at_once {
        return;
    }
    let _ = send.send_data(bytes, trailers.is_none());
    if let Some(trailers) = trailers {
        let _ = send.send_trailers(trailers);
    }
}

fn answering(status: u16, body: &'static [u8]) -> Rc<Answer> {
    Rc::new(move |_, _| {
        let head = Response::builder().status(status).body(()).expect("a head");
        (head, Bytes::from_static(body), None)
    })
}

/// More than a probe reads of a response.
static LONG: [u8; 100_000] = [b'x'; 100_000];

fn service2(host: Option<&str>) -> Service {
    Service { http: HttpVersion::Http2, ..checked_by(http(host, true), (10, 5000)) }
}

#[test]
fn nine_of_ten_probes_share_a_connection_of_http2_clear_or_over_tls() {
    block_on(async {
        let config = || pki::server(pki::certificate(NAME, false), false, &[b"h2"]);
        for (tls, scheme) in [(None, "http"), (Some(config()), "https")] {
            let server = Server2::start(tls, 0, answering(200, b"ok")).await;
            let mut service = service2(Some("app.test"));
            service.tls = (scheme == "https").then(|| Arc::new(pki::service(Some(NAME))));
            let all = vec![of_service(1, server.address, &server.address.to_string(), &service)];
            let mut rig = Rig::new(all, 8);
            rig.until(|rig| rig.done == 40).await;
            assert_eq!(rig.failed, 0, "{scheme}");
            assert_eq!((server.seen.requests.get(), server.seen.connections.get()), (40, 4));
            let last = server.seen.last.borrow_mut().take();
            let (request, body) = last.expect("a request");
            assert_eq!(request.uri().to_string(), format!("{scheme}://app.test/status"));
            assert_eq!((request.method().as_str(), body.len()), ("GET", 0));
            assert!(request.headers()["user-agent"].to_str().expect("text").starts_with("weir/"));
            assert_eq!(time_wait(server.address), 0);
        }
    });
}

#[test]
fn a_status_that_is_not_expected_fails_over_http2_too() {
    block_on(async {
        let server = Server2::start(None, 0, answering(503, b"")).await;
        let said = verdict(&service2(None), server.address).await;
        assert_eq!(said, (Health::Down, "status 503 3 times".to_owned()));
        // A response with a body longer than that counts by its status.
        let server = Server2::start(None, 0, answering(200, &LONG)).await;
        assert_eq!(verdict(&service2(None), server.address).await.0, Health::Up);
    });
}

#[test]
fn a_connection_that_the_server_takes_back_is_no_failure() {
    block_on(async {
        let server = Server2::start(None, 3, answering(200, b"ok")).await;
        let all = vec![of_service(1, server.address, &server.address.to_string(), &service2(None))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 12).await;
        assert_eq!(rig.failed, 0);
        assert_eq!(server.seen.connections.get(), 4);
    });
}

#[test]
fn a_server_that_does_not_speak_http2_is_reported_as_such() {
    block_on(async {
        let plain = Server::start(Mode::Answer(200)).await;
        let said = verdict(&service2(None), plain.address).await;
        assert_eq!(said, (Health::Down, "http protocol error 3 times".to_owned()));

        let only1 = pki::server(pki::certificate(NAME, false), false, &[b"http/1.1"]);
        let only1 = Server2::start(Some(only1), 0, answering(200, b"")).await;
        let over_tls = Service { tls: Some(Arc::new(pki::service(Some(NAME)))), ..service2(None) };
        let (health, why) = verdict(&over_tls, only1.address).await;
        assert_eq!(health, Health::Down);
        assert_eq!(why, "the peer speaks none of the protocols offered (ALPN) 3 times");

        let silent = pki::server(pki::certificate(NAME, false), false, &[]);
        let silent = Server2::start(Some(silent), 0, answering(200, b"")).await;
        let (health, why) = verdict(&over_tls, silent.address).await;
        assert_eq!(health, Health::Down);
        assert_eq!(why, "the server does not agree to HTTP/2 (ALPN) 3 times");
    });
}

//! Tests of gRPC health probes, against a server made with the `h2` crate.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use model::HttpVersion;

use super::http2::{Answer, Server2};
use super::pki::{self, NAME};
use super::*;

fn grpc(service: &str) -> Service {
    let kind = CheckKind::Grpc { service: service.into(), host: Some("listings.test".into()) };
    Service { http: HttpVersion::Http2, ..checked_by(kind, (10, 5000)) }
}

fn head(status: u16, grpc_status: Option<&'static str>) -> Response<()> {
    let mut head = Response::builder().status(status).header("content-type", "application/grpc");
    if let Some(status) = grpc_status {
        head = head.header("grpc-status", status);
    }
    head.body(()).expect("a head")
}

/// A successful call with this message.
fn message(bytes: &'static [u8]) -> Rc<Answer> {
    Rc::new(move |_, _| {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        (head(200, None), Bytes::from_static(bytes), Some(trailers))
    })
}

/// A failed call, with its status in the head (as most servers send it) or in the trailers.
fn failed(status: &'static str, in_trailers: bool) -> Rc<Answer> {
    Rc::new(move |_, _| {
        let name = http::HeaderName::from_static("grpc-status");
        let trailers = HeaderMap::from_iter([(name, HeaderValue::from_static(status))]);
        let at_once = (!in_trailers).then_some(status);
        (head(200, at_once), Bytes::new(), in_trailers.then_some(trailers))
    })
}

const SERVING: &[u8] = b"\0\0\0\0\x02\x08\x01";

#[test]
fn a_server_that_serves_is_up_and_its_connection_kept() {
    block_on(async {
        let config = pki::server(pki::certificate(NAME, false), false, &[b"h2"]);
        let server = Server2::start(Some(config), 0, message(SERVING)).await;
        let service =
            Service { tls: Some(Arc::new(pki::service(Some(NAME)))), ..grpc("listings.Listings") };
        let all = vec![of_service(1, server.address, &server.address.to_string(), &service)];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 20).await;
        assert_eq!((rig.failed, rig.health(1)), (0, Health::Up));
        assert_eq!((server.seen.requests.get(), server.seen.connections.get()), (20, 2));
        let last = server.seen.last.borrow();
        let (request, body) = last.as_ref().expect("a request");
        let uri = "https://listings.test/grpc.health.v1.Health/Check";
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("POST", uri));
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
            assert_eq!(request.headers()[name], value);
        }
        assert_eq!(body, b"\0\0\0\0\x13\x0a\x11listings.Listings");
    });
}

#[test]
fn the_server_as_a_whole_is_asked_for_by_no_name() {
    block_on(async {
        let server = Server2::start(None, 0, message(SERVING)).await;
        assert_eq!(verdict(&grpc(""), server.address).await.0, Health::Up);
        let last = server.seen.last.borrow();
        assert_eq!(last.as_ref().expect("a request").1, [0; 5]);
    });
}

#[test]
fn anything_but_serving_is_down_with_a_reason() {
    block_on(async {
        let not_grpc: Rc<Answer> = Rc::new(|_, _| (head(200, None), Bytes::from("hello"), None));
        let http_status: Rc<Answer> = Rc::new(|_, _| (head(502, None), Bytes::new(), None));
        let no_service = "grpc-status 12 UNIMPLEMENTED: the server has no health service";
        let unknown = "grpc-status 5 NOT_FOUND: the server knows no service of that name";
        for (answer, why) in [
            (message(b"\0\0\0\0\x02\x08\x02"), "NOT_SERVING"),
            (message(b"\0\0\0\0\x00"), "UNKNOWN"),
            (message(b"\0\0\0\0\x02\x08\x03"), "SERVICE_UNKNOWN"),
            (message(b""), "the health service's answer is not one whole message"),
            (message(b"\0\0\0\0\x02\x0a\x01"), "the health service's answer is malformed"),
            (failed("12", false), no_service),
            (failed("12", true), no_service),
            (failed("5", false), unknown),
            (failed("14", false), "grpc-status 14 UNAVAILABLE"),
            (failed("77", false), "a grpc-status that is not one of gRPC's"),
            (failed("fine", false), "grpc-status is not a number"),
            (not_grpc, "the answer is not one of gRPC"),
            (http_status, "status 502"),
        ] {
            let server = Server2::start(None, 0, answer).await;
            let said = verdict(&grpc("listings.Listings"), server.address).await;
            assert_eq!(said, (Health::Down, format!("{why} 3 times")));
            // It answered: that is no reason to reconnect.
            assert_eq!(server.seen.connections.get(), 1, "{why}");
        }
    });
}

#[test]
fn one_service_of_a_server_may_be_down_while_another_is_up() {
    block_on(async {
        let answer: Rc<Answer> = Rc::new(|request, body| {
            let serving = if body.ends_with(b"a.A") { SERVING } else { b"\0\0\0\0\x02\x08\x02" };
            message(serving)(request, body)
        });
        let server = Server2::start(None, 0, answer).await;
        let name = server.address.to_string();
        let all = [grpc("a.A"), grpc("b.B"), grpc("a.A")];
        let all =
            (1..).zip(&all).map(|(id, service)| of_service(id, server.address, &name, service));
        let mut rig = Rig::new(all.collect(), 8);
        rig.until(|rig| (1..=3).all(|id| rig.health(id) != Health::Unknown)).await;
        let healths = [1, 2, 3].map(|id| rig.health(id));
        assert_eq!(healths, [Health::Up, Health::Down, Health::Up]);
        assert_eq!(rig.prober.report().probes(), 2);
    });
}

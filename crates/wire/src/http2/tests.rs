//! Tests of conversion in both directions, and of what must be refused.

use http::{Method, Request, StatusCode};

use super::*;
use crate::http1::{
    self, HeadLimits, Parsed, RequestBody, RequestHead, ResponseBody, ResponseHead,
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 4096, target_max_bytes: 1024, fields_max: 64 };
const WEBSOCKET: Protocol<'_> = Protocol { name: "websocket", key: "AAAAAAAAAAAAAAAAAAAAAA==" };

fn request(uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut builder = Request::builder().uri(uri);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap()
}

fn parsed(
    head: &Request<()>,
    protocol: Option<Protocol<'_>>,
    ended: bool,
) -> (String, RequestHead) {
    let mut text = Vec::new();
    write_request(head, protocol, ended, &mut text);
    let mut read = RequestHead::default();
    let result = http1::parse_request(&text, &LIMITS, &mut read);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(result, Ok(Parsed::Complete { consumed: text.len() }), "{text}");
    (text, read)
}

#[test]
fn a_request_is_read_as_if_it_had_come_in_text() {
    let fields = [("cookie", "a=1"), ("accept", "*/*"), ("host", "other"), ("cookie", "b=2")];
    let head = request("https://a.example:8443/p/q?r=s", &fields);
    let (_, read) = parsed(&head, None, true);
    assert_eq!(
        (read.method(), read.target(), read.authority()),
        ("GET", "/p/q?r=s", "a.example:8443")
    );
    assert_eq!(read.known(Known::Cookie), Some(b"a=1; b=2".as_slice()));
    assert_eq!(read.fields().count(), 3, "Host, Accept, one Cookie");
    assert_eq!(read.body(), RequestBody::None);
}

#[test]
fn a_body_is_framed_by_its_length_or_by_chunks() {
    let (_, read) = parsed(&request("http://a/", &[("content-length", "5")]), None, false);
    assert_eq!(read.body(), RequestBody::Length(5));
    let (_, read) = parsed(&request("http://a/", &[("te", "trailers")]), None, false);
    assert_eq!(read.body(), RequestBody::Chunked);
    assert!(read.accepts_trailers());
}

#[test]
fn an_extended_connect_asks_for_an_upgrade() {
    let mut head = request("https://a/chat", &[("sec-websocket-version", "13")]);
    *head.method_mut() = Method::CONNECT;
    let (text, read) = parsed(&head, Some(WEBSOCKET), false);
    assert_eq!((read.method(), read.upgrade()), ("GET", Some(b"websocket".as_slice())));
    assert_eq!(read.body(), RequestBody::None);
    assert!(text.contains("Sec-WebSocket-Key: "), "{text}");
    let (back, protocol) = read_request(text.as_bytes(), "https").unwrap();
    assert_eq!((back.method(), protocol), (&Method::CONNECT, Some("websocket")));
    assert_eq!(back.headers().len(), 1, "{:?}", back.headers());
}

/// Every target or host that the strict parser accepts can be sent over HTTP/2, or is known in
/// advance to be impossible.
#[test]
fn what_http1_accepts_http2_carries_or_refuses_beforehand() {
    for byte in 0x21..0x7f_u8 {
        for (place, target) in
            [("path", format!("/a{}b", byte as char)), ("query", format!("/?{}", byte as char))]
        {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            if http1::parse_request(text.as_bytes(), &LIMITS, &mut RequestHead::default()).is_ok() {
                let (request, _) = read_request(text.as_bytes(), "http")
                    .unwrap_or_else(|_| panic!("{place}: {target}"));
                let sent = request.uri().path_and_query().unwrap().as_str().to_owned();
                let encoded = target.replace(byte as char, &format!("%{byte:02X}"));
                assert!(sent == target || sent == encoded, "{target} became {sent}");
            }
        }
        let host = format!("a{}.example", byte as char);
        for host in [host, format!("a%{byte:02x}"), "a.example:".to_owned()] {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            if http1::parse_request(text.as_bytes(), &LIMITS, &mut RequestHead::default()).is_ok() {
                let carried = read_request(text.as_bytes(), "http").is_ok();
                assert_eq!(can_carry_authority(&host), carried, "{host}");
            }
        }
    }
}

#[test]
fn plain_connect_is_left_for_the_parser_to_refuse() {
    let mut head = request("a.example:443", &[]);
    *head.method_mut() = Method::CONNECT;
    let mut text = Vec::new();
    write_request(&head, None, false, &mut text);
    let refused = http1::parse_request(&text, &LIMITS, &mut RequestHead::default());
    assert_eq!(refused, Err(http1::RequestError::ConnectNotSupported));
}

#[test]
fn what_is_about_a_connection_stays_behind() {
    let text =
        b"POST /a?b HTTP/1.1\r\nHost: a.example\r\nConnection: x\r\nTransfer-Encoding: chunked\r\n\
        TE: trailers\r\nX: y\r\n\r\n";
    let (request, protocol) = read_request(text, "http").unwrap();
    assert_eq!(request.uri(), "http://a.example/a?b");
    assert_eq!(protocol, None);
    let names: Vec<_> = request.headers().keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["te", "x"]);
    let text = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\nX: y\r\n\r\n";
    let response = read_response(text, false).unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers().len(), 2);
}

#[test]
fn targets_without_a_path_go_both_ways() {
    let mut head = request("http://a.example", &[]);
    *head.method_mut() = Method::OPTIONS;
    let (_, read) = parsed(&head, None, true);
    assert_eq!(read.path(), "/");
    let text = b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    let (request, _) = read_request(text, "http").unwrap();
    assert_eq!(request.uri().path(), "*");
    let (_, read) = parsed(&request, None, true);
    assert_eq!(read.path(), "*");
}

fn response(status: u16, fields: &[(&str, &str)], ended: bool, head: bool) -> ResponseBody {
    let mut builder = http::Response::builder().status(status);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    let mut text = Vec::new();
    let framed = (!head).then_some(ended);
    write_response(parts.status, &parts.headers, framed, None, &mut text);
    let mut read = ResponseHead::default();
    let result = http1::parse_response(&text, &LIMITS, &mut read);
    assert_eq!(result, Ok(Parsed::Complete { consumed: text.len() }));
    assert_eq!(read.status(), status);
    read.body(head)
}

#[test]
fn a_response_is_framed_by_what_is_known_of_its_end() {
    assert_eq!(response(200, &[], false, false), ResponseBody::Chunked);
    assert_eq!(response(200, &[], true, false), ResponseBody::Length(0));
    assert_eq!(response(200, &[("content-length", "7")], false, false), ResponseBody::Length(7));
    assert_eq!(response(200, &[("content-length", "7")], true, true), ResponseBody::None);
    assert_eq!(response(200, &[], true, true), ResponseBody::None);
    assert_eq!(response(204, &[], true, false), ResponseBody::None);
    assert_eq!(response(103, &[("link", "</a>")], false, false), ResponseBody::None);
}

#[test]
fn consent_to_a_tunnel_is_101_on_one_side_and_200_on_the_other() {
    let mut text = Vec::new();
    let fields = HeaderMap::new();
    write_response(StatusCode::OK, &fields, Some(false), Some(("websocket", "abc=")), &mut text);
    assert!(text.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&text));
    let back = read_response(&text, true).unwrap();
    assert_eq!((back.status(), back.headers().len()), (StatusCode::OK, 0));
    let mut text = Vec::new();
    write_response(
        StatusCode::FORBIDDEN,
        &fields,
        Some(true),
        Some(("websocket", "abc=")),
        &mut text,
    );
    assert!(text.starts_with(b"HTTP/1.1 403 "));
}

#[test]
fn a_head_without_a_length_gains_none() {
    let mut text = Vec::new();
    write_response(StatusCode::OK, &HeaderMap::new(), None, None, &mut text);
    assert_eq!(text, b"HTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn a_protocol_is_a_token() {
    assert!(is_protocol("websocket"));
    for name in ["", "websocket\r\nContent-Length: 5", "a b", "a,b", "a\0"] {
        assert!(!is_protocol(name), "{name:?}");
    }
}

#[test]
fn trailers_that_could_be_taken_for_fields_stay_behind() {
    let mut trailers = HeaderMap::new();
    for name in ["client-cert", "x-forwarded-for", "content-length", "host", "x_client_subject"] {
        trailers.insert(http::HeaderName::from_static(name), "1".parse().unwrap());
    }
    trailers.insert("grpc-status", "0".parse().unwrap());
    trailers.insert("grpc-message", "ok".parse().unwrap());
    let mut text = Vec::new();
    write_trailers(&trailers, &mut text);
    assert_eq!(text, b"grpc-status: 0\r\ngrpc-message: ok\r\n");
}

#[test]
fn trailers_go_both_ways() {
    let lines = b"grpc-status: 0\r\nX: a\r\nX: b\r\n";
    let trailers = read_trailers(lines).unwrap();
    assert_eq!(trailers.len(), 3);
    let mut text = Vec::new();
    write_trailers(&trailers, &mut text);
    assert_eq!(text, b"grpc-status: 0\r\nx: a\r\nx: b\r\n");
}

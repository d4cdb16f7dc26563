//! Tests of which request heads are accepted or refused, and how they are parsed.

use super::*;
use crate::http1::FieldRef;

fn parse(input: &str) -> Result<RequestHead, RequestError> {
    let mut head = RequestHead::default();
    match parse_request(input.as_bytes(), &HeadLimits::default(), &mut head)? {
        Parsed::Complete { consumed } => {
            assert_eq!(consumed, input.find("\r\n\r\n").unwrap() + 4, "{input:?}");
            Ok(head)
        }
        Parsed::Partial => panic!("partial: {input:?}"),
    }
}

/// A GET with these further field lines.
fn get(fields: &str) -> Result<RequestHead, RequestError> {
    parse(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
}

fn dropped(head: &RequestHead) -> Vec<String> {
    let text = |field: FieldRef<'_>| String::from_utf8_lossy(field.name).to_ascii_lowercase();
    head.fields().filter(|field| field.hop_by_hop).map(text).collect()
}

#[test]
fn a_request_and_its_parts() {
    let head = parse(
        "POST /a/b?c=d?e HTTP/1.1\r\nHost: Example.com:8080\r\nContent-Length: 12\r\n\
         X-One: \t1 \r\nx-one:2\r\nEmpty:\r\nCookie: a=1; b=2=3;c=\r\n\r\n",
    )
    .unwrap();
    assert_eq!((head.method(), head.target()), ("POST", "/a/b?c=d?e"));
    assert_eq!((head.path(), head.query()), ("/a/b", Some("c=d?e")));
    assert_eq!((head.authority(), head.host()), ("Example.com:8080", "Example.com"));
    assert_eq!(head.version(), Version::Http11);
    assert_eq!(head.body(), RequestBody::Length(12));
    assert!(head.keep_alive() && !head.is_head() && !head.is_idempotent());
    assert_eq!(head.field("x-one"), Some(&b"1"[..]));
    assert_eq!(head.field("content-length"), Some(&b"12"[..]));
    assert_eq!(head.field("empty"), Some(&b""[..]));
    assert_eq!(head.field("none"), None);
    assert_eq!(head.known(Known::Host), Some(&b"Example.com:8080"[..]));
    assert_eq!(head.known(Known::Te), None);
    assert_eq!(head.fields().len(), 6);
    let third = head.fields().nth(3).unwrap();
    assert_eq!((third.name, third.value), (&b"x-one"[..], &b"2"[..]));
    assert_eq!(head.cookie("b"), Some(&b"2=3"[..]));
    assert_eq!(head.cookie("c"), Some(&b""[..]));
    assert_eq!(head.cookie("B"), None);
}

#[test]
fn a_head_is_reused_without_remains() {
    let mut head = RequestHead::default();
    let limits = HeadLimits::default();
    let first = b"POST /x?y HTTP/1.0\r\nHost: a\r\nConnection: close, foo\r\nFoo: 1\r\nContent-Length: 5\r\n\r\n";
    parse_request(first, &limits, &mut head).unwrap();
    let second = b"GET / HTTP/1.1\r\nHost: b\r\n\r\n";
    parse_request(second, &limits, &mut head).unwrap();
    assert_eq!((head.path(), head.query(), head.host()), ("/", None, "b"));
    assert_eq!(head.body(), RequestBody::None);
    assert!(head.keep_alive());
    assert_eq!(head.known(Known::ContentLength), None);
    assert_eq!(parse_request(b"GET /", &limits, &mut head), Ok(Parsed::Partial));
    assert_eq!((head.method(), head.path(), head.host()), ("", "*", ""));
}

#[test]
fn target_forms() {
    for (line, path, query, host) in [
        ("GET /", "/", None, "a"),
        ("GET //x/../y", "//x/../y", None, "a"),
        ("GET /?", "/", Some(""), "a"),
        ("OPTIONS *", "*", None, "a"),
        ("GET http://h/x?y", "/x", Some("y"), "h"),
        ("GET HTTP://h:80", "/", None, "h"),
        ("GET https://[::1]:80?x", "/", Some("x"), "[::1]"),
        ("OPTIONS http://h", "*", None, "h"),
        ("OPTIONS http://h/", "/", None, "h"),
        ("GET /http://h/", "/http://h/", None, "a"),
    ] {
        let head = parse(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
        assert_eq!((head.path(), head.query(), head.host()), (path, query, host), "{line}");
    }
    for (line, error) in [
        ("GET *", RequestError::AsteriskWithoutOptions),
        ("OPTIONS *x", RequestError::BadTargetForm),
        ("GET example.com:80", RequestError::BadTargetForm),
        ("GET ftp://h/", RequestError::BadTargetForm),
        ("GET x", RequestError::BadTargetForm),
        ("GET ?x", RequestError::BadTargetForm),
        ("GET http:///x", RequestError::BadTargetAuthority),
        ("GET http://u@h/", RequestError::BadTargetAuthority),
        ("GET http://h:x/", RequestError::BadTargetAuthority),
        ("GET /#x", RequestError::BadTarget),
        ("GET /é", RequestError::BadTarget),
        ("GET /a b", RequestError::BadTarget),
        ("GET  /", RequestError::BadTarget),
        ("GET /\t", RequestError::BadTarget),
        ("GET /\x7f", RequestError::BadTarget),
        ("GET /\0", RequestError::BadTarget),
        ("CONNECT h:443", RequestError::ConnectNotSupported),
        ("CONNECT /", RequestError::ConnectNotSupported),
    ] {
        let input = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(parse(&input).err(), Some(error), "{line}");
    }
}

#[test]
fn request_lines() {
    let long = "M".repeat(METHOD_MAX_BYTES + 1);
    for (line, error) in [
        ("GET", RequestError::MissingVersion),
        ("GET /", RequestError::MissingVersion),
        ("GET / HTTP/1.1 ", RequestError::MissingVersion),
        ("GET / http/1.1", RequestError::MissingVersion),
        ("GET / HTTP/1.10", RequestError::MissingVersion),
        ("GET / HTTP/11", RequestError::MissingVersion),
        ("GET / HTTP/1,1", RequestError::MissingVersion),
        ("GET / HTP/1.1", RequestError::MissingVersion),
        ("GET / HTTP/1.2", RequestError::VersionNotSupported),
        ("GET / HTTP/0.9", RequestError::VersionNotSupported),
        ("GET / HTTP/2.0", RequestError::VersionNotSupported),
        ("PRI * HTTP/2.0", RequestError::VersionNotSupported),
        ("G(T / HTTP/1.1", RequestError::BadMethod),
        ("GÉT / HTTP/1.1", RequestError::BadMethod),
        ("GET HTTP/1.1", RequestError::BadTarget),
        ("GET\t/ HTTP/1.1", RequestError::BadMethod),
        ("GET / HTTP/1.1\r", RequestError::BareCarriageReturn),
        ("GET /\rx HTTP/1.1", RequestError::BareCarriageReturn),
        (" GET / HTTP/1.1", RequestError::NotHttp),
        ("\u{16}\u{3}\u{1}", RequestError::NotHttp),
        (&format!("{long} / HTTP/1.1"), RequestError::MethodTooLong),
    ] {
        let input = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(parse(&input).err(), Some(error), "{line:?}");
    }
    assert!(parse("get / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok());
}

#[test]
fn empty_lines_before_a_request_are_skipped_up_to_a_bound() {
    let mut head = RequestHead::default();
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut run = |prefix: &str| {
        let input = format!("{prefix}{request}");
        parse_request(input.as_bytes(), &HeadLimits::default(), &mut head)
    };
    let whole = request.len();
    assert_eq!(run("\r\n"), Ok(Parsed::Complete { consumed: whole + 2 }));
    assert_eq!(run("\r\n\r\n\r\n\r\n"), Ok(Parsed::Complete { consumed: whole + 8 }));
    assert_eq!(run("\r\n\r\n\r\n\r\n\r\n"), Err(RequestError::TooManyEmptyLines));
    assert_eq!(run("\n"), Err(RequestError::BareLineFeed));
    assert_eq!(run("\r"), Err(RequestError::BareCarriageReturn));
}

#[test]
fn field_lines() {
    for (fields, error) in [
        ("A: b\n", RequestError::BareLineFeed),
        ("A: b\r\n\nC: d\r\n", RequestError::BareLineFeed),
        ("A: b\rc\r\n", RequestError::BareCarriageReturn),
        ("A: b\r\r\n", RequestError::BareCarriageReturn),
        ("A\r: b\r\n", RequestError::BareCarriageReturn),
        ("\rA: b\r\n", RequestError::BareCarriageReturn),
        ("A: b\r\n c\r\n", RequestError::LineFolding),
        ("A: b\r\n\tc: d\r\n", RequestError::LineFolding),
        ("A : b\r\n", RequestError::SpaceBeforeColon),
        ("A\t: b\r\n", RequestError::SpaceBeforeColon),
        ("A b: c\r\n", RequestError::BadFieldName),
        (": b\r\n", RequestError::BadFieldName),
        ("A(: b\r\n", RequestError::BadFieldName),
        ("É: b\r\n", RequestError::BadFieldName),
        ("A\0: b\r\n", RequestError::BadFieldName),
        ("A\r\n", RequestError::MissingColon),
        ("A: b\0\r\n", RequestError::BadFieldValue),
        ("A: \x0b\r\n", RequestError::BadFieldValue),
        ("A: b\x7fc\r\n", RequestError::BadFieldValue),
        ("A:\x01\r\n", RequestError::BadFieldValue),
    ] {
        assert_eq!(get(fields).err(), Some(error), "{fields:?}");
    }
    let head = get("A:b:c\r\nB:\r\nC: \t \r\nD: caf\u{e9}\r\n!#$%&'*+-.^_`|~: x\r\n").unwrap();
    let values: Vec<_> = head.fields().skip(1).map(|field| field.value).collect();
    assert_eq!(values, [&b"b:c"[..], b"", b"", "caf\u{e9}".as_bytes(), b"x"]);
}

#[test]
fn hosts() {
    let with = |version: &str, fields: &str| parse(&format!("GET / {version}\r\n{fields}\r\n"));
    for (fields, error) in [
        ("", RequestError::MissingHost),
        ("Host:\r\n", RequestError::BadHost),
        ("Host: a\r\nHost: a\r\n", RequestError::RepeatedHost),
        ("Host: a\r\nhOST: b\r\n", RequestError::RepeatedHost),
        ("Host: a, b\r\n", RequestError::BadHost),
        ("Host: a/b\r\n", RequestError::BadHost),
        ("Host: u@a\r\n", RequestError::BadHost),
        ("Host: a:99999\r\n", RequestError::BadHost),
        ("Host: [::1\r\n", RequestError::BadHost),
        ("Host: é\r\n", RequestError::BadHost),
    ] {
        assert_eq!(with("HTTP/1.1", fields).err(), Some(error), "{fields:?}");
    }
    assert_eq!(with("HTTP/1.0", "").unwrap().authority(), "");
    assert_eq!(with("HTTP/1.0", "Host: a:1\r\n").unwrap().authority(), "a:1");
    assert_eq!(with("HTTP/1.0", "Host: \r\n").err(), Some(RequestError::BadHost));
    let absolute = |host: &str| parse(&format!("GET http://h:1/ HTTP/1.1\r\n{host}\r\n"));
    assert_eq!(absolute("Host: other\r\n").unwrap().authority(), "h:1");
    assert_eq!(absolute("Host: oth er\r\n").err(), Some(RequestError::BadHost));
    assert_eq!(absolute("").err(), Some(RequestError::MissingHost));
}

#[test]
fn framing() {
    for (fields, body) in [
        ("", RequestBody::None),
        ("Content-Length: 0\r\n", RequestBody::Length(0)),
        ("Content-Length: 007\r\n", RequestBody::Length(7)),
        ("content-length:\t9223372036854775807 \r\n", RequestBody::Length(i64::MAX as u64)),
        ("Transfer-Encoding: CHUNKED\r\n", RequestBody::Chunked),
        ("Content_Length: 5\r\n", RequestBody::None),
    ] {
        assert_eq!(get(fields).map(|head| head.body()), Ok(body), "{fields:?}");
    }
    for (fields, error) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            RequestError::LengthAndTransferEncoding,
        ),
        ("Transfer-Encoding: x\r\nContent-Length: 5\r\n", RequestError::LengthAndTransferEncoding),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", RequestError::RepeatedContentLength),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", RequestError::RepeatedContentLength),
        ("Content-Length: 5, 5\r\n", RequestError::BadContentLength),
        ("Content-Length: +5\r\n", RequestError::BadContentLength),
        ("Content-Length: 0x5\r\n", RequestError::BadContentLength),
        ("Content-Length: 9223372036854775808\r\n", RequestError::BadContentLength),
        ("Content-Length:\r\n", RequestError::BadContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", RequestError::UnknownTransferCoding),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            RequestError::UnknownTransferCoding,
        ),
        ("Transfer-Encoding: gzip\r\n", RequestError::BadTransferEncoding),
        ("Transfer-Encoding:\r\n", RequestError::BadTransferEncoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            RequestError::BadTransferEncoding,
        ),
    ] {
        assert_eq!(get(fields).err(), Some(error), "{fields:?}");
    }
    assert_eq!(
        parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").err(),
        Some(RequestError::TransferEncodingIn10)
    );
}

#[test]
fn connection_and_what_it_lists() {
    let keep = |version: &str, fields: &str| {
        parse(&format!("GET / {version}\r\nHost: a\r\n{fields}\r\n")).unwrap().keep_alive()
    };
    assert!(keep("HTTP/1.1", "Connection: Keep-Alive\r\n"));
    assert!(!keep("HTTP/1.1", "Connection: foo , CLOSE\r\n"));
    assert!(!keep("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    assert!(!keep("HTTP/1.0", ""));
    assert!(keep("HTTP/1.0", "Connection: keep-alive\r\n"));
    assert!(!keep("HTTP/1.0", "Connection: keep-alive, close\r\n"));

    let head =
        get("Connection: X-One, host, CONTENT-LENGTH,,x-forwarded-for\r\nx-one: 1\r\nX-Two: 2\r\n\
         Content-Length: 3\r\nX-Forwarded-For: x\r\nKeep-Alive: 1\r\nTE: trailers\r\n\
         Proxy-Connection: x\r\nUpgrade: y\r\nTransfer_Encoding: z\r\nX-ONE: 4\r\n")
        .unwrap();
    assert_eq!(
        dropped(&head),
        [
            "connection",
            "x-one",
            "keep-alive",
            "te",
            "proxy-connection",
            "upgrade",
            "transfer_encoding",
            "x-one"
        ]
    );
    assert!(head.accepts_trailers());
    let many = format!("Connection: {}\r\n", "a,".repeat(32));
    assert_eq!(get(&many).err(), Some(RequestError::TooManyConnectionOptions));
}

#[test]
fn expectations_and_upgrades() {
    let post = |fields: &str| parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    assert!(post("Expect: 100-Continue\r\nContent-Length: 1\r\n").unwrap().expects_continue());
    assert!(!post("Expect: 100-continue\r\nContent-Length: 0\r\n").unwrap().expects_continue());
    assert!(!post("Expect: 100-continue\r\n").unwrap().expects_continue());
    for other in ["200-ok", "100-continue, x", ""] {
        let error = post(&format!("Expect: {other}\r\n")).err();
        assert_eq!(error, Some(RequestError::UnknownExpectation), "{other}");
    }
    let upgrade = |fields: &str| get(fields).unwrap().upgrade().map(<[u8]>::to_vec);
    assert_eq!(upgrade("Connection: Upgrade\r\nUpgrade: websocket\r\n").unwrap(), b"websocket");
    assert_eq!(upgrade("Upgrade: websocket\r\n"), None);
    assert_eq!(upgrade("Connection: upgrade\r\n"), None);
    assert_eq!(upgrade("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n"), None);
    assert_eq!(upgrade("Connection: upgrade\r\nUpgrade: websocket, H2C/1\r\n"), None);
    let old = "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(parse(old).unwrap().upgrade(), None);
}

#[test]
fn of_the_protocols_asked_for_the_first_that_is_allowed_is_kept() {
    let kept = |asked: &str, allowed: &[&str]| {
        let mut head = get(&format!("Connection: upgrade\r\nUpgrade: {asked}\r\n")).unwrap();
        head.keep_upgrade(allowed);
        head.upgrade().map(|kept| String::from_utf8_lossy(kept).into_owned())
    };
    let cases = [
        ("websocket", &["websocket"][..], Some("websocket")),
        ("WebSocket", &["websocket"], Some("WebSocket")),
        ("foo", &["websocket"], None),
        ("foo, websocket", &["websocket"], Some("websocket")),
        ("websocket, foo", &["foo", "websocket"], Some("websocket")),
        ("websocket, h2c", &["websocket"], Some("websocket")),
        ("h2c", &["h2c"], None),
        ("H2C/1, foo/2", &["h2c", "foo"], Some("foo/2")),
        ("foo/2", &["foo/2"], Some("foo/2")),
        ("foo/2", &["foo/1"], None),
        ("websocket", &[], None),
        (", ,", &["websocket"], None),
    ];
    for (asked, allowed, expected) in cases {
        assert_eq!(kept(asked, allowed).as_deref(), expected, "{asked} {allowed:?}");
    }
}

#[test]
fn limits_are_exact() {
    let mut head = RequestHead::default();
    let input = b"GET /abc HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n";
    let mut run = |head_max_bytes, target_max_bytes, fields_max| {
        let limits = HeadLimits { head_max_bytes, target_max_bytes, fields_max };
        parse_request(input, &limits, &mut head)
    };
    let len = input.len();
    assert_eq!(run(len, 4, 2), Ok(Parsed::Complete { consumed: len }));
    assert_eq!(run(len - 1, 4, 2), Err(RequestError::HeadTooLarge));
    assert_eq!(run(len, 3, 2), Err(RequestError::TargetTooLong));
    assert_eq!(run(len, 4, 1), Err(RequestError::TooManyFields));
    let endless = vec![b'a'; 40_000];
    let limits = HeadLimits::default();
    assert_eq!(parse_request(&endless, &limits, &mut head), Err(RequestError::TargetTooLong));
    let fields = "a: b\r\n".repeat(FIELDS_MAX);
    let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let limits = HeadLimits { fields_max: usize::MAX, ..limits };
    assert_eq!(
        parse_request(input.as_bytes(), &limits, &mut head),
        Err(RequestError::TooManyFields)
    );
    let input = input.replacen("a: b\r\n", "", 1);
    assert!(parse_request(input.as_bytes(), &limits, &mut head).is_ok());
}

#[test]
fn the_second_request_allocates_nothing() {
    let mut head = RequestHead::default();
    let input = b"GET /some/path HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n";
    let limits = HeadLimits::default();
    parse_request(input, &limits, &mut head).unwrap();
    let before = (head.text.as_ptr(), head.text.capacity(), head.fields.capacities());
    for _ in 0..3 {
        parse_request(input, &limits, &mut head).unwrap();
        assert_eq!((head.text.as_ptr(), head.text.capacity(), head.fields.capacities()), before);
    }
}

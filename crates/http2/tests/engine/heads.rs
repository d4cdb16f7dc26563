//! Message heads in both directions, and heads that must be refused.

use crate::rig::*;
use http2::{Code, Ended, Refusal, SendError};

/// A block of literals.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| literal(name.as_bytes(), value.as_bytes())).collect()
}

const PSEUDO: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/p?q")];

fn request(fields: &[(&str, &str)], ended: bool) -> Seen {
    let mut rig = Rig::server(CONFIG);
    let flags = if ended { END_HEADERS | END_STREAM } else { END_HEADERS };
    rig.feed(&frame(HEADERS, flags, 1, &block(fields)));
    let [seen] = &rig.take()[..] else { panic!("one event for {fields:?}") };
    if let Seen::Refused(Refusal::Malformed(_)) = seen {
        assert_eq!(rig.errors(), [(RST_STREAM, Code::PROTOCOL_ERROR)]);
    }
    seen.clone()
}

fn text(fields: &[(&str, &str)], ended: bool) -> String {
    match request(fields, ended) {
        Seen::Head { text, .. } => text,
        other => panic!("{other:?} for {fields:?}"),
    }
}

#[test]
fn a_request_becomes_text() {
    let with = |more: &[(&'static str, &'static str)]| [&PSEUDO[..], more].concat();
    let line = "GET /p?q HTTP/1.1\r\nHost: a.example\r\n";
    assert_eq!(text(&PSEUDO, true), format!("{line}\r\n"));
    let fields = with(&[("cookie", "a=1"), ("x", ""), ("host", "A.example"), ("cookie", "b=2")]);
    assert_eq!(text(&fields, true), format!("{line}x: \r\nCookie: a=1; b=2\r\n\r\n"));
    assert_eq!(text(&PSEUDO, false), format!("{line}Transfer-Encoding: chunked\r\n\r\n"));
    let fields = with(&[("content-length", "7"), ("te", "trailers")]);
    assert_eq!(text(&fields, false), format!("{line}content-length: 7\r\nte: trailers\r\n\r\n"));
    // No authority: a Host stands for it.
    let fields = [PSEUDO[0], PSEUDO[1], PSEUDO[3], ("host", "b")];
    assert_eq!(text(&fields, true), "GET /p?q HTTP/1.1\r\nhost: b\r\n\r\n");
    let fields = [(":method", "OPTIONS"), PSEUDO[1], PSEUDO[2], (":path", "*")];
    assert!(text(&fields, true).starts_with("OPTIONS * HTTP/1.1\r\n"));
}

#[test]
fn connect_has_two_forms() {
    let plain = [(":method", "CONNECT"), (":authority", "a:443")];
    assert_eq!(text(&plain, false).lines().next(), Some("CONNECT a:443 HTTP/1.1"));
    let mut extended = PSEUDO.to_vec();
    extended[0].1 = "CONNECT";
    extended.push((":protocol", "websocket"));
    extended.push(("sec-websocket-version", "13"));
    assert_eq!(
        text(&extended, false),
        "GET /p?q HTTP/1.1\r\nHost: a.example\r\nsec-websocket-version: 13\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    );
}

/// Request smuggling by downgrade: heads that would be a different message in HTTP/1.1.
#[test]
fn what_http1_would_read_otherwise_is_refused() {
    let replaced = |at: usize, value: &'static str| {
        let mut fields = PSEUDO.to_vec();
        fields[at].1 = value;
        fields
    };
    let with = |name: &'static str, value: &'static str| [&PSEUDO[..], &[(name, value)]].concat();
    let mut cases = vec![
        replaced(0, "GET / HTTP/1.1\r\nx: y"),
        replaced(0, "G ET"),
        replaced(0, ""),
        replaced(1, "ht tp"),
        replaced(1, ""),
        replaced(2, "a b"),
        replaced(3, ""),
        replaced(3, "p"),
        replaced(3, "http://b/"),
        replaced(3, "/ HTTP/1.0"),
        replaced(3, "/\r\nx: y"),
        replaced(3, "*"),
        with("transfer-encoding", "chunked"),
        with("connection", "close"),
        with("keep-alive", "5"),
        with("proxy-connection", "close"),
        with("upgrade", "h2c"),
        with("te", "gzip"),
        with("te", "trailers, gzip"),
        with("x", "a\r\nTransfer-Encoding: chunked"),
        with("x", "a\nb"),
        with("x", "a\0b"),
        with("x", " a"),
        with("x", "a\t"),
        with("x: y\r\nz", "a"),
        with("Upper", "a"),
        with("", "a"),
        with("a b", "a"),
        with(":method", "GET"),
        with(":status", "200"),
        with(":other", "1"),
        with(":protocol", "websocket"),
        with("host", "b.example"),
        with("content-length", "-1"),
        with("content-length", "+1"),
        with("content-length", "1, 1"),
        with("content-length", "1"),
        with("content-length", "99999999999999999999"),
        PSEUDO[1..].to_vec(),
        [PSEUDO[0], PSEUDO[2], PSEUDO[3]].to_vec(),
        PSEUDO[..3].to_vec(),
        vec![],
        [&[("x", "first")], &PSEUDO[..]].concat(),
        [&PSEUDO[..3], &[("x", "y")], &PSEUDO[3..]].concat(),
        [&PSEUDO[..], &[("content-length", "0"), ("content-length", "1")]].concat(),
        vec![(":method", "CONNECT"), PSEUDO[1], PSEUDO[2], PSEUDO[3]],
        vec![(":method", "CONNECT")],
        [
            &[(":method", "CONNECT"), (":protocol", "websocket")],
            &PSEUDO[1..],
            &[("content-length", "0")],
        ]
        .concat(),
    ];
    for protocol in ["websocket\r\nx: y", "a b", ""] {
        let mut fields = replaced(0, "CONNECT");
        fields.push((":protocol", protocol));
        cases.push(fields);
    }
    for fields in cases {
        let seen = request(&fields, true);
        assert!(matches!(seen, Seen::Refused(Refusal::Malformed(_))), "{fields:?}: {seen:?}");
    }
}

#[test]
fn equal_lengths_are_one_and_heads_have_a_limit() {
    let twice = [&PSEUDO[..], &[("content-length", "0"), ("content-length", "0")]].concat();
    assert_eq!(text(&twice, true).matches("content-length").count(), 1);
    let long = "v".repeat(20_000);
    let mut rig = Rig::server(CONFIG);
    let head = block(&[&PSEUDO[..], &[("x", &long)]].concat());
    rig.feed(&frame(HEADERS, END_STREAM, 1, &head[..9_000]));
    rig.feed(&frame(CONTINUATION, END_HEADERS, 1, &head[9_000..]));
    assert_eq!(rig.take(), [Seen::Refused(Refusal::HeadTooLarge)]);
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].kind, sent[0].flags), (1, HEADERS, 5));
    // The next request on the connection is read as usual.
    rig.feed(&frame(HEADERS, 5, 3, GET));
    assert!(matches!(rig.take()[..], [Seen::Head { .. }]));
}

#[test]
fn trailers_are_fields_that_change_nothing() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, END_HEADERS, 1, POST));
    rig.take();
    let fields = [("grpc-status", "0"), ("content-length", "5"), ("host", "b"), ("via", "x")];
    rig.feed(&frame(HEADERS, 5, 1, &block(&fields)));
    assert_eq!(rig.take(), [Seen::Trailers("grpc-status: 0\r\n".to_owned())]);
    for fields in [[("connection", "close")], [("a\r\nb", "c")], [("x", "y\nz")]] {
        let mut rig = Rig::server(CONFIG);
        rig.feed(&frame(HEADERS, END_HEADERS, 1, POST));
        rig.take();
        rig.feed(&frame(HEADERS, 5, 1, &block(&fields)));
        assert!(matches!(rig.take()[..], [Seen::Ended(Ended::Violation(_))]), "{fields:?}");
    }
}

/// Sends a request; returns the event for a response with `fields`.
fn response(request: &[u8], fields: &[(&str, &str)], ended: bool) -> Seen {
    let mut rig = Rig::client(CONFIG, &setting(8, 1));
    let key = rig.connection.open();
    rig.connection.send_head(key, request, true).unwrap();
    let flags = if ended { END_HEADERS | END_STREAM } else { END_HEADERS };
    rig.feed(&frame(HEADERS, flags, 1, &block(fields)));
    rig.take().remove(0)
}

#[test]
fn a_response_becomes_text_framed_by_what_is_known_of_its_end() {
    let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Key: k\r\n\r\n";
    let ok = (":status", "200");
    let length = ("content-length", "7");
    for (request, fields, ended, expected) in [
        (&get[..], &[ok][..], true, "200 OK\r\nContent-Length: 0\r\n"),
        (get, &[ok], false, "200 OK\r\nTransfer-Encoding: chunked\r\n"),
        (get, &[ok, length], false, "200 OK\r\ncontent-length: 7\r\n"),
        (head, &[ok, length], true, "200 OK\r\ncontent-length: 7\r\n"),
        (head, &[ok], true, "200 OK\r\n"),
        (get, &[(":status", "204")], true, "204 No Content\r\n"),
        (get, &[(":status", "304"), length], true, "304 Not Modified\r\ncontent-length: 7\r\n"),
        (get, &[(":status", "103"), ("link", "x")], false, "103 Early Hints\r\nlink: x\r\n"),
        (
            upgrade,
            &[ok],
            false,
            "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: BBBB\r\n",
        ),
        (upgrade, &[(":status", "403")], true, "403 Forbidden\r\nContent-Length: 0\r\n"),
    ] {
        let text = format!("HTTP/1.1 {expected}\r\n");
        assert_eq!(response(request, fields, ended), Seen::Head { text, ended });
    }
    for (fields, ended) in [
        (&[][..], false),
        (&[("x", "y")], false),
        (&[(":status", "99")], false),
        (&[(":status", "2000")], false),
        (&[(":status", "20x")], false),
        (&[(":status", "101")], false),
        (&[(":status", "103")], true),
        (&[ok, ok], false),
        (&[ok, (":path", "/")], false),
        (&[ok, length], true),
        (&[ok, ("connection", "close")], false),
    ] {
        let seen = response(get, fields, ended);
        assert!(matches!(seen, Seen::Ended(Ended::Violation(_))), "{fields:?}: {seen:?}");
    }
}

#[test]
fn content_where_there_is_none_ends_the_stream() {
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let mut rig = Rig::client(CONFIG, &[]);
        let key = rig.connection.open();
        let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        rig.connection.send_head(key, text.as_bytes(), true).unwrap();
        let head = block(&[(":status", status), ("content-length", "4")]);
        rig.feed(&frame(HEADERS, END_HEADERS, 1, &head));
        rig.take();
        rig.feed(&frame(DATA, END_STREAM, 1, b"body"));
        let seen = rig.take();
        assert!(matches!(seen[..], [Seen::Ended(Ended::Violation(_))]), "{status}: {seen:?}");
    }
}

/// Has a client send a request's text, and a server read it.
fn forwarded(text: &str) -> Result<Seen, SendError> {
    let mut client = Rig::client(CONFIG, &setting(8, 1));
    let key = client.connection.open();
    client.connection.send_head(key, text.as_bytes(), true)?;
    let mut server = Rig::server(CONFIG);
    server.feed(&client.bytes());
    Ok(server.take().remove(0))
}

#[test]
fn a_request_goes_both_ways_without_what_concerns_a_connection() {
    let text = "POST /a?b=%20 HTTP/1.1\r\nHost:  a.example:8080\r\nConnection: x\r\nTE: trailers\r\n\
                Transfer-Encoding: chunked\r\nKeep-Alive: 5\r\nX-Name:  Some Value \r\n\
                Cookie: a=1; b=2\r\nContent-Length: 0\r\n\r\n";
    let expected = "POST /a?b=%20 HTTP/1.1\r\nHost: a.example:8080\r\nte: trailers\r\n\
                    x-name: Some Value\r\ncontent-length: 0\r\nCookie: a=1; b=2\r\n\r\n";
    assert_eq!(forwarded(text), Ok(Seen::Head { text: expected.to_owned(), ended: true }));
    let text = "GET /a|b?c^d HTTP/1.1\r\nHost: a\r\n\r\n";
    let Ok(Seen::Head { text, .. }) = forwarded(text) else { panic!() };
    assert!(text.starts_with("GET /a%7Cb?c%5Ed HTTP/1.1\r\n"));
    for bad in [
        "",
        "GET / HTTP/1.1\r\n\r\n",
        "GET /\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nx\r\n\r\n",
    ] {
        assert_eq!(forwarded(bad), Err(SendError::Unencodable), "{bad:?}");
    }
}

#[test]
fn a_head_that_fails_half_way_leaves_the_tables_in_order() {
    let mut client = Rig::client(CONFIG, &[]);
    let mut server = Rig::server(CONFIG);
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nX-Again: z\r\n\r\n";
    let plain = b"GET / HTTP/1.1\r\nHost: a\r\nX-Other: z\r\nX-Again: z\r\n\r\n";
    for round in 0..8 {
        let key = client.connection.open();
        let refused = client.connection.send_head(key, upgrade, true);
        assert_eq!(refused, Err(SendError::NoExtendedConnect));
        client.connection.send_head(key, plain, true).unwrap();
        server.feed(&client.bytes());
        let expected = "GET / HTTP/1.1\r\nHost: a\r\nx-other: z\r\nx-again: z\r\n\r\n".to_owned();
        assert_eq!(server.take(), [Seen::Head { text: expected, ended: true }], "round {round}");
    }
}

#[test]
fn an_accepted_upgrade_is_a_200() {
    let mut rig = Rig::server(CONFIG);
    let mut fields = PSEUDO.to_vec();
    fields[0].1 = "CONNECT";
    fields.push((":protocol", "websocket"));
    rig.feed(&frame(HEADERS, END_HEADERS, 1, &block(&fields)));
    let key = rig.keys[0];
    let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: x\r\n\r\n";
    rig.connection.send_head(key, head, false).unwrap();
    let sent = rig.sent();
    assert_eq!((sent[0].kind, &sent[0].payload[..]), (HEADERS, &[0x88][..]));
}

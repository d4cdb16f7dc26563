//! Protocol violations, by the sections of RFC 9113 as in h2spec: each must end the connection or
//! only the stream, with the right error code.

use crate::rig::*;
use http2::{Code, Refusal, SendError};

/// The connection ends.
const CONNECTION: u8 = GOAWAY;
/// The stream ends.
const STREAM: u8 = RST_STREAM;

fn open(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, POST)
}

fn whole(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, GET)
}

/// Name, bytes after the preface and SETTINGS, whether the connection or the stream ends, and the
/// code.
type Case = (&'static str, Vec<u8>, u8, Code);

const PROTOCOL: Code = Code::PROTOCOL_ERROR;
const SIZE: Code = Code::FRAME_SIZE_ERROR;
const CLOSED: Code = Code::STREAM_CLOSED;
const FLOW: Code = Code::FLOW_CONTROL_ERROR;

fn both(first: Vec<u8>, second: Vec<u8>) -> Vec<u8> {
    [first, second].concat()
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

fn head(fields: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 1, fields)
}

/// Sections 4 and 5.
fn of_frames_and_streams() -> Vec<Case> {
    vec![
        ("4.2 DATA too large", both(open(1), frame(DATA, 0, 1, &[0; 16_385])), CONNECTION, SIZE),
        ("4.2 HEADERS too large", frame(HEADERS, 4, 1, &[0; 16_385]), CONNECTION, SIZE),
        ("4.3 not a block", head(&[0xff; 5]), CONNECTION, Code::COMPRESSION_ERROR),
        ("4.3 an index beyond the table", head(&[0xbf]), CONNECTION, Code::COMPRESSION_ERROR),
        (
            "4.3 another frame within a block",
            both(frame(HEADERS, 0, 1, GET), frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 1])),
            CONNECTION,
            PROTOCOL,
        ),
        (
            "4.3 another stream within a block",
            both(frame(HEADERS, 0, 1, GET), frame(CONTINUATION, END_HEADERS, 3, &[])),
            CONNECTION,
            PROTOCOL,
        ),
        ("5.1 DATA of an idle stream", frame(DATA, 1, 1, b"x"), CONNECTION, PROTOCOL),
        ("5.1 RST_STREAM of an idle stream", reset(1), CONNECTION, PROTOCOL),
        ("5.1 WINDOW_UPDATE of an idle stream", window(1, 9), CONNECTION, PROTOCOL),
        (
            "5.1 CONTINUATION of an idle stream",
            frame(CONTINUATION, 4, 1, GET),
            CONNECTION,
            PROTOCOL,
        ),
        ("5.1 DATA after the end", both(whole(1), frame(DATA, 1, 1, b"x")), STREAM, CLOSED),
        ("5.1 HEADERS after the end", both(whole(1), whole(1)), STREAM, CLOSED),
        (
            "5.1 DATA after a reset",
            both(both(open(1), reset(1)), frame(DATA, 1, 1, b"x")),
            CONNECTION,
            CLOSED,
        ),
        ("5.1 HEADERS after a reset", both(both(open(1), reset(1)), whole(1)), CONNECTION, CLOSED),
        ("5.1.1 an even stream", whole(2), CONNECTION, PROTOCOL),
        ("5.1.1 a lower stream", both(whole(5), whole(3)), CONNECTION, CLOSED),
        (
            "5.3.1 PRIORITY on itself",
            both(open(1), frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 1])),
            STREAM,
            PROTOCOL,
        ),
        (
            "5.3.1 HEADERS on itself",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM | WITH_PRIORITY,
                1,
                &[&[0, 0, 0, 1, 1], GET].concat(),
            ),
            STREAM,
            PROTOCOL,
        ),
    ]
}

/// Section 6, frames of streams, and section 8.
fn of_each_frame() -> Vec<Case> {
    vec![
        ("6.1 DATA without a stream", frame(DATA, 0, 0, b"x"), CONNECTION, PROTOCOL),
        (
            "6.1 padding longer than DATA",
            both(open(1), frame(DATA, PADDED, 1, &[9, 1, 1])),
            CONNECTION,
            PROTOCOL,
        ),
        (
            "6.1 DATA padded by nothing",
            both(open(1), frame(DATA, PADDED, 1, &[])),
            CONNECTION,
            PROTOCOL,
        ),
        ("6.2 HEADERS without a stream", frame(HEADERS, 5, 0, GET), CONNECTION, PROTOCOL),
        (
            "6.2 padding longer than HEADERS",
            frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x82]),
            CONNECTION,
            PROTOCOL,
        ),
        ("6.3 PRIORITY without a stream", frame(PRIORITY, 0, 0, &[0; 5]), CONNECTION, PROTOCOL),
        ("6.3 PRIORITY of 4 bytes", both(open(1), frame(PRIORITY, 0, 1, &[0; 4])), STREAM, SIZE),
        ("6.4 RST_STREAM without a stream", reset(0), CONNECTION, PROTOCOL),
        (
            "6.4 RST_STREAM of 3 bytes",
            both(open(1), frame(RST_STREAM, 0, 1, &[0; 3])),
            CONNECTION,
            SIZE,
        ),
        (
            "6.10 CONTINUATION after the end",
            both(open(1), frame(CONTINUATION, 4, 1, &[])),
            CONNECTION,
            PROTOCOL,
        ),
        (
            "8.1 trailers that do not end",
            both(open(1), frame(HEADERS, END_HEADERS, 1, &literal(b"a", b"b"))),
            STREAM,
            PROTOCOL,
        ),
        (
            "8.1 pseudo-header fields in trailers",
            both(open(1), frame(HEADERS, 5, 1, &[0x82])),
            STREAM,
            PROTOCOL,
        ),
    ]
}

/// Section 6, frames of the connection, and windows.
fn of_the_connection() -> Vec<Case> {
    vec![
        (
            "6.5 SETTINGS that acknowledge",
            frame(SETTINGS, ACK, 0, &setting(3, 1)),
            CONNECTION,
            SIZE,
        ),
        ("6.5 SETTINGS of a stream", frame(SETTINGS, 0, 1, &[]), CONNECTION, PROTOCOL),
        ("6.5 SETTINGS of 3 bytes", frame(SETTINGS, 0, 0, &[0; 3]), CONNECTION, SIZE),
        ("6.5.2 ENABLE_PUSH 2", frame(SETTINGS, 0, 0, &setting(2, 2)), CONNECTION, PROTOCOL),
        ("6.5.2 a window of 2^31", frame(SETTINGS, 0, 0, &setting(4, 1 << 31)), CONNECTION, FLOW),
        ("6.5.2 small frames", frame(SETTINGS, 0, 0, &setting(5, 16_383)), CONNECTION, PROTOCOL),
        ("6.5.2 large frames", frame(SETTINGS, 0, 0, &setting(5, 1 << 24)), CONNECTION, PROTOCOL),
        ("6.6 PUSH_PROMISE", frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), CONNECTION, PROTOCOL),
        ("6.7 PING of a stream", frame(PING, 0, 1, &[0; 8]), CONNECTION, PROTOCOL),
        ("6.7 PING of 6 bytes", frame(PING, 0, 0, &[0; 6]), CONNECTION, SIZE),
        ("6.8 GOAWAY of a stream", frame(GOAWAY, 0, 1, &[0; 8]), CONNECTION, PROTOCOL),
        ("6.8 GOAWAY of 7 bytes", frame(GOAWAY, 0, 0, &[0; 7]), CONNECTION, SIZE),
        ("6.9 WINDOW_UPDATE by 0", window(0, 0), CONNECTION, PROTOCOL),
        ("6.9 WINDOW_UPDATE by 0 of a stream", both(open(1), window(1, 0)), STREAM, PROTOCOL),
        ("6.9 WINDOW_UPDATE of 3 bytes", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), CONNECTION, SIZE),
        ("6.9.1 a window that overflows", window(0, 0x7fff_ffff), CONNECTION, FLOW),
        ("6.9.1 a stream's that overflows", both(open(1), window(1, 0x7fff_ffff)), STREAM, FLOW),
        (
            "9218 7.1 PRIORITY_UPDATE of a stream",
            frame(PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1]),
            CONNECTION,
            PROTOCOL,
        ),
    ]
}

/// Content that does not match content-length or exceeds a window.
fn of_content() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, sent) in [("8.1.1 too much", 5), ("8.1.1 too little", 3)] {
        let fields = [POST, &literal(b"content-length", b"4")].concat();
        let head = frame(HEADERS, END_HEADERS, 1, &fields);
        cases.push((name, both(head, frame(DATA, 1, 1, &[7; 9][..sent])), STREAM, PROTOCOL));
    }
    let mut too_much = open(1);
    for _ in 0..5 {
        too_much.extend(frame(DATA, 0, 1, &[0; 16_384]));
    }
    cases.push(("6.9.1 DATA beyond the stream's window", too_much, STREAM, FLOW));
    let mut too_much = Vec::new();
    for stream in 0..20 {
        too_much.extend(open(2 * stream + 1));
        for _ in 0..4 {
            too_much.extend(frame(DATA, 0, 2 * stream + 1, &[0; 16_000]));
        }
    }
    cases.push(("6.9.1 DATA beyond the connection's window", too_much, CONNECTION, FLOW));
    cases
}

#[test]
fn violations_end_what_the_rfc_says() {
    let cases = [of_frames_and_streams(), of_each_frame(), of_the_connection(), of_content()];
    for (name, bytes, what, code) in cases.concat() {
        for size in [1, 10, bytes.len()] {
            let mut rig = Rig::server(CONFIG);
            bytes.chunks(size).for_each(|piece| rig.feed(piece));
            assert_eq!(rig.errors(), [(what, code)], "{name}, in pieces of {size}");
            assert_eq!(rig.connection.has_failed(), what == CONNECTION, "{name}");
            // After a stream error the connection still works.
            if what == STREAM {
                rig.take();
                rig.feed(&whole(101));
                assert!(matches!(rig.take()[..], [Seen::Head { .. }]), "{name}");
            }
        }
    }
}

#[test]
fn a_connection_begins_with_its_preface_and_settings() {
    let request = whole(1);
    for (name, bytes) in [
        ("no preface", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("no settings", [http2::PREFACE, &request].concat()),
        (
            "settings that acknowledge what was not sent",
            [http2::PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(),
        ),
    ] {
        let mut rig = Rig::new(http2::Role::Server, CONFIG);
        rig.sent();
        rig.feed(&bytes);
        assert_eq!(rig.errors(), [(GOAWAY, Code::PROTOCOL_ERROR)], "{name}");
        rig.feed(b"anything");
        assert!(rig.sent().is_empty() && rig.take().len() == 1, "{name}");
    }
}

#[test]
fn more_streams_than_allowed_are_refused_and_may_be_sent_again() {
    let mut rig = Rig::server(http2::Config { streams_max: 2, ..CONFIG });
    for stream in [1, 3, 5] {
        rig.feed(&open(stream));
    }
    assert_eq!(rig.take()[2], Seen::Refused(Refusal::TooManyStreams));
    assert_eq!(rig.errors(), [(RST_STREAM, Code::REFUSED_STREAM)]);
    let key = rig.keys[0];
    rig.connection.release(key);
    rig.feed(&open(7));
    assert!(matches!(rig.take()[..], [Seen::Head { .. }]));
}

#[test]
fn frames_of_a_stream_that_was_reset_here_pass_unnoticed() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&open(1));
    let key = rig.keys[0];
    rig.connection.reset(key, Code::CANCEL);
    rig.take();
    rig.sent();
    rig.feed(&frame(DATA, 0, 1, b"late"));
    rig.feed(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]));
    rig.feed(&frame(HEADERS, 5, 1, &literal(b"late", b"trailer")));
    rig.feed(&frame(RST_STREAM, 0, 1, &[0; 4]));
    assert!(rig.take().is_empty() && rig.errors().is_empty());
}

/// The owner may not have noticed that the connection has failed.
#[test]
fn nothing_follows_the_goaway_of_a_failed_connection() {
    let mut rig = Rig::server(CONFIG);
    for stream in [1, 3, 5, 7] {
        rig.feed(&open(stream));
        rig.feed(&frame(DATA, 0, stream, &[0; 16_384]));
    }
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    rig.connection.send_head(rig.keys[0], head, false).unwrap();
    rig.sent();
    rig.feed(&frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]));
    assert_eq!(rig.errors(), [(GOAWAY, Code::PROTOCOL_ERROR)]);
    let now = rig.now;
    let sent = rig.connection.send_data(rig.keys[0], b"late", false, now);
    assert_eq!(sent, Err(SendError::Ended));
    let sent = rig.connection.send_trailers(rig.keys[0], b"X-Sum: 1\r\n");
    assert_eq!(sent, Err(SendError::Ended));
    assert_eq!(rig.connection.send_head(rig.keys[1], head, true), Err(SendError::Ended));
    rig.connection.reset(rig.keys[2], Code::CANCEL);
    rig.connection.consumed(rig.keys[3], 16_384, now);
    for key in std::mem::take(&mut rig.keys) {
        rig.connection.release(key);
    }
    assert!(rig.sent().is_empty() && rig.connection.streams() == 0);
}

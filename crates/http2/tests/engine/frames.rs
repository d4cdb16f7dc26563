//! Valid frames, however they are split.

use crate::rig::*;
use http2::{Code, Ended, PREFACE};

fn a_connection() -> Vec<u8> {
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(SETTINGS, ACK, 0, &[]),
        frame(0xbe, 0xff, 0, b"an unknown type"),
        frame(PRIORITY, 0, 9, &[0, 0, 0, 1, 7]),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, GET),
        frame(PING, 0, 0, b"12345678"),
        // A head in three frames, with padding and priority.
        frame(
            HEADERS,
            PADDED | WITH_PRIORITY,
            3,
            &[&[2, 0, 0, 0, 0, 16], &POST[..2], &[0, 0]].concat(),
        ),
        frame(CONTINUATION, 0, 3, &POST[2..4]),
        frame(CONTINUATION, END_HEADERS, 3, &POST[4..]),
        frame(DATA, 0, 3, b"some "),
        frame(DATA, PADDED, 3, b"\x03content\0\0\0"),
        frame(DATA, PADDED, 3, b"\x02\0\0"),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &literal(b"grpc-status", b"0")),
        frame(HEADERS, END_HEADERS, 5, POST),
        frame(DATA, END_STREAM, 5, b""),
        frame(HEADERS, END_HEADERS, 7, POST),
        frame(RST_STREAM, 0, 7, &8_u32.to_be_bytes()),
        frame(GOAWAY, 0, 0, &[0; 8]),
    ]
    .concat()
}

#[test]
fn the_same_happens_however_the_bytes_are_split() {
    let head = |line: &str, rest: &str, ended| Seen::Head {
        text: format!("{line} / HTTP/1.1\r\nHost: a\r\n{rest}\r\n"),
        ended,
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    let expected = [
        head("GET", "", true),
        head("POST", chunked, false),
        Seen::Data { bytes: b"some content".to_vec(), ended: false },
        Seen::Trailers("grpc-status: 0\r\n".to_owned()),
        head("POST", chunked, false),
        Seen::Data { bytes: Vec::new(), ended: true },
        head("POST", chunked, false),
        Seen::Ended(Ended::ByPeer(Code::CANCEL)),
        Seen::GoingAway(Code::NO_ERROR),
    ];
    let bytes = a_connection();
    for size in (1..80).chain([bytes.len()]) {
        let mut rig = Rig::new(http2::Role::Server, CONFIG);
        rig.sent();
        bytes.chunks(size).for_each(|piece| rig.feed(piece));
        let mut joined: Vec<Seen> = Vec::new();
        for seen in rig.take() {
            match (joined.last_mut(), seen) {
                (
                    Some(Seen::Data { bytes, ended: before @ false }),
                    Seen::Data { bytes: more, ended },
                ) => {
                    bytes.extend(more);
                    *before = ended;
                }
                (_, seen) => joined.push(seen),
            }
        }
        assert_eq!(joined, expected, "in pieces of {size}");
        let kinds: Vec<_> = rig.sent().iter().map(|sent| (sent.kind, sent.flags)).collect();
        assert_eq!(kinds, [(SETTINGS, ACK), (PING, ACK)], "in pieces of {size}");
    }
}

#[test]
fn credit_returns_when_content_is_consumed_and_not_before() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, END_HEADERS, 1, POST));
    let key = rig.keys[0];
    for _ in 0..3 {
        rig.feed(&frame(DATA, 0, 1, &[0; 16_384]));
    }
    assert!(rig.sent().is_empty());
    rig.connection.consumed(key, 16_384, rig.now);
    assert!(rig.sent().is_empty(), "less than half of the window");
    rig.connection.consumed(key, 2 * 16_384, rig.now);
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].kind, sent[0].stream), (1, WINDOW_UPDATE, 1));
    assert_eq!(sent[0].number(), 3 * 16_384);
    // Padding and discarded content are credited to the connection at once.
    rig.connection.reset(key, Code::CANCEL);
    rig.sent();
    for _ in 0..40 {
        rig.feed(&frame(DATA, 0, 1, &[0; 16_000]));
    }
    let credited: u32 = rig.sent().iter().filter(|sent| sent.stream == 0).map(Sent::number).sum();
    assert!((524_288..=700_000).contains(&credited), "{credited}");
    assert!(rig.take().iter().all(|seen| !matches!(seen, Seen::Violation(_))));
}

/// Otherwise each abandoned request would reduce the connection's window permanently.
#[test]
fn content_that_is_never_consumed_is_credited_with_its_stream() {
    let mut rig = Rig::server(CONFIG);
    let mut credited = 0;
    for stream in (1..200).step_by(2) {
        rig.feed(&frame(HEADERS, END_HEADERS, stream, POST));
        let data = frame(DATA, 0, stream, &[0; 16_000]);
        // The stream is released in the middle of a frame.
        rig.feed(&data[..9_000]);
        let key = *rig.keys.last().unwrap();
        rig.connection.consumed(key, 1_000, rig.now);
        rig.connection.release(key);
        rig.connection.consumed(key, 1_000_000, rig.now);
        rig.feed(&data[9_000..]);
        credited +=
            rig.sent().iter().filter(|sent| sent.stream == 0).map(Sent::number).sum::<u32>();
    }
    assert!(!rig.connection.has_failed());
    let received = 100 * 16_000;
    assert!((received - 524_288..=received).contains(&credited), "{credited}");
}

#[test]
fn leaving_serves_what_crosses_and_refuses_what_comes_later() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET));
    rig.connection.go_away();
    let sent = rig.sent();
    assert_eq!((sent[0].kind, sent[0].number()), (GOAWAY, 0x7fff_ffff));
    rig.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 3, GET));
    rig.feed(&frame(PING, ACK, 0, &sent[1].payload));
    let sent = rig.sent();
    assert_eq!((sent[0].kind, sent[0].number()), (GOAWAY, 3));
    rig.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 5, GET));
    assert_eq!(rig.errors(), [(RST_STREAM, Code::REFUSED_STREAM)]);
    assert_eq!(rig.take().len(), 2, "two requests are served");
}

#[test]
fn streams_above_the_last_of_goaway_were_not_processed() {
    let mut rig = Rig::client(CONFIG, &[]);
    for _ in 0..3 {
        let key = rig.connection.open();
        rig.connection.send_head(key, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true).unwrap();
    }
    assert!(rig.connection.accepts_requests());
    let later = rig.connection.open();
    rig.feed(&frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]));
    let unprocessed = Seen::Ended(Ended::Unprocessed);
    assert_eq!(rig.take(), [Seen::GoingAway(Code::NO_ERROR), unprocessed.clone(), unprocessed]);
    assert!(!rig.connection.accepts_requests());
    let sent = rig.connection.send_head(later, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true);
    assert_eq!(sent, Err(http2::SendError::Leaving));
    rig.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]));
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned();
    assert_eq!(rig.take(), [Seen::Head { text, ended: true }]);
}

#[test]
fn what_is_given_up_is_reset_by_the_code_that_says_why() {
    for (ended, answered, code) in [
        (true, 2, None),
        (false, 2, Some(Code::NO_ERROR)),
        (true, 1, Some(Code::INTERNAL_ERROR)),
        (true, 0, Some(Code::INTERNAL_ERROR)),
    ] {
        let mut rig = Rig::server(CONFIG);
        let flags = if ended { END_HEADERS | END_STREAM } else { END_HEADERS };
        rig.feed(&frame(HEADERS, flags, 1, POST));
        let key = rig.keys[0];
        if answered > 0 {
            let head = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n";
            rig.connection.send_head(key, head, answered == 2).unwrap();
        }
        rig.connection.release(key);
        let expected: Vec<_> = code.map(|code| (RST_STREAM, code)).into_iter().collect();
        assert_eq!(rig.errors(), expected);
        assert_eq!(rig.connection.streams(), 0);
        // The key is invalid.
        assert!(rig.connection.send_head(key, b"HTTP/1.1 200 OK\r\n\r\n", true).is_err());
    }
}

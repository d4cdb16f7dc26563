//! What a peer can make a connection hold or do stays bounded, and ordinary peers are not affected.

use std::time::Duration;

use http2::{Code, Ended};

use crate::rig::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

fn credited(sent: &[Sent], stream: u32) -> u32 {
    let updates = sent.iter().filter(|sent| sent.kind == WINDOW_UPDATE && sent.stream == stream);
    updates.map(Sent::number).sum()
}

/// Streams that are reset while they wait for the connection's window: they must leave the queue.
#[test]
fn streams_that_end_do_not_stay_in_the_queue() {
    let mut rig = Rig::server(CONFIG);
    let mut number = 0;
    let mut begin = |rig: &mut Rig| {
        number += 1;
        rig.feed(&frame(HEADERS, 5, 2 * number - 1, GET));
        let key = *rig.keys.last().unwrap();
        rig.connection.send_head(key, OK, false).unwrap();
        (2 * number - 1, key)
    };
    let (_, first) = begin(&mut rig);
    let content = vec![0; 60_000];
    while let Ok(1..) = rig.connection.send_data(first, &content, false, rig.now) {
        rig.sent();
    }
    assert_eq!(rig.connection.send_window(), 0);
    for _ in 0..5_000 {
        let (reset, key) = begin(&mut rig);
        assert_eq!(rig.connection.send_data(key, b"x", false, rig.now), Ok(0));
        rig.feed(&frame(RST_STREAM, 0, reset, &8_u32.to_be_bytes()));
        rig.connection.release(key);
        // Others are served, or half of all streams would be reset.
        let (_, other) = begin(&mut rig);
        rig.connection.send_data(other, &[], true, rig.now).unwrap();
        rig.connection.release(other);
        rig.sent();
    }
    rig.feed(&window(0, 10));
    rig.feed(&window(1, 10));
    assert!(!rig.connection.has_failed());
    assert_eq!(rig.connection.next_writable(), Some(first), "the only one that waits");
    assert_eq!(rig.connection.next_writable(), None);
}

/// As Go's client does: two updates for each 4 KiB that it reads.
#[test]
fn a_client_that_updates_its_windows_often_is_served() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, 5, 1, GET));
    let key = rig.keys[0];
    rig.connection.send_head(key, OK, false).unwrap();
    let mut left: usize = 64 << 20;
    while left > 0 {
        let sent = rig.connection.send_data(key, &[0; 16_384], false, rig.now).unwrap();
        assert!(!rig.connection.has_failed(), "{left} bytes were left");
        left = left.saturating_sub(sent);
        let content: usize =
            rig.sent().iter().filter(|sent| sent.kind == DATA).map(|sent| sent.payload.len()).sum();
        for _ in 0..content.div_ceil(4096) {
            rig.feed(&window(0, 4096));
            rig.feed(&window(1, 4096));
        }
        while rig.connection.next_writable().is_some() {}
    }
}

#[test]
fn padding_alone_is_credited() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, END_HEADERS, 1, POST));
    let padding = [&[255][..], &[0; 255]].concat();
    for _ in 0..1_000 {
        rig.feed(&frame(DATA, PADDED, 1, &padding));
    }
    let credited = credited(&rig.sent(), 1);
    assert!((256_000 - 65_535..=256_000).contains(&credited), "{credited}");
    assert!(!rig.connection.has_failed());
}

/// Windows that have grown for a stream are taken back after its end.
#[test]
fn the_connections_window_does_not_grow_with_each_stream() {
    let config = http2::Config { window_max_bytes: 1 << 20, ..CONFIG };
    let mut rig = Rig::server(config);
    let (mut received, mut returned) = (0_u64, 0_u64);
    for stream in (1..80).step_by(2) {
        rig.feed(&frame(HEADERS, END_HEADERS, stream, POST));
        let key = *rig.keys.last().unwrap();
        for _ in 0..200 {
            rig.now = rig.now + Duration::from_micros(200);
            rig.feed(&frame(DATA, 0, stream, &[0; 16_384]));
            received += 16_384;
            rig.connection.consumed(key, 16_384, rig.now);
            let sent = rig.sent();
            returned += u64::from(credited(&sent, 0));
            if sent.iter().any(|sent| sent.kind == PING) {
                rig.feed(&frame(PING, ACK, 0, b"weir-bdp"));
            }
        }
        rig.connection.release(key);
        rig.take();
    }
    assert!(!rig.connection.has_failed());
    // The window was grown once at most, not for each stream.
    assert!(returned <= received + (1 << 20), "{returned} of {received}");
}

#[test]
fn goaway_never_names_a_later_stream_than_before() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, 5, 1, GET));
    rig.connection.go_away();
    // The client does not acknowledge it.
    rig.connection.go_away_finally();
    let lasts = |rig: &mut Rig| {
        let frames = rig.sent();
        let lasts = frames.iter().filter(|sent| sent.kind == GOAWAY).map(Sent::number);
        lasts.collect::<Vec<_>>()
    };
    assert_eq!(lasts(&mut rig), [0x7fff_ffff, 1]);
    for stream in [3, 5] {
        rig.feed(&frame(HEADERS, 5, stream, GET));
    }
    assert_eq!(rig.take().len(), 1, "only the first is served");
    rig.feed(&frame(DATA, 0, 9, b"x"));
    assert_eq!(lasts(&mut rig), [1]);
    assert!(rig.connection.has_failed());
}

/// Frames that are answered by nothing must not be free either.
#[test]
fn frames_without_effect_are_counted() {
    type Make = fn(u32) -> Vec<u8>;
    let floods: [(&str, Make); 4] = [
        ("GOAWAY", |_| frame(GOAWAY, 0, 0, &[0; 8])),
        ("answers to no probe", |_| frame(PING, ACK, 0, b"weir-bdp")),
        ("answers to no GOAWAY", |_| frame(PING, ACK, 0, b"weir-bye")),
        ("requests after GOAWAY", |n| frame(HEADERS, 5, 2 * n + 1, GET)),
    ];
    for (name, make) in floods {
        let mut rig = Rig::server(CONFIG);
        if name.starts_with("requests") {
            rig.connection.go_away();
            rig.connection.go_away_finally();
        }
        let ends = (0..5_000).find(|&number| {
            rig.feed(&make(number));
            rig.connection.has_failed()
        });
        assert!(ends.is_some(), "{name}");
        assert_eq!(rig.seen.last(), Some(&Seen::Violation(Code::ENHANCE_YOUR_CALM)), "{name}");
    }
}

/// Content of which nothing is used must not pay for other frames.
#[test]
fn content_that_is_received_earns_nothing() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, END_HEADERS, 1, POST));
    let key = rig.keys[0];
    rig.connection.reset(key, Code::CANCEL);
    let flood = [frame(DATA, 0, 1, b"x"), frame(PING, 0, 0, &[0; 8])].concat();
    let ends = (0..5_000).find(|_| {
        rig.feed(&flood);
        rig.sent();
        rig.connection.has_failed()
    });
    assert!(ends.is_some());
}

#[test]
fn informational_responses_are_bounded_for_each_stream() {
    let mut rig = Rig::client(CONFIG, &[]);
    let key = rig.connection.open();
    rig.connection.send_head(key, REQUEST, true).unwrap();
    let early_hints = frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']);
    let mut count = 0;
    while !matches!(rig.seen.last(), Some(Seen::Ended(_))) {
        rig.feed(&early_hints);
        count += 1;
        assert!(count < 100);
    }
    assert_eq!(count, 17);
    let Some(Seen::Ended(Ended::Violation(violation))) = rig.seen.last() else { panic!() };
    assert_eq!(violation.code, Code::PROTOCOL_ERROR);
    assert!(!rig.connection.has_failed(), "other streams go on");
}

/// Heads of requests that the server does not read are not the server's fault.
#[test]
fn a_server_that_reads_slowly_is_not_blamed_for_the_requests() {
    let mut rig = Rig::client(CONFIG, &[]);
    for _ in 0..40 {
        let key = rig.connection.open();
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(60_000));
        rig.connection.send_head(key, head.as_bytes(), true).unwrap();
    }
    assert!(rig.connection.unsent() > 2_000_000);
    rig.feed(&frame(HEADERS, 5, 1, &[0x88]));
    assert!(!rig.connection.has_failed());
    assert!(matches!(rig.take().as_slice(), [Seen::Head { .. }]));
}

#[test]
fn a_connection_whose_output_is_not_read_is_congested() {
    let mut rig = Rig::server(CONFIG);
    for number in 0..1_000 {
        rig.feed(&frame(PING, 0, 0, &[7; 8]));
        if rig.connection.is_congested() {
            assert!(number > 500);
            rig.sent();
            assert!(!rig.connection.is_congested() && !rig.connection.has_failed());
            return;
        }
    }
    panic!("never");
}

#[test]
fn an_unfinished_frame_is_visible() {
    let mut rig = Rig::server(CONFIG);
    assert_eq!(rig.connection.incomplete_frame(), None);
    rig.feed(&frame(HEADERS, 0, 1, GET));
    let block = rig.connection.incomplete_frame();
    assert!(block.is_some(), "a block that continues");
    rig.feed(&frame(CONTINUATION, 0, 1, &[]));
    assert_eq!(rig.connection.incomplete_frame(), block, "the same");
    let end = frame(CONTINUATION, END_HEADERS, 1, &[]);
    let next = frame(HEADERS, 5, 3, GET);
    rig.feed(&[&end, &next[..11]].concat());
    let frame = rig.connection.incomplete_frame();
    assert!(frame.is_some() && frame != block, "another");
    rig.feed(&next[11..]);
    assert_eq!(rig.connection.incomplete_frame(), None);
}

/// A smaller table may only be used once the peer knows that it is: an acknowledgement must follow
/// the blocks that refer to the larger one.
#[test]
fn settings_are_acknowledged_after_the_frames_before_them() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, 5, 1, GET));
    let key = rig.keys[0];
    rig.connection.send_head(key, OK, true).unwrap();
    rig.feed(&frame(SETTINGS, 0, 0, &setting(1, 0)));
    rig.feed(&frame(PING, 0, 0, &[7; 8]));
    let kinds: Vec<u8> = rig.sent().iter().map(|sent| sent.kind).collect();
    assert_eq!(kinds, [PING, HEADERS, SETTINGS]);
}

/// A stream whose window was made smaller after it had queued must not use up a turn.
#[test]
fn a_turn_is_not_given_to_a_stream_that_cannot_use_it() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&window(0, 1 << 20));
    let mut keys = Vec::new();
    for stream in [1, 3, 5] {
        rig.feed(&frame(HEADERS, 5, stream, GET));
        keys.push(*rig.keys.last().unwrap());
        rig.connection.send_head(*keys.last().unwrap(), OK, false).unwrap();
    }
    let content = vec![0; 65_000];
    for &key in &keys {
        while let Ok(1..) = rig.connection.send_data(key, &content, false, rig.now) {}
    }
    // The windows of the first two are shut by settings; the third's is opened again.
    rig.feed(&frame(SETTINGS, 0, 0, &setting(4, 0)));
    rig.feed(&window(5, 65_535));
    rig.sent();
    assert!(rig.connection.has_writable());
    assert_eq!(rig.connection.next_writable(), Some(keys[2]));
    assert_eq!(rig.connection.next_writable(), None);
}

#[test]
fn small_pieces_share_a_frame_while_they_wait() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(HEADERS, 5, 1, GET));
    let key = rig.keys[0];
    rig.connection.send_head(key, OK, false).unwrap();
    for piece in [&b"a"[..], b"b", b"c"] {
        assert_eq!(rig.connection.send_data(key, piece, false, rig.now), Ok(1));
    }
    assert_eq!(rig.connection.send_data(key, b"d", true, rig.now), Ok(1));
    let sent = rig.sent();
    let data: Vec<_> = sent.iter().filter(|sent| sent.kind == DATA).collect();
    assert_eq!(data.len(), 1);
    assert_eq!((data[0].payload.as_slice(), data[0].flags), (&b"abcd"[..], END_STREAM));
}

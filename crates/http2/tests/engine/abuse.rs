//! Floods: each must end its connection. Ordinary traffic must not.

use std::time::Duration;

use crate::rig::*;
use http2::{Code, Ended};

/// Feeds the output of `make` until the connection ends; returns the number of calls.
fn until_it_ends(name: &str, rig: &mut Rig, mut make: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for number in 0..100_000 {
        rig.feed(&make(number));
        // The peer reads the responses.
        let errors = rig.errors();
        if rig.connection.has_failed() {
            assert_eq!(errors.last(), Some(&(GOAWAY, Code::ENHANCE_YOUR_CALM)), "{name}");
            assert_eq!(rig.seen.last(), Some(&Seen::Violation(Code::ENHANCE_YOUR_CALM)), "{name}");
            return number;
        }
    }
    panic!("{name} never ends");
}

#[test]
fn floods_end_their_connection() {
    let open = |stream: u32| frame(HEADERS, END_HEADERS, stream, POST);
    let reset = |stream: u32| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    let window = |stream: u32, more: u32| frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    type Make = Box<dyn Fn(u32) -> Vec<u8>>;
    let floods: Vec<(&str, Make)> = vec![
        ("PING", Box::new(|_| frame(PING, 0, 0, &[7; 8]))),
        ("PING that acknowledge", Box::new(|_| frame(PING, ACK, 0, &[7; 8]))),
        ("SETTINGS", Box::new(|_| frame(SETTINGS, 0, 0, &setting(3, 1)))),
        ("SETTINGS that acknowledge", Box::new(|_| frame(SETTINGS, ACK, 0, &[]))),
        ("PRIORITY", Box::new(|n| frame(PRIORITY, 0, 2 * n + 1, &[0, 0, 0, 0, 1]))),
        ("PRIORITY_UPDATE", Box::new(|n| frame(PRIORITY_UPDATE, 0, 0, &(2 * n + 1).to_be_bytes()))),
        ("unknown frames", Box::new(|_| frame(0x77, 0, 0, &[]))),
        ("windows", Box::new(move |_| window(0, 1))),
        // Rapid Reset, CVE-2023-44487.
        ("resets", Box::new(move |n| [open(2 * n + 1), reset(2 * n + 1)].concat())),
        // MadeYouReset, CVE-2025-8671: the server is made to reset.
        ("made resets", Box::new(move |n| [open(2 * n + 1), window(2 * n + 1, 0)].concat())),
        ("malformed", Box::new(|n| frame(HEADERS, 5, 2 * n + 1, &[0x82]))),
        ("too many streams", Box::new(move |n| open(2 * n + 1))),
        // CVE-2019-9518.
        ("empty DATA", Box::new(move |n| if n == 0 { open(1) } else { frame(DATA, 0, 1, &[]) })),
        // CVE-2024-27316.
        (
            "CONTINUATION",
            Box::new(|n| {
                let first = [GET, &literal(b"x", &[b'y'; 16_000])].concat();
                let more = literal(b"x", &[b'y'; 16_000]);
                if n == 0 { frame(HEADERS, 0, 1, &first) } else { frame(CONTINUATION, 0, 1, &more) }
            }),
        ),
        (
            "empty CONTINUATION",
            Box::new(|n| {
                if n == 0 { frame(HEADERS, 0, 1, GET) } else { frame(CONTINUATION, 0, 1, &[]) }
            }),
        ),
    ];
    for (name, make) in floods {
        let mut rig = Rig::server(CONFIG);
        let took = until_it_ends(name, &mut rig, make);
        println!("{name}: {took}");
        assert!(took < 4_100, "{name}: {took}");
    }
}

#[test]
fn ordinary_traffic_is_not_a_flood() {
    let mut rig = Rig::server(CONFIG);
    for number in 0..20_000_u32 {
        let stream = 2 * number + 1;
        rig.now = rig.now + Duration::from_millis(20);
        rig.feed(&frame(HEADERS, END_HEADERS, stream, POST));
        rig.feed(&frame(DATA, 0, stream, b"x"));
        rig.feed(&frame(DATA, END_STREAM, stream, b""));
        rig.feed(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]));
        rig.feed(&frame(PING, 0, 0, &[0; 8]));
        rig.feed(&frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1]));
        // One in three is cancelled, as by users who navigate away.
        if number % 3 == 0 {
            rig.feed(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        }
        let key = *rig.keys.last().unwrap();
        let _ = rig.connection.send_head(key, b"HTTP/1.1 200 OK\r\n\r\n", true);
        rig.connection.release(key);
        rig.connection.consumed(key, 1, rig.now);
        rig.sent();
        rig.take();
    }
    assert!(!rig.connection.has_failed());
}

/// A client that does not read, and sends frames that require responses.
#[test]
fn a_client_that_does_not_read_responses_is_disconnected() {
    let mut rig = Rig::server(CONFIG);
    for number in 0..1_000_000 {
        rig.now = rig.now + Duration::from_millis(10);
        rig.feed(&frame(PING, 0, 0, &[7; 8]));
        if rig.connection.has_failed() {
            println!("{number} pings");
            let waits: usize = rig.connection.output().iter().map(|part| part.len()).sum();
            assert!(waits < 70_000, "{waits}");
            return;
        }
    }
    panic!("never ends");
}

/// CVE-2019-9511: windows that open by a byte at a time.
#[test]
fn tiny_windows_end_their_connection() {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(SETTINGS, 0, 0, &setting(4, 1)));
    rig.feed(&frame(HEADERS, 5, 1, GET));
    let key = rig.keys[0];
    rig.connection.send_head(key, b"HTTP/1.1 200 OK\r\n\r\n", false).unwrap();
    rig.sent();
    let took =
        until_it_ends("tiny windows", &mut rig, |_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]));
    // Nothing was sent: only updates count.
    assert!(took > 1_000);
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(SETTINGS, 0, 0, &setting(4, 1)));
    rig.feed(&frame(HEADERS, 5, 1, GET));
    let key = rig.keys[0];
    rig.connection.send_head(key, b"HTTP/1.1 200 OK\r\n\r\n", false).unwrap();
    for number in 0..10_000 {
        let sent = rig.connection.send_data(key, &[1; 5_000], true, rig.now);
        if rig.connection.has_failed() {
            println!("{number} bytes");
            assert!(number < 500);
            return;
        }
        assert_eq!(sent, Ok(1));
        rig.feed(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]));
        rig.sent();
    }
    panic!("never ends");
}

/// A short block that decodes to a long head: every byte refers to a long field.
#[test]
fn a_compression_bomb_takes_no_memory() {
    let mut rig = Rig::server(CONFIG);
    let mut block = GET.to_vec();
    block.push(0x40);
    block.extend_from_slice(&literal(b"x", &[b'y'; 3_900])[1..]);
    rig.feed(&frame(HEADERS, 5, 1, &block));
    for number in 1..50_u32 {
        let mut bomb = GET.to_vec();
        bomb.extend_from_slice(&[0xbe; 16_000]);
        rig.feed(&frame(HEADERS, 5, 2 * number + 1, &bomb));
    }
    let refused = rig.take().len() - 1;
    assert_eq!(refused, 49);
    assert!(!rig.connection.has_failed());
}

#[test]
fn a_server_that_floods_is_disconnected_too() {
    for (name, bytes) in [
        ("informational responses", frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3'])),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[])),
    ] {
        let mut rig = Rig::client(CONFIG, &[]);
        let key = rig.connection.open();
        rig.connection.send_head(key, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true).unwrap();
        rig.sent();
        assert!(until_it_ends(name, &mut rig, |_| bytes.clone()) < 4_100);
    }
    // It may reset each of its responses.
    let mut rig = Rig::client(CONFIG, &[]);
    for number in 0..1_000_u32 {
        let key = rig.connection.open();
        rig.connection.send_head(key, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true).unwrap();
        let reset = frame(RST_STREAM, 0, 2 * number + 1, &7_u32.to_be_bytes());
        rig.feed(&reset);
        assert_eq!(rig.take(), [Seen::Ended(Ended::Unprocessed)]);
        rig.connection.release(key);
        rig.sent();
    }
}

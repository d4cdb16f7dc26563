//! Any bytes as the input of an HTTP/2 connection in either role: frames, header blocks, windows.
//! The events must not depend on how the bytes are split; the parser must accept or refuse each
//! request as one whole head; the output must consist of whole frames.
#![no_main]

use http2::{Config, Connection, Event, PREFACE, Role, Scratch, StreamKey, WebSocket};
use libfuzzer_sys::fuzz_target;
use model::Moment;
use wire::http1::{HeadLimits, Parsed, RequestHead, parse_request};

const CONFIG: Config = Config {
    streams_max: 10,
    head_max_bytes: 2048,
    window_bytes: 1000,
    window_max_bytes: 10_000,
    connection_window_bytes: 70_000,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 8192, target_max_bytes: 4096, fields_max: 128 };

fuzz_target!(|data: &[u8]| {
    let (&[role, step], data) = data.split_first_chunk().unwrap_or((&[0, 0], &[]));
    let role = match role % 3 {
        0 => Role::Server,
        is_https => Role::Client { is_https: is_https == 1 },
    };
    let whole = run(role, data, usize::MAX);
    let split = run(role, data, usize::from(step) + 1);
    assert_eq!(whole, split);
});

/// Has `data` arrive in pieces; returns what happened, with adjacent content as one.
fn run(role: Role, data: &[u8], step: usize) -> Vec<String> {
    let mut connection = Connection::new(role, CONFIG, Moment::ZERO);
    let mut scratch = Scratch::default();
    let mut happened: Vec<String> = Vec::new();
    let mut out = Vec::new();
    let settings = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    if role == Role::Server {
        feed(&mut connection, &mut scratch, PREFACE, &mut happened);
    }
    feed(&mut connection, &mut scratch, settings, &mut happened);
    if role != Role::Server {
        for _ in 0..3 {
            let key = connection.open();
            let text = b"POST /a HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
            connection.send_head(key, text, false).unwrap();
        }
    }
    for piece in data.chunks(step) {
        feed(&mut connection, &mut scratch, piece, &mut happened);
        let output = connection.output().concat();
        connection.sent(output.len());
        out.extend(output);
    }
    let frames = match role {
        Role::Server => &out[..],
        Role::Client { .. } => out.strip_prefix(PREFACE).unwrap_or(&out),
    };
    check_frames(frames);
    happened
}

fn feed(
    connection: &mut Connection,
    scratch: &mut Scratch,
    mut rest: &[u8],
    happened: &mut Vec<String>,
) {
    loop {
        let (taken, event) = connection.receive(rest, scratch, Moment::ZERO);
        rest = &rest[taken..];
        let Some(event) = event else {
            assert!(rest.is_empty());
            return;
        };
        match event {
            Event::Data { stream, data, ended } => {
                connection.consumed(stream, data.len(), Moment::ZERO);
                let begins = format!("{stream:?} content");
                if happened.last().is_none_or(|last| !last.starts_with(&begins)) {
                    happened.push(begins);
                }
                let last = happened.last_mut().unwrap();
                last.extend(data.iter().map(|byte| format!(" {byte:x}")));
                if ended {
                    happened.push(format!("{stream:?} ends"));
                }
            }
            Event::Request { stream, .. } => {
                check_request(scratch.text());
                happened.push(format!("{event:?} {}", scratch.text().escape_ascii()));
                answer(connection, stream);
            }
            Event::Response { .. } | Event::Trailers { .. } => {
                happened.push(format!("{event:?} {}", scratch.text().escape_ascii()));
            }
            Event::Ended { stream, .. } => {
                connection.release(stream);
                happened.push(format!("{event:?}"));
            }
            _ => happened.push(format!("{event:?}")),
        }
    }
}

fn answer(connection: &mut Connection, stream: StreamKey) {
    let text = b"HTTP/1.1 200 OK\r\nServer: x\r\nSet-Cookie: a\r\n\r\n";
    connection.send_head(stream, text, false).unwrap();
    let _ = connection.send_data(stream, &[7; 50], true, Moment::ZERO);
}

fn check_request(text: &[u8]) {
    let whole = Parsed::Complete { consumed: text.len() };
    if let Ok(parsed) = parse_request(text, &LIMITS, &mut RequestHead::default()) {
        assert_eq!(parsed, whole, "{}", text.escape_ascii());
    }
}

fn check_frames(mut rest: &[u8]) {
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        assert!(length <= 16_384 && rest.len() >= 9 + length);
        rest = &rest[9 + length..];
    }
}

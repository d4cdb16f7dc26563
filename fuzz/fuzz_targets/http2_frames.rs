//! Whole frames as the input of an HTTP/2 connection in either role, between actions of its owner.
//! Neither events nor output may depend on how the bytes are split; the peer must be able to accept
//! every frame of the output; committed output must stay; no stream may be forgotten while it waits
//! to send; consumed content must be credited.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use fuzz::frames::{self, Frame, Step, kind};
use fuzz::mutate::mutate;
use fuzz::watch::Watch;
use http2::{Code, Config, Connection, Ended, Event, PREFACE, Role, Scratch, StreamKey, WebSocket};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use model::Moment;

const CONFIG: Config = Config {
    streams_max: 10,
    head_max_bytes: 2048,
    window_bytes: 1000,
    window_max_bytes: 10_000,
    connection_window_bytes: 70_000,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

/// The most output while the owner respects congestion: that of a congested connection, content
/// that waits, and what one step adds.
const OUTPUT_MAX_BYTES: usize = (16 + 256 + 64 + 64) * 1024;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let whole = run(data, usize::MAX);
    let split = run(data, data.len() % 13 + 1);
    assert_eq!(whole.happened, split.happened);
    assert!(whole.sent == split.sent, "the output depends on the pieces of the input");
});

struct Run {
    role: Role,
    connection: Connection,
    scratch: Scratch,
    watch: Watch,
    step: usize,
    now: Moment,
    keys: Vec<StreamKey>,
    /// Streams whose content was not accepted, and that wait for their turn.
    waiting: Vec<StreamKey>,
    happened: Vec<String>,
    sent: Vec<u8>,
    /// Committed output that was not sent.
    committed: Vec<u8>,
}

fn run(data: &[u8], step: usize) -> Run {
    let (to_server, frames) = frames::parse(data);
    let role = if to_server { Role::Server } else { Role::Client { is_https: false } };
    let mut run = Run {
        role,
        connection: Connection::new(role, CONFIG, Moment::ZERO),
        scratch: Scratch::default(),
        watch: Watch::new(to_server, CONFIG.window_bytes),
        step,
        now: Moment::ZERO,
        keys: Vec::new(),
        waiting: Vec::new(),
        happened: Vec::new(),
        sent: Vec::new(),
        committed: Vec::new(),
    };
    if to_server {
        run.feed(PREFACE, false);
    }
    for frame in frames {
        match frames::expand(frame, to_server) {
            Step::Arrives(frames) => frames.iter().for_each(|frame| run.arrive(frame)),
            Step::Acts(frame) => run.act(&frame),
        }
        run.check();
    }
    run.finish();
    run
}

impl Run {
    fn check(&mut self) {
        let output = self.connection.output().concat();
        assert!(output.starts_with(&self.committed), "committed output has changed");
        assert!(output.len() < OUTPUT_MAX_BYTES, "{} bytes of output", output.len());
        assert_eq!(output.is_empty(), !self.connection.has_output());
    }

    fn send(&mut self, count: usize) {
        let output = self.connection.output().concat();
        let count = count.min(output.len());
        self.connection.sent(count);
        self.watch.sent(&output[..count]);
        self.sent.extend_from_slice(&output[..count]);
        self.committed.drain(..count.min(self.committed.len()));
        assert!(self.connection.output().concat() == output[count..], "sending changes the rest");
    }

    fn arrive(&mut self, frame: &Frame) {
        if self.connection.is_congested() {
            self.send(usize::MAX);
        }
        let is_allowed = self.watch.arrives(frame);
        self.feed(&frame.bytes(), is_allowed);
    }

    fn feed(&mut self, bytes: &[u8], is_allowed: bool) {
        for mut rest in bytes.chunks(self.step) {
            loop {
                let (taken, event) = self.connection.receive(rest, &mut self.scratch, self.now);
                rest = &rest[taken..];
                let Some(event) = event else {
                    assert!(rest.is_empty());
                    break;
                };
                let text = match event {
                    Event::Request { stream, .. } => {
                        self.keys.push(stream);
                        self.scratch.text().escape_ascii().to_string()
                    }
                    Event::Response { .. } | Event::Trailers { .. } => {
                        self.scratch.text().escape_ascii().to_string()
                    }
                    _ => String::new(),
                };
                if let Event::Violation(violation)
                | Event::Ended { why: Ended::Violation(violation), .. } = event
                {
                    let is_flow = violation.code == Code::FLOW_CONTROL_ERROR;
                    assert!(!is_allowed || !is_flow, "content within its windows: {violation}");
                }
                match event {
                    Event::Data { stream, data, ended } => self.note_content(stream, data, ended),
                    _ => self.happened.push(format!("{event:?} {text}")),
                }
            }
        }
    }

    /// Notes adjacent content as one.
    fn note_content(&mut self, stream: StreamKey, data: &[u8], ended: bool) {
        let begins = format!("{stream:?} content");
        if self.happened.last().is_none_or(|last| !last.starts_with(&begins)) {
            self.happened.push(begins);
        }
        if let Some(last) = self.happened.last_mut() {
            last.push_str(&data.escape_ascii().to_string());
            last.push_str(if ended { " ends" } else { "" });
        }
    }

    fn act(&mut self, action: &Frame) {
        let has_flag = action.flags & 1 != 0;
        let number = action.small();
        let count = self.keys.len();
        let key = self.keys.get(action.stream as usize / 2 % count.max(1)).copied();
        match (action.kind, key) {
            (kind::SENT, _) if action.payload.is_empty() => self.send(usize::MAX),
            (kind::SENT, _) => self.send(number),
            (kind::COMMIT, _) => {
                let before = self.connection.output().concat();
                self.connection.commit_output();
                self.committed = self.connection.output().concat();
                assert!(before == self.committed, "committing changes the output");
            }
            (kind::SEND_HEAD, _) if self.role != Role::Server => self.request(number, has_flag),
            (kind::SEND_HEAD, Some(key)) => self.respond(key, number, has_flag),
            (kind::SEND_DATA, Some(key)) => self.write(key, number, has_flag),
            (kind::SEND_TRAILERS, Some(key)) => {
                let lines: &[u8] = if number % 7 == 6 { b"bad" } else { b"X-Sum: 1\r\n" };
                let _ = self.connection.send_trailers(key, lines);
            }
            (kind::CONSUMED, Some(key)) => self.connection.consumed(key, number, self.now),
            (kind::RESET, Some(key)) => self.connection.reset(key, Code(number as u32 % 16)),
            (kind::RELEASE, Some(key)) => self.release(key),
            (kind::GO_AWAY, _) if has_flag => self.connection.go_away_finally(),
            (kind::GO_AWAY, _) => self.connection.go_away(),
            (kind::SHRINK, _) if has_flag => self.connection.shrink_windows(self.now),
            (kind::SHRINK, _) => self.connection.shrink(),
            (kind::FAIL, _) => self.connection.fail(Code(number as u32 % 14 + 1)),
            (kind::WRITABLE, _) => self.turns(number),
            (kind::WAIT, _) => self.now = self.now + Duration::from_millis(number as u64),
            _ => {}
        }
    }

    fn request(&mut self, number: usize, ends: bool) {
        let (line, fields) = match number % 5 {
            0 => ("GET / HTTP/1.1", ""),
            1 => ("HEAD /a HTTP/1.1", "X-A: b\r\n"),
            2 => ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
            3 => ("not a line", ""),
            _ => ("POST /p HTTP/1.1", "Cookie: a; b\r\nX-A: c\r\n"),
        };
        let key = self.connection.open();
        let text = format!("{line}\r\nHost: a\r\n{fields}\r\n");
        let sent = self.connection.send_head(key, text.as_bytes(), ends);
        self.happened.push(format!("{sent:?}"));
        self.keys.push(key);
    }

    fn respond(&mut self, key: StreamKey, number: usize, ends: bool) {
        let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "v".repeat(20_000));
        let (text, ends) = match number % 6 {
            0 => ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", false),
            1 => ("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n", false),
            2 => ("not a head", ends),
            3 if self.connection.unsent() < 50_000 => (&long[..], ends),
            _ => ("HTTP/1.1 200 OK\r\nServer: x\r\nSet-Cookie: a\r\n\r\n", ends),
        };
        let sent = self.connection.send_head(key, text.as_bytes(), ends);
        self.happened.push(format!("{sent:?}"));
    }

    fn write(&mut self, key: StreamKey, length: usize, ends: bool) {
        let sent = self.connection.send_data(key, &vec![b'y'; length], ends, self.now);
        self.waiting.retain(|&waiting| waiting != key);
        if sent == Ok(0) && length > 0 {
            self.waiting.push(key);
        }
        self.happened.push(format!("{sent:?}"));
    }

    fn turns(&mut self, length: usize) {
        for _ in 0..8 {
            let Some(key) = self.connection.next_writable() else { return };
            self.happened.push(format!("{key:?} is writable"));
            self.write(key, length.max(1), false);
        }
    }

    fn release(&mut self, key: StreamKey) {
        self.connection.release(key);
        self.keys.retain(|&other| other != key);
        self.waiting.retain(|&other| other != key);
    }

    /// The peer opens its windows and takes everything; then the owner releases all streams.
    fn finish(&mut self) {
        self.send(usize::MAX);
        assert!(self.watch.is_between_frames(), "the output ends within a frame");
        let in_block = self.connection.incomplete_frame().is_some();
        if !self.connection.has_failed() && !in_block {
            self.open_windows();
        }
        let failed = self.connection.has_failed();
        if !failed && !in_block {
            // No stream that waits was forgotten.
            let mut got = BTreeSet::new();
            for _ in 0..=self.waiting.len() * 9 {
                let Some(key) = self.connection.next_writable() else { break };
                got.insert(key.slot());
                let _ = self.connection.send_data(key, b"z", true, self.now);
                self.send(usize::MAX);
            }
            for key in std::mem::take(&mut self.waiting) {
                let ends = self.connection.send_data(key, b"", true, self.now);
                assert!(got.contains(&key.slot()) || ends.is_err(), "{key:?} was forgotten");
            }
        }
        for key in std::mem::take(&mut self.keys) {
            self.connection.release(key);
            self.check();
        }
        assert_eq!(self.connection.streams(), 0);
        self.connection.shrink();
        self.send(usize::MAX);
        assert!(self.watch.is_between_frames());
        assert_eq!(self.watch.failed, self.connection.has_failed());
        if !self.watch.failed {
            // Half of the window may wait to be credited, and a part of one frame to be received.
            let window = self.watch.receive_window();
            let least = i64::from(CONFIG.connection_window_bytes) / 2;
            assert!(window >= least, "only {window} left of the connection's window");
            // This takes many frames, so it is done after some inputs only.
            let is_next = self.happened.len().is_multiple_of(8) && self.role == Role::Server;
            if is_next && self.connection.accepts_requests() && !in_block {
                self.check_credit();
            }
        }
    }

    /// Sends content until the connection's window is credited: it must then be whole.
    fn check_credit(&mut self) {
        let id = self.watch.ids().into_iter().max().unwrap_or(0).wrapping_add(1) | 1;
        if id > 1 << 30 {
            return;
        }
        let frame = |kind, payload| Frame { kind, flags: frames::END_HEADERS, stream: id, payload };
        self.arrive(&frame(kind::HEADERS, vec![0x83, 0x87, 0x84, 0x41, 1, b'a']));
        let Some(key) = self.keys.last().copied() else { return };
        for _ in 0..200 {
            let before = self.watch.receive_window();
            self.arrive(&Frame { flags: 0, ..frame(kind::DATA, vec![b'x'; 500]) });
            self.connection.consumed(key, 500, self.now);
            self.send(usize::MAX);
            let after = self.watch.receive_window();
            if self.watch.failed {
                return;
            }
            if after > before {
                // It may have been credited before the last content was consumed.
                let whole = i64::from(CONFIG.connection_window_bytes);
                assert!(after == whole || after == whole - 500, "{after} of {whole} are left");
                return;
            }
        }
        panic!("the connection's window was not credited");
    }

    fn open_windows(&mut self) {
        let ids: BTreeSet<u32> = self.watch.ids().into_iter().chain([0]).collect();
        for id in ids {
            if self.connection.has_failed() {
                return;
            }
            if let Some(more) = self.watch.missing(id, 10_000) {
                let payload = more.to_be_bytes().to_vec();
                let frame = Frame { kind: kind::WINDOW_UPDATE, flags: 0, stream: id, payload };
                self.arrive(&frame);
                self.send(usize::MAX);
            }
        }
    }
}

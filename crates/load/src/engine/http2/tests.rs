//! Load over HTTP/2 against servers that say what a test has them say, frame by frame (RFC 9113
//! section 4.1). Real ones are asked in the whole-program tests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::plan::{Plan, Protocol, Shape};
use crate::engine::{Failure, Outcome, start};
use crate::schedule::{Profile, Spacing};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
/// Bytes of a frame of DATA.
const PIECE: u16 = 16_384;
/// `:status: 200` in HPACK's static table (RFC 7541 appendix A).
const STATUS_200: [u8; 1] = [0x88];

/// A server's end of a connection.
struct Frames(TcpStream);

impl Frames {
    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        let mut frame = Vec::new();
        http2::put_frame(&mut frame, kind, flags, stream, payload);
        self.0.write_all(&frame).ok()
    }

    /// The next frame: kind, stream, and the first four bytes of its payload as a number.
    fn next(&mut self) -> Option<(u8, u32, u32)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).ok()?;
        if head[3] == SETTINGS && head[4] == 0 {
            self.write(SETTINGS, 1, 0, &[])?;
        }
        let number = |bytes: &[u8]| bytes.iter().take(4).fold(0, |n, &b| n << 8 | u32::from(b));
        Some((head[3], number(&head[5..]), number(&payload)))
    }

    /// The stream of the next request.
    fn request(&mut self) -> Option<u32> {
        loop {
            match self.next()? {
                (HEADERS, stream, _) => return Some(stream),
                (GOAWAY, ..) => return None,
                _ => {}
            }
        }
    }

    fn answer(&mut self, stream: u32) -> Option<()> {
        self.write(HEADERS, 0x5, stream, &STATUS_200)
    }

    /// Closes as a server should, which waits for its client to have read everything.
    fn close(mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
        let _ = self.0.read_to_end(&mut Vec::new());
    }
}

/// A server each of whose connections is `serve`'s, with its number from 0.
fn server(serve: impl Fn(Frames, u64) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let (mut frames, serve) = (Frames(stream.unwrap()), Arc::clone(&serve));
            std::thread::spawn(move || {
                let preface = frames.0.read_exact(&mut [0; 24]).ok();
                if preface.and_then(|()| frames.write(SETTINGS, 0, 0, &[])).is_some() {
                    serve(frames, number);
                }
            });
        }
    });
    address
}

/// Answers everything.
fn willing(mut frames: Frames, _: u64) {
    while let Some(stream) = frames.request() {
        if frames.answer(stream).is_none() {
            return;
        }
    }
}

fn plan(servers: &[SocketAddr], connections_max: usize, streams_max: usize, shape: Shape) -> Plan {
    Plan { connections_max, streams_max, ..Plan::sample(Protocol::Http2, servers, shape) }
}

fn count(requests: u64) -> Shape {
    Shape::Closed { time: None, requests: Some(requests), ramp: Duration::ZERO }
}

fn run(plan: Plan) -> Outcome {
    let (outcome, _) = start(plan).unwrap().finish();
    assert_eq!(outcome.broken, None);
    outcome
}

/// Responses and failures.
fn ended(outcome: &Outcome) -> (u64, u64) {
    (outcome.recorder.counts.responses, outcome.recorder.counts.errors)
}

#[test]
fn what_a_closing_server_has_not_looked_at_goes_over_another_connection() {
    let answered = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&answered);
    // Ten requests a connection, then GOAWAY, the tenth answer, and the end, all at once.
    let address = server(move |mut frames, _| {
        for number in 1..=10 {
            let Some(stream) = frames.request() else { return };
            if number == 10 {
                let last = [stream.to_be_bytes(), 0_u32.to_be_bytes()].concat();
                frames.write(GOAWAY, 0, 0, &last);
            }
            counted.fetch_add(1, Ordering::Relaxed);
            frames.answer(stream);
        }
        frames.close();
    });
    let outcome = run(plan(&[address], 3, 8, count(500)));
    assert_eq!(ended(&outcome), (500, 0), "{:?}", outcome.recorder.failures);
    assert_eq!(answered.load(Ordering::Relaxed), 500);
    assert!(outcome.recorder.given_back > 0, "with 8 streams some come after the tenth");
    assert!(outcome.recorder.counts.connections >= 50);
}

#[test]
fn a_refused_stream_is_sent_again_and_one_that_is_always_refused_has_failed() {
    let refused = Arc::new(AtomicU64::new(0));
    let refuse = |which: fn(u64) -> bool| {
        let counted = Arc::clone(&refused);
        server(move |mut frames, _| {
            for number in 1.. {
                let Some(stream) = frames.request() else { return };
                if which(number) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    frames.write(RST_STREAM, 0, stream, &7_u32.to_be_bytes());
                } else {
                    frames.answer(stream);
                }
            }
        })
    };
    // Too few, on either connection, for one request to be refused for good.
    let some = refuse(|number| [3, 9, 10, 20].contains(&number));
    let outcome = run(plan(&[some], 2, 4, count(300)));
    assert_eq!(ended(&outcome), (300, 0));
    assert!(outcome.recorder.given_back >= 4);
    assert_eq!(outcome.recorder.given_back, refused.load(Ordering::Relaxed));
    let outcome = run(plan(&[refuse(|_| true)], 2, 4, count(20)));
    assert_eq!(ended(&outcome), (0, 20));
    assert_eq!(outcome.recorder.failures[Failure::StreamRefused as usize], 20);
}

#[test]
fn a_connection_that_is_dead_is_left_and_one_that_lives_is_kept() {
    // The first connection is never answered.
    let address = server(|mut frames, number| match number {
        0 => while frames.request().is_some() {},
        _ => willing(frames, number),
    });
    // Far longer than any answer below takes, on a busy machine as well.
    let patience = Duration::from_secs(2);
    let outcome = run(Plan { timeout: patience, ..plan(&[address], 1, 1, count(5)) });
    assert_eq!(ended(&outcome), (4, 1), "only the first met the dead one");
    assert_eq!(outcome.recorder.failures[Failure::ResponseTimeout as usize], 1);
    assert_eq!(outcome.recorder.counts.connections, 2);

    // One request is never answered; the connection answers the others.
    let address = server(move |mut frames, _| {
        let mut poller = os::poll::Poller::new().unwrap();
        while let Some(stream) = frames.request() {
            // So slowly that some are answered after the third has run out of time.
            poller.wait(patience / 25).unwrap();
            if stream != 3 && frames.answer(stream).is_none() {
                return;
            }
        }
    });
    let outcome = run(Plan { timeout: patience, ..plan(&[address], 1, 2, count(40)) });
    assert_eq!(ended(&outcome), (39, 1));
    assert_eq!(outcome.recorder.counts.connections, 1);
}

#[test]
fn several_servers_together_have_no_more_connections_than_were_asked_for() {
    // `Worker::open` asserts that there is room.
    let servers = [server(willing), server(willing), server(willing)];
    let outcome = run(plan(&servers, 2, 4, count(300)));
    assert_eq!(ended(&outcome), (300, 0));
    assert!(outcome.recorder.counts.connections > 2, "three servers have had their turns on two");
}

#[test]
fn a_body_without_end_holds_nobody_up() {
    let endless = server(|mut frames, _| {
        let Some(stream) = frames.request() else { return };
        frames.write(HEADERS, 0x4, stream, &STATUS_200);
        // What the client said at the beginning, and what it says later (RFC 9113 section 6.9).
        let (mut whole, mut own) =
            (i64::from(super::CONNECTION_WINDOW_BYTES), i64::from(super::STREAM_WINDOW_BYTES));
        let piece = [b'x'; PIECE as usize];
        loop {
            while whole < i64::from(PIECE) || own < i64::from(PIECE) {
                match frames.next() {
                    Some((WINDOW_UPDATE, 0, more)) => whole += i64::from(more),
                    Some((WINDOW_UPDATE, _, more)) => own += i64::from(more),
                    Some((RST_STREAM, ..)) | None => return,
                    Some(_) => {}
                }
            }
            (whole, own) = (whole - i64::from(PIECE), own - i64::from(PIECE));
            if frames.write(DATA, 0, stream, &piece).is_none() {
                return;
            }
        }
    });
    let profile = Profile::steady(20.0, Duration::from_secs(1), Duration::ZERO).unwrap();
    let shape = Shape::Open { profile: Arc::new(profile), spacing: Spacing::Even };
    let plan = plan(&[endless, server(willing)], 50, 1, shape);
    let outcome = run(Plan { timeout: Duration::from_secs(3), ..plan });
    assert_eq!(ended(&outcome), (10, 10), "every other request is one for a body without end");
    let body = outcome.recorder.counts.body_bytes_in;
    assert!(body > 4 * 1024 * 1024, "more than a window's: {body}");
}

//! A client and a server engine exchange random messages in pieces of random size, with readers and
//! writers of random speed. Every message must arrive intact.

use std::collections::HashMap;
use std::sync::LazyLock;

use fastrand::Rng;
use http2::{Code, Config, Connection, Event, Role, Scratch, StreamKey};
use model::Moment;

use crate::rig::CONFIG;

/// A message that is being sent.
struct Body {
    left: usize,
    written: usize,
    ended: bool,
    trailers: bool,
}

#[derive(Default)]
struct Arrived {
    bytes: usize,
    ended: bool,
    unread: usize,
}

struct Side {
    connection: Connection,
    scratch: Scratch,
    sending: HashMap<StreamKey, Body>,
    arrived: HashMap<StreamKey, Arrived>,
}

impl Side {
    fn new(role: Role, config: Config) -> Side {
        Side {
            connection: Connection::new(role, config, Moment::ZERO),
            scratch: Scratch::default(),
            sending: HashMap::new(),
            arrived: HashMap::new(),
        }
    }
}

/// Returns `length` bytes of the pattern that all bodies consist of, from position `at`.
fn pattern(at: usize, length: usize) -> &'static [u8] {
    static PATTERN: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..PIECE_MAX + 251).map(|at| (at % 251) as u8).collect());
    &PATTERN[at % 251..][..length]
}

const PIECE_MAX: usize = 66_000;

struct World {
    random: Rng,
    sides: [Side; 2],
    wires: [Vec<u8>; 2],
    now: Moment,
    begun: usize,
    finished: usize,
    given_up: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let window = random.u32(1_000..200_000);
        let config = Config {
            window_bytes: window,
            window_max_bytes: window * random.u32(1..8),
            connection_window_bytes: window * 20,
            streams_max: 20,
            ..CONFIG
        };
        let sides =
            [Role::Client { is_https: true }, Role::Server].map(|role| Side::new(role, config));
        let now = Moment::from_millis(1);
        World { random, sides, wires: Default::default(), now, begun: 0, finished: 0, given_up: 0 }
    }

    fn body(&mut self, scale: usize) -> Body {
        let left = if self.random.bool() { 0 } else { self.random.usize(..scale) };
        Body { left, written: 0, ended: false, trailers: self.random.u8(..) < 60 }
    }

    fn begin(&mut self) {
        let body = self.body(100_000);
        let side = &mut self.sides[0];
        let key = side.connection.open();
        let text = format!(
            "POST /{} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: someone\r\nX-Id: {}\r\n\r\n",
            self.random.u8(..4),
            self.begun
        );
        let ends = body.left == 0 && !body.trailers;
        side.connection.send_head(key, text.as_bytes(), ends).unwrap();
        side.arrived.insert(key, Arrived::default());
        if !ends {
            side.sending.insert(key, body);
        }
        self.begun += 1;
    }

    fn write(&mut self, at: usize) {
        let now = self.now;
        let side = &mut self.sides[at];
        while side.connection.next_writable().is_some() {}
        let mut done = Vec::new();
        for (&key, body) in &mut side.sending {
            let piece = pattern(body.written, body.left.min(PIECE_MAX));
            let last = piece.len() == body.left && !body.trailers;
            match side.connection.send_data(key, piece, last, now) {
                Ok(taken) => {
                    (body.written, body.left) = (body.written + taken, body.left - taken);
                    body.ended = last && taken == piece.len();
                }
                Err(_) => body.ended = true,
            }
            if body.left == 0 && body.trailers && !body.ended {
                let _ = side.connection.send_trailers(key, b"Grpc-Status: 0\r\n");
                body.ended = true;
            }
            if body.ended {
                done.push(key);
            }
        }
        for key in done {
            side.sending.remove(&key);
        }
    }

    fn read(&mut self, at: usize) {
        let now = self.now;
        for (&key, arrived) in &mut self.sides[at].arrived {
            let read = self.random.usize(..=arrived.unread);
            arrived.unread -= read;
            self.sides[at].connection.consumed(key, read, now);
        }
    }

    /// Moves some bytes to the other side.
    fn carry(&mut self, from: usize) {
        let output = self.sides[from].connection.output().concat();
        let taken = self.random.usize(..=output.len());
        self.sides[from].connection.sent(taken);
        self.wires[from].extend_from_slice(&output[..taken]);
        let arrives = self.random.usize(..=self.wires[from].len());
        let bytes: Vec<u8> = self.wires[from].drain(..arrives).collect();
        self.arrive(1 - from, &bytes);
    }

    fn arrive(&mut self, at: usize, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let mut answer = None;
            let side = &mut self.sides[at];
            let (taken, event) = side.connection.receive(rest, &mut side.scratch, self.now);
            rest = &rest[taken..];
            match event {
                None => {
                    assert!(rest.is_empty());
                    return;
                }
                Some(Event::Request { stream, ended }) => {
                    side.arrived.insert(stream, Arrived { ended, ..Arrived::default() });
                    answer = Some(stream);
                }
                Some(Event::Response { stream, ended }) => {
                    side.arrived.get_mut(&stream).unwrap().ended = ended;
                }
                Some(Event::Data { stream, data, ended }) => {
                    let arrived = side.arrived.get_mut(&stream).unwrap();
                    assert!(data == pattern(arrived.bytes, data.len()));
                    arrived.bytes += data.len();
                    arrived.unread += data.len();
                    arrived.ended = ended;
                }
                Some(Event::Trailers { stream }) => {
                    assert_eq!(side.scratch.text(), b"grpc-status: 0\r\n");
                    side.arrived.get_mut(&stream).unwrap().ended = true;
                }
                Some(Event::Ended { stream, .. }) => {
                    side.sending.remove(&stream);
                    side.arrived.remove(&stream);
                    side.connection.release(stream);
                }
                Some(other) => panic!("{other:?}"),
            }
            if let Some(stream) = answer {
                let body = self.body(100_000);
                let text = b"HTTP/1.1 200 OK\r\nServer: this\r\n\r\n";
                let connection = &mut self.sides[at].connection;
                connection.send_head(stream, text, false).unwrap();
                self.sides[at].sending.insert(stream, body);
            }
        }
    }

    /// Releases complete streams, and abandons some others.
    fn settle(&mut self) {
        for at in 0..2 {
            let side = &mut self.sides[at];
            let gives_up = self.random.u8(..) < 2;
            let done = |(key, arrived): (&StreamKey, &Arrived)| {
                let complete =
                    arrived.ended && arrived.unread == 0 && !side.sending.contains_key(key);
                (complete || gives_up).then_some((*key, complete))
            };
            let done: Vec<_> = side.arrived.iter().filter_map(done).take(3).collect();
            for (key, complete) in done {
                side.arrived.remove(&key);
                side.sending.remove(&key);
                side.connection.release(key);
                if at == 0 {
                    self.finished += usize::from(complete);
                    self.given_up += usize::from(!complete);
                }
            }
        }
    }

    fn run(&mut self, steps: usize) {
        for step in 0..steps {
            self.now = self.now + std::time::Duration::from_micros(300);
            if step > 40 && self.sides[0].connection.streams() < 15 && self.random.bool() {
                self.begin();
            }
            for at in 0..2 {
                self.write(at);
                self.carry(at);
                self.read(at);
            }
            self.settle();
            if self.random.u8(..) == 0 {
                let at = self.random.usize(..2);
                self.sides[at].connection.shrink();
            }
        }
        // No new requests: all must complete.
        for _ in 0..100_000 {
            if self.sides.iter().all(|side| side.arrived.is_empty()) {
                break;
            }
            self.now = self.now + std::time::Duration::from_micros(300);
            for at in 0..2 {
                self.write(at);
                self.carry(at);
                self.read(at);
            }
            self.settle();
        }
        let stuck: Vec<_> = self.sides.iter().map(|side| side.connection.streams()).collect();
        assert_eq!(stuck, [0, 0]);
        for from in [0, 1, 0, 1] {
            let bytes = self.sides[from].connection.output().concat();
            self.sides[from].connection.sent(bytes.len());
            let wire = std::mem::take(&mut self.wires[from]);
            self.arrive(1 - from, &[wire, bytes].concat());
        }
        assert!(self.sides.iter().all(|side| !side.connection.has_failed()));
    }
}

#[test]
fn every_message_arrives_whole() {
    let seed = fastrand::u64(..);
    let (mut finished, mut given_up) = (0, 0);
    for round in 0..20 {
        println!("seed {}", seed.wrapping_add(round));
        let mut world = World::new(seed.wrapping_add(round));
        world.run(1_000);
        finished += world.finished;
        given_up += world.given_up;
    }
    println!("{finished} finished, {given_up} given up");
    assert!(finished > 1_000 && given_up > 100);
}

#[test]
fn a_failed_connection_takes_anything() {
    let mut side = Side::new(Role::Server, CONFIG);
    side.connection.fail(Code::ENHANCE_YOUR_CALM);
    let bytes = side.connection.output().concat();
    assert!(bytes.len() > 17);
    let (taken, event) = side.connection.receive(&[7; 99], &mut side.scratch, Moment::ZERO);
    assert!(taken == 99 && event.is_none());
}

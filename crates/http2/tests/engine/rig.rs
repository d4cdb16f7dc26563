//! An engine with its events and output, and hand-written frames.

use http2::{Code, Config, Connection, Event, Role, Scratch, StreamKey, WebSocket};
use model::Moment;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const PRIORITY_UPDATE: u8 = 16;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// Returns the bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    http2::put_frame(&mut bytes, kind, flags, stream, payload);
    bytes
}

pub(crate) const CONFIG: Config = Config {
    streams_max: 100,
    head_max_bytes: 16_384,
    window_bytes: 65_535,
    window_max_bytes: 65_535,
    connection_window_bytes: 1 << 20,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

/// `GET / HTTP/2` to `a`, of an http client.
pub(crate) const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'a'];
/// `POST / HTTP/2` to `a`.
pub(crate) const POST: &[u8] = &[0x83, 0x86, 0x84, 0x41, 1, b'a'];

/// One setting, as the payload of SETTINGS.
pub(crate) fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A literal field without indexing.
pub(crate) fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let string = |text: &[u8]| {
        let mut out = Vec::new();
        if text.len() < 127 {
            out.push(text.len() as u8);
        } else {
            out.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                out.push(rest as u8 | 128);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
        out.extend_from_slice(text);
        out
    };
    [vec![0], string(name), string(value)].concat()
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Head { text: String, ended: bool },
    Data { bytes: Vec<u8>, ended: bool },
    Trailers(String),
    Ended(http2::Ended),
    Refused(http2::Refusal),
    GoingAway(Code),
    Violation(Code),
}

/// A frame that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    pub(crate) fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

pub(crate) struct Rig {
    pub(crate) connection: Connection,
    pub(crate) seen: Vec<Seen>,
    /// In the order of their heads.
    pub(crate) keys: Vec<StreamKey>,
    pub(crate) now: Moment,
    scratch: Scratch,
    /// The client's preface has been taken from the output.
    preface: bool,
}

impl Rig {
    pub(crate) fn new(role: Role, config: Config) -> Rig {
        Rig {
            connection: Connection::new(role, config, Moment::ZERO),
            seen: Vec::new(),
            keys: Vec::new(),
            now: Moment::ZERO,
            scratch: Scratch::default(),
            preface: role == Role::Server,
        }
    }

    /// Returns a server whose client has sent its preface and empty SETTINGS.
    pub(crate) fn server(config: Config) -> Rig {
        let mut rig = Rig::new(Role::Server, config);
        rig.feed(http2::PREFACE);
        rig.feed(&frame(SETTINGS, 0, 0, &[]));
        rig.sent();
        rig
    }

    /// Returns a client whose server has sent these settings.
    pub(crate) fn client(config: Config, settings: &[u8]) -> Rig {
        let mut rig = Rig::new(Role::Client { is_https: false }, config);
        rig.feed(&frame(SETTINGS, 0, 0, settings));
        rig.sent();
        rig
    }

    /// Feeds input.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let (taken, event) = self.connection.receive(rest, &mut self.scratch, self.now);
            rest = &rest[taken..];
            let Some(event) = event else {
                assert!(rest.is_empty(), "all is taken");
                return;
            };
            let text = || String::from_utf8_lossy(self.scratch.text()).into_owned();
            let seen = match event {
                Event::Request { stream, ended } | Event::Response { stream, ended } => {
                    self.keys.push(stream);
                    Seen::Head { text: text(), ended }
                }
                Event::Data { data, ended, .. } => Seen::Data { bytes: data.to_vec(), ended },
                Event::Trailers { .. } => Seen::Trailers(text()),
                Event::Ended { why, .. } => Seen::Ended(why),
                Event::Refused(refusal) => Seen::Refused(refusal),
                Event::GoingAway(code) => Seen::GoingAway(code),
                Event::Violation(violation) => Seen::Violation(violation.code),
            };
            self.seen.push(seen);
        }
    }

    /// Takes the reported events.
    pub(crate) fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Takes the output as bytes.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let bytes = self.connection.output().concat();
        self.connection.sent(bytes.len());
        bytes
    }

    /// Takes the output as frames.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let bytes = self.bytes();
        let mut rest = &bytes[..];
        if !self.preface {
            rest = rest.strip_prefix(http2::PREFACE).expect("the preface");
            self.preface = true;
        }
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            frames.push(Sent {
                kind: rest[3],
                flags: rest[4],
                stream: u32::from_be_bytes(rest[5..9].try_into().unwrap()),
                payload: rest[9..9 + length].to_vec(),
            });
            rest = &rest[9 + length..];
        }
        frames
    }

    /// Takes the output; returns the types and codes of its `RST_STREAM` and GOAWAY frames.
    pub(crate) fn errors(&mut self) -> Vec<(u8, Code)> {
        let frames = self.sent();
        let code = |frame: &Sent| match frame.kind {
            RST_STREAM => Some((RST_STREAM, Code(frame.number()))),
            GOAWAY => {
                let code = frame.payload[4..8].try_into().unwrap();
                Some((GOAWAY, Code(u32::from_be_bytes(code))))
            }
            _ => None,
        };
        frames.iter().filter_map(code).collect()
    }
}

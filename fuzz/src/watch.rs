//! A peer's view of the engine's output: every frame that arrives must be one that the peer has to
//! accept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http2::PREFACE;

use crate::frames::{self, ACK, END_HEADERS, END_STREAM, Frame, PAYLOAD_MAX_BYTES, kind};

const WINDOW_AT_FIRST: i64 = 65_535;

/// What was sent on a stream, and how much the two sides may send.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    has_head: bool,
    ended: bool,
    reset: bool,
    /// Beyond the initial window.
    credit: i64,
    content: i64,
    /// Of the peer's content.
    received: i64,
    receive_credit: i64,
}

pub struct Watch {
    is_server: bool,
    /// The receive window of streams that the engine announces.
    window: i64,
    preface: bool,
    bytes: Vec<u8>,
    block: Option<u32>,
    streams: BTreeMap<u32, Stream>,
    /// Streams that a client opened.
    begun: BTreeSet<u32>,
    /// The peer's initial window that was acknowledged, and later ones.
    initial: i64,
    announced: VecDeque<Option<i64>>,
    send_window: i64,
    receive_window: i64,
    last: Option<u32>,
    pub failed: bool,
}

impl Watch {
    /// Watches a server's output, or a client's. `window`: its receive window of streams.
    pub fn new(is_server: bool, window: u32) -> Watch {
        Watch {
            is_server,
            window: i64::from(window),
            preface: is_server,
            bytes: Vec::new(),
            block: None,
            streams: BTreeMap::new(),
            begun: BTreeSet::new(),
            initial: WINDOW_AT_FIRST,
            announced: VecDeque::new(),
            send_window: WINDOW_AT_FIRST,
            receive_window: WINDOW_AT_FIRST,
            last: None,
            failed: false,
        }
    }

    /// Notes a frame that the peer sends. Returns whether it is content that its windows allow.
    pub fn arrives(&mut self, frame: &Frame) -> bool {
        match frame.kind {
            kind::HEADERS if self.is_server => {
                self.begun.insert(frame.stream);
            }
            kind::SETTINGS if !frame.has(ACK) => {
                let settings = frame.payload.as_chunks::<6>().0.iter();
                let windows = settings.filter(|setting| setting[..2] == [0, 4]);
                let value = |setting: &[u8; 6]| {
                    i64::from(u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]))
                };
                self.announced.push_back(windows.map(value).last());
            }
            kind::WINDOW_UPDATE if frame.payload.len() == 4 => {
                let more = i64::from(frame.number(0).unwrap_or(0));
                match frame.stream {
                    0 => self.send_window += more,
                    id => self.streams.entry(id).or_default().credit += more,
                }
            }
            kind::DATA => {
                let length = frame.payload.len() as i64;
                self.receive_window -= length;
                let window = self.window;
                let stream = self.streams.entry(frame.stream).or_default();
                stream.received += length;
                return self.receive_window >= 0
                    && window + stream.receive_credit >= stream.received;
            }
            _ => {}
        }
        false
    }

    /// Takes bytes that were sent.
    pub fn sent(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.bytes);
        let mut rest = &bytes[..];
        if !self.preface {
            let Some(after) = rest.strip_prefix(PREFACE) else {
                assert!(PREFACE.starts_with(rest), "no preface");
                self.bytes = bytes;
                return;
            };
            (self.preface, rest) = (true, after);
        }
        while let Some(frame) = frames::take(&mut rest) {
            self.frame(&frame);
        }
        self.bytes = rest.to_vec();
    }

    /// Returns whether the frames are whole.
    pub fn is_between_frames(&self) -> bool {
        self.bytes.is_empty() && self.block.is_none()
    }

    /// Returns the highest initial window that may apply to the engine's content.
    fn initial(&self) -> i64 {
        let announced = self.announced.iter().flatten();
        announced.copied().max().unwrap_or(0).max(self.initial)
    }

    /// Returns by how much the peer must raise a window to reach `to`: the connection's, or a
    /// stream's.
    pub fn missing(&self, id: u32, to: i64) -> Option<u32> {
        let window = match self.streams.get(&id) {
            _ if id == 0 => self.send_window,
            Some(stream) => self.initial.min(self.initial()) + stream.credit - stream.content,
            None => self.initial,
        };
        u32::try_from(to - window).ok().filter(|&more| more > 0 && more < 1 << 31)
    }

    /// Returns the streams on which a head was sent or received.
    pub fn ids(&self) -> Vec<u32> {
        self.streams.keys().copied().chain(self.begun.iter().copied()).collect()
    }

    /// Returns how much the peer may send on all streams together.
    pub fn receive_window(&self) -> i64 {
        self.receive_window
    }

    fn frame(&mut self, frame: &Frame) {
        let id = frame.stream;
        assert!(frame.payload.len() <= PAYLOAD_MAX_BYTES, "a frame too large");
        if let Some(block) = self.block {
            assert!(
                frame.kind == kind::CONTINUATION && id == block,
                "type {} of {id} in the header block of {block}",
                frame.kind
            );
        }
        assert!(!self.failed, "type {} of {id} after the final GOAWAY", frame.kind);
        match frame.kind {
            kind::SETTINGS if frame.has(ACK) => {
                assert!(frame.payload.is_empty());
                let acknowledged = self.announced.pop_front().expect("SETTINGS to acknowledge");
                self.initial = acknowledged.unwrap_or(self.initial);
            }
            kind::SETTINGS => assert!(frame.payload.len().is_multiple_of(6)),
            kind::PING => assert!(id == 0 && frame.payload.len() == 8),
            kind::GOAWAY => {
                assert_eq!(id, 0);
                let last = frame.number(0).unwrap();
                assert!(self.last.is_none_or(|before| last <= before), "GOAWAY rises to {last}");
                self.last = Some(last);
                self.failed = frame.number(4) != Some(0);
            }
            kind::WINDOW_UPDATE => {
                let more = frame.number(0).unwrap();
                assert!(more > 0, "WINDOW_UPDATE by 0");
                match id {
                    0 => {
                        self.receive_window += i64::from(more);
                        assert!(self.receive_window < 1 << 31);
                    }
                    _ => self.stream(frame).receive_credit += i64::from(more),
                }
            }
            kind::HEADERS => self.head(frame),
            kind::CONTINUATION => {
                assert!(self.block.is_some());
                self.block = (!frame.has(END_HEADERS)).then_some(id);
            }
            kind::DATA => self.content(frame),
            kind::RST_STREAM => {
                assert_eq!(frame.payload.len(), 4);
                let stream = self.stream(frame);
                assert!(!stream.reset, "{id} is reset twice");
                stream.reset = true;
            }
            other => panic!("type {other}"),
        }
    }

    /// Returns the stream of a frame, which must not have been reset, and not be idle.
    fn stream(&mut self, frame: &Frame) -> &mut Stream {
        let id = frame.stream;
        let is_idle = self.is_server && !self.begun.contains(&id);
        assert!(!is_idle && !id.is_multiple_of(2), "type {} of idle {id}", frame.kind);
        let stream = self.streams.entry(id).or_default();
        assert!(!stream.reset, "type {} of {id} after its reset", frame.kind);
        // A peer that answers what was not sent may be credited for it.
        let is_credit = frame.kind == kind::WINDOW_UPDATE && stream.received > 0;
        if !self.is_server && !is_credit {
            assert!(stream.has_head, "type {} of {id} before its head", frame.kind);
        }
        stream
    }

    fn head(&mut self, frame: &Frame) {
        let id = frame.stream;
        self.block = (!frame.has(END_HEADERS)).then_some(id);
        if !self.is_server && !self.begun.contains(&id) {
            let last = self.begun.last().copied().unwrap_or(0);
            assert!(id > last && !id.is_multiple_of(2), "{id} after {last}");
            self.begun.insert(id);
            self.streams.entry(id).or_default().has_head = true;
        }
        let stream = self.stream(frame);
        assert!(!stream.ended, "HEADERS of {id} after its end");
        stream.has_head = true;
        stream.ended |= frame.has(END_STREAM);
    }

    fn content(&mut self, frame: &Frame) {
        let id = frame.stream;
        let length = frame.payload.len() as i64;
        let initial = self.initial();
        let stream = self.stream(frame);
        assert!(stream.has_head && !stream.ended, "DATA of {id}: {stream:?}");
        stream.ended |= frame.has(END_STREAM);
        stream.content += length;
        let left = initial + stream.credit - stream.content;
        self.send_window -= length;
        if length > 0 {
            assert!(left >= 0, "{left} in the window of {id}");
            assert!(self.send_window >= 0, "{} in the connection's window", self.send_window);
        }
    }
}

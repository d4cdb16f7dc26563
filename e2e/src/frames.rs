//! HTTP/2 frame by frame (RFC 9113), in either role, for peers that misbehave exactly as a test
//! says. It shares no code with what it tests, writes fields without compression, and reads no
//! more of them than a status.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Frame types (RFC 9113 section 6).
pub mod kind {
    #![allow(missing_docs, reason = "the RFC's names")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of HEADERS and DATA.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;
/// Flag of SETTINGS and PING.
pub const ACK: u8 = 1;

/// Error codes (RFC 9113 section 7).
pub mod code {
    #![allow(missing_docs, reason = "the RFC's names")]
    pub const NO_ERROR: u32 = 0;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest wait for a peer.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// A frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Stream id; 0: the connection.
    pub stream: u32,
    /// Without padding taken off.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The error code of RST_STREAM or GOAWAY.
    pub fn code(&self) -> u32 {
        let at = if self.kind == kind::GOAWAY { 4 } else { 0 };
        self.payload.get(at..at + 4).map_or(u32::MAX, number)
    }

    /// Whether nothing follows on the stream.
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, kind::DATA | kind::HEADERS) && self.flags & END_STREAM != 0
    }

    /// The status that a response head begins with: indexed, or spelled out.
    pub fn status(&self) -> Option<u16> {
        let (&first, rest) = after_size_updates(&self.payload).split_first()?;
        if let 0x88..=0x8e = first {
            return [200, 204, 206, 304, 400, 404, 500].get(usize::from(first - 0x88)).copied();
        }
        // A literal whose name is one of those entries.
        if !matches!(first, 0x48..=0x4e | 0x08..=0x0e) {
            return None;
        }
        let (&length, rest) = rest.split_first()?;
        let value = rest.get(..usize::from(length & 0x7f))?;
        if length & 0x80 == 0 {
            std::str::from_utf8(value).ok()?.parse().ok()
        } else {
            Some(digits(value))
        }
    }
}

/// What follows the changes of the table's size at the start of a block (RFC 7541 section 6.3): a
/// connection that was idle begins with one, to empty the table.
fn after_size_updates(mut block: &[u8]) -> &[u8] {
    while let [first @ 0x20..=0x3f, rest @ ..] = block {
        let more = match first {
            0x3f => rest.iter().position(|byte| byte & 0x80 == 0).map_or(rest.len(), |at| at + 1),
            _ => 0,
        };
        block = &rest[more..];
    }
    block
}

/// Digits in HPACK's Huffman code (RFC 7541 appendix B): 0 to 2 are 00000 to 00010, the others
/// 011001 to 011111.
fn digits(coded: &[u8]) -> u16 {
    let bits: Vec<u8> =
        coded.iter().flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1)).collect();
    let (mut at, mut value) = (0, 0);
    while let Some(short) = bits.get(at..at + 5) {
        let short = short.iter().fold(0, |sum, bit| sum * 2 + u16::from(*bit));
        let digit = match (short, bits.get(at + 5)) {
            (0..=2, _) => short,
            (12..=15, Some(last)) => short * 2 + u16::from(*last) - 22,
            // The end is filled up with ones.
            _ => break,
        };
        at += if digit < 3 { 5 } else { 6 };
        value = value * 10 + digit;
    }
    value
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// Fields as a block without compression.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            // A length in seven bits, and what does not fit behind it (RFC 7541 section 5.1).
            let mut left = text.len();
            if left < 127 {
                out.push(left as u8);
            } else {
                out.push(127);
                left -= 127;
                while left >= 128 {
                    out.push((left % 128 + 128) as u8);
                    left /= 128;
                }
                out.push(left as u8);
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// A request's pseudo fields.
pub fn request<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a.example.com")]
}

/// A connection.
pub struct Frames {
    /// The socket.
    pub stream: TcpStream,
}

impl Frames {
    /// As a client with prior knowledge, whose settings are the default ones.
    pub fn client(address: SocketAddr) -> io::Result<Frames> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        Self::prepare(&stream)?;
        let mut frames = Frames { stream };
        frames.stream.write_all(PREFACE)?;
        frames.send(kind::SETTINGS, 0, 0, &[])?;
        Ok(frames)
    }

    /// As a server, which sends `settings` (identifier and value).
    pub fn server(stream: &TcpStream, settings: &[(u16, u32)]) -> io::Result<Frames> {
        let mut frames = Frames { stream: stream.try_clone()? };
        Self::prepare(&frames.stream)?;
        let mut preface = [0; PREFACE.len()];
        frames.stream.read_exact(&mut preface)?;
        if preface != PREFACE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no preface of HTTP/2"));
        }
        let settings = settings
            .iter()
            .flat_map(|(id, value)| id.to_be_bytes().into_iter().chain(value.to_be_bytes()));
        frames.send(kind::SETTINGS, 0, 0, &settings.collect::<Vec<u8>>())?;
        Ok(frames)
    }

    fn prepare(stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(QUIET_MAX))?;
        stream.set_write_timeout(Some(QUIET_MAX))
    }

    /// A frame as bytes.
    pub fn encode(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        [&head, payload].concat()
    }

    /// Sends a frame.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&Self::encode(kind, flags, stream, payload))
    }

    /// Sends HEADERS.
    pub fn headers(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> io::Result<()> {
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        self.send(kind::HEADERS, flags, stream, &block(fields))
    }

    /// Makes a gRPC call without a message and yields the first frame of the answer, which Weir gives by
    /// itself: a head that ends the stream.
    pub fn grpc_answer(&mut self, authority: &str, path: &str) -> io::Result<Frame> {
        const STREAM: u32 = 1;
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", authority),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        self.headers(STREAM, &fields, true)?;
        self.until(|frame| frame.stream == STREAM)
    }

    /// Sends RST_STREAM.
    pub fn reset(&mut self, stream: u32, code: u32) -> io::Result<()> {
        self.send(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    /// Sends GOAWAY.
    pub fn go_away(&mut self, last: u32, code: u32) -> io::Result<()> {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(kind::GOAWAY, 0, 0, &payload)
    }

    /// The next frame. Settings and pings are acknowledged on the way.
    pub fn next_frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let mut payload = vec![0; number(&head[..3]) as usize];
        self.stream.read_exact(&mut payload)?;
        let stream = number(&head[5..9]) & 0x7fff_ffff;
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        if matches!(frame.kind, kind::SETTINGS | kind::PING) && frame.flags & ACK == 0 {
            let payload: &[u8] = if frame.kind == kind::PING { &frame.payload } else { &[] };
            // The peer may be gone, which the next read tells.
            drop(self.send(frame.kind, ACK, 0, payload));
        }
        Ok(frame)
    }

    /// Reads on to the first frame that `is_it`; yields it.
    pub fn until(&mut self, mut is_it: impl FnMut(&Frame) -> bool) -> io::Result<Frame> {
        loop {
            let frame = self.next_frame()?;
            if is_it(&frame) {
                return Ok(frame);
            }
        }
    }

    /// Reads on to the end of stream `stream`, giving window back; yields the status and the size
    /// of the body.
    pub fn response(&mut self, stream: u32) -> io::Result<(u16, usize)> {
        let (mut status, mut size) = (0, 0);
        loop {
            let frame = self.next_frame()?;
            if frame.kind == kind::GOAWAY && frame.code() != code::NO_ERROR {
                return Err(io::Error::other(format!("GOAWAY {}", frame.code())));
            }
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                kind::RST_STREAM => {
                    return Err(io::Error::other(format!("reset {}", frame.code())));
                }
                kind::HEADERS => status = frame.status().filter(|_| status < 200).unwrap_or(status),
                kind::DATA => {
                    size += frame.payload.len();
                    if !frame.payload.is_empty() {
                        let count = (frame.payload.len() as u32).to_be_bytes();
                        self.send(kind::WINDOW_UPDATE, 0, 0, &count)?;
                        self.send(kind::WINDOW_UPDATE, 0, stream, &count)?;
                    }
                }
                _ => {}
            }
            if frame.ends_stream() {
                return Ok((status, size));
            }
        }
    }
}

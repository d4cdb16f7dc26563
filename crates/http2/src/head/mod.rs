//! Message heads (RFC 9113 section 8): field blocks to the text of HTTP/1.1 heads, and back.
//!
//! Everything above a connection works with that text, by one strict parser and one encoder
//! (`wire::http1`). Reading checks the rules of HTTP/2; the parser checks everything else.

mod receive;
mod send;

pub(crate) use receive::{Fault, HeadReader, Message, ResponseContext};
pub(crate) use send::{request, response, trailers};

use std::fmt;

/// Buffers for reading heads. All connections of a thread can share one, since its contents are
/// only valid until the next call.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The head or trailers that were read last.
    pub(crate) text: Vec<u8>,
    pub(crate) cookies: Vec<u8>,
    pub(crate) pseudo: Vec<u8>,
    /// The literal being decoded.
    pub(crate) line: Vec<u8>,
}

impl Scratch {
    /// Returns the text of the head or trailers in the last event.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// The handshake values of a WebSocket (RFC 6455 section 4). HTTP/1.1 has them and HTTP/2 does not,
/// so translating between an extended CONNECT and an Upgrade needs both.
#[derive(Clone, Copy)]
pub struct WebSocket {
    /// Returns a new `Sec-WebSocket-Key`.
    pub key: fn() -> String,
    /// Returns the `Sec-WebSocket-Accept` for a request, by its text.
    pub accept: fn(&[u8]) -> String,
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocket")
    }
}

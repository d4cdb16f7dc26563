//! The types of a connection's interface.

use crate::error::{Code, Ended, Refusal, Violation};
#[cfg(doc)]
use crate::head::Scratch;
use crate::head::WebSocket;
use crate::streams::StreamKey;

#[cfg(doc)]
use super::Connection;

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends requests, to an `https` server or an `http` one.
    Client {
        /// The connection is secured.
        is_https: bool,
    },
    /// Answers requests.
    Server,
}

/// Settings of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most requests that a client may have open at once. Servers only.
    pub streams_max: u32,
    /// The largest head, in bytes as RFC 9113 section 6.5.2 counts them.
    pub head_max_bytes: u32,
    /// The receive window of a stream at first, in bytes.
    pub window_bytes: u32,
    /// The largest receive window of a stream.
    pub window_max_bytes: u32,
    /// The receive window of the connection, in bytes; at least 65,535. It should cover all
    /// streams, so that a stream whose content is not read does not block the others.
    pub connection_window_bytes: u32,
    /// Handshake values for WebSocket connections.
    pub websocket: WebSocket,
}

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A request; [`Scratch::text`] is its head.
    Request {
        /// Its stream.
        stream: StreamKey,
        /// It has neither content nor trailers.
        ended: bool,
    },
    /// A final or informational response; [`Scratch::text`] is its head.
    Response {
        /// Its stream.
        stream: StreamKey,
        /// It has neither content nor trailers.
        ended: bool,
    },
    /// Content. It occupies the receive window until [`Connection::consumed`] is called.
    Data {
        /// Its stream.
        stream: StreamKey,
        /// May be empty if `ended`.
        data: &'a [u8],
        /// The message has ended.
        ended: bool,
    },
    /// Trailers, which end the message; [`Scratch::text`] contains their lines.
    Trailers {
        /// Its stream.
        stream: StreamKey,
    },
    /// A stream ended before its messages were complete.
    Ended {
        /// The stream.
        stream: StreamKey,
        /// The reason.
        why: Ended,
    },
    /// A request was refused.
    Refused(Refusal),
    /// The peer sent GOAWAY: it does not process new streams.
    GoingAway(Code),
    /// The peer violated the protocol: send the output, then close the connection.
    Violation(Violation),
}

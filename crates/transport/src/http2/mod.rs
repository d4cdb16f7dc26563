//! HTTP/2 (RFC 9113) over sockets: connections of either role, and their streams as
//! [`crate::Stream`]s.
//!
//! ```text
//!  Exchange  Exchange  Exchange      one stream each: a head, a body, trailers
//!      └────────┼────────┘
//!             Link                   the socket, the engine (crate `http2`), unread content
//!          ┌────┴────┐
//!    Http2Server  Http2Driver        the task that receives and sends
//! ```
//!
//! A stream looks like a connection that carries one exchange: a head in the text of HTTP/1.1, then
//! a body as it is, which ends with the stream, and trailers beside it. So code that forwards
//! messages need not know which version either side speaks. Flow control is handled here: unread
//! data is not credited to the peer, and a write waits for the peer's window.

mod client;
mod exchange;
mod failure;
mod link;
mod server;
mod slot;

pub use client::{Http2Client, Http2Driver};
pub(crate) use exchange::Exchange;
pub use failure::StreamError;
pub use http2::{Code, PREFACE, Refusal, Violation};
pub use server::{Http2Server, Incoming, ServerSettings};

use crate::websocket;

/// Handshake values for WebSocket connections.
const WEBSOCKET: http2::WebSocket =
    http2::WebSocket { key: websocket::key, accept: websocket::accept };

/// The largest receive window of a stream, in bytes: 100 ms at 80 Mbit/s. More would mostly be
/// memory for peers whose bodies are read slowly.
const WINDOW_MAX_BYTES: u32 = 1 << 20;

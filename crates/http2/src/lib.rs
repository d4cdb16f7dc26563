//! A sans-I/O HTTP/2 engine (RFC 9113): bytes and the current time in, events and bytes out.
//!
//! A [`Connection`] of either role parses frames, tracks streams and flow-control windows, and
//! enforces the protocol. The caller moves the bytes: [`Connection::receive`] processes input and
//! reports one [`Event`] at a time; [`Connection::output`] returns the bytes to send. Nothing
//! blocks: when a stream cannot send, [`Connection::send_data`] returns 0, and
//! [`Connection::next_writable`] later returns the streams that can.
//!
//! ```text
//!            bytes ─▶ receive ─▶ frames ─▶ hpack ─▶ head ─▶ text of a head, DATA
//!                        │          │
//!                     budget     streams, windows
//!                                   │
//! output ◀─ bytes ◀─ frames ◀─ hpack ◀─ head ◀─ text of a head, DATA
//! ```
//!
//! Message heads enter and leave this crate as HTTP/1.1 text ([`Scratch`]), so that one strict
//! parser checks them for every version of HTTP.
//!
//! **Memory.** An idle connection uses at most [`Connection::IDLE_MAX_BYTES`], mostly header
//! compression tables, which grow with use. A stream uses [`Connection::STREAM_BYTES`]. Received
//! content is kept by the caller, at most one window per stream.

mod budget;
mod connection;
mod error;
mod frame;
mod head;
mod hpack;
mod output;
mod priority;
mod settings;
mod streams;
mod window;

pub use connection::{Config, Connection, Event, Role, SendError};
pub use error::{Code, Ended, Refusal, Violation};
pub use frame::{PREFACE, put as put_frame};
pub use head::{Scratch, WebSocket};
pub use streams::StreamKey;

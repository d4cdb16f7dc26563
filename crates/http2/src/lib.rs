//! HTTP/2 (RFC 9113) without I/O: bytes and the time go in, events and bytes come out.
//!
//! A [`Connection`] of either role parses frames, keeps the states of streams and the windows, and
//! refuses what breaks a rule. Whoever owns it moves its bytes: [`Connection::receive`] takes what
//! arrived and reports one [`Event`] at a time, [`Connection::output`] yields what is to be sent.
//! Nothing here waits: a stream that cannot send is told so, and [`Connection::next_writable`] says
//! whose turn it is.
//!
//! ```text
//!            bytes ─▶ receive ─▶ frames ─▶ hpack ─▶ head ─▶ text of a head, DATA
//!                        │          │
//!                     budget     streams, windows
//!                                   │
//! output ◀─ bytes ◀─ frames ◀─ hpack ◀─ head ◀─ text of a head, DATA
//! ```
//!
//! Heads are the text of HTTP/1.1 on both sides of this crate ([`Scratch`]), so that one strict parser
//! decides what every version of HTTP may say.
//!
//! **Memory.** An idle connection keeps [`Connection::IDLE_MAX_BYTES`] at most, most of it tables for
//! header compression that fill with use. A stream takes [`Connection::STREAM_BYTES`], and what it
//! receives belongs to the caller, at most a window.

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
pub use frame::PREFACE;
pub use head::{Scratch, WebSocket};
pub use streams::StreamKey;

//! Bytes of a capture → connections → what happened on them, as tshark 4.0 counts it.
//!
//! [`reader::Reader`] takes a pcap or pcapng file in pieces, [`decode`] finds the TCP segment in a
//! packet, [`analysis`] says what each one is, [`summary`] counts. [`Trace`] joins them. No clock, no
//! file, no socket: a shell hands the bytes in. What the counts speak for is said elsewhere.

pub mod analysis;
pub mod decode;
pub mod flow;
mod found;
mod pcap;
pub mod pcapng;
pub mod reader;
pub mod summary;
mod trace;

pub use trace::{Frame, Limits, Trace};

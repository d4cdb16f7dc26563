//! A capture's bytes → connections → events on them, counted as tshark 4.0 does.
//!
//! [`reader::Reader`] takes a pcap or pcapng file in pieces, [`decode`] finds the TCP segment in a
//! packet, [`analysis`] sets its flags, [`summary`] counts. [`Trace`] combines them. Pure: no clock,
//! file or socket; the caller passes the bytes. `diagnose` interprets the counts.

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

//! HTTP/2 (RFC 9113) on the `h2` crate: connections of either role, and their streams as
//! [`crate::Stream`]s.
//!
//! A stream looks like a connection that carries one exchange: a head in the text of HTTP/1.1
//! (`wire::http2`), then a body as it is, which ends with the stream, and trailers beside it. So
//! code that forwards messages need not know which version either side speaks. Flow control is
//! handled here: unread data is not credited to the peer, and a write waits for the peer's window.

mod client;
mod exchange;
mod failure;
mod io;
mod server;
mod watch;
mod window;

pub use client::{Http2Client, Http2Driver};
pub(crate) use exchange::Exchange;
pub use failure::{FLOODED, PROTOCOL_VIOLATED, STREAM_REFUSED, UNENCODABLE};
pub use server::{Http2Server, Incoming, ServerSettings};
pub use watch::Refusal;

/// The client preface (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Initial receive window of a stream. The default of RFC 9113 section 6.9.2: more would only be
/// memory for peers whose bodies are not read.
const STREAM_WINDOW_BYTES: u32 = 65_535;
/// Maximum of unsent data buffered for one stream.
const UNSENT_MAX_BYTES: usize = 128 * 1024;
/// Budget for unread small frames, in bytes that they lack of 256 each, on all streams of a
/// connection together: a quarter of a million of gRPC's smallest messages. Beyond it the
/// connection is closed, since each frame takes memory whatever its size.
const SMALL_FRAMES_BUDGET: usize = 64 * 1024 * 1024;
/// Maximum number of streams that Weir has reset and whose frames may still arrive: beyond it they
/// are errors.
const RESET_STREAMS_MAX: usize = 64;

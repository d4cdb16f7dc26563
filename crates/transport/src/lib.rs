//! Connections for all crates: names, dialling, the byte stream, and a small HTTP client.
//!
//! What is sent where, and when to retry, is decided elsewhere. TLS is a second kind of [`Stream`]
//! and an HTTP/2 stream a third; their users hardly notice the difference.

pub mod body;
pub mod client;
pub mod dial;
pub mod http2;
mod inbox;
pub mod names;
mod stream;
mod watched;
mod websocket;

pub use inbox::Inbox;
pub use stream::{Stream, TlsError, TlsFacts, TlsRefused};
pub use watched::watched;

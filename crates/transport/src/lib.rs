//! A connection, made once for all who need one: the stream itself, dialing, and a small HTTP/1.1
//! client.
//!
//! What is sent where, and when to try again, is decided elsewhere. TLS is a second kind of
//! [`Stream`] and a stream of HTTP/2 a third, nearly invisible to their users.

pub mod body;
pub mod client;
pub mod dial;
pub mod http2;
mod inbox;
mod stream;
mod watched;
mod websocket;

pub use inbox::Inbox;
pub use stream::{Stream, TlsError, TlsFacts, TlsRefused};
pub use watched::watched;

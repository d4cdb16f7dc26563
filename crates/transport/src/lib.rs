//! A connection, made once for all who need one: the stream itself, dialing, and a small HTTP/1.1
//! client.
//!
//! What is sent where, and when to try again, is decided elsewhere. TLS will be a second kind of
//! [`Stream`], invisible to its users.

pub mod body;
pub mod client;
pub mod dial;
mod inbox;
mod stream;

pub use inbox::Inbox;
pub use stream::Stream;

//! The `ClientHello`, a client's first TLS message (RFC 8446 section 4.1.2, RFC 5246 section
//! 7.4.1.2), parsed without terminating TLS: the requested server name and the offered protocols.
//!
//! [`peek`] consumes nothing: the same bytes are forwarded to the server that terminates TLS. Only
//! what decides where a connection goes is parsed, and that strictly: a name that two parsers might
//! interpret differently is refused. With Encrypted Client Hello the name is the outer one, which
//! is meant to be seen.

mod error;
mod extensions;
mod records;

pub use error::HelloError;

/// Maximum length of a `ClientHello`, including record headers; a longer one is refused. [`peek`]
/// never needs more. Those of browsers have about 2 KiB.
pub const PEEK_MAX_BYTES: usize = 16 * 1024;

/// Maximum number of extensions; clients send about 20.
pub const EXTENSIONS_MAX: usize = 256;

/// The result of peeking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// The message is not complete: read more and peek again from the stream's first byte.
    Partial,
    /// The message is complete.
    Complete(ClientHello),
}

/// The contents of a `ClientHello`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    server_name: Option<Box<str>>,
    /// A valid `ProtocolNameList`, without the list's length.
    alpn: Box<[u8]>,
}

impl ClientHello {
    /// Returns the server name (SNI, RFC 6066 section 3): a host name in lower case, without a
    /// final dot, at most 253 bytes. `None`: none was sent, or an address, which the RFC does not
    /// permit and which is therefore ignored.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns the offered protocols (ALPN, RFC 7301), the preferred one first; none is empty.
    /// GREASE (RFC 8701) values are included as sent: they equal no real protocol.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &*self.alpn;
        std::iter::from_fn(move || {
            let (&len, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(len))?;
            rest = after;
            Some(name)
        })
    }
}

/// Parses the start of a TCP stream. A result never changes when more bytes arrive; an input of
/// [`PEEK_MAX_BYTES`] is never `Partial`.
///
/// # Errors
///
/// The client does not speak TLS, or its first message is invalid or too long.
pub fn peek(input: &[u8]) -> Result<Peeked, HelloError> {
    match records::message(input)? {
        Some(body) => extensions::read(&body).map(Peeked::Complete),
        None => Ok(Peeked::Partial),
    }
}

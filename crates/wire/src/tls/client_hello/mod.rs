//! The `ClientHello`, a client's first message of TLS (RFC 8446 section 4.1.2, RFC 5246 section
//! 7.4.1.2), read without taking part: for which server it asks, and which protocols it offers.
//!
//! [`peek`] consumes nothing: the same bytes go on to whoever speaks TLS. Only what decides where a
//! connection goes is read, and that strictly: a name that two readers might understand differently
//! is refused. With Encrypted Client Hello the name is the outer one, which is meant to be seen.

mod error;
mod extensions;
mod records;

pub use error::HelloError;

/// A `ClientHello` is no longer than this, records' headers included, or it is refused. It is what
/// [`peek`] needs at most. Those of browsers have about 2 KiB.
pub const PEEK_MAX_BYTES: usize = 16 * 1024;

/// No more extensions than this are read; clients send about 20.
pub const EXTENSIONS_MAX: usize = 256;

/// What became of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// The message is not complete: read more and peek again from the stream's first byte.
    Partial,
    /// The message is complete.
    Complete(ClientHello),
}

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    server_name: Option<Box<str>>,
    /// A sound `ProtocolNameList`, without the list's length.
    alpn: Box<[u8]>,
}

impl ClientHello {
    /// The server's name (SNI, RFC 6066 section 3): a host name in lower case, without a final
    /// dot, at most 253 bytes. `None`: none was sent, or an address, which the RFC does not permit
    /// and which therefore names nothing.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The protocols that are offered (ALPN, RFC 7301), the preferred one first; none is empty.
    /// GREASE (RFC 8701) is among them as it came: it equals no protocol that exists.
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

/// Looks at the beginning of a stream of TCP. A verdict is never taken back when more bytes come;
/// an input of [`PEEK_MAX_BYTES`] is never `Partial`.
///
/// # Errors
///
/// The client does not speak TLS, or its first message is broken or too long.
pub fn peek(input: &[u8]) -> Result<Peeked, HelloError> {
    match records::message(input)? {
        Some(body) => extensions::read(&body).map(Peeked::Complete),
        None => Ok(Peeked::Partial),
    }
}

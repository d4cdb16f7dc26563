//! The PROXY protocol of `HAProxy` (its `doc/proxy-protocol.txt`), version 1, a line of text, and
//! version 2, binary: what a proxy says of the client before the client's own bytes.
//!
//! Reading is [`parse`], writing [`write_v1`] and [`write_v2`]. Whether a peer is believed at all is
//! the caller's: the protocol must never be guessed at, and only be read from peers that were named
//! (section 5 of the document). How long a header may take is the caller's, too.

mod error;
mod tlv;
mod v1;
mod v2;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub use error::ProxyError;
pub use v1::write_v1;
pub use v2::write_v2;

/// The longest line of version 1, CRLF included (section 2.1).
pub const V1_MAX_BYTES: usize = 107;

/// The longest header of version 2 that is read or written, all of its fields included. The format
/// allows 65,551 bytes; no sender comes near.
pub const V2_MAX_BYTES: usize = 4096;

/// The longest unique identifier (section 2.2.5).
pub const UNIQUE_ID_MAX_BYTES: usize = 128;

/// The longest authority, ALPN name, common name, version or cipher that is written.
pub const VALUE_MAX_BYTES: usize = 512;

/// What became of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The header is not complete: read more and parse again from its first byte. Never more than
    /// [`V2_MAX_BYTES`] are needed.
    Partial,
    /// The header is complete.
    Complete {
        /// Bytes of input that are the header; the client's own begin after them.
        consumed: usize,
        /// What it says.
        header: Header<'a>,
    },
}

/// For whom a connection was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// By the proxy for itself, as for a health check (LOCAL of version 2): the peer's address is
    /// the client's.
    Local,
    /// For a client that the proxy does not name, or whose address is neither IPv4 nor IPv6 with
    /// TCP (UNKNOWN of version 1; in version 2 an unspecified family, Unix sockets and datagrams):
    /// the peer's address is to be used, as the document asks.
    #[default]
    Unknown,
    /// For a TCP client. IPv4 addresses mapped into IPv6 are read as IPv4, so that a client has one
    /// address only, however the proxy listens.
    Tcp {
        /// The client's address.
        source: SocketAddr,
        /// The address that the client connected to.
        destination: SocketAddr,
    },
}

/// What a header says. Version 1 says the origin only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// For whom the connection was made.
    pub origin: Origin,
    /// The host that the client asked for: with TLS its server name (SNI). No control characters.
    pub authority: Option<&'a str>,
    /// The protocol that was negotiated by ALPN, such as `h2`. Any bytes.
    pub alpn: Option<&'a [u8]>,
    /// The connection's identifier, at most [`UNIQUE_ID_MAX_BYTES`]. Any bytes.
    pub unique_id: Option<&'a [u8]>,
    /// The client's TLS.
    pub ssl: Option<Ssl<'a>>,
}

/// What a proxy says of its client's TLS (section 2.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ssl<'a> {
    /// Whether the client spoke TLS.
    pub tls: bool,
    /// Whether it showed a certificate on this connection.
    pub certificate_in_connection: bool,
    /// Whether it showed one at least once in the TLS session that this connection belongs to.
    pub certificate_in_session: bool,
    /// What verifying its certificate yielded; 0: sound. Some senders write 0 without a
    /// certificate, too: see [`Ssl::is_verified`].
    pub verify: u32,
    /// The version of TLS, such as `TLSv1.3`. No control characters.
    pub version: Option<&'a str>,
    /// The cipher, such as `ECDHE-RSA-AES128-GCM-SHA256`. No control characters.
    pub cipher: Option<&'a str>,
    /// The common name in the subject of the client's certificate. Any bytes: it is UTF-8 by the
    /// document, but copied from the certificate as it is.
    pub common_name: Option<&'a [u8]>,
}

impl Ssl<'_> {
    /// Whether the client showed a certificate and the proxy found it sound.
    pub fn is_verified(&self) -> bool {
        self.tls
            && self.verify == 0
            && (self.certificate_in_connection || self.certificate_in_session)
    }
}

/// Reads the header at the beginning of `input`, of either version. A verdict is never taken back
/// when more bytes come.
///
/// # Errors
///
/// Whatever does not exactly match the protocol. The connection is to be closed: its bytes cannot
/// be told from a client that forges its address.
pub fn parse(input: &[u8]) -> Result<Parsed<'_>, ProxyError> {
    if starts_alike(input, v1::START) {
        v1::parse(input)
    } else if starts_alike(input, v2::SIGNATURE) {
        v2::parse(input)
    } else {
        Err(ProxyError::NotProxy)
    }
}

/// Whether `input` begins with `start`, as far as it goes.
fn starts_alike(input: &[u8], start: &[u8]) -> bool {
    let len = input.len().min(start.len());
    input[..len] == start[..len]
}

/// The address without regard to how it was written.
fn canonical(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

/// Both addresses in one family, which the format demands: IPv4 if both are, otherwise IPv6 with
/// IPv4 mapped into it.
fn in_one_family(source: SocketAddr, destination: SocketAddr) -> OneFamily {
    let (one, other) = (source.ip().to_canonical(), destination.ip().to_canonical());
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => OneFamily::V4(one.octets(), other.octets()),
        _ => OneFamily::V6(in_ipv6(one), in_ipv6(other)),
    }
}

/// A source and a destination.
enum OneFamily {
    V4([u8; 4], [u8; 4]),
    V6(Ipv6Addr, Ipv6Addr),
}

fn in_ipv6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

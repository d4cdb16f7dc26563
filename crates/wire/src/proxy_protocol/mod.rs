//! `HAProxy`'s PROXY protocol (its `doc/proxy-protocol.txt`), version 1 (a line of text) and
//! version 2 (binary): what a proxy states about the client before the client's own bytes.
//!
//! [`parse`] reads it, [`write_v1`] and [`write_v2`] write it. The caller decides whether a peer is
//! trusted: the protocol must never be auto-detected, and only be accepted from configured peers
//! (section 5 of the document). The caller also limits how long a header may take.

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

/// The longest version 2 header that is read or written, including all of its fields. The format
/// allows 65,551 bytes; no sender comes near.
pub const V2_MAX_BYTES: usize = 4096;

/// The longest unique identifier (section 2.2.5).
pub const UNIQUE_ID_MAX_BYTES: usize = 128;

/// The longest authority, ALPN name, common name, version or cipher that is written.
pub const VALUE_MAX_BYTES: usize = 512;

/// The result of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The header is not complete: read more and parse again from its first byte. Never more than
    /// [`V2_MAX_BYTES`] are needed.
    Partial,
    /// The header is complete.
    Complete {
        /// Bytes of input that are the header; the client's own begin after them.
        consumed: usize,
        /// The parsed header.
        header: Header<'a>,
    },
}

/// On whose behalf a connection was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The proxy's own, as for a health check (LOCAL of version 2): the peer's address is the
    /// client's.
    Local,
    /// A client that the proxy does not name, or whose address is neither IPv4 nor IPv6 with TCP
    /// (UNKNOWN of version 1; in version 2 an unspecified family, Unix sockets and datagrams): the
    /// peer's address must be used, as the document requires.
    #[default]
    Unknown,
    /// A TCP client. IPv4-mapped IPv6 addresses are read as IPv4, so that a client has only one
    /// address, however the proxy listens.
    Tcp {
        /// The client's address.
        source: SocketAddr,
        /// The address that the client connected to.
        destination: SocketAddr,
    },
}

/// The contents of a header. Version 1 contains the origin only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// On whose behalf the connection was made.
    pub origin: Origin,
    /// The host that the client requested: with TLS its server name (SNI). No control characters.
    pub authority: Option<&'a str>,
    /// The protocol that was negotiated by ALPN, such as `h2`. Any bytes.
    pub alpn: Option<&'a [u8]>,
    /// The connection's identifier, at most [`UNIQUE_ID_MAX_BYTES`]. Any bytes.
    pub unique_id: Option<&'a [u8]>,
    /// The client's TLS.
    pub ssl: Option<Ssl<'a>>,
}

/// What a proxy states about its client's TLS (section 2.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ssl<'a> {
    /// Whether the client spoke TLS.
    pub tls: bool,
    /// Whether it presented a certificate on this connection.
    pub certificate_in_connection: bool,
    /// Whether it presented one at least once in the TLS session that this connection belongs to.
    pub certificate_in_session: bool,
    /// The result of verifying its certificate; 0: valid. Some senders also write 0 without a
    /// certificate: see [`Ssl::is_verified`].
    pub verify: u32,
    /// The version of TLS, such as `TLSv1.3`. No control characters.
    pub version: Option<&'a str>,
    /// The cipher, such as `ECDHE-RSA-AES128-GCM-SHA256`. No control characters.
    pub cipher: Option<&'a str>,
    /// The common name in the subject of the client's certificate. May be any bytes: it should be
    /// UTF-8, but is copied from the certificate unchanged.
    pub common_name: Option<&'a [u8]>,
}

impl Ssl<'_> {
    /// Returns whether the client presented a certificate that the proxy verified.
    pub fn is_verified(&self) -> bool {
        self.tls
            && self.verify == 0
            && (self.certificate_in_connection || self.certificate_in_session)
    }
}

/// Parses the header at the start of `input`, of either version. A result never changes when more
/// bytes arrive.
///
/// # Errors
///
/// Anything that does not exactly match the protocol. The connection must be closed: its bytes
/// cannot be distinguished from a client that forges its address.
pub fn parse(input: &[u8]) -> Result<Parsed<'_>, ProxyError> {
    if starts_alike(input, v1::START) {
        v1::parse(input)
    } else if starts_alike(input, v2::SIGNATURE) {
        v2::parse(input)
    } else {
        Err(ProxyError::NotProxy)
    }
}

/// Returns whether `input` begins with `start`, as far as it goes.
fn starts_alike(input: &[u8], start: &[u8]) -> bool {
    let len = input.len().min(start.len());
    input[..len] == start[..len]
}

/// Returns the address in canonical form, however it was written.
fn canonical(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

/// Converts both addresses to one family, as the format requires: IPv4 if both are, otherwise IPv6
/// with mapped IPv4 addresses.
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

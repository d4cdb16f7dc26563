//! What Weir tells servers about the origin of a connection's requests.

use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{CertificateNames, ForwardFields, Networks};
use transport::Stream;
use wire::http1::encode;

/// The scheme that a connection's clients use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    /// Clear text.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    pub(crate) fn of(stream: &Stream) -> Scheme {
        if stream.tls().is_some() { Scheme::Https } else { Scheme::Http }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// The forwarding fields of a connection's requests, written once per connection.
pub(crate) struct Origin {
    /// The address of the connection's other end: the client, or a proxy.
    pub(crate) peer: SocketAddr,
    pub(crate) scheme: Scheme,
    /// Whether the peer's own forwarding fields are trusted.
    pub(crate) trusted: bool,
    pub(super) fields: ForwardFields,
    /// The whole `X-Forwarded-For` field line.
    pub(super) x_forwarded_for: Vec<u8>,
    /// `for=…;proto=…` of `Forwarded`.
    pub(super) forwarded: Vec<u8>,
    /// The client certificate: `Client-Cert` (RFC 9440) and its subject, whole field lines.
    pub(super) certificate: Vec<u8>,
    /// The names in it, once a route has asked for them.
    pub(crate) certificate_names: OnceCell<Box<CertificateNames>>,
}

impl Origin {
    pub(crate) fn new(
        peer: SocketAddr,
        trusted: &Networks,
        fields: ForwardFields,
        scheme: Scheme,
    ) -> Origin {
        let proto = scheme.name();
        let ip = peer.ip().to_canonical();
        // Only fields that will be sent are written: a connection may carry a single request.
        let line =
            if fields.x_forwarded { format!("X-Forwarded-For: {ip}\r\n") } else { String::new() };
        let forwarded =
            if fields.forwarded { format!("{};proto={proto}", for_ip(ip)) } else { String::new() };
        Origin {
            peer,
            scheme,
            trusted: trusted.contains(ip),
            fields,
            x_forwarded_for: line.into_bytes(),
            forwarded: forwarded.into_bytes(),
            certificate: Vec::new(),
            certificate_names: OnceCell::new(),
        }
    }

    /// Adds the client's verified certificate (DER).
    pub(crate) fn with_certificate(mut self, certificate: Option<&[u8]>) -> Origin {
        if let Some(der) = certificate {
            let out = &mut self.certificate;
            out.extend_from_slice(b"Client-Cert: :");
            out.extend_from_slice(STANDARD.encode(der).as_bytes());
            out.extend_from_slice(b":\r\n");
            if let Some(subject) = tls::identity(der) {
                encode::put_field(out, b"X-Client-Subject", subject.as_bytes());
            }
        }
        self
    }
}

/// Appends the addresses of an `X-Forwarded-For` value as elements of `Forwarded`, each followed by
/// `, ` (RFC 7239 section 7.4). Anything that is not an address becomes `unknown`.
pub(super) fn put_as_forwarded(addresses: &[u8], out: &mut Vec<u8>) {
    for part in addresses.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        let text = std::str::from_utf8(part).unwrap_or_default();
        let element = if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            for_ip(ip.to_canonical())
        } else if let Ok(address) = text.parse::<SocketAddr>() {
            let ip = address.ip().to_canonical();
            format!("for=\"{}\"", SocketAddr::new(ip, address.port()))
        } else if text.is_empty() {
            continue;
        } else {
            "for=unknown".to_owned()
        };
        out.extend_from_slice(element.as_bytes());
        out.extend_from_slice(b", ");
    }
}

/// Returns the `for=` parameter of `Forwarded` (RFC 7239 section 6).
fn for_ip(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => format!("for={v4}"),
        IpAddr::V6(v6) => format!("for=\"[{v6}]\""),
    }
}

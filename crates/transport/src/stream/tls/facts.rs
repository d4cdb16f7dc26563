//! What a handshake negotiated, for logs and decisions.

use rustls::HandshakeKind;
use rustls::pki_types::CertificateDer;

/// The negotiated parameters, and the peer's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by its IANA name.
    pub cipher: &'static str,
    /// The negotiated protocol (ALPN, RFC 7301), such as `h2`.
    pub alpn: Option<Box<[u8]>>,
    /// The server name that the client sent (SNI, RFC 6066 section 3), in lower case; `None` on
    /// connections to servers.
    pub server_name: Option<Box<str>>,
    /// The peer's own certificate, DER, verified if the configuration says so.
    pub peer_certificate: Option<CertificateDer<'static>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl TlsFacts {
    /// Reads the facts of a finished handshake.
    pub(super) fn of(rustls: &rustls::Connection) -> TlsFacts {
        let version = match rustls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "unknown",
        };
        let suite = rustls.negotiated_cipher_suite().map(|suite| suite.suite());
        let server_name = match rustls {
            rustls::Connection::Server(server) => server.server_name(),
            rustls::Connection::Client(_) => None,
        };
        TlsFacts {
            version,
            cipher: suite.and_then(|suite| suite.as_str()).unwrap_or("unknown"),
            alpn: rustls.alpn_protocol().map(Box::from),
            server_name: server_name.map(Box::from),
            peer_certificate: rustls.peer_certificates().and_then(|chain| chain.first().cloned()),
            resumed: rustls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

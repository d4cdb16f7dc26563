//! What a configuration says of TLS. The files' bytes are part of it, as they were when it was
//! read: a certificate that was replaced makes another configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A file that a configuration names, with what stood in it when the configuration was read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Material {
    /// Where it was read from.
    pub path: PathBuf,
    /// All of it.
    pub bytes: Arc<[u8]>,
}

/// Without the bytes: they may be a private key.
impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path.display(), self.bytes.len())
    }
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// The certificate and those that lead to its root, PEM, its own first.
    pub chain: Material,
    /// Its private key, PEM.
    pub key: Material,
    /// A stapled OCSP response, DER.
    pub ocsp: Option<Material>,
}

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// At least one. Which is shown is chosen by the server name (SNI) that the client asks for,
    /// exact before wildcard; a client that asks for none or for another gets the first.
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken.
    pub version_min: TlsVersion,
    /// The cipher suites that may be agreed on, by their names at IANA, in the server's order of
    /// preference; empty: all that are supported, in the client's order.
    pub ciphers: Vec<&'static str>,
    /// Whether clients show certificates, and which are taken.
    pub client_certificates: Option<ClientCertificates>,
    /// Strict-Transport-Security (RFC 6797): for how long browsers are to use TLS alone.
    pub hsts: Option<Duration>,
}

impl ListenerTls {
    /// See [`crate::Listener::has_security_of`].
    fn clients(&self) -> Option<(&[u8], bool)> {
        self.client_certificates.as_ref().map(|clients| (&*clients.ca.bytes, clients.required))
    }

    pub(crate) fn has_security_of(&self, other: &ListenerTls) -> bool {
        self.version_min == other.version_min
            && self.ciphers == other.ciphers
            && self.clients() == other.clients()
    }
}

crate::words! {
    /// Versions of TLS.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TlsVersion {
        /// RFC 5246.
        Tls12 = "1.2",
        /// RFC 8446.
        Tls13 = "1.3",
    }
}

/// Which certificates of clients are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The authorities that issue them, PEM.
    pub ca: Material,
    /// Whether a client without one is refused.
    pub required: bool,
}

/// TLS towards servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceTls {
    /// The name that is asked for (SNI) and verified; `None`: the server's host name, or its
    /// address.
    pub name: Option<Arc<str>>,
    /// Whether the server's certificate is verified.
    pub verify: bool,
    /// The authorities that are believed, PEM; those of the system unless told otherwise.
    pub ca: Material,
    /// The certificate that Weir shows to servers that ask for one.
    pub certificate: Option<Certificate>,
}

crate::words! {
    /// The version of the PROXY protocol in which servers are told who the client is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ProxyVersion {
        /// A line of text.
        V1 = "v1",
        /// Binary, with the TLS and authority fields.
        V2 = "v2",
    }
}

crate::words! {
    /// The version of HTTP spoken to servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum HttpVersion {
        /// HTTP/1.1 (RFC 9112).
        Http11 = "1.1",
        /// HTTP/2 (RFC 9113): by ALPN over TLS, with prior knowledge over cleartext.
        Http2 = "2",
    }
}

//! TLS settings. The files' contents are part of them, as read with the configuration: replacing a
//! certificate makes another configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::AcmeCertificate;

/// A file that a configuration names, with its contents when the configuration was read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Material {
    /// Its path.
    pub path: PathBuf,
    /// Its contents.
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
    /// The certificate chain, PEM, leaf first.
    pub chain: Material,
    /// Its private key, PEM.
    pub key: Material,
    /// A stapled OCSP response, DER.
    pub ocsp: Option<Material>,
    /// The names for which it is obtained and renewed by ACME; `None`: it comes from files. In a
    /// configuration that was only read, chain and key of such a certificate are empty; they are
    /// filled in before it is served ([`crate::Snapshot::fill_acme`]).
    pub acme: Option<Arc<AcmeCertificate>>,
}

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// At least one. Selected by the server name (SNI) that the client sends, exact before
    /// wildcard.
    pub certificates: Vec<Certificate>,
    /// Which one a client gets that sends no name, or another.
    pub unknown_names: UnknownNames,
    /// The minimum version.
    pub version_min: TlsVersion,
    /// The permitted cipher suites, by their IANA names, in the server's order of preference;
    /// empty: all supported ones, in the client's order.
    pub ciphers: Vec<&'static str>,
    /// Whether clients must present certificates, and which are accepted.
    pub client_certificates: Option<ClientCertificates>,
    /// Strict-Transport-Security (RFC 6797): how long browsers must use TLS only.
    pub hsts: Option<Duration>,
}

/// What a client gets that sends no server name, or one that no certificate has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnknownNames {
    /// The first certificate.
    #[default]
    First,
    /// The certificate that is for this name.
    As(String),
    /// None: the handshake fails.
    Refuse,
}

impl ListenerTls {
    /// Returns whether the certificates that clients present are verified.
    pub fn verifies_clients(&self) -> bool {
        self.client_certificates.as_ref().is_some_and(|clients| match clients.mode {
            ClientCertificateMode::Required | ClientCertificateMode::Optional => true,
            ClientCertificateMode::Unverified => false,
        })
    }

    /// See [`crate::Listener::has_security_of`].
    fn clients(&self) -> Option<(&[u8], ClientCertificateMode)> {
        self.client_certificates.as_ref().map(|clients| (&*clients.ca.bytes, clients.mode))
    }

    pub(crate) fn has_security_of(&self, other: &ListenerTls) -> bool {
        self.version_min == other.version_min
            && self.ciphers == other.ciphers
            && self.clients() == other.clients()
    }
}

crate::words! {
    /// TLS versions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TlsVersion {
        /// RFC 5246.
        Tls12 = "1.2",
        /// RFC 8446.
        Tls13 = "1.3",
    }
}

/// Which client certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The authorities that issue them, PEM.
    pub ca: Material,
    /// What becomes of clients without a valid one.
    pub mode: ClientCertificateMode,
}

/// What becomes of clients without a valid certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateMode {
    /// They are refused.
    Required,
    /// Those that present none are accepted; those with one that is not valid are refused.
    Optional,
    /// All are accepted. Whatever they present, they count as clients without a certificate.
    Unverified,
}

/// TLS towards servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceTls {
    /// The server name that is sent (SNI) and verified; `None`: the server's host name, or its
    /// address.
    pub name: Option<Arc<str>>,
    /// The names of which the server's certificate must have one; empty: the one above.
    pub names: Vec<AlternativeName>,
    /// Whether the server's certificate is verified.
    pub verify: bool,
    /// The trusted authorities, PEM; those of the system by default.
    pub ca: Material,
    /// The certificate that Weir presents to servers that request one.
    pub certificate: Option<Certificate>,
}

/// A name in a certificate (RFC 5280 section 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlternativeName {
    /// A host name, in lower case; one of the certificate may have a wildcard that covers it.
    Dns(String),
    /// A URI, such as a SPIFFE ID, compared byte by byte.
    Uri(String),
}

/// As a configuration has it.
impl fmt::Display for AlternativeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlternativeName::Dns(name) | AlternativeName::Uri(name) => f.write_str(name),
        }
    }
}

crate::words! {
    /// The PROXY protocol version in which servers receive the client's address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ProxyVersion {
        /// A line of text.
        V1 = "v1",
        /// Binary, with the TLS and authority fields.
        V2 = "v2",
    }
}

crate::words! {
    /// The HTTP version spoken to servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum HttpVersion {
        /// HTTP/1.1 (RFC 9112).
        Http11 = "1.1",
        /// HTTP/2 (RFC 9113): by ALPN over TLS, with prior knowledge over cleartext.
        Http2 = "2",
    }
}

//! TLS errors, in readable words.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, ContentType};

use crate::Stream;

/// Why TLS failed.
#[derive(Debug)]
pub enum TlsError {
    /// The peer does not speak TLS, but clear text, for example. Nothing has been sent.
    NotTls,
    /// The peer refused with this alert (RFC 8446 section 6.2).
    Alert(AlertDescription),
    /// The peer's certificate could not be verified.
    Certificate(CertificateError),
    /// The peer sent no certificate, which is required.
    CertificateMissing,
    /// The two sides have no common parameters, or the peer violates the protocol.
    Protocol(rustls::Error),
    /// The peer closed the connection during the handshake.
    Closed,
    /// The connection failed.
    Io(io::Error),
}

/// A connection on which the TLS handshake failed.
#[derive(Debug)]
pub struct TlsRefused {
    /// The error.
    pub error: TlsError,
    /// The connection, without TLS: what was read for the handshake is gone.
    pub stream: Stream,
}

impl TlsError {
    /// Returns the error for a failure before the handshake was done, on a connection that begins
    /// with `first_byte`.
    pub(super) fn in_handshake(error: &rustls::Error, first_byte: Option<u8>) -> TlsError {
        let begins = first_byte.map(ContentType::from);
        let is_tls = matches!(begins, Some(ContentType::Handshake | ContentType::Alert));
        let unread = matches!(error, rustls::Error::InvalidMessage(_));
        if unread && !is_tls { TlsError::NotTls } else { TlsError::from(error.clone()) }
    }

    /// Returns a short description.
    pub fn text(&self) -> &'static str {
        match self {
            TlsError::NotTls => "the peer does not speak TLS",
            TlsError::Alert(alert) => alert_text(*alert),
            TlsError::Certificate(error) => certificate_text(error),
            TlsError::CertificateMissing => "the peer has shown no certificate",
            TlsError::Protocol(error) => protocol_text(error),
            TlsError::Closed => "the peer closed the connection in the TLS handshake",
            TlsError::Io(_) => "the connection failed in the TLS handshake",
        }
    }
}

fn alert_text(alert: AlertDescription) -> &'static str {
    use AlertDescription as Alert;
    match alert {
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "the peer found no common cipher or key exchange"
        }
        Alert::ProtocolVersion => "the peer does not speak this version of TLS",
        Alert::NoApplicationProtocol => "the peer speaks none of the protocols offered (ALPN)",
        Alert::UnrecognisedName => "the peer does not know the server name asked for (SNI)",
        Alert::CertificateRequired | Alert::NoCertificate => "the peer requires a certificate",
        Alert::UnknownCA => "the peer does not know the authority of the certificate shown",
        Alert::CertificateExpired => "the peer finds the certificate shown expired",
        Alert::CertificateRevoked => "the peer finds the certificate shown revoked",
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateUnknown
        | Alert::BadCertificateStatusResponse => "the peer refused the certificate shown",
        Alert::AccessDenied => "the peer denies access to the certificate shown",
        Alert::InternalError => "the peer had an internal error in TLS",
        Alert::UserCanceled => "the peer cancelled the TLS handshake",
        _ => "the peer ended TLS with an alert",
    }
}

fn certificate_text(error: &CertificateError) -> &'static str {
    use CertificateError as Bad;
    match error {
        Bad::Expired | Bad::ExpiredContext { .. } => "the peer's certificate has expired",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
            "the peer's certificate is not valid yet"
        }
        Bad::Revoked => "the peer's certificate is revoked",
        Bad::UnknownIssuer => "the peer's certificate is from an authority that is not trusted",
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            "the peer's certificate is for another name"
        }
        Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => {
            "the peer's certificate is for another purpose"
        }
        Bad::BadSignature => "the peer's certificate has a bad signature",
        Bad::BadEncoding => "the peer's certificate is malformed",
        _ => "the peer's certificate could not be verified",
    }
}

fn protocol_text(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::PeerIncompatible(_) => {
            "the peer and this side have no version, cipher or key exchange of TLS in common"
        }
        rustls::Error::NoApplicationProtocol => {
            "the peer and this side have no protocol in common (ALPN)"
        }
        rustls::Error::DecryptError => "what the peer sent could not be decrypted",
        rustls::Error::General(_) | rustls::Error::Other(_) => "TLS failed on this side",
        _ => "the peer does not follow the TLS protocol",
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> TlsError {
        match error {
            rustls::Error::AlertReceived(alert) => TlsError::Alert(alert),
            rustls::Error::InvalidCertificate(error) => TlsError::Certificate(error),
            rustls::Error::NoCertificatesPresented => TlsError::CertificateMissing,
            error => TlsError::Protocol(error),
        }
    }
}

/// The form in which reads and writes return it.
impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> io::Error {
        match error {
            TlsError::Io(error) => error,
            TlsError::Closed => io::Error::new(io::ErrorKind::UnexpectedEof, error),
            TlsError::Alert(_) => io::Error::new(io::ErrorKind::ConnectionAborted, error),
            error => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// The description, followed by the library's or the system's error.
impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            TlsError::Alert(alert) => write!(f, " ({alert:?})"),
            TlsError::Certificate(error) => write!(f, " ({error})"),
            TlsError::Protocol(error) => write!(f, " ({error})"),
            TlsError::Io(error) => write!(f, " ({error})"),
            TlsError::NotTls | TlsError::CertificateMissing | TlsError::Closed => Ok(()),
        }
    }
}

impl std::error::Error for TlsError {}

//! Verifiers of servers' certificates for which the name that was sent (SNI) does not count.
//!
//! The server must still prove that it has the key of its certificate.

use std::sync::Arc;

use model::{AlternativeName, CertificatePart};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::identity::certificate_names;

/// Which certificates are accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Any, for `verify = false`: the connection is encrypted, but not authenticated, and anyone in between may read
    /// it.
    Any,
    /// Those that these authorities have signed.
    SignedBy(Arc<RootCertStore>),
    /// Those that these authorities have signed for one of these names.
    Named {
        /// The authorities.
        roots: Arc<RootCertStore>,
        /// Never empty.
        names: Vec<AlternativeName>,
    },
}

/// Accepts certificates whatever name was sent.
#[derive(Debug)]
pub(crate) struct AnyName {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

impl AnyName {
    pub(crate) fn new(accepted: Accepted, provider: Arc<CryptoProvider>) -> AnyName {
        AnyName { accepted, provider }
    }

    /// Verifies a certificate.
    pub(crate) fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let (roots, names) = match &self.accepted {
            Accepted::Any => return Ok(()),
            Accepted::SignedBy(roots) => (roots, None),
            Accepted::Named { roots, names } => (roots, Some(names)),
        };
        let parsed = ParsedCertificate::try_from(leaf)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)?;
        match names {
            Some(names) if !names.iter().any(|name| has_name(&parsed, leaf, name)) => {
                Err(Error::InvalidCertificate(CertificateError::NotValidForName))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a certificate is for a name.
fn has_name(parsed: &ParsedCertificate<'_>, leaf: &[u8], name: &AlternativeName) -> bool {
    match name {
        AlternativeName::Dns(name) => ServerName::try_from(name.as_str())
            .is_ok_and(|name| verify_server_name(parsed, &name).is_ok()),
        AlternativeName::Uri(uri) => certificate_names(leaf)
            .of(CertificatePart::Uri)
            .is_some_and(|known| known.contains(uri)),
    }
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

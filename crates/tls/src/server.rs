//! TLS towards clients.

use std::sync::Arc;

use model::{ClientCertificates, ListenerTls, TlsVersion};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::facts::certified;
use crate::resolve::ByName;
use crate::{Mistake, Part, pem, provider};

/// What a listener speaks TLS by. `alpn`: protocols in order of preference, such as `b"h2"`; empty:
/// none is negotiated, whatever the client offers.
///
/// One is enough for every worker. Sessions are resumed by tickets (RFC 5077, RFC 8446 section
/// 2.2) whose keys rustls makes anew every six hours; the keys belong to this one config, since a
/// ticket of a listener that asks for no client certificate must be worth nothing at one that does.
/// Early data is never taken: what is in it can be replayed (RFC 8446 section 8).
///
/// # Errors
/// The first mistake in a certificate, a key, an OCSP response or the clients' authorities; in one
/// of several certificates, its chain's path stands in the message.
pub fn server(tls: &ListenerTls, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, Mistake> {
    let mut certificates = Vec::new();
    for certificate in &tls.certificates {
        certificates.push(certified(certificate).map_err(|mistake| Mistake {
            message: format!("{}: {}", certificate.chain.path.display(), mistake.message),
            ..mistake
        })?);
    }
    if certificates.is_empty() {
        return Err(Mistake::new(Part::Chain, "TLS needs a certificate"));
    }
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(tls.version_min))
        .map_err(unusable)?;
    let builder = match &tls.client_certificates {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(verifier(clients)?),
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName::new(certificates)));
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.ticketer = Ticketer::new().map_err(unusable)?;
    Ok(Arc::new(config))
}

fn verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, Mistake> {
    let roots = Arc::new(pem::roots(&clients.ca)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| {
        Mistake::new(Part::Ca, format!("these authorities cannot verify clients: {error}"))
    })
}

/// What rustls refuses whatever the files hold.
fn unusable(error: rustls::Error) -> Mistake {
    Mistake::new(Part::Chain, format!("TLS cannot be set up: {error}"))
}

/// Versions from `min` on.
pub(crate) fn versions(min: TlsVersion) -> &'static [&'static rustls::SupportedProtocolVersion] {
    static FROM_13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    match min {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => &FROM_13,
    }
}

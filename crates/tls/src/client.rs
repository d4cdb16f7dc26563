//! TLS towards servers.

use std::sync::Arc;

use model::{HttpPeer, Material, ServiceTls, TlsVersion};
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;

use crate::any_name::{Accepted, AnyName};
use crate::facts::certified;
use crate::server::versions;
use crate::{Mistake, Part, pem, provider};

/// Returns the TLS configuration for requests that Weir sends itself, over HTTP/1.1, to a server whose certificate one
/// of these authorities has issued.
///
/// # Errors
/// The first error in the authorities.
pub fn own_client(ca: Material) -> Result<Arc<ClientConfig>, Mistake> {
    client(
        &ServiceTls { name: None, names: Vec::new(), verify: true, ca, certificate: None },
        &[b"http/1.1"],
    )
}

/// Returns the TLS configuration for requests that Weir sends itself to a peer. `alpn`: as for [`client`]. `None`:
/// its URL is not `https`.
///
/// # Errors
/// The first error in the authorities or in the certificate that Weir presents.
pub fn to_peer(peer: &HttpPeer, alpn: &[&[u8]]) -> Result<Option<Arc<ClientConfig>>, Mistake> {
    let Some(ca) = peer.ca.clone() else { return Ok(None) };
    let tls = ServiceTls {
        name: None,
        names: Vec::new(),
        verify: true,
        ca,
        certificate: peer.certificate.as_deref().cloned(),
    };
    client(&tls, alpn).map(Some)
}

/// Returns the TLS configuration for connections to a service's servers. `alpn`: as for
/// [`crate::server()`]. The server name to send and verify is given with each connection.
///
/// Share one among all workers and connections: it remembers sessions, so that they are resumed.
///
/// # Errors
/// The first error in the authorities or in the certificate that Weir presents.
pub fn client(tls: &ServiceTls, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Mistake> {
    let verifier: Arc<dyn ServerCertVerifier> = if tls.verify && !tls.names.is_empty() {
        let accepted =
            Accepted::Named { roots: Arc::new(pem::roots(&tls.ca)?), names: tls.names.clone() };
        Arc::new(AnyName::new(accepted, provider()))
    } else if tls.verify {
        let roots = Arc::new(pem::roots(&tls.ca)?);
        WebPkiServerVerifier::builder_with_provider(roots, provider()).build().map_err(|error| {
            Mistake::new(Part::Ca, format!("these authorities cannot verify servers: {error}"))
        })?
    } else {
        Arc::new(AnyName::new(Accepted::Any, provider()))
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(TlsVersion::Tls12))
        .map_err(|error| Mistake::new(Part::Ca, format!("TLS cannot be set up: {error}")))?
        // "Dangerous" because any verifier may be given here; by default it is rustls's own.
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &tls.certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => {
            let (certified, _) = certified(certificate)?;
            builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                certified,
            )))
        }
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

//! Checks certificates of clients after the handshake, for listeners whose authorities change while connections stay.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::Material;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::{Mistake, Part, pem, provider};

/// Authorities of clients' certificates.
#[derive(Clone, Debug)]
pub struct ClientAuthority(Arc<dyn ClientCertVerifier>);

impl ClientAuthority {
    /// Reads authorities in PEM.
    ///
    /// # Errors
    /// There is none that can be used.
    pub fn new(authorities: &str) -> Result<ClientAuthority, Mistake> {
        let material = Material { path: PathBuf::new(), bytes: authorities.as_bytes().into() };
        let roots = Arc::new(pem::roots(&material)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.map_err(|error| {
            Mistake::new(Part::Ca, format!("these authorities cannot verify clients: {error}"))
        })?;
        Ok(ClientAuthority(verifier))
    }

    /// Checks a chain in DER, leaf first, that a client has presented and whose key it has proved to have. `now` is the
    /// time since 1970.
    ///
    /// # Errors
    /// The certificate is not signed by one of the authorities, is not valid now, or is not one of a client.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: Duration) -> Result<(), String> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err("there is no certificate".to_owned());
        };
        let now = UnixTime::since_unix_epoch(now);
        let verified = self.0.verify_client_cert(leaf, intermediates, now);
        verified.map(drop).map_err(|error| error.to_string())
    }
}

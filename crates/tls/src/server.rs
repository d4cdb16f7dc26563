//! TLS towards clients.

use std::sync::Arc;

use model::{ClientCertificateMode, ClientCertificates, ListenerTls, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ServerConfig, SupportedCipherSuite};

use crate::any_client::AnyClient;
use crate::facts::certified;
use crate::resolve::ByName;
use crate::tickets::{Binding, ListenerTickets, SharedTickets};
use crate::{Mistake, Part, pem, provider};

/// Returns the TLS configuration of a listener. `alpn`: protocols in order of preference, such as
/// `b"h2"`; empty: none is negotiated, whatever the client offers.
///
/// One is enough for every worker. Sessions are resumed by tickets (RFC 5077, RFC 8446 section 2.2)
/// whose keys rustls rotates every six hours; the keys belong to this one configuration, since a
/// ticket of a listener without client certificates must not be valid at one that requires them.
/// Early data is never accepted: it can be replayed (RFC 8446 section 8).
///
/// # Errors
/// The first error in a certificate, a key, an OCSP response or the clients' authorities; for one
/// of several certificates, the message contains its chain's path.
pub fn server(tls: &ListenerTls, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, Mistake> {
    server_with_tickets(tls, alpn, &Arc::default())
}

/// Returns the TLS configuration of a listener, as [`server()`] does, that asks all clients for a certificate and accepts any,
/// or none: the caller checks it with a [`ClientAuthority`](crate::ClientAuthority). A client has proved that it has the
/// key.
///
/// # Errors
/// Those of [`server()`].
pub fn server_asking_any_client(
    tls: &ListenerTls,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, Mistake> {
    configuration(tls, alpn, &Arc::default(), Some(Arc::new(AnyClient::new(&[]))))
}

/// Returns the TLS configuration of a listener, as [`server()`] does. Its tickets are sealed with the keys that are
/// shared with other processes, as long as there are some: they are valid at listeners with the same certificates,
/// private keys, `version_min`, `ciphers` and `unknown_names`. A listener that asks for certificates of clients shares
/// none.
///
/// # Errors
/// Those of [`server()`].
pub fn server_with_tickets(
    tls: &ListenerTls,
    alpn: &[&[u8]],
    shared: &Arc<SharedTickets>,
) -> Result<Arc<ServerConfig>, Mistake> {
    let clients = tls.client_certificates.as_ref().map(verifier).transpose()?;
    configuration(tls, alpn, shared, clients)
}

fn configuration(
    tls: &ListenerTls,
    alpn: &[&[u8]],
    shared: &Arc<SharedTickets>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, Mistake> {
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
    let builder = ServerConfig::builder_with_provider(provider_of(&tls.ciphers))
        .with_protocol_versions(versions(tls.version_min))
        .map_err(unusable)?;
    let own = Ticketer::new().map_err(unusable)?;
    let ticketer = match &clients {
        None => {
            let chains = certificates.iter().map(|(certified, _)| &*certified.cert);
            let binding = Binding::new(tls, chains);
            Arc::new(ListenerTickets::new(Arc::clone(shared), binding, own))
        }
        Some(_) => own,
    };
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config =
        builder.with_cert_resolver(Arc::new(ByName::new(certificates, &tls.unknown_names)));
    config.ignore_client_order = !tls.ciphers.is_empty();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.ticketer = ticketer;
    Ok(Arc::new(config))
}

/// Returns the provider restricted to these cipher suites, in this order; with all of its own if
/// the list is empty.
fn provider_of(ciphers: &[&str]) -> Arc<CryptoProvider> {
    if ciphers.is_empty() {
        return provider();
    }
    let all = CryptoProvider::clone(&provider());
    let named = |name: &&str| {
        let mut suites = all.cipher_suites.iter();
        suites.find(|suite| iana_name(suite).as_deref() == Some(name)).copied()
    };
    let cipher_suites = ciphers.iter().filter_map(named).collect();
    Arc::new(CryptoProvider { cipher_suites, ..all.clone() })
}

/// Returns the configurable cipher suites by their IANA names, in the default order of preference.
pub fn cipher_suites() -> Vec<String> {
    provider().cipher_suites.iter().filter_map(iana_name).collect()
}

/// rustls adds a prefix to the TLS 1.3 suites.
fn iana_name(suite: &SupportedCipherSuite) -> Option<String> {
    let name = suite.suite().as_str()?;
    Some(name.strip_prefix("TLS13_").map_or(name.to_owned(), |rest| format!("TLS_{rest}")))
}

fn verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, Mistake> {
    let roots = Arc::new(pem::roots(&clients.ca)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let builder = match clients.mode {
        ClientCertificateMode::Required => builder,
        ClientCertificateMode::Optional | ClientCertificateMode::Unverified => {
            builder.allow_unauthenticated()
        }
    };
    let verifier = builder.build().map_err(|error| {
        Mistake::new(Part::Ca, format!("these authorities cannot verify clients: {error}"))
    })?;
    Ok(match clients.mode {
        ClientCertificateMode::Required | ClientCertificateMode::Optional => verifier,
        ClientCertificateMode::Unverified => {
            Arc::new(AnyClient::new(verifier.root_hint_subjects()))
        }
    })
}

/// An error of rustls that does not depend on the files.
fn unusable(error: rustls::Error) -> Mistake {
    Mistake::new(Part::Chain, format!("TLS cannot be set up: {error}"))
}

/// Returns the versions from `min` on.
pub(crate) fn versions(min: TlsVersion) -> &'static [&'static rustls::SupportedProtocolVersion] {
    static FROM_13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    match min {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => &FROM_13,
    }
}

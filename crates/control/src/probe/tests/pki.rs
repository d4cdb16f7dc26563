//! Certificates created for the tests, as files would contain them.

use std::sync::{Arc, OnceLock};

use model::{Certificate, ClientCertificates, ListenerTls, Material, ServiceTls, TlsVersion};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tls::rustls::ServerConfig;

/// The name in the server's certificate.
pub(super) const NAME: &str = "server.test";

fn authority() -> &'static CertifiedIssuer<'static, KeyPair> {
    static AUTHORITY: OnceLock<CertifiedIssuer<'static, KeyPair>> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Test Authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("signed")
    })
}

fn material(path: &str, text: String) -> Material {
    Material { path: path.into(), bytes: text.into_bytes().into() }
}

fn ca() -> Material {
    material("ca.pem", authority().pem())
}

/// Issues a certificate for `name`.
pub(super) fn certificate(name: &str, expired: bool) -> Certificate {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    if expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let chain = params.signed_by(&key, authority()).expect("signed").pem();
    let key = material("key.pem", key.serialize_pem());
    Certificate { chain: material("chain.pem", chain), key, ocsp: None, acme: None }
}

/// Returns the server's TLS configuration.
pub(super) fn server(
    certificate: Certificate,
    asks_clients: bool,
    alpn: &[&[u8]],
) -> Arc<ServerConfig> {
    let client_certificates = asks_clients
        .then(|| ClientCertificates { ca: ca(), mode: model::ClientCertificateMode::Required });
    let tls = ListenerTls {
        certificates: vec![certificate],
        unknown_names: model::UnknownNames::First,
        version_min: TlsVersion::Tls12,
        client_certificates,
        ciphers: Vec::new(),
        hsts: None,
    };
    tls::server(&tls, alpn).expect("a server's configuration")
}

/// Returns a service's TLS settings: this name, and the authority.
pub(super) fn service(name: Option<&str>) -> ServiceTls {
    ServiceTls {
        name: name.map(Into::into),
        names: Vec::new(),
        verify: true,
        ca: ca(),
        certificate: None,
    }
}

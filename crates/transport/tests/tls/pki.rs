//! Certificates created once for all tests, and the configurations made from them.

use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

/// The name in the server's certificate.
pub(crate) const NAME: &str = "server.test";

pub(crate) struct Pki {
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// Returns the shared certificates.
pub(crate) fn pki() -> &'static Pki {
    static PKI: OnceLock<Pki> = OnceLock::new();
    PKI.get_or_init(|| Pki::new("Test Authority"))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

impl Pki {
    pub(crate) fn new(name: &str) -> Pki {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Pki { authority: CertifiedIssuer::self_signed(params, key).unwrap() }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        Arc::new(roots)
    }

    fn leaf(&self, expired: bool) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        if expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.authority).unwrap();
        (vec![leaf.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    pub(crate) fn server_config(
        &self,
        expired: bool,
        asks_clients: bool,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ServerConfig {
        let (chain, key) = self.leaf(expired);
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = if asks_clients {
            let verifier = WebPkiClientVerifier::builder_with_provider(self.roots(), provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::new(self.server_config(false, false, rustls::ALL_VERSIONS))
    }

    pub(crate) fn client_config(&self) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(self.roots()).with_no_client_auth()
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::new(self.client_config())
    }

    pub(crate) fn client_with_certificate(&self) -> Arc<ClientConfig> {
        let (chain, key) = self.leaf(false);
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(self.roots());
        Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
    }
}

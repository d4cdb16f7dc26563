//! Certificates for a test: its own CA and the certificates that it issues, as files.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    date_time_ymd,
};

use crate::Scene;
use crate::rogue::Peer;

/// An authority, whose certificate is `NAME.pem` in the scene's folder.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
    pem: PathBuf,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Pair {
    /// PEM.
    pub chain: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

impl Authority {
    /// Makes one.
    pub fn new(scene: &Scene, name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let pem = scene.file(&format!("{name}.pem"), issuer.pem());
        Authority { issuer, folder: scene.folder().to_path_buf(), pem }
    }

    /// Where its certificate is.
    pub fn pem(&self) -> &Path {
        &self.pem
    }

    /// `ca = "…"`, as it stands in a table of TLS.
    pub fn ca(&self) -> String {
        format!("ca = \"{}\"", self.pem.display())
    }

    /// Issues a certificate for `names` (host names and addresses), the first of which is its
    /// common name, as `FILE.pem` and `FILE.key`. Written over, if they are there.
    pub fn issue(&self, file: &str, names: &[&str]) -> Pair {
        self.sign(file, params(names))
    }

    /// The same; it expired in 2021.
    pub fn issue_expired(&self, file: &str, names: &[&str]) -> Pair {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(file, params)
    }

    /// The same; it ends in this time.
    pub fn issue_ending(&self, file: &str, names: &[&str], left: Duration) -> Pair {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        let mut params = params(names);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970 + left;
        self.sign(file, params)
    }

    fn sign(&self, file: &str, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let leaf = params.signed_by(&key, &self.issuer).expect("a certificate");
        let write = |end: &str, text: String| {
            let path = self.folder.join(format!("{file}.{end}"));
            std::fs::write(&path, text).expect("a file in the test's folder");
            path
        };
        Pair { chain: write("pem", leaf.pem()), key: write("key", key.serialize_pem()) }
    }
}

impl Pair {
    /// As it stands in `certificates`, or behind `certificate =`.
    pub fn table(&self) -> String {
        let (chain, key) = (self.chain.display(), self.key.display());
        format!("{{ chain = \"{chain}\", key = \"{key}\" }}")
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(all).expect("names");
    params.distinguished_name = named(names.first().unwrap_or(&"nobody"));
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Has a rogue speak TLS with a self-signed certificate for `name` and send no data, until its peer
/// ends the connection. Returns whether the peer said so (`close_notify`).
pub fn speak_tls(peer: &mut Peer, name: &str) -> bool {
    let key = KeyPair::generate().expect("a key");
    let certificate = params(&[name]).self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .expect("a certificate and its key");
    let mut session = rustls::ServerConnection::new(Arc::new(config)).expect("a session");
    let mut stream = rustls::Stream::new(&mut session, &mut peer.stream);
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

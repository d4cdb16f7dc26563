//! A self-signed certificate, so that a listener can start before its first certificate is issued.

use std::sync::Arc;

use model::{Certificate, Material};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};

/// The beginning of what stands in place of its file's path.
const PATH: &str = "placeholder for ";

/// Returns whether this certificate stands in for one that has not been issued yet.
pub fn is_placeholder(certificate: &Certificate) -> bool {
    certificate.chain.path.to_str().is_some_and(|path| path.starts_with(PATH))
}

/// The subject, which tells a person who looks at the certificate why it is not trusted.
const SUBJECT: &str = "Weir: no certificate has been issued yet";

/// Returns a self-signed certificate for `names` with a new key. No client trusts it, and it has
/// expired long ago, so that an alert on certificates that expire soon fires as long as it is in use.
///
/// # Errors
/// One line, if a name cannot stand in a certificate.
pub fn placeholder(names: &[String]) -> Result<Certificate, String> {
    let unusable =
        |error: rcgen::Error| format!("no certificate for {}: {error}", names.join(", "));
    let mut params = CertificateParams::new(names).map_err(unusable)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, SUBJECT);
    params.not_before = date_time_ymd(1970, 1, 1);
    params.not_after = date_time_ymd(1970, 1, 2);
    let key = KeyPair::generate().map_err(unusable)?;
    let certificate = params.self_signed(&key).map_err(unusable)?;
    // Each with its own path, by which metrics tell certificates apart.
    let path = format!("{PATH}{}", names.join(", "));
    let material =
        |text: String| Material { path: (&path).into(), bytes: Arc::from(text.into_bytes()) };
    Ok(Certificate {
        chain: material(certificate.pem()),
        key: material(key.serialize_pem()),
        ocsp: None,
        acme: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_can_use_it() {
        let names = ["a.example".to_owned(), "192.0.2.1".to_owned()];
        let certificate = placeholder(&names).unwrap();
        assert!(is_placeholder(&certificate));
        let facts = tls::certificate(&certificate).unwrap();
        assert_eq!(facts.names, names);
        assert!(facts.subject.contains(SUBJECT));
        assert!(placeholder(&["h\u{f6}st".to_owned()]).unwrap_err().lines().count() == 1);
    }
}

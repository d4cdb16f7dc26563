//! PEM (RFC 7468) to DER: chains, private keys, authorities.

use model::Material;
use rustls::RootCertStore;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Mistake, Part};

/// Maximum number of certificates in a chain. No client follows longer ones, and each costs bytes
/// in every handshake.
const CHAIN_CERTIFICATES_MAX: usize = 16;

/// Returns the certificates of a chain, leaf first; at least one.
pub(crate) fn chain(material: &Material) -> Result<Vec<CertificateDer<'static>>, Mistake> {
    let found = certificates(material, Part::Chain)?;
    if found.len() > CHAIN_CERTIFICATES_MAX {
        let message = format!(
            "{} certificates in one file, more than the {CHAIN_CERTIFICATES_MAX} of a chain",
            found.len()
        );
        return Err(Mistake::new(Part::Chain, message)
            .help("a chain is the certificate itself and those that lead to its root"));
    }
    Ok(found)
}

/// Returns every certificate of a file; at least one.
fn certificates(material: &Material, about: Part) -> Result<Vec<CertificateDer<'static>>, Mistake> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&material.bytes).collect();
    let found = found.map_err(|error| not_pem(about, &error))?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mistake = Mistake::new(about, "no certificate in this file");
    Err(if has(material, "PRIVATE KEY-----") {
        mistake.help("it holds a private key; are the two files exchanged?")
    } else if material.bytes.first() == Some(&0x30) {
        mistake.help("it looks like DER; turn it into PEM: openssl x509 -inform der -in … -out …")
    } else {
        mistake.help("it must be PEM: -----BEGIN CERTIFICATE----- and so on")
    })
}

/// Returns the private key of a file: PKCS #8, PKCS #1 or SEC 1.
pub(crate) fn key(material: &Material) -> Result<PrivateKeyDer<'static>, Mistake> {
    match PrivateKeyDer::from_pem_slice(&material.bytes) {
        Ok(key) => Ok(key),
        Err(Error::NoItemsFound) => Err(no_key(material)),
        Err(error) => Err(not_pem(Part::Key, &error)),
    }
}

fn no_key(material: &Material) -> Mistake {
    if has(material, "-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return Mistake::new(Part::Key, "the private key is encrypted").help(
            "Weir cannot ask for the password: decrypt it (openssl pkey -in … -out …) and let \
             no other user read the file",
        );
    }
    let mistake = Mistake::new(Part::Key, "no private key in this file");
    if has(material, "-----BEGIN CERTIFICATE-----") {
        mistake.help("it holds a certificate; are the two files exchanged?")
    } else {
        mistake.help("it must be PEM: -----BEGIN PRIVATE KEY----- and so on")
    }
}

/// Returns how many usable authorities a file contains.
///
/// # Errors
/// The file contains no usable authority.
pub fn authorities(material: &Material) -> Result<usize, Mistake> {
    roots(material).map(|store| store.len())
}

/// Returns the authorities of a file. A system's bundle contains some that cannot be used; a file
/// without any usable one is an error.
pub(crate) fn roots(material: &Material) -> Result<RootCertStore, Mistake> {
    let mut store = RootCertStore::empty();
    let (added, ignored) = store.add_parsable_certificates(certificates(material, Part::Ca)?);
    if added == 0 {
        let message = format!("none of its {ignored} certificates can be used as an authority");
        return Err(Mistake::new(Part::Ca, message)
            .help("are they X.509 version 3 certificates, whole and in PEM?"));
    }
    Ok(store)
}

fn not_pem(about: Part, error: &Error) -> Mistake {
    let message = match error {
        Error::MissingSectionEnd { .. } => "the PEM ends before its -----END line".to_owned(),
        Error::IllegalSectionStart { .. } => "a -----BEGIN line that is not PEM".to_owned(),
        Error::Base64Decode(_) => "between -----BEGIN and -----END stands no base64".to_owned(),
        other => format!("not PEM ({other:?})"),
    };
    Mistake::new(about, message).help("was the file cut off, or copied in part?")
}

fn has(material: &Material, text: &str) -> bool {
    material.bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

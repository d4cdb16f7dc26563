//! The names in a client's certificate; distinguished names as text (RFC 4514).

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use model::{CertificateNames, CertificatePart};
use x509_parser::asn1_rs::ToDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// Maximum length of an identity, in bytes: it is meant for a header field.
const IDENTITY_BYTES_MAX: usize = 2_048;

/// Returns the subject of a certificate in DER: `CN=payments,O=Example`. Only visible ASCII and
/// spaces; everything else is escaped, as are separator characters (RFC 4514 section 2.4). `None`
/// if it has no subject, cannot be parsed, or is longer than 2,048 bytes: a truncated name could be
/// another's.
pub fn identity(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let text = name_text(certificate.subject());
    (!text.is_empty() && text.len() <= IDENTITY_BYTES_MAX).then_some(text)
}

/// Returns the common name in the subject of a certificate in DER; an empty text if it has none. `None` if
/// it has several, since implementations differ in which of them counts, or if it is not text of at most
/// 2,048 bytes.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = match (names.next(), names.next()) {
        (None, _) => "",
        (Some(only), None) => only.as_str().ok()?,
        (Some(_), Some(_)) => return None,
    };
    (name.len() <= IDENTITY_BYTES_MAX).then(|| name.to_owned())
}

/// Returns the names in a certificate in DER that routes can require. The names of a part are unknown if
/// one of them cannot be parsed or is longer than 2,048 bytes, so that no condition on them holds: neither
/// that a name is there, nor that it is not.
pub fn certificate_names(certificate: &[u8]) -> CertificateNames {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return CertificateNames::unreadable();
    };
    let mut names = CertificateNames::default();
    let fingerprint = digest(&SHA256, certificate);
    names.set(CertificatePart::Fingerprint, Some(vec![hex(fingerprint.as_ref())]));
    names.set(CertificatePart::Subject, bounded(vec![name_text(parsed.subject())]));
    names.set(CertificatePart::Issuer, bounded(vec![name_text(parsed.issuer())]));
    let alternatives = match parsed.subject_alternative_name() {
        Ok(None) => &[][..],
        Ok(Some(extension)) => &extension.value.general_names,
        Err(_) => return names,
    };
    if alternatives.iter().any(|name| matches!(name, GeneralName::Invalid(..))) {
        return names;
    }
    let of = |text: fn(&GeneralName<'_>) -> Option<String>| {
        bounded(alternatives.iter().filter_map(text).collect())
    };
    // Not case-sensitive (RFC 5890 section 2.3.2.4).
    let dns = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    };
    let uri = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => Some((*uri).to_owned()),
        _ => None,
    };
    let email = |name: &GeneralName<'_>| match name {
        GeneralName::RFC822Name(email) => Some((*email).to_owned()),
        _ => None,
    };
    names.set(CertificatePart::Dns, of(dns));
    names.set(CertificatePart::Uri, of(uri));
    names.set(CertificatePart::Email, of(email));
    names
}

/// Returns the names without empty ones; `None` if one is too long.
fn bounded(mut names: Vec<String>) -> Option<Vec<String>> {
    names.retain(|name| !name.is_empty());
    names.iter().all(|name| name.len() <= IDENTITY_BYTES_MAX).then_some(names)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes a name as RFC 4514 does: the last relative name first, `,` between, `+` within one.
pub(crate) fn name_text(name: &X509Name<'_>) -> String {
    let relative: Vec<_> = name.iter_rdn().collect();
    let mut text = String::new();
    for (index, names) in relative.into_iter().rev().enumerate() {
        for (part, attribute) in names.iter().enumerate() {
            match (index, part) {
                (0, 0) => {}
                (_, 0) => text.push(','),
                _ => text.push('+'),
            }
            let oid = attribute.attr_type().to_id_string();
            match (short(&oid), attribute.as_str()) {
                (Some(short), Ok(value)) => {
                    text.push_str(short);
                    text.push('=');
                    escape(value, &mut text);
                }
                // Section 2.4: a type without a short name, or a value that is not text, is written
                // as the hexadecimal of its encoding.
                (short, _) => {
                    text.push_str(short.unwrap_or(&oid));
                    text.push_str("=#");
                    text.push_str(&hex(&attribute.attr_value().to_der_vec().unwrap_or_default()));
                }
            }
        }
    }
    text
}

/// RFC 4514 section 3.
fn short(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "2.5.4.3" => "CN",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.6" => "C",
        "2.5.4.9" => "STREET",
        "0.9.2342.19200300.100.1.25" => "DC",
        "0.9.2342.19200300.100.1.1" => "UID",
        _ => return None,
    })
}

fn escape(value: &str, text: &mut String) {
    let last = value.len().wrapping_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        let at_edge = (byte == b' ' && (at == 0 || at == last)) || (byte == b'#' && at == 0);
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' ' | b'#' if at_edge => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_is_escaped() {
        let escaped = |value: &str| {
            let mut text = String::new();
            escape(value, &mut text);
            text
        };
        for (value, expected) in [
            ("", ""),
            ("payments", "payments"),
            ("a,CN=root", "a\\,CN=root"),
            (" a b ", "\\ a b\\ "),
            ("#1 #2", "\\#1 #2"),
            ("a\r\nb", "a\\0D\\0Ab"),
            ("é", "\\C3\\A9"),
            ("\"\\+<>;", "\\\"\\\\\\+\\<\\>\\;"),
        ] {
            assert_eq!(escaped(value), expected, "{value:?}");
        }
    }

    #[test]
    fn only_one_common_name_is_unambiguous() {
        for (names, expected) in
            [(&[][..], Some("")), (&["proxy"], Some("proxy")), (&["proxy", "other"], None)]
        {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            for (index, name) in names.iter().enumerate() {
                // rcgen keeps one value of each type.
                let kind = match index {
                    0 => rcgen::DnType::CommonName,
                    _ => rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]),
                };
                params.distinguished_name.push(kind, *name);
            }
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(common_name(certificate.der()).as_deref(), expected, "{names:?}");
        }
        assert_eq!(common_name(b""), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_identity() {
        assert_eq!(identity(b""), None);
        assert_eq!(identity(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        let names = certificate_names(b"");
        assert!(CertificatePart::ALL.iter().all(|part| names.of(*part).is_none()));
    }
}

//! Reads a certificate: subject, issuer, validity; and checks that it matches its key.

use model::{Certificate, Material};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::identity::name_text;
use crate::{Mistake, Part, pem, provider};

/// The contents of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// DNS names in lower case, including ones like `*.example.com`, and IP addresses, in its
    /// order. If it has none, its common name (which clients no longer use, RFC 9525 section 2).
    pub names: Vec<String>,
    /// Its subject, as RFC 4514 writes names.
    pub subject: String,
    /// Its issuer, likewise.
    pub issuer: String,
    /// First second in which it is valid, from 1970-01-01 UTC.
    pub not_before: i64,
    /// Last second, likewise.
    pub not_after: i64,
    /// The type of its key.
    pub key: KeyKind,
    /// Set if the next certificate in the file is not its issuer: the subject of that one.
    pub followed_by_stranger: Option<String>,
}

/// Types of keys. A client may support one and not the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA.
    Rsa,
    /// ECDSA, on whatever curve.
    Ecdsa,
    /// Any other.
    Other,
}

/// Whether a certificate is valid at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Its validity begins later.
    NotYet,
    /// It is valid, for this many more seconds.
    Valid {
        /// Seconds.
        left_s: i64,
    },
    /// It has ended.
    Expired,
}

impl Facts {
    /// Returns whether the certificate is valid at `now_s`, seconds since 1970-01-01 UTC.
    pub fn validity(&self, now_s: i64) -> Validity {
        if now_s < self.not_before {
            Validity::NotYet
        } else if now_s > self.not_after {
            Validity::Expired
        } else {
            Validity::Valid { left_s: self.not_after - now_s }
        }
    }

    /// Returns whether the certificate expires soon, or has expired, at `now_s` (seconds since
    /// 1970-01-01 UTC): less than a fifth of its lifetime is left, and at most 21 days.
    ///
    /// Clients that renew automatically do so earlier: certbot and lego with a third of the
    /// lifetime left, for short-lived certificates with half of it. So a warning means that a
    /// renewal failed, or that there is none.
    pub fn ends_soon(&self, now_s: i64) -> bool {
        let lifetime_s = self.not_after.saturating_sub(self.not_before);
        let left_s = self.not_after.saturating_sub(now_s);
        left_s < (lifetime_s / ENDS_SOON_SHARE).min(ENDS_SOON_MAX_S)
    }
}

/// A certificate expires soon when less than this part of its lifetime is left: a fifth.
const ENDS_SOON_SHARE: i64 = 5;

/// A certificate with more than this left does not expire soon, however long its lifetime is.
const ENDS_SOON_MAX_S: i64 = 21 * 24 * 3600;

/// Returns the day of a second since 1970-01-01 UTC, `2026-11-21`.
pub fn date(second: i64) -> String {
    match ASN1Time::from_timestamp(second) {
        Ok(time) => time.to_datetime().date().to_string(),
        // Beyond year 9999.
        Err(_) => "the end of time".to_owned(),
    }
}

/// Returns the facts of the first certificate of `chain`.
///
/// # Errors
/// The chain cannot be read.
pub fn facts(chain: &Material) -> Result<Facts, Mistake> {
    of_chain(&pem::chain(chain)?)
}

/// Returns the facts of the certificate, if it, its key and its OCSP response are usable.
///
/// # Errors
/// The certificate, its key or its OCSP response cannot be used.
pub fn certificate(certificate: &Certificate) -> Result<Facts, Mistake> {
    certified(certificate).map(|(_, facts)| facts)
}

/// Returns the certificate in rustls's form.
pub(crate) fn certified(certificate: &Certificate) -> Result<(CertifiedKey, Facts), Mistake> {
    let chain = pem::chain(&certificate.chain)?;
    let facts = of_chain(&chain)?;
    let key = pem::key(&certificate.key)?;
    let signing = provider().key_provider.load_private_key(key).map_err(|error| {
        Mistake::new(Part::Key, format!("this private key cannot be used: {error}"))
            .help("RSA of at least 2048 bits, ECDSA on P-256, P-384 or P-521, and Ed25519 can")
    })?;
    let mut certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // `Unknown`: the key does not reveal its public half; the handshake will show it.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(Error::InconsistentKeys(_)) => return Err(mismatch(&facts)),
        Err(error) => {
            let message = format!("this certificate cannot be used: {error}");
            return Err(Mistake::new(Part::Chain, message));
        }
    }
    if let Some(ocsp) = &certificate.ocsp {
        check_ocsp(&ocsp.bytes)?;
        certified.ocsp = Some(ocsp.bytes.to_vec());
    }
    Ok((certified, facts))
}

fn mismatch(facts: &Facts) -> Mistake {
    let whose = if facts.names.is_empty() { &facts.subject } else { &facts.names.join(", ") };
    Mistake::new(Part::Key, format!("this key does not belong to the certificate of {whose}")).help(
        "name the key that the certificate was issued for; the certificate itself stands first \
             in its file, before those that lead to its root",
    )
}

fn of_chain(chain: &[CertificateDer<'_>]) -> Result<Facts, Mistake> {
    let parse = |der: &CertificateDer<'_>| match X509Certificate::from_der(der) {
        Ok((_, _)) => Ok(()),
        Err(error) => {
            Err(Mistake::new(Part::Chain, format!("a certificate cannot be read: {error}"))
                .help("was the file cut off, or copied in part?"))
        }
    };
    chain.iter().try_for_each(parse)?;
    let mut read = chain.iter().filter_map(|der| Some(X509Certificate::from_der(der).ok()?.1));
    let Some(first) = read.next() else {
        return Err(Mistake::new(Part::Chain, "no certificate in this file"));
    };
    let next = read.next();
    let stranger = next.filter(|next| next.subject().as_raw() != first.issuer().as_raw());
    let algorithm = first.public_key().algorithm.algorithm.to_id_string();
    Ok(Facts {
        names: names(&first),
        subject: name_text(first.subject()),
        issuer: name_text(first.issuer()),
        not_before: first.validity().not_before.timestamp(),
        not_after: first.validity().not_after.timestamp(),
        key: match algorithm.as_str() {
            // RFC 8017 appendix A.1; RFC 5480 section 2.1.1.
            "1.2.840.113549.1.1.1" => KeyKind::Rsa,
            "1.2.840.10045.2.1" => KeyKind::Ecdsa,
            _ => KeyKind::Other,
        },
        followed_by_stranger: stranger.map(|next| name_text(next.subject())),
    })
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let general = alternative.map(|extension| &extension.value.general_names);
    let found: Vec<String> = general
        .into_iter()
        .flatten()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(printable(name)),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    let common = certificate.subject().iter_common_name().next();
    common.and_then(|name| name.as_str().ok()).map(printable).into_iter().collect()
}

/// Converts to lower case, without characters that would confuse a terminal.
fn printable(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    lower.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| std::net::Ipv6Addr::from(sixteen).to_string())
}

/// Checks that `der` is a successful OCSP response (RFC 6960 section 4.2.1): a SEQUENCE that begins
/// with the ENUMERATED 0. The client interprets its contents.
fn check_ocsp(der: &[u8]) -> Result<(), Mistake> {
    let wrong = |message: &str, help: &str| Err(Mistake::new(Part::Ocsp, message).help(help));
    let body = match der {
        [0x30, length, rest @ ..] if *length < 0x80 => rest,
        [0x30, length @ 0x81..=0x84, rest @ ..] => {
            rest.get(usize::from(length & 0x7f)..).unwrap_or_default()
        }
        _ => &[],
    };
    match body {
        [0x0a, 1, 0, ..] => Ok(()),
        [0x0a, 1, status, ..] => wrong(
            &format!("an OCSP response that refuses (status {status})"),
            "fetch another one from the certificate's issuer",
        ),
        _ => wrong("not an OCSP response", "it must be DER, as openssl ocsp -respout writes it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: i64 = 24 * 3600;

    #[test]
    fn a_warning_leaves_time_for_the_usual_renewal_and_comes_before_the_end() {
        // Lifetime in days; left when the usual client renews; left when the warning starts.
        for (lifetime, renewed, warned) in [
            // Let's Encrypt with certbot, which renews with a third left.
            (90, 30, 18),
            // Its short-lived profile, renewed with half left.
            (6, 3, 1),
            // From 2029 on the longest lifetime that browsers accept.
            (47, 15, 9),
            (398, 30, 21),
            // A private authority.
            (3650, 30, 21),
        ] {
            let facts = Facts {
                names: Vec::new(),
                subject: String::new(),
                issuer: String::new(),
                not_before: 1_000_000_000,
                not_after: 1_000_000_000 + lifetime * DAY_S,
                key: KeyKind::Ecdsa,
                followed_by_stranger: None,
            };
            let soon = |left_s: i64| facts.ends_soon(facts.not_after - left_s);
            assert!(!soon(renewed * DAY_S), "{lifetime} days: warned before it is renewed");
            assert!(!soon((warned + 1) * DAY_S), "{lifetime} days");
            assert!(soon(warned * DAY_S - 1), "{lifetime} days");
            assert!(soon(0) && soon(-DAY_S), "{lifetime} days: ended");
        }
    }
}

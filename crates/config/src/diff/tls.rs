//! Changes of TLS, towards clients and towards servers. Changed contents of a file with the same
//! path are reported as such: that is how a renewed certificate takes effect.

use std::fmt::Write as _;

use model::{
    Certificate, ClientCertificateMode, ClientCertificates, FleetTls, ListenerTls, Material,
    ServiceTls, UnknownNames,
};

use super::{Words, or};
use model::units::show_duration;

/// TLS of a listener in both configurations.
pub(super) fn listener(old: Option<&ListenerTls>, new: Option<&ListenerTls>, words: &mut Words) {
    let (Some(old), Some(new)) = (old, new) else {
        return words.value("tls", &old.is_some(), &new.is_some(), on_off);
    };
    let ListenerTls {
        certificates,
        unknown_names,
        version_min,
        ciphers,
        client_certificates,
        hsts,
    } = old;
    if paths(certificates) == paths(&new.certificates) {
        for (old, new) in certificates.iter().zip(&new.certificates) {
            renewed("tls.certificates", old, new, words);
        }
    } else {
        words.value("tls.certificates", certificates, &new.certificates, |all| chains(all));
        // One of several keys, for example, which the chains do not show.
        if chains(certificates) == chains(&new.certificates) {
            words.hidden("tls.certificates", certificates, &new.certificates);
        }
    }
    words.value("tls.unknown_names", unknown_names, &new.unknown_names, |names| match names {
        UnknownNames::First => "the first certificate".to_owned(),
        UnknownNames::As(name) => name.clone(),
        UnknownNames::Refuse => "refuse".to_owned(),
    });
    words.value("tls.version_min", version_min, &new.version_min, |version| {
        version.as_str().to_owned()
    });
    words.value("tls.ciphers", ciphers, &new.ciphers, |ciphers| match ciphers.as_slice() {
        [] => "all, in the client's order".to_owned(),
        ciphers => ciphers.join(" "),
    });
    let of = &new.client_certificates;
    words.value("tls.client_certificates", client_certificates, of, |clients| match clients {
        None => "not asked for".to_owned(),
        Some(ClientCertificates { ca, mode }) => {
            let by = ca.path.display();
            match mode {
                ClientCertificateMode::Required => format!("required, issued by {by}"),
                ClientCertificateMode::Optional => format!("optional, issued by {by}"),
                ClientCertificateMode::Unverified => "asked for, not verified".to_owned(),
            }
        }
    });
    let ca = client_certificates.as_ref().map(|clients| &clients.ca);
    let new_ca = of.as_ref().map(|clients| &clients.ca);
    if let (Some(old), Some(new)) = (ca, new_ca) {
        material("tls.client_certificates.ca", old, new, words);
    }
    words.value("tls.hsts", hsts, &new.hsts, |hsts| or(hsts.map(show_duration), "none"));
}

/// TLS of a service in both configurations.
pub(super) fn service(old: Option<&ServiceTls>, new: Option<&ServiceTls>, words: &mut Words) {
    let (Some(old), Some(new)) = (old, new) else {
        return words.value("tls", &old.is_some(), &new.is_some(), on_off);
    };
    let ServiceTls { name, names, verify, ca, certificate } = old;
    words.value("tls.name", name, &new.name, |name| or(name.as_ref(), "the server's"));
    words.value("tls.names", names, &new.names, |names| {
        let all: Vec<_> = names.iter().map(ToString::to_string).collect();
        or((!all.is_empty()).then(|| all.join(" ")), "tls.name")
    });
    words.value("tls.verify", verify, &new.verify, bool::to_string);
    words.value("tls.ca", ca, &new.ca, |ca| ca.path.display().to_string());
    material("tls.ca", ca, &new.ca, words);
    presented("tls.certificate", certificate.as_ref(), new.certificate.as_ref(), words);
}

/// TLS between members of a fleet in both configurations.
pub(super) fn fleet(old: Option<&FleetTls>, new: Option<&FleetTls>, words: &mut Words) {
    let (Some(old), Some(new)) = (old, new) else {
        return words.value("fleet.tls", &old.is_some(), &new.is_some(), on_off);
    };
    let FleetTls { certificate, ca, name } = old;
    words.value("fleet.tls.name", name, &new.name, |name| or(name.as_ref(), "any"));
    words.value("fleet.tls.ca", ca, &new.ca, |ca| ca.path.display().to_string());
    material("fleet.tls.ca", ca, &new.ca, words);
    presented("fleet.tls.certificate", Some(certificate), Some(&new.certificate), words);
}

/// A certificate that Weir presents.
fn presented(key: &str, old: Option<&Certificate>, new: Option<&Certificate>, words: &mut Words) {
    match (old, new) {
        (Some(old), Some(new)) if one_path(old) == one_path(new) => renewed(key, old, new, words),
        (old, new) => words.value(key, &old, &new, |certificate| {
            or(certificate.map(|it| it.chain.path.display()), "none")
        }),
    }
}

/// A certificate whose files have the same paths.
fn renewed(key: &str, old: &Certificate, new: &Certificate, words: &mut Words) {
    let Certificate { chain, key: secret, ocsp, acme: _ } = old;
    if chain.bytes == new.chain.bytes && secret.bytes == new.key.bytes {
        if let (Some(old), Some(new)) = (ocsp, &new.ocsp)
            && old.bytes != new.bytes
        {
            words
                .0
                .push(format!("{key}: the OCSP response in {} was replaced", old.path.display()));
        }
        return;
    }
    words.0.push(format!("{key}: the certificate in {} was replaced", chain.path.display()));
}

/// A file with the same path and other contents.
fn material(key: &str, old: &Material, new: &Material, words: &mut Words) {
    if old.path == new.path && old.bytes != new.bytes {
        words.0.push(format!("{key}: the contents of {} changed", old.path.display()));
    }
}

type Paths<'a> = (&'a std::path::Path, &'a std::path::Path, Option<&'a std::path::Path>);

fn one_path(certificate: &Certificate) -> Paths<'_> {
    let ocsp = certificate.ocsp.as_ref().map(|ocsp| &*ocsp.path);
    (&certificate.chain.path, &certificate.key.path, ocsp)
}

fn paths(certificates: &[Certificate]) -> Vec<Paths<'_>> {
    certificates.iter().map(one_path).collect()
}

fn chains(certificates: &[Certificate]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}{}", certificate.chain.path.display());
    }
    text
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "shown as every other value is")]
fn on_off(is_on: &bool) -> String {
    if *is_on { "on" } else { "off" }.to_owned()
}

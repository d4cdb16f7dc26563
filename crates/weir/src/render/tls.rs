//! TLS settings: each listener's certificates with their names and expiry, where connections go by
//! server name, and TLS to servers.

use diagnose::kinds::grouped;
use model::{
    Certificate, ClientCertificateMode, Protocol, Service, ServiceTls, Snapshot, TlsMode,
    TlsVersion,
};

use super::columns::Columns;
use super::few;

/// Names on one line; the JSON form has all.
const NAMES_SHOWN_MAX: usize = 4;

/// `None`: there is no TLS anywhere.
pub(super) fn text(snapshot: &Snapshot) -> Option<String> {
    let mut parts = [listeners(snapshot), by_server_name(snapshot), services(snapshot)];
    let mut parts = parts.iter_mut().filter_map(Option::take).peekable();
    parts.peek()?;
    Some(parts.collect::<Vec<_>>().join("\n"))
}

fn listeners(snapshot: &Snapshot) -> Option<String> {
    let mut columns =
        Columns::headed(["LISTENER", "CERTIFICATE", "FOR", "ENDS", "FROM", "CLIENTS", "HSTS"]);
    let mut any = false;
    for listener in &snapshot.listeners {
        let Some(tls) = &listener.tls else { continue };
        any = true;
        let version = match tls.version_min {
            TlsVersion::Tls12 => "TLS 1.2",
            TlsVersion::Tls13 => "TLS 1.3",
        };
        let clients = match &tls.client_certificates {
            None => "need none",
            Some(clients) => match clients.mode {
                ClientCertificateMode::Required => "show a certificate",
                ClientCertificateMode::Optional => "may show a certificate",
                ClientCertificateMode::Unverified => "may show any certificate",
            },
        };
        let hsts = tls.hsts.map_or("none".to_owned(), model::units::show_duration);
        let mut settings = [version.to_owned(), clients.to_owned(), hsts];
        let mut name = listener.name.to_string();
        for certificate in &tls.certificates {
            let (names, ends) = shown(certificate);
            let [version, clients, hsts] = std::mem::take(&mut settings);
            let path = match &certificate.acme {
                Some(_) => "by ACME".to_owned(),
                None => certificate.chain.path.display().to_string(),
            };
            // What holds for all of a listener's certificates stands beside the first.
            columns.row([std::mem::take(&mut name), path, names, ends, version, clients, hsts]);
        }
    }
    any.then(|| columns.text())
}

fn by_server_name(snapshot: &Snapshot) -> Option<String> {
    let mut columns = Columns::headed(["LISTENER", "SERVER NAME", "TO"]);
    let mut any = false;
    for listener in &snapshot.listeners {
        let Protocol::Tls(names) = &listener.protocol else { continue };
        any = true;
        let mut name = listener.name.to_string();
        for (pattern, mode) in names.iter() {
            let pattern = if pattern == "*" { "any other".to_owned() } else { pattern };
            let to = match mode {
                TlsMode::Passthrough(split) => super::services(split, snapshot),
                TlsMode::Terminate(split) => {
                    format!("decrypted, {}", super::services(split, snapshot))
                }
                TlsMode::Http => "routes".to_owned(),
                TlsMode::Refuse => "closed".to_owned(),
            };
            columns.row([std::mem::take(&mut name), pattern, to]);
        }
        if names.mode(None).is_none() {
            columns.row([name, "any other".to_owned(), "closed".to_owned()]);
        }
    }
    any.then(|| columns.text())
}

fn services(snapshot: &Snapshot) -> Option<String> {
    let mut columns = Columns::headed(["SERVICE", "VERIFIED BY", "AS", "WITH CERTIFICATE"]);
    // Services of the same settings share a line. Each file is read once, so its path says enough.
    let key = |tls: &ServiceTls| {
        let files = |own: &Certificate| {
            let ocsp = own.ocsp.as_ref().map(|ocsp| ocsp.path.clone());
            (own.chain.path.clone(), own.key.path.clone(), ocsp)
        };
        let own = tls.certificate.as_ref().map(files);
        let names: Vec<_> = tls.names.iter().map(ToString::to_string).collect();
        (tls.name.as_ref().map(ToString::to_string), names, tls.verify, tls.ca.path.clone(), own)
    };
    let encrypted = snapshot.services.iter().filter_map(|service| {
        let Service { name, tls, .. } = &**service;
        let tls = tls.as_deref()?;
        Some((key(tls), (tls, name)))
    });
    let rows = grouped(encrypted);
    let any = !rows.is_empty();
    for (_, members) in rows {
        let Some((tls, _)) = members.first() else { continue };
        let by = if tls.verify {
            tls.ca.path.display().to_string()
        } else {
            "none: certificates are not verified".to_owned()
        };
        let name = match tls.names.as_slice() {
            [] => tls.name.as_ref().map_or("its own name".to_owned(), ToString::to_string),
            names => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
        };
        let own = tls.certificate.as_ref().map(shown);
        let own = own.map_or("none".to_owned(), |(names, ends)| format!("{names}, ends {ends}"));
        let names: Vec<_> = members.iter().map(|(_, name)| *name).collect();
        columns.row([few(names.into_iter(), NAMES_SHOWN_MAX), by, name, own]);
    }
    any.then(|| columns.text())
}

/// Whom it is for and when it ends.
fn shown(certificate: &Certificate) -> (String, String) {
    if let Some(acme) = &certificate.acme {
        let names: Vec<std::sync::Arc<str>> =
            acme.names.iter().map(|name| name.as_str().into()).collect();
        return (few(names.iter(), NAMES_SHOWN_MAX), "renewed".to_owned());
    }
    // It could be read when the configuration was checked.
    let Ok(facts) = tls::facts(&certificate.chain) else { return Default::default() };
    let names: Vec<std::sync::Arc<str>> =
        facts.names.iter().map(|name| name.as_str().into()).collect();
    let names = match names.as_slice() {
        [] => facts.subject,
        names => few(names.iter(), NAMES_SHOWN_MAX),
    };
    (names, tls::date(facts.not_after))
}

//! TLS settings: each listener's certificates with their names and expiry, names that are passed
//! through, and TLS to servers.

use diagnose::kinds::grouped;
use model::{Certificate, Protocol, Service, ServiceTls, Snapshot, TlsVersion};

use super::columns::Columns;
use super::few;

/// Names on one line; the JSON form has all.
const NAMES_SHOWN_MAX: usize = 4;

/// `None`: there is no TLS anywhere.
pub(super) fn text(snapshot: &Snapshot) -> Option<String> {
    let mut parts = [listeners(snapshot), passed_through(snapshot), services(snapshot)];
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
            Some(clients) if clients.required => "show a certificate",
            Some(_) => "may show a certificate",
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

fn passed_through(snapshot: &Snapshot) -> Option<String> {
    let mut columns = Columns::headed(["LISTENER", "SERVER NAME", "TO"]);
    let mut any = false;
    for listener in &snapshot.listeners {
        let Protocol::TlsPassthrough { names, otherwise } = &listener.protocol else { continue };
        any = true;
        let to = |id| format!("service {}", snapshot.service(id).name);
        let mut name = listener.name.to_string();
        for (pattern, service) in names {
            columns.row([std::mem::take(&mut name), pattern.to_string(), to(*service)]);
        }
        let otherwise = otherwise.map_or("closed".to_owned(), to);
        columns.row([name, "any other".to_owned(), otherwise]);
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
        (tls.name.as_ref().map(ToString::to_string), tls.verify, tls.ca.path.clone(), own)
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
        let name = tls.name.as_ref().map_or("its own name".to_owned(), ToString::to_string);
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

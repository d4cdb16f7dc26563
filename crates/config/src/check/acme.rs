//! Checks that `[acme]` is there if a listener needs it, and that an authority can reach Weir.

use model::AcmeChallenge;

use crate::diagnostic::{Diagnostic, Problems, Span};
use crate::raw::{Document, RawAcme, RawListener, RawListenerTls, RawProtocol};

pub(super) fn check(document: &Document, problems: &Problems) {
    for listener in document.side_listeners() {
        for span in listener.tls.into_iter().flat_map(uses) {
            let title = format!("{} cannot have a certificate by ACME", listener.table);
            let error = Diagnostic::error(title, span, "only a [[listener]] can");
            problems.report(error.help("name files instead: { chain = \"…\", key = \"…\" }"));
        }
    }
    let listeners = document.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let first = listeners.flat_map(uses).next();
    match (&document.acme, first) {
        (Some(acme), Some(_)) => is_reachable(acme, document, problems),
        (Some(acme), None) => problems.report_absence(
            Diagnostic::warning("no listener has a certificate by ACME", acme.span.clone(), "not used")
                .help("write tls = { certificates = [{ acme = [\"www.example.com\"] }] } in a [[listener]]"),
        ),
        (None, Some(_)) if document.acme_meant => {}
        (None, Some(span)) => problems.report_absence(
            Diagnostic::error("a certificate by ACME, but no [acme]", span, "no authority is named").help(
                "write [acme] and below it terms_agreed = true, if you agree to the terms of Let's Encrypt",
            ),
        ),
        (None, None) => {}
    }
}

/// Returns where certificates by ACME are.
fn uses(tls: &RawListenerTls) -> impl Iterator<Item = Span> {
    let used = tls.certificates.iter().filter_map(|certificate| certificate.acme.as_ref());
    used.map(|names| names.span.clone())
}

/// Reports challenges for which no listener is on the port that authorities connect to. They always
/// connect to it (RFC 8555 section 8.3, RFC 8737 section 3), but another device may forward it.
fn is_reachable(acme: &RawAcme, document: &Document, problems: &Problems) {
    let on = |port: u16| {
        let listeners = document.listeners.iter();
        listeners
            .filter(move |one| one.address.as_ref().is_some_and(|at| at.value.port() == Some(port)))
    };
    // Port 0 is for tests, and an unreadable address has been reported.
    if document
        .listeners
        .iter()
        .any(|one| one.address.as_ref().is_none_or(|at| at.value.is_any_port()))
    {
        return;
    }
    let is_http = |one: &RawListener| matches!(one.protocol, RawProtocol::Http);
    let challenge = acme.challenge.clone();
    let (port, other) = match challenge.value {
        AcmeChallenge::Http01 if on(80).any(|one| is_http(one) && one.tls.is_none()) => return,
        AcmeChallenge::Http01 => (80, on(80).next()),
        AcmeChallenge::TlsAlpn01 if on(443).any(|one| one.tls.is_some()) => return,
        AcmeChallenge::TlsAlpn01 => (443, on(443).next()),
    };
    let kind = challenge.value.as_str();
    if let Some(other) = other {
        let (needs, remedy) = match challenge.value {
            AcmeChallenge::Http01 => ("plain http", "tls-alpn-01"),
            AcmeChallenge::TlsAlpn01 => ("TLS that Weir decrypts", "http-01"),
        };
        problems.report(
            Diagnostic::error(
                format!("challenges of {kind} come to port {port}, and need {needs}"),
                challenge.span,
                "never answered",
            )
            .other(other.span.clone(), format!("port {port} is something else"))
            .help(format!("write challenge = \"{remedy}\", or change that listener")),
        );
        return;
    }
    let remedy = match challenge.value {
        AcmeChallenge::Http01 => "write a [[listener]] with address = \"0.0.0.0:80\"",
        AcmeChallenge::TlsAlpn01 => "write a [[listener]] with `tls` and address = \"0.0.0.0:443\"",
    };
    problems.report_absence(
        Diagnostic::warning(
            format!("challenges of {kind} come to port {port}, where no listener is"),
            challenge.span,
            "fails unless something in front forwards that port",
        )
        .help(remedy),
    );
}

//! Reads `tls` of a listener and of a service, and `http2`. Only the files' paths are read here;
//! `files` reads their contents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{AlternativeName, ClientHttp2, TlsVersion};
use toml::de::DeValue;

use super::paths::file_path;
use super::table::{Table, choose};
use super::{acme, net};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Span, Wrong};
use crate::schema::CIPHERS;

/// `tls` of a listener.
#[derive(Debug)]
pub(crate) struct RawListenerTls {
    /// Of the key.
    pub(crate) span: Span,
    pub(crate) certificates: Vec<RawCertificate>,
    pub(crate) directory: Option<At<PathBuf>>,
    pub(crate) unknown_names: Option<At<RawUnknownNames>>,
    /// `unknown_names` is present, but could not be read.
    pub(crate) unknown_names_unreadable: bool,
    pub(crate) version_min: TlsVersion,
    pub(crate) ciphers: Vec<At<&'static str>>,
    pub(crate) clients: Option<RawClients>,
    pub(crate) hsts: Option<At<Duration>>,
}

/// `unknown_names`.
#[derive(Debug)]
pub(crate) enum RawUnknownNames {
    Refuse,
    Named(String),
}

/// `certificates` or `certificate`. Unreadable values have been reported.
#[derive(Debug)]
pub(crate) struct RawCertificate {
    pub(crate) chain: Option<At<PathBuf>>,
    /// The chain's own file if not given.
    pub(crate) key: Option<At<PathBuf>>,
    pub(crate) ocsp: Option<At<PathBuf>>,
    /// The names, if it is obtained by ACME; empty after a mistake.
    pub(crate) acme: Option<At<Vec<String>>>,
}

/// `client_certificates`.
#[derive(Debug)]
pub(crate) struct RawClients {
    pub(crate) ca: Option<At<PathBuf>>,
    pub(crate) required: bool,
}

/// `tls` of a service.
#[derive(Debug)]
pub(crate) struct RawServiceTls {
    /// Of the key.
    pub(crate) span: Span,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) names: Vec<AlternativeName>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    /// `ca` is present, but could not be read.
    pub(crate) ca_unreadable: bool,
    pub(crate) verify: bool,
    pub(crate) certificate: Option<RawCertificate>,
}

/// Reads `tls` of the listener `table`.
pub(super) fn of_listener(table: &mut Table<'_>) -> Option<RawListenerTls> {
    let span = table.key_span("tls");
    let mut table = table.table("tls")?;
    let unknown_names = table.text("unknown_names", unknown_names);
    let tls = RawListenerTls {
        span: span.unwrap_or_else(|| table.span.clone()),
        certificates: table.tables("certificates").into_iter().map(certificate).collect(),
        directory: table.text("certificate_directory", file_path),
        unknown_names_unreadable: unknown_names.is_none() && table.has_or_means("unknown_names"),
        unknown_names,
        version_min: table.word("version_min", TlsVersion::Tls12),
        ciphers: table.texts("ciphers", |name| choose(name, CIPHERS)).unwrap_or_default(),
        clients: table.table("client_certificates").map(|mut table| {
            let ca = table.text("ca", file_path);
            let clients = RawClients { ca, required: table.boolean("required") };
            table.finish();
            clients
        }),
        hsts: table.duration_if("hsts"),
    };
    table.finish();
    Some(tls)
}

/// Reads `tls` of the service `table`.
pub(super) fn of_service(table: &mut Table<'_>) -> Option<RawServiceTls> {
    let span = table.key_span("tls");
    let mut table = table.table("tls")?;
    let ca = table.text("ca", file_path);
    let tls = RawServiceTls {
        span: span.unwrap_or_else(|| table.span.clone()),
        name: table.text("name", server_name).map(|at| at.value.into()),
        names: table
            .texts("names", alternative_name)
            .unwrap_or_default()
            .into_iter()
            .map(|at| at.value)
            .collect(),
        ca_unreadable: ca.is_none() && table.has_or_means("ca"),
        ca,
        verify: table.boolean("verify"),
        certificate: table.table("certificate").map(certificate),
    };
    table.finish();
    Some(tls)
}

/// Parses a name in a certificate: a URI with a scheme, or a host.
fn alternative_name(text: &str) -> Result<AlternativeName, Wrong> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return net::host(text).map(AlternativeName::Dns);
    };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme.bytes().all(is_scheme)
        || rest.is_empty()
        || !rest.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(Wrong::new("not a URI").help("write \"spiffe://example.org/service\""));
    }
    Ok(AlternativeName::Uri(text.to_owned()))
}

fn unknown_names(text: &str) -> Result<RawUnknownNames, Wrong> {
    match text {
        "refuse" => Ok(RawUnknownNames::Refuse),
        // Certificates have IPv6 addresses without the brackets of a URL.
        name => net::host(name)
            .map(|host| RawUnknownNames::Named(host.trim_matches(['[', ']']).to_owned())),
    }
}

pub(super) fn certificate(mut table: Table<'_>) -> RawCertificate {
    // A service's certificate has none.
    let acme = match table.spec.key("acme") {
        Some(_) => acme::names(&mut table),
        None => None,
    };
    if acme.is_none() && table.spec.key("acme").is_some() && !table.has_or_means("chain") {
        table.problems.report_absence(
            Diagnostic::error("a certificate without a source", table.span.clone(), "of what?").help(
                "write { chain = \"…\", key = \"…\" } for files, or { acme = [\"www.example.com\"] }",
            ),
        );
    }
    let chain = table.text("chain", file_path);
    let certificate = RawCertificate {
        key: match table.text("key", file_path) {
            None if !table.has_or_means("key") => chain.clone(),
            key => key,
        },
        chain,
        acme,
        // A service's certificate has none.
        ocsp: match table.spec.key("ocsp") {
            Some(_) => table.text("ocsp", file_path),
            None => None,
        },
    };
    table.finish();
    certificate
}

/// Reads `http2` of the listener `table`.
pub(super) fn http2(table: &mut Table<'_>) -> Option<ClientHttp2> {
    let usual = ClientHttp2 { streams_max: defaults::STREAMS_MAX as u32 };
    match table.peek("http2") {
        None | Some(DeValue::Boolean(true)) => return Some(usual),
        Some(DeValue::Boolean(false)) => return None,
        Some(_) => {}
    }
    let mut table = table.table("http2")?;
    let http2 = ClientHttp2 { streams_max: table.integer("streams_max").value };
    table.finish();
    Some(http2)
}

/// Parses what a server's certificate is for: a name or an address.
fn server_name(text: &str) -> Result<String, Wrong> {
    match text.parse::<std::net::IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => net::host(text),
    }
}

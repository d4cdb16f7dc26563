//! Reads `discover` of `[service.NAME]` and of `[fleet]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Hold, HttpUrl, ListedLimits, ServerSourceWord};

use super::kubernetes::{self, RawServicePort};
use super::table::Table;
use super::{net, paths};
use crate::diagnostic::{At, Diagnostic, Span, Wrong, quote};
use crate::include::Pattern;

/// `discover` of `[service.NAME]` or of `[fleet]`.
#[derive(Debug)]
pub(crate) struct RawDiscover {
    pub(crate) span: Span,
    /// `None`: it could not be read; a mistake is reported.
    pub(crate) source: Option<RawSource>,
    pub(crate) port: Option<u16>,
    pub(crate) limits: ListedLimits,
    pub(crate) hold: Hold,
    pub(crate) saved: bool,
    pub(crate) kept_max: Option<Duration>,
}

#[derive(Debug)]
pub(crate) enum RawSource {
    Consul { service: Arc<str>, tag: Option<Arc<str>> },
    Nomad { service: Arc<str>, tag: Option<Arc<str>> },
    Etcd { prefix: Arc<str> },
    Kubernetes(RawServicePort),
    DnsSrv(Box<str>),
    Files(At<Pattern>),
    FileSd(At<Pattern>),
    HttpSd { url: At<HttpUrl>, ca: Option<At<PathBuf>>, interval: Duration },
}

impl RawSource {
    pub(crate) fn kind(&self) -> ServerSourceWord {
        match self {
            RawSource::Consul { .. } => ServerSourceWord::Consul,
            RawSource::Nomad { .. } => ServerSourceWord::Nomad,
            RawSource::Etcd { .. } => ServerSourceWord::Etcd,
            RawSource::Kubernetes(_) => ServerSourceWord::Kubernetes,
            RawSource::DnsSrv(_) => ServerSourceWord::DnsSrv,
            RawSource::Files(_) => ServerSourceWord::Files,
            RawSource::FileSd(_) => ServerSourceWord::FileSd,
            RawSource::HttpSd { .. } => ServerSourceWord::HttpSd,
        }
    }
}

pub(super) fn read(mut table: Table<'_>) -> RawDiscover {
    let source = source(&mut table);
    let is_one = is_one(&table);
    let hold_share = table.number("hold_share").value;
    let hold_max = table.duration("hold_max").value;
    let saved = table.boolean("saved");
    // The API server knows which Pods exist, and their addresses are soon those of other Pods.
    let is_kubernetes = matches!(source, Some(RawSource::Kubernetes(_)));
    let is_stated = |key| !is_kubernetes || table.key_span(key).is_some();
    let hold_max = if is_stated("hold_max") { hold_max } else { Duration::ZERO };
    let hold = Hold { share: hold_share, max: hold_max };
    let saved = saved && is_stated("saved");
    let raw = RawDiscover {
        span: table.span.clone(),
        port: table.integer_if("port").map(|at| at.value),
        limits: table.word("in_flight", ListedLimits::Each),
        hold,
        saved,
        kept_max: table.duration_if("kept_max").map(|at| at.value),
        source: source.filter(|_| is_one),
    };
    unused(&table);
    table.finish();
    raw
}

/// Reads the source; `None` after a mistake in it, which is reported, and if there is none.
fn source(table: &mut Table<'_>) -> Option<RawSource> {
    let tag = table.text("tag", registry_name).map(|at| at.value);
    let consul = table.text("consul", registry_name);
    let nomad = table.text("nomad", registry_name);
    let etcd = table.text("etcd", prefix);
    let kubernetes = table.text("kubernetes", kubernetes::service_port);
    let srv = table.text("dns_srv", srv_name);
    let files = table.text("files", Pattern::parse);
    let file_sd = table.text("file_sd", Pattern::parse);
    let http_sd = table.text("http_sd", |text| {
        text.parse::<HttpUrl>().map_err(|error| {
            Wrong::new(error.to_string()).help("write it as \"http://127.0.0.1:9000/targets\"")
        })
    });
    let ca = table.text("ca", paths::file_path);
    let interval = table.duration("interval").value;
    let all = [
        consul.map(|at| RawSource::Consul { service: at.value, tag: tag.clone() }),
        nomad.map(|at| RawSource::Nomad { service: at.value, tag }),
        etcd.map(|at| RawSource::Etcd { prefix: at.value }),
        kubernetes.map(|at| RawSource::Kubernetes(at.value)),
        srv.map(|at| RawSource::DnsSrv(at.value)),
        files.map(RawSource::Files),
        file_sd.map(RawSource::FileSd),
        http_sd.map(|url| RawSource::HttpSd { url, ca, interval }),
    ];
    all.into_iter().flatten().next()
}

/// Returns whether it names exactly one source; reports it otherwise.
fn is_one(table: &Table<'_>) -> bool {
    let named = ServerSourceWord::ALL.iter().filter_map(|word| {
        let key = word.as_str();
        Some((key, table.key_span(key)?))
    });
    let named: Vec<_> = named.collect();
    let help = format!("name one of {}", one_of());
    match &named[..] {
        [] => {
            let error =
                Diagnostic::error("`discover` without a source", table.span.clone(), "where from?");
            table.problems.report_absence(error.help(help));
        }
        [_] => return true,
        [(first, span), (second, at), ..] => {
            let title = format!("`discover` with both `{first}` and `{second}`");
            let error = Diagnostic::error(title, at.clone(), "only one source is possible");
            table.problems.report(error.other(span.clone(), "the other").help(help));
        }
    }
    false
}

/// Returns the keys that name a source: `a, b and c`.
fn one_of() -> String {
    match ServerSourceWord::WORDS {
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
        [] => String::new(),
    }
}

/// Warns about keys of other sources.
fn unused(table: &Table<'_>) {
    let keys: [(&str, &[&str]); 4] = [
        ("tag", &["consul", "nomad"]),
        ("in_flight", &["consul", "nomad", "etcd"]),
        ("ca", &["http_sd"]),
        ("interval", &["http_sd"]),
    ];
    for (key, of) in keys {
        let is_used = of.iter().any(|source| table.key_span(source).is_some());
        if let Some(span) = table.key_span(key).filter(|_| !is_used) {
            let title = format!("`{key}` belongs to `{}`", of.join("`, `"));
            table.problems.report(
                Diagnostic::warning(title, span, "has no effect").help(format!("remove `{key}`")),
            );
        }
    }
}

/// Parses a prefix of keys in etcd. It ends in a slash: without one, `/services/web` would match the keys of
/// `/services/web2`, too.
fn prefix(text: &str) -> Result<Arc<str>, Wrong> {
    let name = registry_name(text)?;
    if name.ends_with('/') {
        return Ok(name);
    }
    let help = format!("write \"{name}/\"");
    Err(Wrong::new("keys of other services may begin with it, too: end it with a slash").help(help))
}

/// Parses the name of SRV records (RFC 2782): `_http._tcp.web.example`.
fn srv_name(text: &str) -> Result<Box<str>, Wrong> {
    let example = "write it as \"_http._tcp.web.example\"";
    let name = net::host_name(text).map_err(|wrong| wrong.help(example))?;
    let mut labels = name.split('.');
    match (labels.next(), labels.next()) {
        (Some(service), Some(protocol))
            if service.starts_with('_') && protocol.starts_with('_') =>
        {
            Ok(name.into())
        }
        _ => Err(Wrong::new(
            "SRV records have names of a service and a protocol, with an underscore each",
        )
        .help(example)),
    }
}

/// Parses a name in a registry: of a service, a tag, a datacenter and so on.
pub(super) fn registry_name(text: &str) -> Result<Arc<str>, Wrong> {
    const BYTES_MAX: usize = 255;
    match text {
        "" => Err(Wrong::new("a name is missing")),
        _ if text.len() > BYTES_MAX => Err(Wrong::new(format!("more than {BYTES_MAX} bytes"))),
        _ => match text.chars().find(|c| c.is_control()) {
            Some(c) => Err(Wrong::new(format!("{} may not stand in it", quote(&c.to_string())))),
            None => Ok(text.into()),
        },
    }
}

//! Reads `discover` of `[service.NAME]`, and `[consul]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Consul, Hold, HttpPeer, HttpUrl, ListedLimits, ServerSourceWord};

use super::table::Table;
use super::{http, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Span, Wrong, quote};
use crate::include::Pattern;

/// `discover` of `[service.NAME]`.
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
    Files(At<Pattern>),
    Http { url: At<HttpUrl>, ca: Option<At<PathBuf>>, interval: Duration },
}

/// `[consul]`.
#[derive(Debug)]
pub(crate) struct RawConsul {
    pub(crate) address: At<HttpUrl>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    /// Without authorities.
    pub(crate) consul: Consul,
}

pub(super) fn read(mut table: Table<'_>) -> RawDiscover {
    let consul = table.text("consul", consul_name);
    let tag = table.text("tag", consul_name);
    let files = table.text("file_sd", Pattern::parse);
    let url = table.text("http_sd", |text| {
        text.parse::<HttpUrl>().map_err(|error| {
            Wrong::new(error.to_string()).help("write it as \"http://127.0.0.1:9000/targets\"")
        })
    });
    let ca = table.text("ca", paths::file_path);
    let interval = table.duration("interval").value;
    let hold_share = table.number("hold_share").value;
    let hold = Hold { share: hold_share, max: table.duration("hold_max").value };
    let raw = RawDiscover {
        span: table.span.clone(),
        port: table.integer_if("port").map(|at| at.value),
        limits: table.word("in_flight", ListedLimits::Each),
        hold,
        saved: table.boolean("saved"),
        kept_max: table.duration_if("kept_max").map(|at| at.value),
        source: is_one(&table)
            .then(|| match (consul, files, url) {
                (Some(service), _, _) => {
                    Some(RawSource::Consul { service: service.value, tag: tag.map(|at| at.value) })
                }
                (None, Some(files), _) => Some(RawSource::Files(files)),
                (None, None, url) => Some(RawSource::Http { url: url?, ca, interval }),
            })
            .flatten(),
    };
    unused(&table);
    table.finish();
    raw
}

/// Returns whether it names exactly one source; reports it otherwise.
fn is_one(table: &Table<'_>) -> bool {
    let named = ServerSourceWord::ALL.iter().filter_map(|word| {
        let key = word.as_str();
        Some((key, table.key_span(key)?))
    });
    let named: Vec<_> = named.collect();
    let help = "name one of consul, file_sd and http_sd";
    match &named[..] {
        [] => {
            let error =
                Diagnostic::error("`discover` without a source", table.span.clone(), "where from?");
            table.problems.report_absence(error.help(help));
        }
        [_] => return true,
        [(first, span), (second, at), ..] => {
            let title = format!("`discover` with both `{first}` and `{second}`");
            let error = Diagnostic::error(title, at.clone(), "one source for a service");
            table.problems.report(error.other(span.clone(), "the other").help(help));
        }
    }
    false
}

/// Warns about keys of other sources.
fn unused(table: &Table<'_>) {
    let keys = [("tag", "consul"), ("ca", "http_sd"), ("interval", "http_sd")];
    for (key, of) in keys {
        if let Some(span) = table.key_span(key).filter(|_| table.key_span(of).is_none()) {
            let title = format!("`{key}` belongs to `{of}`");
            table.problems.report(
                Diagnostic::warning(title, span, "has no effect").help(format!("remove `{key}`")),
            );
        }
    }
}

/// Parses the name of a service, a tag or a datacenter in Consul.
fn consul_name(text: &str) -> Result<Arc<str>, Wrong> {
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

/// Reads `[consul]`; `None` after a mistake in its address, which is reported.
pub(super) fn consul(mut table: Table<'_>) -> Option<RawConsul> {
    let (has_address, span) = (table.key_span("address").is_some(), table.span.clone());
    let address = table.text("address", agent);
    let ca = table.text("ca", paths::file_path);
    let token = table.text("token", http::field_value);
    let token = token.map(|at| table.problems.text(at));
    let datacenters = table.texts("datacenters", consul_name).unwrap_or_default();
    let stale = table.boolean("stale");
    let wait = table.duration("wait").value;
    let connections_max = table.integer("connections_max").value;
    table.finish();
    let address = match address {
        None if has_address => return None,
        None => At { value: defaults::CONSUL.parse().ok()?, span },
        Some(address) => address,
    };
    let consul = Consul {
        peer: HttpPeer { url: address.value.clone(), ca: None },
        token,
        datacenters: datacenters.into_iter().map(|at| (*at.value).into()).collect(),
        stale,
        wait,
        connections_max,
    };
    Some(RawConsul { address, ca, consul })
}

/// Returns what an empty table means.
pub(super) fn default_consul() -> Option<RawConsul> {
    let address: At<HttpUrl> = At { value: defaults::CONSUL.parse().ok()?, span: 0..0 };
    let consul = Consul {
        peer: HttpPeer { url: address.value.clone(), ca: None },
        token: None,
        datacenters: Vec::new(),
        stale: defaults::CONSUL_STALE,
        wait: defaults::CONSUL_WAIT,
        connections_max: defaults::CONSUL_CONNECTIONS_MAX as u32,
    };
    Some(RawConsul { address, ca: None, consul })
}

/// Parses the URL of an agent.
fn agent(text: &str) -> Result<HttpUrl, Wrong> {
    let example = "write it as \"http://127.0.0.1:8500\" or \"https://consul.internal:8501\"";
    let url: HttpUrl = text
        .parse()
        .map_err(|error: model::UrlError| Wrong::new(error.to_string()).help(example))?;
    match url.target() {
        "/" | "" => Ok(url),
        _ => Err(Wrong::new("the address of an agent has no path").help(example)),
    }
}

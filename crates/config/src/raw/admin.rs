//! Reads `[admin]` and `[metrics]`: the admin API, and where metrics are sent.

use std::time::Duration;

use model::{Address, Admin, HostPort, Metrics, UNIX_PREFIX};

use super::table::Table;
use super::{RawAdmin, RawMetrics, RawMetricsListener, net, paths, tls};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};
use crate::schema::names;

/// Returns the default `[admin]`. It has no position; a clash is reported at the other address.
pub(super) fn default() -> RawAdmin {
    let address = At { value: defaults::ADMIN.into(), span: 0..0 };
    RawAdmin { address, token_file: None }
}

/// Reads `[admin]`; `None`: off.
pub(super) fn read(mut table: Table<'_>) -> Option<RawAdmin> {
    let address = table.text("address", |text| match text {
        "off" => Ok(None),
        _ if names::alias_of_word(text, &["off"]).is_some() => {
            Err(Wrong::new("not an IP address and a port").help("did you mean \"off\"?"))
        }
        _ => address(text).map(Some),
    });
    let token_file = table.text("token_file", paths::absolute).map(|at| at.value);
    table.finish();
    match address {
        None => Some(RawAdmin { token_file, ..default() }),
        Some(At { value, span }) => {
            value.map(|value| RawAdmin { address: At { value, span }, token_file })
        }
    }
}

impl RawAdmin {
    /// Returns the snapshot's form.
    pub(crate) fn built(self) -> Admin {
        Admin { address: self.address.value, token_file: self.token_file }
    }
}

/// `127.0.0.1:9900`, or `unix:/run/weir/admin.sock`.
fn address(text: &str) -> Result<Address, Wrong> {
    net::listen_address(text, "/run/weir/admin.sock").map_err(|wrong| match wrong.help {
        None if !text.starts_with(UNIX_PREFIX) => wrong.help("write \"off\" for no admin API"),
        _ => wrong,
    })
}

/// Returns the default `[metrics]`.
pub(super) fn no_metrics() -> RawMetrics {
    let metrics = Metrics {
        server_histograms: defaults::SERVER_HISTOGRAMS,
        interval: defaults::METRICS_INTERVAL,
        prefix: defaults::METRICS_PREFIX.to_owned(),
        ..Metrics::none()
    };
    RawMetrics { metrics, listener: None }
}

/// Reads `[metrics]`.
pub(super) fn metrics(mut table: Table<'_>) -> RawMetrics {
    let listener = metrics_listener(&mut table);
    let server_histograms = table.boolean("server_histograms");
    let statsd = table.text("statsd", |text| receiver(text, 8125)).map(|at| at.value);
    let graphite = table.text("graphite", |text| receiver(text, 2003)).map(|at| at.value);
    let interval: Duration = table.duration("interval").value;
    let prefix = table.text("prefix", prefix).map(|at| at.value);
    let idle = ["interval", "prefix"].into_iter().find_map(|key| table.key_span(key));
    if let Some(span) = idle
        && !table.has_or_means("statsd")
        && !table.has_or_means("graphite")
    {
        table.problems.report(
            Diagnostic::warning("metrics push is not configured", span, "has no effect").help(
                "write statsd = \"127.0.0.1:8125\" or graphite = \"127.0.0.1:2003\" beside it; \
                 Prometheus fetches metrics and needs neither",
            ),
        );
    }
    table.finish();
    let prefix = prefix.unwrap_or_else(|| defaults::METRICS_PREFIX.to_owned());
    let metrics = Metrics { listener: None, server_histograms, statsd, graphite, interval, prefix };
    RawMetrics { metrics, listener }
}

/// Reads where metrics are fetched.
fn metrics_listener(table: &mut Table<'_>) -> Option<RawMetricsListener> {
    let address = table.text("address", net::ip_address);
    let token_file = table.text("token_file", paths::absolute).map(|at| at.value);
    let tls = tls::of_listener(table);
    let alone = ["token_file", "tls"].into_iter().find_map(|key| Some((key, table.key_span(key)?)));
    if let Some((key, span)) = alone
        && !table.has_or_means("address")
    {
        let title = format!("`{key}` without `address`");
        let diagnostic = Diagnostic::error(title, span, "has no effect");
        table
            .problems
            .report_absence(diagnostic.help("write address = \"0.0.0.0:9100\" beside it"));
    }
    Some(RawMetricsListener { address: address?, token_file, tls })
}

/// Parses an address or a name with a port; if the port is missing, suggests `usual`.
fn receiver(text: &str, usual: u16) -> Result<HostPort, Wrong> {
    net::host_port(text).map_err(|wrong| Wrong {
        help: wrong.help.map(|help| help.replace(":8080\"", &format!(":{usual}\""))),
        ..wrong
    })
}

/// Parses words separated by dots.
fn prefix(text: &str) -> Result<String, Wrong> {
    const BYTES_MAX: usize = 128;
    let word = |word: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        !word.is_empty() && word.bytes().all(allowed)
    };
    if text.len() > BYTES_MAX {
        return Err(Wrong::new(format!("longer than {BYTES_MAX} characters")));
    }
    if text.split('.').all(word) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("not words of letters, digits, - and _ with dots between them")
        .help("write it as \"weir\" or \"europe.weir-1\""))
}

//! Reads `[otlp]`.

use std::path::PathBuf;

use model::{HttpPeer, HttpUrl, LogSample, Otlp, SampleClass, TraceSample};

use super::table::Table;
use super::{http, log, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};

/// `[otlp]`.
#[derive(Debug)]
pub(crate) struct RawOtlp {
    pub(crate) endpoint: At<HttpUrl>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    /// Without authorities.
    pub(crate) otlp: Otlp,
}

/// Reads `[otlp]`; `None` after a mistake in its endpoint, which is reported.
pub(super) fn read(mut table: Table<'_>) -> Option<RawOtlp> {
    let endpoint = table.text("endpoint", endpoint);
    let ca = table.text("ca", paths::file_path);
    let fields = table.map("header", http::changeable_field_name, http::field_value);
    let fields = table.problems.texts(fields);
    let service_name = table.text("service_name", service_name).map(|at| at.value);
    let (traces, sample) = (table.boolean("traces"), sample(&mut table));
    let (metrics, interval) = (table.boolean("metrics"), table.duration("interval").value);
    let logs = table.boolean("logs");
    unused(&table, traces, metrics);
    if !traces && !metrics && !logs {
        let diagnostic =
            Diagnostic::warning("nothing is sent", table.span.clone(), "all three are off");
        table.problems.report(diagnostic.help("set traces, metrics or logs to true"));
    }
    table.finish();
    let endpoint = endpoint?;
    let otlp = Otlp {
        collector: HttpPeer { url: endpoint.value.clone(), ca: None, certificate: None },
        fields,
        service_name: service_name.unwrap_or_else(|| defaults::OTLP_SERVICE_NAME.to_owned()),
        traces: traces.then_some(sample),
        metrics_interval: metrics.then_some(interval),
        logs,
    };
    Some(RawOtlp { endpoint, ca, otlp })
}

fn sample(table: &mut Table<'_>) -> TraceSample {
    let LogSample(mut shares) = log::shares(table);
    if !shares.iter().any(|(class, _)| *class == SampleClass::Ok) {
        shares.push((SampleClass::Ok, defaults::OTLP_SAMPLE_OK));
    }
    let shares = LogSample(shares);
    TraceSample { shares, per_cause_max: table.integer("traces_per_cause_max").value }
}

/// Warns about keys of what is not sent.
fn unused(table: &Table<'_>, traces: bool, metrics: bool) {
    let keys = [
        ("sample", "traces", traces),
        ("traces_per_cause_max", "traces", traces),
        ("interval", "metrics", metrics),
    ];
    for (key, of, is_used) in keys {
        if let Some(span) = table.key_span(key).filter(|_| !is_used) {
            let title = format!("`{key}` is about {of}, which are off");
            table.problems.report(
                Diagnostic::warning(title, span, "has no effect")
                    .help(format!("remove `{key}`, or set `{of} = true`")),
            );
        }
    }
}

/// Parses a collector's base URL.
fn endpoint(text: &str) -> Result<HttpUrl, Wrong> {
    let example = "write it as \"http://127.0.0.1:4318\"";
    let url: HttpUrl = text
        .parse()
        .map_err(|error: model::UrlError| Wrong::new(error.to_string()).help(example))?;
    if url.target().contains('?') {
        return Err(Wrong::new("a base URL has no query").help(example));
    }
    if ["/v1/traces", "/v1/metrics", "/v1/logs"].iter().any(|path| url.target().ends_with(path)) {
        return Err(
            Wrong::new("the base URL alone: Weir adds the path of each signal").help(example)
        );
    }
    if url.port() == GRPC_PORT {
        return Err(Wrong::new("4317 is the port of OTLP over gRPC; Weir sends OTLP over HTTP")
            .help("write the port of the collector's HTTP receiver, usually 4318"));
    }
    Ok(url)
}

/// The port on which collectors expect OTLP over gRPC.
const GRPC_PORT: u16 = 4317;

fn service_name(text: &str) -> Result<String, Wrong> {
    const BYTES_MAX: usize = 128;
    match text {
        "" => Err(Wrong::new("a name is missing")),
        _ if text.len() > BYTES_MAX => Err(Wrong::new(format!("more than {BYTES_MAX} bytes"))),
        _ if text.chars().any(char::is_control) => Err(Wrong::new("a control character")),
        _ => Ok(text.to_owned()),
    }
}

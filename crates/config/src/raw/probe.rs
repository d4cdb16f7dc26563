//! Reads a service's `check`.

use model::{BodyExpectation, Check, CheckKind, CheckWord, HttpVersion, StatusSet};

use super::route::pattern;
use super::table::{Table, is_empty_list};
use super::{http, net, statuses};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong, quote};
use crate::units;

/// The longest name of a gRPC service.
const GRPC_SERVICE_MAX_BYTES: usize = 1024;

/// Keys that only apply to some kinds of check, and to which.
const KEYS_OF_KINDS: [(&str, &[CheckWord]); 10] = [
    ("path", &[CheckWord::Http]),
    ("method", &[CheckWord::Http]),
    ("host", &[CheckWord::Http, CheckWord::Grpc]),
    ("header", &[CheckWord::Http]),
    ("expect", &[CheckWord::Http]),
    ("expect_body", &[CheckWord::Http]),
    ("expect_json", &[CheckWord::Http]),
    ("http", &[CheckWord::Http, CheckWord::Grpc]),
    ("reuse", &[CheckWord::Http]),
    ("grpc_service", &[CheckWord::Grpc]),
];

/// `speaks_http1`: the servers certainly do not use HTTP/2. `has_tls`: the service may use TLS.
pub(super) fn read(mut table: Table<'_>, speaks_http1: bool, has_tls: bool) -> Check {
    let version: Option<HttpVersion> = table.choice_if("http").and_then(|at| at.value.parse().ok());
    let speaks_http1 = match table.key_span("http") {
        Some(_) => version == Some(HttpVersion::Http11),
        None => speaks_http1,
    };
    let host = table.text("host", net::authority).map(|at| at.value);
    let http = http_kind(&mut table, host.clone());
    let service = table.text("grpc_service", grpc_service);
    let kind = table.word_at("kind", CheckWord::Http);
    unused_keys(&mut table, &kind);
    no_body(&mut table, &http);
    let kind = match kind.value {
        CheckWord::Tcp => CheckKind::Tcp,
        CheckWord::Http => http,
        CheckWord::Grpc => {
            if speaks_http1 {
                table.problems.report(
                    Diagnostic::error(
                        "a grpc check needs HTTP/2",
                        kind.span,
                        "gRPC is spoken over nothing else",
                    )
                    .help(
                        "write http = \"2\" beside `check` (requests go to the servers by it, too) or in it",
                    ),
                );
            }
            let service = service.map(|at| at.value).unwrap_or_default();
            CheckKind::Grpc { service, host }
        }
    };
    let interval = table.duration("interval");
    let timeout = table.duration("timeout");
    let fall = table.integer("fall").value;
    if timeout.value > interval.value {
        let detection = model::units::show_duration(timeout.value.saturating_mul(fall));
        let (at, label) = match table.key_span("timeout") {
            Some(_) => (timeout.span, "longer than the interval"),
            None => (interval.span.clone(), "shorter than the timeout"),
        };
        table.problems.report(
            Diagnostic::warning("a probe may outlast its interval", at, label).help(format!(
                "the next probe waits for it, so a server that hangs is noticed after {fall} × {} = {detection}, not {fall} × {}",
                model::units::show_duration(timeout.value),
                model::units::show_duration(interval.value),
            )),
        );
    }
    let check = Check {
        kind,
        port: table.integer_if("port").map(|at| at.value),
        clear_text: clear_text(&mut table, has_tls),
        http: version,
        interval: interval.value,
        timeout: timeout.value,
        rise: table.integer("rise").value,
        fall,
    };
    table.finish();
    check
}

/// Reports an expectation of a body that no response to the probe has (RFC 9110 section 6.4.1).
fn no_body(table: &mut Table<'_>, kind: &CheckKind) {
    let CheckKind::Http { method, expect, .. } = kind else { return };
    let has_no_body = |status: u16| status < 200 || status == 204 || status == 304;
    let mut statuses = expect.0.iter().flat_map(|&(low, high)| low..=high);
    let (key, why) = if method == "HEAD" {
        ("method", "a response to HEAD has no body")
    } else if statuses.all(has_no_body) {
        ("expect", "such a response has no body")
    } else {
        return;
    };
    let other = table.span_of(key);
    for expectation in ["expect_body", "expect_json"] {
        if let Some(span) = table.key_span(expectation) {
            let title = format!("`{expectation}` can never be met");
            table
                .problems
                .report(Diagnostic::error(title, span, "expects a body").other(other.clone(), why));
        }
    }
}

fn clear_text(table: &mut Table<'_>, has_tls: bool) -> bool {
    let span = table.key_span("tls");
    let uses_tls = table.boolean("tls");
    let Some(span) = span else { return false };
    if !has_tls {
        let (label, help) = if uses_tls {
            ("with which settings?", "write `tls` of the service: requests use it, too")
        } else {
            ("checks use none anyway", "leave it out")
        };
        let title = "`tls` of a check of a service without TLS";
        table.problems.report(Diagnostic::error(title, span, label).help(help));
    } else if !uses_tls && !table.has_or_means("port") {
        let title = "checks in clear text on the port where requests use TLS";
        let diagnostic = Diagnostic::warning(title, span, "no `port` beside it");
        table.problems.report(diagnostic.help("write port = … of the port without TLS"));
    }
    !uses_tls
}

/// Reports keys that have no effect in a check of this kind.
fn unused_keys(table: &mut Table<'_>, kind: &At<CheckWord>) {
    // An unknown word may have been meant as any kind.
    if table.peek("kind").is_some_and(|word| word.as_str() != Some(kind.value.as_str())) {
        return;
    }
    let does = match kind.value {
        CheckWord::Tcp => "connects, and sends nothing",
        CheckWord::Grpc => "asks the gRPC health service",
        CheckWord::Http => "asks for a path",
    };
    let word = kind.value.as_str();
    for (key, kinds) in KEYS_OF_KINDS {
        let Some(span) = table.key_span(key).filter(|_| !kinds.contains(&kind.value)) else {
            continue;
        };
        let diagnostic = Diagnostic::error(
            format!("`{key}` has no effect on {} {word} check", article(kind.value)),
            span,
            "never used",
        );
        // The kind may be absent: then it is http.
        let diagnostic = match table.key_span("kind") {
            Some(_) => diagnostic.other(kind.span.clone(), does),
            None => diagnostic,
        };
        let help = format!("write kind = \"{}\", or leave `{key}` out", kinds[0].as_str());
        table.problems.report(diagnostic.help(help));
    }
}

fn article(kind: CheckWord) -> &'static str {
    match kind {
        CheckWord::Http => "an",
        CheckWord::Tcp | CheckWord::Grpc => "a",
    }
}

fn grpc_service(text: &str) -> Result<String, Wrong> {
    if text.contains('/') {
        let name = text.trim_start_matches('/').split('/').next().unwrap_or_default();
        return Err(
            Wrong::new("the name of a service has no slash").help(format!("write {}", quote(name)))
        );
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Wrong::new("no spaces or control characters may stand here"));
    }
    if text.len() > GRPC_SERVICE_MAX_BYTES {
        return Err(Wrong::new(format!("longer than {GRPC_SERVICE_MAX_BYTES} bytes")));
    }
    Ok(text.to_owned())
}

fn http_kind(table: &mut Table<'_>, host: Option<String>) -> CheckKind {
    let text = |default: &str| default.to_owned();
    let problems = table.problems;
    let fields = table.map("header", http::changeable_field_name, http::field_value);
    CheckKind::Http {
        method: table
            .text("method", http::method)
            .map_or_else(|| text(defaults::CHECK_METHOD), |at| at.value),
        path: table
            .text("path", http::path_and_query)
            .map_or_else(|| text(defaults::CHECK_PATH), |at| at.value),
        host,
        fields: problems.texts(fields),
        expect: expect(table),
        body: body(table),
        reuse: table.boolean("reuse"),
    }
}

fn body(table: &mut Table<'_>) -> BodyExpectation {
    let text = |text: &str| match text {
        "" => Err(Wrong::new("this is empty")),
        text => Ok(text.to_owned()),
    };
    let json = table.map("expect_json", text, |text| Ok(text.to_owned()));
    BodyExpectation {
        pattern: table.text("expect_body", pattern).map(|at| at.value),
        json: json.into_iter().map(|(path, value)| (path.value, value.value)).collect(),
    }
}

fn expect(table: &mut Table<'_>) -> StatusSet {
    let default = || StatusSet(units::status_range(defaults::CHECK_EXPECT).into_iter().collect());
    let set = statuses::read(table, "expect");
    if is_empty_list(table.peek("expect")) {
        table.problems.report(
            Diagnostic::error(
                "a check that expects nothing never succeeds",
                table.span_of("expect"),
                "empty",
            )
            .help("write expect = 200"),
        );
    }
    set.map_or_else(default, |at| at.value)
}

//! Reads `[log]`.

use std::path::PathBuf;

use model::{
    AccessLog, Cause, Facility, Log, LogField, LogFormat, LogMember, LogSample, RedactQuery,
    SampleClass, Syslog, SyslogTarget, UnixPath,
};
use toml::de::DeValue;

use super::table::{Table, choose, is_empty_list};
use super::{http, net, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Span, Wrong, nearest, quote};
use crate::schema::spec::Kind;

/// The maximum number of headers in a line.
const HEADERS_MAX: usize = 16;

/// The maximum number of parameters that are redacted by name: each is compared with each parameter.
const REDACTED_MAX: usize = 64;

/// Headers that prove who sends a request: someone who reads them in a log could send it, too.
const CREDENTIALS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "cookie2",
    "set-cookie",
    "set-cookie2",
    "weir-explain",
];

/// Members of a line under the names of other programs.
const ALIASES: [(&str, &[&str]); 12] = [
    ("time", &["timestamp", "ts", "@timestamp", "start_time", "time_iso8601"]),
    ("client", &["remote_addr", "remote_ip", "client_ip", "ip"]),
    ("user", &["remote_user", "user_id"]),
    ("host", &["http_host", "authority"]),
    ("path", &["uri", "url", "request_uri", "target"]),
    ("query", &["args", "query_string"]),
    ("user_agent", &["http_user_agent", "useragent", "user-agent"]),
    ("request_header.referer", &["http_referer", "referer", "referrer"]),
    ("total_ms", &["duration", "request_time", "latency", "total"]),
    ("response_bytes", &["bytes", "bytes_sent", "body_bytes_sent", "size"]),
    ("server", &["upstream", "upstream_addr", "upstream_host", "backend"]),
    ("cause", &["response_flags", "termination_state", "reason"]),
];

/// `[log]`.
#[derive(Debug)]
pub(crate) struct RawLog {
    pub(crate) log: Log,
    /// Where its destination is named.
    pub(crate) access: Option<Span>,
}

pub(super) fn default() -> RawLog {
    let log = Log {
        access: AccessLog::Stdout,
        format: LogFormat::Json,
        fields: None,
        redact_query: RedactQuery::Nothing,
        sample: LogSample::default(),
        tcp_info: defaults::TCP_INFO,
        tcp_info_raised: true,
        decisions: defaults::DECISIONS,
        explain_token_file: None,
    };
    RawLog { log, access: None }
}

pub(super) fn read(mut table: Table<'_>) -> RawLog {
    let access_span = table.key_span("access");
    let access = access(&mut table).unwrap_or(AccessLog::Stdout);
    let format = table.word("format", LogFormat::Json);
    let fields = fields(&mut table, format);
    if access == AccessLog::Otlp {
        whole_lines(&table, format);
    }
    let redact_query = redact_query(&mut table);
    let sample = sample(&mut table, format);
    let given = table.number_if("tcp_info").map(|at| at.value);
    let (tcp_info, tcp_info_raised) = (given.unwrap_or(defaults::TCP_INFO), given.is_none());
    let decisions = table.number("decisions").value;
    let explain_token_file = table.text("explain_token_file", paths::absolute).map(|at| at.value);
    table.finish();
    let log = Log {
        access,
        format,
        fields,
        redact_query,
        sample,
        tcp_info,
        tcp_info_raised,
        decisions,
        explain_token_file,
    };
    RawLog { log, access: access_span }
}

/// Reports what changes the lines for a collector: it receives their members as attributes.
fn whole_lines(table: &Table<'_>, format: LogFormat) {
    let key = if format == LogFormat::Json { "fields" } else { "format" };
    if let Some(span) = table.key_span(key) {
        let title = format!("`{key}` cannot be used with access = \"otlp\"");
        let label = "a collector receives all members, as attributes";
        table
            .problems
            .report(Diagnostic::error(title, span, label).help(format!("leave `{key}` out")));
    }
}

/// Destinations that are words.
const ACCESS_WORDS: &[&str] =
    &[AccessLog::Stdout.as_str(), AccessLog::Off.as_str(), AccessLog::Otlp.as_str()];

fn access(table: &mut Table<'_>) -> Option<AccessLog> {
    let value = table.value("access")?;
    if let (DeValue::Table(toml), Kind::Either([.., Kind::Table(spec)])) =
        (value.get_ref(), table.key_spec("access").kind)
    {
        return syslog(table.below(toml, value.span(), spec));
    }
    let access = table.text("access", |text| match text {
        _ if text == AccessLog::Stdout.as_str() => Ok(AccessLog::Stdout),
        _ if text == AccessLog::Off.as_str() => Ok(AccessLog::Off),
        _ if text == AccessLog::Otlp.as_str() => Ok(AccessLog::Otlp),
        url if ["udp://", "tcp://", "unix:/", "syslog:"]
            .iter()
            .any(|kind| url.starts_with(kind)) =>
        {
            Err(Wrong::new("a syslog collector is written in braces")
                .help(format!("write access = {{ syslog = {} }}", quote(url))))
        }
        path if path.contains('/') && !path.contains('\0') => {
            Ok(AccessLog::File(PathBuf::from(path)))
        }
        "syslog" => Err(Wrong::new("which collector?")
            .help("write access = { syslog = \"udp://10.0.0.1:514\" }")),
        "stderr" => {
            Err(Wrong::new("standard error is for Weir's own log").help("did you mean \"stdout\"?"))
        }
        other => Err(match choose(other, ACCESS_WORDS) {
            Err(Wrong { help: Some(help), .. }) => Wrong::new("no such destination").help(help),
            _ => Wrong::new("no such destination")
                .help(format!("a path contains a slash: write \"./{other}\"")),
        }),
    });
    access.map(|access| access.value)
}

fn syslog(mut table: Table<'_>) -> Option<AccessLog> {
    let to = table.text("syslog", collector);
    let facility = table.word("facility", Facility::Local0);
    let app_name = table.text("app_name", |text| {
        // The length of RFC 5424 section 6; characters that no collector takes for a part of the head.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        let is_valid = (1..=48).contains(&text.len()) && text.bytes().all(is_plain);
        is_valid
            .then(|| text.to_owned())
            .ok_or_else(|| Wrong::new("1 to 48 letters, digits and -._/"))
    });
    table.finish();
    let app_name = app_name.map_or_else(|| defaults::SYSLOG_APP_NAME.to_owned(), |at| at.value);
    Some(AccessLog::Syslog(Syslog { to: to?.value, facility, app_name }))
}

/// Parses the address of a syslog collector.
fn collector(text: &str) -> Result<SyslogTarget, Wrong> {
    if let Some(path) = net::unix_path(text, "/dev/log", UnixPath::BYTES_MAX) {
        return path.map(SyslogTarget::Unix);
    }
    let target = |text: &str| {
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        match (has_port && !text.ends_with(']'), is_bare_v6) {
            (_, true) => net::host_port(&format!("[{text}]:{SYSLOG_PORT}")),
            (true, _) => net::host_port(text),
            (false, _) if text.is_empty() => Err(Wrong::new("the address is missing")),
            (false, _) => net::host_port(&format!("{text}:{SYSLOG_PORT}")),
        }
    };
    match text.split_once("://") {
        Some(("udp", rest)) => target(rest).map(SyslogTarget::Udp),
        Some(("tcp", rest)) => target(rest).map(SyslogTarget::Tcp),
        Some(("tls" | "tcp+tls", _)) => Err(Wrong::new("TLS towards a collector is not supported")
            .help("send to a collector on this machine, such as rsyslog, that forwards over TLS")),
        _ => Err(Wrong::new("neither udp://, tcp:// nor unix:")
            .help("write \"udp://10.0.0.1:514\", \"tcp://10.0.0.1:514\" or \"unix:/dev/log\"")),
    }
}

/// The port of syslog.
const SYSLOG_PORT: u16 = 514;

fn fields(table: &mut Table<'_>, format: LogFormat) -> Option<Vec<LogField>> {
    if is_empty_list(table.peek("fields")) {
        table.problems.report(
            Diagnostic::error("a line without members", table.span_of("fields"), "empty")
                .help("leave `fields` out for all members, or write access = \"off\""),
        );
        return None;
    }
    let read = table.texts("fields", field)?;
    let span = table.key_span("fields").unwrap_or_default();
    if format != LogFormat::Json {
        let title = "`fields` needs format = \"json\"";
        let label = format!("the format {} has fixed fields", quote(format.as_str()));
        table.problems.report(Diagnostic::error(title, span.clone(), label));
    }
    let is_header = |at: &&At<LogField>| !matches!(at.value, LogField::Member(_));
    if let Some(at) = read.iter().filter(is_header).nth(HEADERS_MAX) {
        let title = format!("more than {HEADERS_MAX} headers in a line");
        table.problems.report(Diagnostic::error(title, at.span.clone(), "one too many"));
    }
    for (index, at) in read.iter().enumerate() {
        if let Some(first) = read[..index].iter().find(|first| first.value == at.value) {
            let title = format!("`{}` stands twice in `fields`", at.value);
            table.problems.report(
                Diagnostic::error(title, at.span.clone(), "again here")
                    .other(first.span.clone(), "first here"),
            );
        }
    }
    Some(read.into_iter().map(|at| at.value).collect())
}

/// Parses a member of a line.
fn field(text: &str) -> Result<LogField, Wrong> {
    let (request, response) = (LogField::REQUEST_HEADER, LogField::RESPONSE_HEADER);
    if let Some(name) = text.strip_prefix(request) {
        return header(name).map(LogField::RequestHeader);
    }
    if let Some(name) = text.strip_prefix(response) {
        return header(name).map(LogField::ResponseHeader);
    }
    if let Ok(member) = text.parse() {
        return Ok(LogField::Member(member));
    }
    let plain = text.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(_, aliases)| aliases.contains(&plain.as_str()));
    let known = LogMember::WORDS.iter().copied();
    let wrong = Wrong::new("there is no such field");
    Err(match alias.map(|(of, _)| *of).or_else(|| nearest(text, known)) {
        Some(meant) => wrong.help(format!("did you mean {}?", quote(meant))),
        None => match text.split_once('.') {
            Some((_, name)) if http::field_name(name).is_ok() => {
                wrong.help(format!("a header is \"{request}{name}\" or \"{response}{name}\""))
            }
            _ => wrong.help(format!(
                "docs/access-log.md lists the fields; a header is \"{request}NAME\" or \"{response}NAME\""
            )),
        },
    })
}

/// Parses the name of a header that is logged.
fn header(name: &str) -> Result<String, Wrong> {
    let name = http::field_name(name)?;
    if CREDENTIALS.iter().any(|secret| http::is_same_field(secret, &name)) {
        let wrong = Wrong::new("this header carries credentials, which do not belong in a log");
        return Err(match name.as_str() {
            "authorization" => wrong.help("\"user\" is the user that a route has authenticated"),
            _ => wrong,
        });
    }
    Ok(name)
}

fn redact_query(table: &mut Table<'_>) -> RedactQuery {
    let names = table.texts("redact_query", |text| match text {
        "" => Err(Wrong::new("a name is missing")),
        _ if text.len() > RedactQuery::NAME_MAX_BYTES => Err(Wrong::new("more than 128 bytes")),
        _ if text.contains(['=', '&']) => Err(Wrong::new("a name alone, without a value")
            .help("write it decoded, and without the characters around it")),
        _ => Ok(text.to_ascii_lowercase()),
    });
    let Some(names) = names else { return RedactQuery::Nothing };
    if let Some(at) = names.get(REDACTED_MAX) {
        let title = format!("more than {REDACTED_MAX} names in `redact_query`");
        table.problems.report(
            Diagnostic::error(title, at.span.clone(), "one too many")
                .help("\"*\" redacts every value"),
        );
    }
    let mut names: Vec<String> = names.into_iter().map(|at| at.value).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => RedactQuery::Nothing,
        names if names.iter().any(|name| name == "*") => RedactQuery::Everything,
        _ => RedactQuery::Names(names),
    }
}

fn sample(table: &mut Table<'_>, format: LogFormat) -> LogSample {
    let sample = shares(table);
    if !sample.0.is_empty() && matches!(format, LogFormat::Combined | LogFormat::Haproxy) {
        let title = format!("`sample` cannot be used with format = {}", quote(format.as_str()));
        let span = table.key_span("sample").unwrap_or_default();
        table.problems.report(
            Diagnostic::error(title, span, "its lines have no place for the share")
                .help("counts of such a log would be wrong; use \"json\" or \"text\""),
        );
    }
    sample
}

/// Reads `sample`: shares by result.
pub(super) fn shares(table: &mut Table<'_>) -> LogSample {
    let shares = table.numbers("sample", sample_class);
    LogSample(shares.into_iter().map(|(class, share)| (class.value, share.value)).collect())
}

/// Parses what a share is for.
fn sample_class(text: &str) -> Result<SampleClass, Wrong> {
    if text == SampleClass::OK {
        return Ok(SampleClass::Ok);
    }
    if let [class @ b'1'..=b'5', b'x', b'x'] = text.as_bytes() {
        return Ok(SampleClass::Status(class - b'0'));
    }
    match Cause::from_name(text) {
        // It is also the cause of a server's own errors.
        Some(Cause::Completed) => Err(Wrong::new("this includes errors that servers answer")
            .help("write \"ok\", a cause, or a class of status such as \"2xx\" (single statuses have no share)")),
        Some(cause) => Ok(SampleClass::Cause(cause)),
        None => {
            let wrong = Wrong::new("neither \"ok\", a class of status nor a cause");
            let known = Cause::ALL.iter().map(|cause| cause.name()).chain(["ok"]);
            Err(match (text, nearest(text, known)) {
                (_, Some(near)) => wrong.help(format!("did you mean {}?", quote(near))),
                (_, None) if text.len() == 3 && matches!(text.as_bytes()[0], b'1'..=b'5') => {
                    wrong.help(format!("write \"{}xx\"", &text[..1]))
                }
                _ => wrong.help("docs/causes.md and `weir explain` list the causes"),
            })
        }
    }
}

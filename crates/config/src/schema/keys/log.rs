//! The keys of `[log]`.

use model::{Facility, LogFormat};

use super::{FILE, SHARE, form};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(super) static LOG: TableSpec = TableSpec {
    heading: "[log]",
    path: "log",
    doc: "The access log: one line per request. `docs/access-log.md` describes the lines.",
    example: "[log]\naccess = \"/var/log/weir/access.log\"\nformat = \"json\"\nfields = [\"time\", \"client\", \"method\", \"host\", \"path\", \"route\", \"status\", \"cause\", \"total_ms\", \"request_header.referer\"]\nredact_query = [\"token\", \"email\"]\nsample = { ok = 0.01, rate_limited = 0.1 }\ntcp_info = 0.01\ndecisions = 0.001\nexplain_token_file = \"/etc/weir/explain.token\"\n",
    keys: &[
        key(
            "access",
            Kind::Either(&[
                Kind::Choice(&["stdout", "off", "otlp"]),
                Kind::Text(form("file path")),
                Kind::Table(&SYSLOG),
            ]),
            Absent::Text("stdout"),
            "`\"stdout\"`, `\"off\"`, the path of a file to append to, which contains a slash, `{ syslog = … }`, or `\"otlp\"` for the collector of [otlp], which needs `format = \"json\"` without `fields`.",
        ),
        key(
            "format",
            Kind::Choice(LogFormat::WORDS),
            Absent::Text(LogFormat::Json.as_str()),
            "One JSON object per line; text for people; the combined log format of Apache and nginx; or the formats of HAProxy, `httplog` and in tcp mode `tcplog`.",
        ),
        key(
            "fields",
            Kind::List(&Kind::Text(form("log field"))),
            Absent::Then("the members in `docs/access-log.md` that are not marked as optional"),
            "The members of a JSON line, in this order: those of `docs/access-log.md`, and headers as `\"request_header.NAME\"` and `\"response_header.NAME\"`, 16 headers at most. Only with `format = \"json\"`. The headers that carry credentials (`Authorization`, `Proxy-Authorization`, `Cookie`, `Set-Cookie`, `Weir-Explain`) cannot be logged.",
        ),
        key(
            "redact_query",
            Kind::OneOrMore(&Kind::Text(form("parameter name"))),
            Absent::Then("nothing is redacted"),
            "Names of query parameters whose values become `[redacted]`, in every format and also in logged headers; `\"*\"`: all of them. Case does not matter, and percent-encoded names are decoded first.",
        ),
        key(
            "sample",
            Kind::Map(form("result"), &SHARE),
            Absent::Then("every line is written"),
            "The share of lines that is written, by result: a cause (`docs/causes.md`), a class of status (`2xx`), or `ok` for everything that did not fail. The first of these that has an entry applies; lines without one are written. Each line says its share as `sample_rate`. Only with the formats `json` and `text`, which have a place for it.",
        ),
        key(
            "tcp_info",
            SHARE,
            Absent::Number(defaults::TCP_INFO),
            "The share of requests for which Weir reads TCP statistics of both connections from the kernel: round-trip time and retransmitted segments, in the access log (`tcp`) and in metrics by server and zone. 1 samples every request, which costs about 8 % more CPU; 0 samples none. Without this key Weir also samples each server up to 100 times a second, for metrics and findings only, so that loss is visible with little traffic.",
        ),
        key(
            "decisions",
            SHARE,
            Absent::Number(defaults::DECISIONS),
            "The share of requests whose access log line records why they got their server (`decision`): which servers were considered, and why each of the others was not chosen. In addition, any request that carries `Weir-Explain:` with the token of `explain_token_file` gets such a record.",
        ),
        key(
            "explain_token_file",
            FILE,
            Absent::Then("the admin API's `token_file`; without one, `Weir-Explain` is ignored"),
            "A file with the token that `Weir-Explain` must carry, in the format of the admin API's token. Read at startup and whenever a new configuration takes effect. The field is never forwarded to servers.",
        ),
    ],
};

static SYSLOG: TableSpec = TableSpec {
    heading: "access",
    path: "log.access",
    doc: "Sends each line of the access log to a syslog collector, as a message of RFC 5424. A collector that is slow or gone never delays requests: lines wait in a bounded queue, and those that do not fit are counted in `weir_access_log_lines_dropped_total`.",
    example: "[log]\naccess = { syslog = \"udp://10.0.0.1:514\", facility = \"local0\", app_name = \"weir-public\" }\n",
    keys: &[
        key(
            "syslog",
            Kind::Text(super::patterned("collector", "^(udp://|tcp://|unix:/)")),
            Absent::Required,
            "The collector: `\"udp://ADDRESS:PORT\"` (a longer line than 8 kB is cut), `\"tcp://ADDRESS:PORT\"` (with the length before each message, RFC 6587), or `\"unix:PATH\"`, a datagram socket such as `/dev/log`, in the form of syslog(3). Without a port: 514.",
        ),
        key(
            "facility",
            Kind::Choice(Facility::WORDS),
            Absent::Text(Facility::Local0.as_str()),
            "The messages' facility. Their severity is `info`.",
        ),
        key(
            "app_name",
            Kind::Text(super::patterned("application name", "^[A-Za-z0-9._/-]{1,48}$")),
            Absent::Text(defaults::SYSLOG_APP_NAME),
            "The messages' APP-NAME, often called tag. Their MSGID is `access`.",
        ),
    ],
};

//! The keys of `[otlp]`.

use std::time::Duration;

use super::{FIELD_NAME, FILE, SECRET, SHARE, TEXT, duration, form, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(super) static OTLP: TableSpec = TableSpec {
    heading: "[otlp]",
    path: "otlp",
    doc: "Sends traces, metrics and logs to an OpenTelemetry collector, by OTLP over HTTP (binary protobuf). `docs/opentelemetry.md` says what they contain. A collector that is slow or gone never delays requests: what does not fit into 8 MB of memory is dropped and counted in `weir_otlp_dropped_total`.",
    example: "[otlp]\nendpoint = \"https://otel.internal:4318\"\nca = \"internal.pem\"\nheader = { X-Tenant = \"shop\" }\nservice_name = \"weir-public\"\ntraces = true\nsample = { ok = 0.05, 4xx = 0.1, rate_limited = 0 }\ntraces_per_cause_max = 50\nmetrics = true\ninterval = \"15s\"\nlogs = false\n",
    keys: &[
        key(
            "endpoint",
            Kind::Text(patterned("URL", "^https?://")),
            Absent::Required,
            "The base URL of the collector, such as `\"http://127.0.0.1:4318\"`. Weir adds `/v1/traces`, `/v1/metrics` and `/v1/logs`.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("those that the system trusts"),
            "Certificates (PEM) of the authorities that may have issued the collector's certificate.",
        ),
        key(
            "header",
            Kind::Map(FIELD_NAME, &SECRET),
            Absent::Then("none"),
            "Further request fields, such as the key of a provider.",
        ),
        key(
            "service_name",
            TEXT,
            Absent::Text(defaults::OTLP_SERVICE_NAME),
            "The name under which this balancer appears (the resource attribute `service.name`).",
        ),
        key(
            "traces",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether requests are sent as traces: one span for each request, and one below it for each attempt at a server. Servers see the attempt's span as their parent (`traceparent`, if it is in the listener's `forward_fields`).",
        ),
        key(
            "sample",
            Kind::Map(form("result"), &SHARE),
            Absent::Then("`{ ok = 0.01 }`: a hundredth of those that did not fail, and all others"),
            "The share of requests that are sent as traces, by result, decided when they end: a cause (`docs/causes.md`), a class of status (`2xx`), or `ok` for everything that did not fail. The first of these that has an entry applies; without an entry, `ok` is 0.01, and of all others every request is sent. Requests whose `traceparent` says that they are sampled are sent in any case, if it comes from a `trusted` peer, and so are the examples that `/api/v1/requests/ended` lists. A request without a `traceparent` is marked as sampled for its server with the share of `ok`, and then sent whatever its result.",
        ),
        key(
            "traces_per_cause_max",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Integer(defaults::OTLP_TRACES_PER_CAUSE_MAX),
            "How many requests a second with one cause are sent because of `sample`, over all workers, so that a flood of one failure leaves room for others, and traces cost little at high rates.",
        ),
        key(
            "metrics",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether metrics are sent: those of `/metrics`, under the same names, durations as exponential histograms.",
        ),
        key(
            "interval",
            duration(Duration::from_secs(1), Duration::from_hours(1)),
            Absent::Duration(defaults::OTLP_INTERVAL),
            "Time between two exports of metrics.",
        ),
        key(
            "logs",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether the program's log is sent, in addition to standard error. The access log is sent with `access = \"otlp\"` of [log].",
        ),
    ],
};

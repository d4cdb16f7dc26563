//! Keys of `retries`.

use std::time::Duration;

use model::Retries;

use super::duration;
use super::error_page::STATUSES;
use crate::defaults;
use crate::schema::spec::{Absent, KeySpec, Kind, TableSpec, key};

const MAX: Kind = Kind::Integer { min: 0, max: Retries::ATTEMPTS_MAX as u64 };

const fn statuses(absent: Absent) -> KeySpec {
    key(
        "status",
        STATUSES,
        absent,
        "The statuses of responses that fail an attempt, from 400 to 599: `503`, `\"5xx\"`, `\"502-504\"`, or a list of these. Without another attempt, the client gets the response. Name only statuses that clients cannot provoke.",
    )
}

const fn backoff(absent: Absent) -> KeySpec {
    key(
        "backoff",
        duration(Duration::ZERO, Retries::BACKOFF_MAX),
        absent,
        "The shortest pause before another attempt. It doubles with each attempt, up to ten times this value, and up to a quarter is added at random. If `timeouts.total` or a gRPC deadline would pass meanwhile, there is no further attempt.",
    )
}

pub(super) static OF_SERVICE: TableSpec = TableSpec {
    heading: "retries of [service.NAME]",
    path: "service.NAME.retries",
    doc: "Weir retries an idempotent request whose response has not begun, on another server if there is one. All retries of a service together are limited to 20 % of its requests and 3 per second. See docs/balancing.md.",
    example: "[service.listings]\nretries = { max = 2, body_kept_max = \"64KiB\", status = [502, 503], backoff = \"50ms\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "max",
            MAX,
            Absent::Integer(defaults::ATTEMPTS_MAX),
            "Further attempts after the first.",
        ),
        key(
            "body_kept_max",
            Kind::Size { min: 0, max: 16 << 20 },
            Absent::Size(defaults::BODY_KEPT_MAX_BYTES),
            "The largest request body that is buffered for another attempt.",
        ),
        statuses(Absent::Then("none")),
        backoff(Absent::Then("none")),
    ],
};

pub(super) static OF_ROUTE: TableSpec = TableSpec {
    heading: "retries of [[route]]",
    path: "route.retries",
    doc: "When the route's requests are retried. Each key replaces that of the service.",
    example: "[[route]]\npath = \"/search\"\nservice = \"listings\"\nretries = { max = 3, status = [503], backoff = \"100ms\" }\n",
    keys: &[
        key(
            "max",
            MAX,
            Absent::Then("`retries.max` of the service"),
            "Further attempts after the first.",
        ),
        statuses(Absent::Then("`retries.status` of the service")),
        backoff(Absent::Then("`retries.backoff` of the service")),
    ],
};

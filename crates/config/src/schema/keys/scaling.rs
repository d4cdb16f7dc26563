//! Keys of `scaling` of a service, and of its webhook.

use std::time::Duration;

use super::{DAY, FIELD_NAME, FILE, SECRET, TEXT, duration, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

/// As many servers as a service may have.
const SERVERS_MAX: u64 = 100_000;

pub(super) static SCALING: TableSpec = TableSpec {
    heading: "scaling of [service.NAME]",
    path: "service.NAME.scaling",
    doc: "Weir computes from the load how many servers the service should have, and shows the number to autoscalers: the gauge `weir_service_wanted_servers`. With `webhook` or `command`, it also has servers started and stopped. It needs `in_flight_max` or `in_flight_target`. See docs/scaling.md.",
    example: "[service.listings]\nin_flight_max = 8\nscaling = { servers_min = 2, servers_max = 50, utilization = 0.6, scale_in_after = \"10m\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n[service.reports]\nscaling = { servers_min = 0, servers_max = 5, in_flight_target = 2.5, idle_after = \"30m\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n[service.images]\nin_flight_max = 4\nscaling = { servers_max = 20, command = [\"/usr/local/bin/scale\", \"{service}\", \"{servers}\"], scale_out_cooldown = \"1m\", scale_in_cooldown = \"10m\", drain_max = \"1m\", timeout = \"2m\" }\nserver = [{ address = \"10.0.1.6:8080\" }]\n",
    keys: &[
        key(
            "servers_min",
            Kind::Integer { min: 0, max: SERVERS_MAX },
            Absent::Integer(defaults::SCALING_SERVERS_MIN),
            "The least number. With 0, requests that find no server wait in the queue for one: `queue.wait_max` must cover the start of a server.",
        ),
        key(
            "servers_max",
            Kind::Integer { min: 1, max: SERVERS_MAX },
            Absent::Required,
            "The highest number; it bounds the cost of a mistake.",
        ),
        key(
            "utilization",
            Kind::Number { min: 0.05, max: 1.0 },
            Absent::Number(defaults::SCALING_UTILIZATION),
            "The share of the slots that the mean load should occupy. The rest is room for growth while new servers start.",
        ),
        key(
            "in_flight_target",
            Kind::Number { min: 0.001, max: 1_000_000.0 },
            Absent::Then("`in_flight_max` of the servers, times `utilization`"),
            "The requests in flight that each server should have on average.",
        ),
        key(
            "scale_in_after",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::SCALING_SCALE_IN_AFTER),
            "How long a lower number must have held before it counts.",
        ),
        key(
            "idle_after",
            duration(Duration::from_secs(1), DAY),
            Absent::Duration(defaults::SCALING_IDLE_AFTER),
            "With `servers_min = 0`: how long there must have been no request before the number is 0.",
        ),
        key(
            "webhook",
            Kind::Table(&WEBHOOK),
            Absent::Then("none"),
            "An HTTP server that starts and stops servers. Weir calls it when there should be more or fewer servers. In a fleet, one member does.",
        ),
        key(
            "command",
            Kind::List(&TEXT),
            Absent::Then("none"),
            "A program that starts and stops servers, and its arguments, in place of a `webhook`. No shell is involved. Arguments may have the placeholders of `body` of the webhook. The program runs as Weir's user, with the values as environment variables: `WEIR_SERVICE`, `WEIR_SERVERS` and so on. Exit code 0 means that the number of servers will be as it should.",
        ),
        key(
            "scale_out_cooldown",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::SCALING_OUT_COOLDOWN),
            "The least time between a call of the webhook or command and the next one for more servers.",
        ),
        key(
            "scale_in_cooldown",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::SCALING_IN_COOLDOWN),
            "The least time between a call of the webhook or command and the next change to fewer servers.",
        ),
        key(
            "drain_max",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::SCALING_DRAIN_MAX),
            "Before servers are removed, Weir chooses them and sends them no new requests. When they have none in flight, or after this time, the call names them. With `\"0s\"` no server is drained or named: what is called chooses them.",
        ),
        key(
            "timeout",
            duration(Duration::from_secs(1), Duration::from_hours(1)),
            Absent::Duration(defaults::SCALING_TIMEOUT),
            "How long a call may take. A command is ended then, with all processes of its group. A call that failed is repeated, first after 5 seconds and later once a minute.",
        ),
    ],
};

static WEBHOOK: TableSpec = TableSpec {
    heading: "scaling.webhook of [service.NAME]",
    path: "service.NAME.scaling.webhook",
    doc: "Weir sends `POST` requests to it. A 2xx response means that the number of servers will be as it should.",
    example: "[nomad]\n\n[service.web]\nin_flight_max = 8\ndiscover = { nomad = \"web\" }\n\n[service.web.scaling]\nservers_max = 20\n# Nomad deregisters an allocation before it stops it.\ndrain_max = \"0s\"\nwebhook = { url = \"http://127.0.0.1:4646/v1/job/web/scale\", header = { X-Nomad-Token = \"${file:nomad.token}\" }, body = '{\"Count\": {servers}, \"Target\": {\"Group\": \"web\"}}' }\n\n[service.listings]\nin_flight_max = 8\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n[service.listings.scaling]\nservers_max = 20\nwebhook = { url = \"https://machines.internal/scale\", ca = \"internal.pem\" }\n",
    keys: &[
        key(
            "url",
            Kind::Text(patterned("URL", "^https?://")),
            Absent::Required,
            "The URL, such as `\"https://machines.internal/scale\"`.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("those that the system trusts"),
            "Certificates (PEM) of the authorities that may have issued the server's certificate.",
        ),
        key(
            "header",
            Kind::Map(FIELD_NAME, &SECRET),
            Absent::Then("none"),
            "Further request fields, such as a token. `Content-Type` is `application/json` unless it is set here.",
        ),
        key(
            "body",
            TEXT,
            Absent::Then("an object with all values"),
            "The body of requests. Placeholders: `{service}`; `{servers}`, how many there should be; `{before}`, how many are in use; `{change}`, `out` or `in`; `{reason}`; `{remove}`, the addresses of the servers to remove, separated by spaces. Other braces stay as they are. Text is escaped for a JSON string. Without `body`: `{\"service\": \"listings\", \"servers\": 5, \"before\": 4, \"change\": \"out\", \"reason\": \"more_load\", \"why\": \"…\", \"remove\": []}`.",
        ),
    ],
};

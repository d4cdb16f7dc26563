//! The API's operations, as its document describes them.

use admin_api::Configuration;
use admin_api::causes::{Cause, Causes};
use admin_api::changes::Changes;
use admin_api::checks::Plan;
use admin_api::findings::Findings;
use admin_api::fleet::Fleet;
use admin_api::history::History;
use admin_api::maintenance::{Maintenance, MaintenanceRequest};
use admin_api::published::PublishedRoutes;
use admin_api::receipt::{Reload, Reloads, Upgrade};
use admin_api::requests::{EndedRequests, Requests};
use admin_api::routes::RouteExplanation;
use admin_api::services::{Service, Services, StateChanged, StateRequest, WeightRequest};
use admin_api::status::Status;
use admin_api::traffic::Traffic;
use schemars::JsonSchema;
use serde_json::json;

use super::{Body, Operation, Parameter, json_of};

const TEXT: Body = Body("text/plain", |_| json!({ "type": "string" }));

const SERVICE: Parameter = Parameter {
    name: "service",
    within: "path",
    required: true,
    description: "The service's name. Write a slash in it as %2F.",
    schema: || json!({ "type": "string" }),
};
const SERVER: Parameter = Parameter {
    name: "server",
    within: "path",
    required: true,
    description: "The server's address, such as 10.0.1.5:8080, or the name in the configuration, which may \
                  stand for several addresses.",
    schema: || json!({ "type": "string" }),
};
const ROUTE: Parameter = Parameter {
    name: "route",
    within: "path",
    required: true,
    description: "The route's name; `weir check` and /api/v1/configuration list names. Write a slash in it \
                  as %2F.",
    schema: || json!({ "type": "string" }),
};
const CAUSE: Parameter = Parameter {
    name: "cause",
    within: "path",
    required: true,
    description: "The cause's name, such as connection_refused.",
    schema: || json!({ "type": "string" }),
};

/// Refusals of the two operations that change a server.
const CHANGE_REFUSED: &[(u16, &str)] = &[
    (400, "The body is not JSON."),
    (404, "There is no such service, or it has no such server."),
    (413, "The body is too large."),
    (415, "Content-Type is not application/json."),
    (422, "The body is JSON, but not the one described here."),
    (
        503,
        "An upgrade is in progress, and the new process would not learn of the change. Nothing changed.",
    ),
];
/// Refusals of a change of a server's state, which may be for the whole fleet.
const STATE_REFUSED: &[(u16, &str)] = &[
    CHANGE_REFUSED[0],
    CHANGE_REFUSED[1],
    (
        409,
        "With fleet: this balancer is not a member of a fleet at present, the server's address means another \
         server on each machine, or states of 4,096 servers are set for the fleet already. Nothing changed.",
    ),
    CHANGE_REFUSED[2],
    CHANGE_REFUSED[3],
    CHANGE_REFUSED[4],
    CHANGE_REFUSED[5],
];
const CHANGE_LASTS: &str = "Takes effect at once and survives reloads and upgrades, until it is changed again \
                            or the process ends.";

/// Changes a server, with a body of type `T` and an answer of type `A`.
fn change<T: JsonSchema, A: JsonSchema>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    Operation {
        request: Some(json_of::<T>()),
        description: Some(CHANGE_LASTS),
        ..Operation::new(
            ("post", path),
            id,
            summary,
            "The service after the change, or, with dry_run, as it would be.",
            json_of::<A>(),
        )
        .at([SERVICE, SERVER])
        .refuses(CHANGE_REFUSED)
    }
}

const MAINTENANCE_REFUSED: &[(u16, &str)] = &[
    (400, "The body is not JSON."),
    (404, "There is no such service or route."),
    (413, "The body is too large."),
    (415, "Content-Type is not application/json."),
    (422, "The body is JSON, but not the one described here."),
    (
        503,
        "An upgrade is in progress, and the new process would not learn of the change. Nothing changed.",
    ),
];

/// Switches maintenance on or off.
fn maintenance(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    of: Parameter,
) -> Operation {
    Operation {
        request: Some(json_of::<MaintenanceRequest>()),
        description: Some(
            "Takes effect at once and survives reloads and upgrades, until it is changed again, its name \
             leaves the configuration, or the process ends. What the configuration file says stays in \
             force.",
        ),
        ..Operation::new(
            ("post", path),
            id,
            summary,
            "The maintenance after the change.",
            json_of::<Maintenance>(),
        )
        .at([of])
        .refuses(MAINTENANCE_REFUSED)
    }
}

/// The API itself and the process.
pub(super) fn process() -> Vec<Operation> {
    let mut metrics = Operation::new(
        ("get", "/metrics"),
        "metrics",
        "All metrics, for Prometheus",
        "Prometheus text format 0.0.4, or OpenMetrics 1.0 or Prometheus's protobuf format if Accept names it.",
        TEXT,
    );
    metrics.answers.push(Body("application/openmetrics-text", TEXT.1));
    metrics.answers.push(Body(
        "application/vnd.google.protobuf",
        |_| json!({ "type": "string", "format": "binary" }),
    ));
    vec![
        Operation::new(
            ("get", "/"),
            "index",
            "A page that lists the API's paths",
            "The page.",
            Body("text/html", TEXT.1),
        ),
        metrics,
        Operation::new(
            ("get", "/api/v1/openapi.json"),
            "openapi",
            "This document",
            "An OpenAPI 3.1 document.",
            Body("application/json", |_| json!({ "type": "object" })),
        ),
        Operation::new(
            ("get", "/api/v1/status"),
            "status",
            "The process: readiness, version, listeners and connections",
            "The status.",
            json_of::<Status>(),
        ),
    ]
}

/// Services and their requests.
pub(super) fn traffic() -> Vec<Operation> {
    vec![
        Operation::new(
            ("get", "/api/v1/services"),
            "services",
            "All services with their servers",
            "The services, sorted by name.",
            json_of::<Services>(),
        ),
        Operation::new(
            ("get", "/api/v1/services/{service}"),
            "service",
            "One service with its servers",
            "The service.",
            json_of::<Service>(),
        )
        .at([SERVICE])
        .refuses(&[(400, "The path is not readable."), (404, "There is no such service.")]),
        explain_route(),
        Operation::new(
            ("get", "/api/v1/routes/published"),
            "publishedRoutes",
            "The routes that services publish in Consul's tags",
            "The routes, by service, host and path, and their source.",
            json_of::<PublishedRoutes>(),
        ),
        Operation::new(
            ("get", "/api/v1/fleet"),
            "fleet",
            "The fleet of balancers that this one belongs to",
            "The fleet as this balancer sees it; null: there is no [fleet], or this process has not joined it yet or has left it.",
            json_of::<Option<Fleet>>(),
        ),
        requests(),
        ended_requests(),
        current_traffic(),
        past_traffic(),
        changes(),
        stream(),
    ]
}

/// Why requests fail, and what the balancer runs with.
pub(super) fn diagnosis() -> Vec<Operation> {
    vec![
        Operation::new(
            ("get", "/api/v1/causes"),
            "causes",
            "All causes with which requests end: what each means, and how often it occurred",
            "The causes.",
            json_of::<Causes>(),
        ),
        Operation::new(
            ("get", "/api/v1/causes/{cause}"),
            "cause",
            "One cause",
            "The cause.",
            json_of::<Cause>(),
        )
        .at([CAUSE])
        .refuses(&[(400, "The path is not readable."), (404, "There is no such cause.")]),
        Operation::new(
            ("get", "/api/v1/checks"),
            "checks",
            "The probe plan: which probes run, how often, for which services, and their results",
            "The plan.",
            json_of::<Plan>(),
        ),
        Operation::new(
            ("get", "/api/v1/findings"),
            "findings",
            "What the doctor found on this host and in its traffic in the last minute",
            "Present findings first, then by severity. The same finding is logged at most once a minute.",
            json_of::<Findings>(),
        )
        .refuses(&[(501, "This process has no doctor.")]),
        Operation::new(
            ("get", "/api/v1/configuration"),
            "configuration",
            "The configuration in force, with every default filled in",
            "The configuration.",
            json_of::<Configuration>(),
        ),
        Operation::new(
            ("get", "/api/v1/reloads"),
            "reloads",
            "The last reloads, however they were triggered",
            "The last 50 receipts, the latest first.",
            json_of::<Reloads>(),
        )
        .refuses(&[(501, "This process was not started from a file.")]),
    ]
}

const OF_SERVICE: Parameter = Parameter {
    name: "service",
    within: "query",
    required: false,
    description: "Only requests to this service.",
    schema: || json!({ "type": "string" }),
};
const REQUESTS_LIMIT: Parameter = Parameter {
    name: "limit",
    within: "query",
    required: false,
    description: "Maximum number of requests in the answer.",
    schema: || json!({ "type": "integer", "minimum": 0, "maximum": 10_000, "default": 100 }),
};

fn explain_route() -> Operation {
    let parameter = |name: &'static str, description: &'static str| Parameter {
        name,
        within: "query",
        required: false,
        description,
        schema: || json!({ "type": "string" }),
    };
    Operation {
        description: Some(
            "The route is found by the code that routes requests. No request is sent or counted, no slot and no \
             turn is taken. Authentication, rate limits and mirrors are named, but not tried.",
        ),
        ..Operation::new(
            ("get", "/api/v1/routes/explain"),
            "explainRoute",
            "Which route a request would take, why, and which server it would get",
            "The explanation; route is null if none matches.",
            json_of::<RouteExplanation>(),
        )
        .at([
            Parameter {
                required: true,
                ..parameter("url", "The URL, with http:// or https://, at most 8 KiB.")
            },
            parameter("method", "The method; GET without it."),
            parameter(
                "listener",
                "Name or address of the listener that the request comes in on; without it, the one that fits \
                 the URL best.",
            ),
            parameter("client", "The client's IP address; unknown without it."),
            Parameter {
                schema: || json!({ "type": "array", "items": { "type": "string" }, "maxItems": 64 }),
                ..parameter(
                    "field",
                    "A field of the request, such as `Cookie: beta=1`; repeated for each. A Host field replaces \
                     the URL's host.",
                )
            },
        ])
        .refuses(&[(400, "The query is not readable, or the listener would refuse the request.")])
    }
}

fn requests() -> Operation {
    Operation::new(
        ("get", "/api/v1/requests"),
        "requests",
        "Requests and connections in flight, the oldest first",
        "Requests in flight.",
        json_of::<Requests>(),
    )
    .at([
        OF_SERVICE,
        Parameter {
            name: "longer_than_ms",
            within: "query",
            required: false,
            description: "Only requests in flight for at least this long.",
            schema: || json!({ "type": "integer", "minimum": 0 }),
        },
        REQUESTS_LIMIT,
    ])
    .refuses(&[(400, "The query is not readable."), (501, "This process cannot list requests.")])
}

fn ended_requests() -> Operation {
    Operation::new(
        ("get", "/api/v1/requests/ended"),
        "endedRequests",
        "Examples of ended requests: failed ones, the slowest, and those with a recorded decision",
        "The examples, the latest first.",
        json_of::<EndedRequests>(),
    )
    .at([
        OF_SERVICE,
        Parameter {
            name: "since_unix_ms",
            within: "query",
            required: false,
            description: "Only requests that ended at or after this moment, in milliseconds since 1970 (UTC).",
            schema: || json!({ "type": "integer", "minimum": 0 }),
        },
        REQUESTS_LIMIT,
    ])
    .refuses(&[(400, "The query is not readable.")])
}

const NO_HISTORY: &[(u16, &str)] =
    &[(400, "The query is not readable."), (501, "This process keeps no history.")];

fn current_traffic() -> Operation {
    Operation::new(
        ("get", "/api/v1/traffic"),
        "traffic",
        "Rates and latencies of listeners, services and servers: the last ten seconds, minute and hour",
        "What happens now.",
        json_of::<Traffic>(),
    )
    .at([
        Parameter {
            name: "service",
            within: "query",
            required: false,
            description: "Only this service.",
            schema: || json!({ "type": "string" }),
        },
        Parameter {
            name: "servers",
            within: "query",
            required: false,
            description: "Whether servers are in the answer.",
            schema: || json!({ "type": "boolean", "default": true }),
        },
    ])
    .refuses(&[
        (400, "The query is not readable."),
        (404, "There is no such service."),
        (501, "This process keeps no history."),
    ])
}

fn changes() -> Operation {
    Operation::new(
        ("get", "/api/v1/changes"),
        "changes",
        "What has changed: servers, configurations, maintenance, findings; the last 1,000 changes",
        "The changes, the latest first.",
        json_of::<Changes>(),
    )
    .at([
        Parameter {
            name: "since_unix_ms",
            within: "query",
            required: false,
            description: "Only changes at or after this moment, in milliseconds since 1970 (UTC).",
            schema: || json!({ "type": "integer", "minimum": 0 }),
        },
        Parameter {
            name: "limit",
            within: "query",
            required: false,
            description: "Maximum number of changes in the answer.",
            schema: || json!({ "type": "integer", "minimum": 0, "maximum": 1_000, "default": 200 }),
        },
    ])
    .refuses(&[(400, "The query is not readable."), (501, "This process keeps no changes.")])
}

fn stream() -> Operation {
    Operation {
        description: Some(
            "Each event has the name of a topic, and as its data the answer of that path without parameters. The \
             first ones come at once, further ones when the answer changes, at most once a second. `unavailable`: \
             a topic's answer cannot be given; its data says why. `closing`: this process passes its listener on, \
             or ends. After ten seconds without an event there is a comment.",
        ),
        ..Operation::new(
            ("get", "/api/v1/stream"),
            "stream",
            "Answers of other paths, sent again as they change (server-sent events)",
            "Events, until the client closes the connection.",
            Body("text/event-stream", TEXT.1),
        )
        .at([Parameter {
            name: "topics",
            within: "query",
            required: false,
            description: "traffic, status, services, findings, reloads, changes; several separated by commas; all \
                          without it.",
            schema: || json!({ "type": "string" }),
        }])
        .refuses(&[
            (400, "The query is not readable, or there is no such topic."),
            (503, "Eight clients have a stream already."),
        ])
    }
}

fn past_traffic() -> Operation {
    Operation::new(
        ("get", "/api/v1/history"),
        "history",
        "The recent past: a row a second for 15 minutes, every ten seconds for two hours, a minute for a day",
        "Rows of the finest of the three lengths that reaches back as far as was asked for. At most 300,000 \
         numbers; series beyond that are left out.",
        json_of::<History>(),
    )
    .at([
        Parameter {
            name: "span_s",
            within: "query",
            required: false,
            description: "How far back, in seconds.",
            schema: || json!({ "type": "integer", "minimum": 1, "default": 900 }),
        },
        Parameter {
            name: "until_unix_ms",
            within: "query",
            required: false,
            description: "The end of the span, in milliseconds since 1970 (UTC); now without it.",
            schema: || json!({ "type": "integer", "minimum": 0 }),
        },
        Parameter {
            name: "kind",
            within: "query",
            required: false,
            description: "Only series of this kind.",
            schema: || {
                let kinds = ["process", "listener", "service", "server"];
                json!({ "type": "string", "enum": kinds })
            },
        },
        Parameter {
            name: "service",
            within: "query",
            required: false,
            description: "Only this service and its servers.",
            schema: || json!({ "type": "string" }),
        },
        Parameter {
            name: "server",
            within: "query",
            required: false,
            description: "Only the server at this address.",
            schema: || json!({ "type": "string" }),
        },
        Parameter {
            name: "columns",
            within: "query",
            required: false,
            description: "Only these columns, and `causes`, separated by commas.",
            schema: || json!({ "type": "string" }),
        },
        Parameter {
            name: "limit",
            within: "query",
            required: false,
            description: "Maximum number of series in the answer.",
            schema: || json!({ "type": "integer", "minimum": 0, "maximum": 1_000, "default": 100 }),
        },
    ])
    .refuses(NO_HISTORY)
}

/// What the API changes.
pub(super) fn changing() -> Vec<Operation> {
    vec![
        change::<StateRequest, StateChanged>(
            "/api/v1/services/{service}/servers/{server}/state",
            "setState",
            "Drains a server, puts it into maintenance, or returns it to service",
        )
        .refuses(STATE_REFUSED),
        change::<WeightRequest, Service>(
            "/api/v1/services/{service}/servers/{server}/weight",
            "setWeight",
            "Changes a server's weight",
        ),
        maintenance(
            "/api/v1/services/{service}/maintenance",
            "setServiceMaintenance",
            "Puts a service into maintenance, or ends it",
            SERVICE,
        ),
        maintenance(
            "/api/v1/routes/{route}/maintenance",
            "setRouteMaintenance",
            "Puts a route into maintenance, or ends it",
            ROUTE,
        ),
        Operation::new(
            ("post", "/api/v1/reload"),
            "reload",
            "Reloads the configuration file",
            "The configuration is in force; the receipt says what changed.",
            json_of::<Reload>(),
        )
        .refuses(&[
            (
                422,
                "The file has errors; the previous configuration stays in force. The message lists all \
                 errors.",
            ),
            (501, "This process was not started from a file."),
            (503, "A reload is not possible now; the previous configuration stays in force."),
        ]),
        Operation {
            description: Some(
                "Starts the program at this process's path with its arguments. The new process takes over the \
                 listening sockets and serves; this one finishes its requests and ends.",
            ),
            ..Operation::new(
                ("post", "/api/v1/upgrade"),
                "upgrade",
                "Lets a new process of this program take over",
                "The new process serves. It sends the next answer.",
                json_of::<Upgrade>(),
            )
            .refuses(&[
                (501, "This process cannot be replaced."),
                (503, "The new process does not serve; this one continues to."),
            ])
        },
    ]
}

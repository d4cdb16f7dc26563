//! Generates `openapi.json`: the operations below, and the schemas of `admin_api`'s types. Only for the
//! test that keeps the file up to date; the program serves the file.

use admin_api::causes::{Cause, Causes};
use admin_api::checks::Plan;
use admin_api::findings::Findings;
use admin_api::receipt::{Reload, Reloads, Upgrade};
use admin_api::requests::Requests;
use admin_api::services::{Service, Services, StateRequest, WeightRequest};
use admin_api::status::Status;
use admin_api::{Configuration, Problem};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Status and meaning of the answers that any request may get, from `guard`.
const GUARDED: [(&str, &str); 3] =
    [("401", "TokenNeeded"), ("403", "ForeignPage"), ("421", "ForeignHost")];

/// A body that may be sent or received: its media type, and its schema.
struct Body(&'static str, fn(&mut SchemaGenerator) -> Value);

const TEXT: Body = Body("text/plain", |_| json!({ "type": "string" }));

fn json_of<T: JsonSchema>() -> Body {
    Body("application/json", |schemas| schemas.subschema_for::<T>().to_value())
}

struct Parameter {
    name: &'static str,
    within: &'static str,
    description: &'static str,
    schema: fn() -> Value,
}

const SERVICE: Parameter = Parameter {
    name: "service",
    within: "path",
    description: "The service's name. Write a slash in it as %2F.",
    schema: || json!({ "type": "string" }),
};
const SERVER: Parameter = Parameter {
    name: "server",
    within: "path",
    description: "The server's address, such as 10.0.1.5:8080, or the name in the configuration, which may \
                  stand for several addresses.",
    schema: || json!({ "type": "string" }),
};
const CAUSE: Parameter = Parameter {
    name: "cause",
    within: "path",
    description: "The cause's name, such as connection_refused.",
    schema: || json!({ "type": "string" }),
};

struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    description: Option<&'static str>,
    parameters: Vec<Parameter>,
    request: Option<Body>,
    /// What 200 means.
    success: &'static str,
    answers: Vec<Body>,
    /// Status and meaning of refusals.
    refusals: &'static [(u16, &'static str)],
}

impl Operation {
    fn new(
        (method, path): (&'static str, &'static str),
        id: &'static str,
        summary: &'static str,
        success: &'static str,
        answer: Body,
    ) -> Operation {
        let answers = vec![answer];
        let (description, request) = (None, None);
        let (parameters, refusals) = (Vec::new(), &[][..]);
        Operation {
            path,
            method,
            id,
            summary,
            description,
            parameters,
            request,
            success,
            answers,
            refusals,
        }
    }

    fn at(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Operation {
        self.parameters.extend(parameters);
        self
    }

    fn refuses(mut self, refusals: &'static [(u16, &'static str)]) -> Operation {
        self.refusals = refusals;
        self
    }

    fn describe(&self, schemas: &mut SchemaGenerator) -> Value {
        let problem = schemas.subschema_for::<Problem>().to_value();
        let content = |bodies: &[Body], schemas: &mut SchemaGenerator| -> Map<String, Value> {
            let content = bodies.iter().map(|Body(kind, schema)| {
                ((*kind).to_owned(), json!({ "schema": schema(schemas) }))
            });
            content.collect()
        };
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
        });
        if let Some(description) = self.description {
            operation["description"] = json!(description);
        }
        operation["tags"] = json!([if self.method == "get" { "read" } else { "change" }]);
        if !self.parameters.is_empty() {
            operation["parameters"] = self
                .parameters
                .iter()
                .map(|one| {
                    json!({
                        "name": one.name,
                        "in": one.within,
                        "required": one.within == "path",
                        "description": one.description,
                        "schema": (one.schema)(),
                    })
                })
                .collect();
        }
        if let Some(body) = &self.request {
            let content = content(std::slice::from_ref(body), schemas);
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        let mut responses: Vec<(String, Value)> = GUARDED
            .iter()
            .map(|(status, name)| {
                let reference = format!("#/components/responses/{name}");
                ((*status).to_owned(), json!({ "$ref": reference }))
            })
            .collect();
        let answers = content(&self.answers, schemas);
        responses
            .push(("200".to_owned(), json!({ "description": self.success, "content": answers })));
        responses.extend(self.refusals.iter().map(|(status, meaning)| {
            let content = json!({ "application/json": { "schema": problem } });
            (status.to_string(), json!({ "description": meaning, "content": content }))
        }));
        responses.sort_by(|(one, _), (other, _)| one.cmp(other));
        operation["responses"] = Value::Object(responses.into_iter().collect());
        operation
    }
}

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
const CHANGE_LASTS: &str = "Takes effect at once and survives reloads and upgrades, until it is changed again \
                            or the process ends.";

/// Changes a server, with a body of type `T`.
fn change<T: JsonSchema>(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation {
        request: Some(json_of::<T>()),
        description: Some(CHANGE_LASTS),
        ..Operation::new(
            ("post", path),
            id,
            summary,
            "The service after the change.",
            json_of::<Service>(),
        )
        .at([SERVICE, SERVER])
        .refuses(CHANGE_REFUSED)
    }
}

/// The API itself and the process.
fn process() -> Vec<Operation> {
    let mut metrics = Operation::new(
        ("get", "/metrics"),
        "metrics",
        "All metrics, for Prometheus",
        "Prometheus text format 0.0.4, or OpenMetrics 1.0 if Accept names it.",
        TEXT,
    );
    metrics.answers.push(Body("application/openmetrics-text", TEXT.1));
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
fn traffic() -> Vec<Operation> {
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
        requests(),
    ]
}

/// Why requests fail, and what the balancer runs with.
fn diagnosis() -> Vec<Operation> {
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

fn requests() -> Operation {
    Operation::new(
        ("get", "/api/v1/requests"),
        "requests",
        "Requests and connections in flight, the oldest first",
        "Requests in flight.",
        json_of::<Requests>(),
    )
    .at([
        Parameter {
            name: "service",
            within: "query",
            description: "Only requests to this service.",
            schema: || json!({ "type": "string" }),
        },
        Parameter {
            name: "longer_than_ms",
            within: "query",
            description: "Only requests in flight for at least this long.",
            schema: || json!({ "type": "integer", "minimum": 0 }),
        },
        Parameter {
            name: "limit",
            within: "query",
            description: "Maximum number of requests in the answer.",
            schema: || json!({ "type": "integer", "minimum": 0, "maximum": 10_000, "default": 100 }),
        },
    ])
    .refuses(&[
        (400, "The query is not readable."),
        (501, "This process cannot list requests."),
    ])
}

/// What the API changes.
fn changing() -> Vec<Operation> {
    vec![
        change::<StateRequest>(
            "/api/v1/services/{service}/servers/{server}/state",
            "setState",
            "Drains a server, puts it into maintenance, or returns it to service",
        ),
        change::<WeightRequest>(
            "/api/v1/services/{service}/servers/{server}/weight",
            "setWeight",
            "Changes a server's weight",
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

/// Removes what only a reader of another version needs, and what is not in `OpenAPI`'s registry of formats.
fn tidy(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        // Defaults stand in for members that an older version does not send. Only a member's name,
        // never a keyword, has a schema as its value.
        object.retain(|key, value| key != "default" || value.get("type").is_some());
        if object.get("format").is_some_and(|format| format == "uint") {
            object.insert("format".to_owned(), json!("uint64"));
        }
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        object.values_mut().for_each(tidy);
    } else if let Some(array) = schema.as_array_mut() {
        array.iter_mut().for_each(tidy);
    }
}

/// Returns the document of the program of that version.
pub(super) fn document(version: &str) -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for operation in [process(), traffic(), diagnosis(), changing()].iter().flatten() {
        let described = operation.describe(&mut schemas);
        paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = described;
    }
    let problem = schemas.subschema_for::<Problem>().to_value();
    let refusal = |description: &str| {
        json!({
            "description": description,
            "content": { "application/json": { "schema": problem } },
        })
    };
    let mut definitions = Value::Object(schemas.take_definitions(true));
    tidy(&mut definitions);
    let mut token_needed = refusal("The token is missing or wrong.");
    token_needed["headers"] = json!({ "WWW-Authenticate": { "schema": { "type": "string" } } });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir admin API",
            "version": version,
            "summary": "State, metrics and operations of a running balancer.",
            "description": "Served only to this machine: on a loopback address (by default \
                http://127.0.0.1:9900) or a Unix socket. Within v1, members are added, but none is removed or \
                changes its meaning. Times are in milliseconds unless their name says otherwise. Counts start \
                with the process.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:9900" }],
        "security": [{}, { "token": [] }],
        "tags": [
            { "name": "read", "description": "State and counts." },
            { "name": "change", "description": "Operations." },
        ],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "The token in the file that admin.token_file of the configuration names. \
                    Without that key no token is needed.",
            } },
            "responses": {
                "TokenNeeded": token_needed,
                "ForeignPage": refusal("The request was sent by a web page of another origin."),
                "ForeignHost": refusal("Host is not a loopback name or address with the API's port."),
            },
            "schemas": definitions,
        },
    })
}

//! Generates `openapi.json`: the operations (`operations`), and the schemas of `admin_api`'s types. Only for the
//! test that keeps the file up to date; the program serves the file.

mod operations;

use admin_api::Problem;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Status and meaning of the answers that any request may get, from `guard`.
const GUARDED: [(&str, &str); 3] =
    [("401", "TokenNeeded"), ("403", "ForeignPage"), ("421", "ForeignHost")];

/// A body that may be sent or received: its media type, and its schema.
struct Body(&'static str, fn(&mut SchemaGenerator) -> Value);

fn json_of<T: JsonSchema>() -> Body {
    Body("application/json", |schemas| schemas.subschema_for::<T>().to_value())
}

struct Parameter {
    name: &'static str,
    within: &'static str,
    required: bool,
    description: &'static str,
    schema: fn() -> Value,
}

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
                        "required": one.required,
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
    for operation in [
        operations::process(),
        operations::traffic(),
        operations::diagnosis(),
        operations::changing(),
    ]
    .iter()
    .flatten()
    {
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

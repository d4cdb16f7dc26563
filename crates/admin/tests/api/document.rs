//! The API does what its own document says: every route of it is asked, and every answer fits its
//! schema. That the document and the router know the same routes is tested beside them.

use serde_json::{Value, json};

use crate::rig::{Answer, Api};

/// Fails on a keyword that [`violations`] does not check.
fn assert_known(schema: &Value, at: &str) {
    for key in schema.as_object().unwrap().keys() {
        const KNOWN: [&str; 13] = [
            "type",
            "format",
            "description",
            "enum",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "required",
            "properties",
            "additionalProperties",
            "items",
            "default",
        ];
        assert!(KNOWN.contains(&key.as_str()), "{at}: {key} is not known here");
    }
}

/// What is wrong with `value` by `schema`. Knows the parts of JSON Schema that the document uses,
/// and no others. Stricter than a client need be: an object has no field that is not described.
fn violations(value: &Value, schema: &Value, document: &Value, at: &str, found: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => schema,
    };
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = |choice| {
            let mut found = Vec::new();
            violations(value, choice, document, at, &mut found);
            found.is_empty()
        };
        if !choices.iter().any(fits) {
            found.push(format!("{at}: {value} is none of {choices:?}"));
        }
        return;
    }
    assert_known(schema, at);
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let fits = types.iter().any(|kind| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{at}: no type {other}"),
    });
    if !fits {
        found.push(format!("{at}: {value} is not {}", schema["type"]));
        return;
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        found.push(format!("{at}: {value} is none of {}", schema["enum"]));
    }
    if let Some(number) = value.as_f64() {
        let (min, max) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
            found.push(format!("{at}: {number} is out of bounds"));
        }
    }
    if let Some(array) = value.as_array() {
        let (min, max) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
        let length = array.len() as u64;
        if min.is_some_and(|min| length < min) || max.is_some_and(|max| length > max) {
            found.push(format!("{at}: {length} items"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        violations(item, &schema["items"], document, &format!("{at}[]"), found);
    }
    let properties = &schema["properties"];
    for (key, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        match (properties.get(key), &schema["additionalProperties"]) {
            (Some(schema), _) => violations(value, schema, document, &at, found),
            (None, rest) if rest.is_object() => violations(value, rest, document, &at, found),
            // Described as an object of whatever fields.
            (None, Value::Null) if properties.is_null() => {}
            (None, Value::Bool(true)) => {}
            (None, _) => found.push(format!("{at} is not described")),
        }
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            found.push(format!("{at}: {required} is missing"));
        }
    }
}

/// The answer stands in the document under its status and media type, and fits the schema there.
#[track_caller]
fn assert_documented(answer: &Answer, operation: &Value, document: &Value, what: &str) {
    let mut response = &operation["responses"][answer.status.to_string()];
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(&reference[1..]).unwrap();
    }
    assert!(response.is_object(), "{what}: {} is not described", answer.status);
    let media_type = answer.head.split("content-type: ").nth(1).unwrap();
    let media_type = media_type.split([';', '\r']).next().unwrap();
    let schema = &response["content"][media_type]["schema"];
    assert!(schema.is_object(), "{what}: {media_type} is not described");
    if media_type == "application/json" {
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let mut found = Vec::new();
        violations(&body, schema, document, "", &mut found);
        assert!(found.is_empty(), "{what}: {found:#?}\n{body:#}");
    } else {
        assert_eq!(schema, &json!({ "type": "string" }));
    }
}

const SERVER: &str = "/api/v1/services/listings/servers/127.0.0.1:5001";

/// A path of the document with something in place of its parameters.
fn filled(path: &str, server: &str) -> String {
    path.replace("/api/v1/services/{service}/servers/{server}", server)
        .replace("/routes/explain", "/routes/explain?url=https://api.example.com/listings")
        .replace("{service}", "listings")
        .replace("{route}", "api.example.com%2Flistings")
        .replace("{cause}", "queue_full")
}

fn document(api: &Api) -> Value {
    api.get("/api/v1/openapi.json").json()
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap();
        methods.iter().map(move |(method, operation)| (path, method, operation))
    })
}

#[test]
fn every_route_answers_as_described() {
    let api = Api::with(crate::rig::sources());
    let document = document(&api);
    assert_eq!(document["info"]["version"], "1.2.3");
    let mut asked = 0;
    for (path, method, operation) in operations(&document) {
        let url = filled(path, SERVER);
        assert!(!url.contains('{'), "{url}");
        let answer = match method.as_str() {
            "get" if path == "/api/v1/stream" => api.begin(&url, "").answer,
            "get" => api.get(&url),
            _ => api.post(&url, body(operation)),
        };
        assert_eq!(answer.status, 200, "{method} {url}: {}", answer.body);
        assert_documented(&answer, operation, &document, &format!("{method} {url}"));
        asked += 1;
    }
    assert_eq!(asked, 27);
}

/// A body that the operation takes.
fn body(operation: &Value) -> &'static str {
    match operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str() {
        Some("#/components/schemas/StateRequest") => r#"{"state": "drain"}"#,
        Some("#/components/schemas/WeightRequest") => r#"{"weight": null}"#,
        Some("#/components/schemas/MaintenanceRequest") => r#"{"on": false}"#,
        None => "",
        Some(other) => panic!("{other}"),
    }
}

#[test]
fn every_refusal_is_described_too() {
    let api = Api::start();
    let document = document(&api);
    let at = |path: &str, method: &str| &document["paths"][path][method];
    for (path, method, operation) in operations(&document) {
        let url = filled(path, SERVER);
        let host = format!("{} {url} HTTP/1.1\r\nHost: evil.example\r\n", method.to_uppercase());
        let answer = api.send(&host, "");
        assert_eq!(answer.status, 421, "{host}");
        assert_documented(&answer, operation, &document, path);
        let tokened = Api::with_token("0123456789abcdef");
        let answer = tokened.get(&url);
        assert_eq!(answer.status, 401);
        assert_documented(&answer, operation, &document, path);
        if path.contains("{server}") {
            let nowhere = filled(path, "/api/v1/services/listings/servers/127.0.0.1:9");
            let large = format!("{{\"x\": \"{}\"}}", "x".repeat(5_000));
            for (url, body, status) in [
                (&nowhere, body(operation), 404),
                (&url, "{", 400),
                (&url, r#"{"x": 1}"#, 422),
                (&url, &large, 413),
            ] {
                let answer = api.post(url, body);
                assert_eq!(answer.status, status, "{url} {body}");
                assert_documented(&answer, operation, &document, path);
            }
            let upgraded = admin::Sources::default();
            upgraded.switches.hold();
            let answer = Api::with(upgraded).post(&url, body(operation));
            assert_eq!(answer.status, 503, "{url}");
            assert_documented(&answer, operation, &document, path);
        }
    }
    let none = "/api/v1/services/{service}";
    assert_documented(&api.get("/api/v1/services/x"), at(none, "get"), &document, none);
    let none = "/api/v1/causes/{cause}";
    assert_documented(&api.get("/api/v1/causes/x"), at(none, "get"), &document, none);
    let query = "/api/v1/requests";
    assert_documented(&api.get("/api/v1/requests?x=1"), at(query, "get"), &document, query);
    for query in ["/api/v1/traffic", "/api/v1/history", "/api/v1/changes", "/api/v1/stream"] {
        let answer = api.get(&format!("{query}?x=1"));
        assert_documented(&answer, at(query, "get"), &document, query);
    }
    let query = "/api/v1/requests";
    let bare = Api::with(admin::Sources::default());
    assert_documented(&bare.get("/api/v1/requests"), at(query, "get"), &document, query);
    for (path, method) in
        [("/api/v1/reload", "post"), ("/api/v1/upgrade", "post"), ("/api/v1/reloads", "get")]
    {
        let answer = if method == "get" { bare.get(path) } else { bare.post(path, "") };
        assert_documented(&answer, at(path, method), &document, path);
    }
}

/// References lead somewhere, parameters are those of the path, names are given once.
#[test]
fn the_document_is_sound() {
    let api = Api::start();
    let document = document(&api);
    assert_eq!(document["openapi"], "3.1.0");
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        found.extend(value.get("$ref").and_then(Value::as_str));
        for inside in value.as_array().into_iter().flatten() {
            references(inside, found);
        }
        for inside in value.as_object().into_iter().flat_map(|object| object.values()) {
            references(inside, found);
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in &found {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let reference = format!("#/components/schemas/{name}");
        assert!(found.contains(&reference.as_str()), "{name} is used nowhere");
    }
    let mut ids = Vec::new();
    for (path, _, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(!ids.contains(&id), "{id} stands twice");
        ids.push(id);
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{path}");
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let named: Vec<String> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
            .collect();
        assert_eq!(path.matches('{').count(), named.len(), "{path}");
        assert!(named.iter().all(|name| path.contains(name.as_str())), "{path}");
    }
}

/// The page at `/` and the documentation name every route as well.
#[test]
fn pages_for_people_name_every_route() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/admin-api.md");
    let text = std::fs::read_to_string(path).unwrap();
    let api = Api::start();
    let page = api.get("/").body;
    for (path, method, _) in operations(&document(&api)) {
        let route = format!("{} {path}", method.to_uppercase());
        assert!(text.contains(&format!("`{route}`")), "docs/admin-api.md does not name {route}");
        let in_page = route.replace('{', "<var>").replace('}', "</var>");
        assert!(path == "/" || page.contains(&in_page), "the page does not name {in_page}");
    }
}

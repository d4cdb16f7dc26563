//! The definitions (`CustomResourceDefinition`) of Weir's own kinds, in `packaging/helm/weir/crds`: what `config::policy` reads, as a
//! schema. `UPDATE_EXPECT=1` rewrites the files: review the changes before committing.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fmt::Write;
use std::path::Path;

use config::policy::{Kind, schema};
use gateway::objects::WEIR_GROUP;
use serde_json::{Value, json};

/// What is the same for neither kind.
struct Definition {
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    description: &'static str,
    terms: Kind,
    /// The group, and the kinds, of its targets.
    targets: (&'static str, &'static [&'static str]),
    part: &'static str,
}

const DEFINITIONS: [Definition; 2] = [
    Definition {
        kind: "ServicePolicy",
        plural: "servicepolicies",
        short: "svcpol",
        description: "How Weir balances the requests to Services of the same namespace.",
        terms: Kind::Service,
        targets: ("", &["Service"]),
        part: "The name of a port of the Service. Default: all ports.",
    },
    Definition {
        kind: "RoutePolicy",
        plural: "routepolicies",
        short: "rtpol",
        description: "What Weir requires of the requests of HTTPRoutes and GRPCRoutes of the same namespace.",
        terms: Kind::Route,
        targets: ("gateway.networking.k8s.io", &["HTTPRoute", "GRPCRoute"]),
        part: "The name of a rule of the route. Default: all rules.",
    },
];

fn text(description: &str, max: u32) -> Value {
    json!({"type": "string", "description": description, "maxLength": max})
}

fn target_refs(of: &Definition) -> Value {
    let (group, kinds) = of.targets;
    let name = json!({
        "type": "string", "description": "The name of the object.", "minLength": 1, "maxLength": 253
    });
    json!({
        "type": "array",
        "description": "What the policy is for, in its own namespace. Of several policies for one target, the oldest applies. \
            One for a part of an object replaces one for the whole object.",
        "minItems": 1,
        "maxItems": 16,
        "items": {
            "type": "object",
            "required": ["group", "kind", "name"],
            "properties": {
                "group": {"type": "string", "enum": [group]},
                "kind": {"type": "string", "enum": kinds},
                "name": name,
                "sectionName": text(of.part, 253),
            },
        },
    })
}

/// The status of a policy as the Gateway API has it (GEP-713).
fn status() -> Value {
    let reference = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "group": text("The API group.", 253),
            "kind": text("The kind.", 63),
            "namespace": text("The namespace.", 63),
            "name": text("The name.", 253),
            "sectionName": text("A part of it.", 253),
            "port": {"type": "integer", "format": "int32"},
        },
    });
    let condition = json!({
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": text("What it is about.", 316),
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": text("One word, for programs.", 1024),
            "message": text("Sentences, for people.", 32_768),
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    });
    let conditions = json!({
        "type": "array", "maxItems": 8, "items": condition,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    });
    json!({
        "type": "object",
        "properties": {
            "ancestors": {
                "type": "array",
                "description": "What Weir did with the policy, for each Gateway that uses it.",
                "maxItems": 16,
                "items": {
                    "type": "object",
                    "required": ["ancestorRef", "controllerName", "conditions"],
                    "properties": {
                        "ancestorRef": reference,
                        "controllerName": text("The controller that wrote the entry.", 253),
                        "conditions": conditions,
                    },
                },
            },
        },
    })
}

fn definition(of: &Definition) -> Value {
    let mut spec = schema(of.terms);
    spec["description"] =
        "docs/kubernetes.md describes it; what the keys mean is in docs/configuration.md.".into();
    let fields = spec["properties"].as_object_mut().unwrap();
    fields.shift_insert(0, "targetRefs".to_owned(), target_refs(of));
    if of.kind == "ServicePolicy" {
        let description = "Whether Pods may state limits of their own by the annotation \
            weir.dev/in-flight-max, at most inFlightMax. Default: `false`.";
        let pod_limits = json!({"type": "boolean", "description": description});
        fields.insert("podLimits".to_owned(), pod_limits);
    }
    let mut required = vec![json!("targetRefs")];
    required.extend(spec["required"].as_array().into_iter().flatten().cloned());
    spec["required"] = required.into();
    let accepted = ".status.ancestors[*].conditions[?(@.type==\"Accepted\")].status";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{WEIR_GROUP}", of.plural),
            // As GEP-713 asks.
            "labels": {"gateway.networking.k8s.io/policy": "Direct"},
        },
        "spec": {
            "group": WEIR_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": of.kind,
                "listKind": format!("{}List", of.kind),
                "plural": of.plural,
                "singular": of.kind.to_lowercase(),
                "shortNames": [of.short],
                "categories": ["gateway-api", "weir"],
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Accepted", "type": "string", "jsonPath": accepted},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": of.description,
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

/// Writes a value as YAML. Texts are those of JSON, which YAML includes.
fn yaml(text: &mut String, depth: usize, value: &Value) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let is_plain = name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_/.".contains(&byte));
                let name =
                    if is_plain { name.clone() } else { Value::from(name.as_str()).to_string() };
                write!(text, "{indent}{name}:").unwrap();
                below(text, depth, value);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                let mut one = String::new();
                yaml(&mut one, depth + 1, item);
                writeln!(text, "{indent}- {}", one.trim()).unwrap();
            }
        }
        other => writeln!(text, "{indent}{other}").unwrap(),
    }
}

fn below(text: &mut String, depth: usize, value: &Value) {
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => items.iter().any(Value::is_object),
        _ => false,
    };
    if is_block {
        text.push('\n');
        yaml(text, depth + 1, value);
    } else {
        writeln!(text, " {value}").unwrap();
    }
}

#[test]
fn definitions_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/helm/weir/crds");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for of in &DEFINITIONS {
        let object = definition(of);
        let mut text = String::from(
            "# UPDATE_EXPECT=1 cargo test -p weir-gateway --test definitions writes this file from the schema in crates/config.\n",
        );
        yaml(&mut text, 0, &object);
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), object, "{}", of.kind);
        let path = folder.join(format!("{}.yaml", of.plural));
        if update {
            std::fs::write(&path, text).unwrap();
        } else {
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                found,
                text,
                "{} is not up to date (UPDATE_EXPECT=1 rewrites)",
                path.display()
            );
        }
    }
}

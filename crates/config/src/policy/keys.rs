//! Which keys of the configuration's tables policies may state, and under which names.
//!
//! Every key of a table in [`RULES`] is permitted, forbidden or renamed. Of the other tables below a permitted key,
//! every key is permitted.

use std::time::Duration;

use model::units::{show_duration, show_size};
use serde_json::Value;

use crate::diagnostic::{nearest, quote};
use crate::schema::spec::{KeySpec, TableSpec};
use crate::units::{duration, size};

/// A key that policies state in a form of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// A table, not the name of one.
    Authentication,
    /// The name of a Secret in place of a file.
    UsersSecret,
    /// The name of a `ConfigMap` in place of a file.
    KeysConfigMap,
    /// A Service of Kubernetes in place of the name of a service.
    BackendRef,
}

impl Own {
    /// Returns the name of the key in policies.
    pub(super) fn name(self) -> &'static str {
        match self {
            Own::Authentication => "authentication",
            Own::UsersSecret => "usersSecret",
            Own::KeysConfigMap => "keysConfigMap",
            Own::BackendRef => "backendRef",
        }
    }
}

/// What policies may state of a table.
pub(super) struct Rules {
    /// [`TableSpec::path`].
    pub(super) path: &'static str,
    pub(super) permitted: &'static [&'static str],
    /// With the reason.
    pub(super) forbidden: &'static [(&'static str, &'static str)],
    /// The name in the configuration, and what policies state instead.
    pub(super) own: &'static [(&'static str, Own)],
}

const OPERATOR: &str = "only the operator of the balancer states this, in its configuration";
const OF_ROUTE: &str = "the HTTPRoute or GRPCRoute states this";
const FILE: &str = "policies name no files";
const ACTION: &str = "policies have nothing called: autoscalers of Kubernetes read the number";

/// Of longer names, no similar key is looked for.
const NAME_COMPARED_MAX_BYTES: usize = 64;

pub(super) const RULES: &[Rules] = &[
    Rules {
        path: "service.NAME",
        permitted: &[
            "balance",
            "hash",
            "in_flight_max",
            "queue",
            "when_full",
            "when_all_down",
            "check",
            "passive",
            "zones",
            "affinity",
            "slow_start",
            "timeouts",
            "retries",
            "scaling",
            "idle_connections_max",
            "send_proxy",
            "version_field",
            "maintenance",
        ],
        forbidden: &[
            ("in_flight_scope", OPERATOR),
            ("tls", "write a BackendTLSPolicy for the Service"),
            ("http", "write appProtocol at the port of the Service"),
            ("error_page", OPERATOR),
            ("discover", "the servers are the endpoints of the Service"),
            ("server", "the servers are the endpoints of the Service"),
        ],
        own: &[],
    },
    Rules {
        path: "service.NAME.affinity",
        permitted: &["cookie", "max_age"],
        forbidden: &[("key_file", FILE)],
        own: &[],
    },
    Rules {
        path: "service.NAME.scaling",
        permitted: &[
            "servers_min",
            "servers_max",
            "utilization",
            "in_flight_target",
            "scale_in_after",
            "idle_after",
        ],
        forbidden: &[
            ("webhook", ACTION),
            ("command", ACTION),
            ("scale_out_cooldown", ACTION),
            ("scale_in_cooldown", ACTION),
            ("drain_max", ACTION),
            ("timeout", ACTION),
        ],
        own: &[],
    },
    Rules {
        path: "route",
        permitted: &["compress", "rate_limit"],
        forbidden: &[
            ("name", OF_ROUTE),
            ("priority", OPERATOR),
            ("listener", OF_ROUTE),
            ("host", OF_ROUTE),
            ("path", OF_ROUTE),
            ("path_exact", OF_ROUTE),
            ("path_regex", OF_ROUTE),
            ("method", OF_ROUTE),
            ("header", OF_ROUTE),
            ("query", OF_ROUTE),
            ("cookie", OPERATOR),
            ("client", OPERATOR),
            ("client_not", OPERATOR),
            ("client_file", FILE),
            ("client_not_file", FILE),
            ("client_certificate", OPERATOR),
            ("service", OF_ROUTE),
            ("split", OF_ROUTE),
            ("redirect", OF_ROUTE),
            ("deny", OPERATOR),
            ("respond", OPERATOR),
            ("rewrite", OF_ROUTE),
            ("request_header", OF_ROUTE),
            ("response_header", OF_ROUTE),
            ("timeouts", OF_ROUTE),
            ("retries", OF_ROUTE),
            ("affinity", OF_ROUTE),
            ("mirror", OF_ROUTE),
            ("cors", OF_ROUTE),
            ("maintenance", "write it in a ServicePolicy"),
            ("error_page", OPERATOR),
        ],
        own: &[("authenticate", Own::Authentication)],
    },
    Rules {
        path: "route.rate_limit",
        permitted: &["name", "requests", "per", "burst", "wait_max", "by", "headers"],
        forbidden: &[("scope", OPERATOR)],
        own: &[],
    },
    Rules {
        path: "authentication.NAME",
        permitted: &["realm", "basic", "jwt", "forward", "forward_credentials"],
        forbidden: &[],
        own: &[],
    },
    Rules {
        path: "authentication.NAME.basic",
        permitted: &["user_header"],
        forbidden: &[],
        own: &[("users_file", Own::UsersSecret)],
    },
    Rules {
        path: "authentication.NAME.jwt",
        permitted: &[
            "keys_url",
            "algorithms",
            "issuer",
            "audience",
            "types",
            "leeway",
            "expiry_required",
            "claims",
            "claim_headers",
        ],
        forbidden: &[
            ("keys_ca", FILE),
            ("symmetric_keys", "anyone who can read the keys could sign tokens"),
        ],
        own: &[("keys_file", Own::KeysConfigMap)],
    },
    Rules {
        path: "authentication.NAME.forward",
        permitted: &[
            "path",
            "host",
            "timeout",
            "request_headers",
            "user_header",
            "identity_headers",
            "response_headers",
        ],
        forbidden: &[],
        own: &[("service", Own::BackendRef)],
    },
];

/// A bound that is tighter in policies than in files: what a policy states costs everyone memory, connections or probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    DurationMin(Duration),
    DurationMax(Duration),
    IntegerMax(u32),
    SizeMax(u32),
}

/// By the path of the table and the name of the key.
pub(super) const LIMITS: &[(&str, &str, Limit)] = &[
    ("service.NAME", "idle_connections_max", Limit::IntegerMax(1024)),
    ("service.NAME.queue", "length_max", Limit::IntegerMax(10_000)),
    ("service.NAME.queue", "wait_max", Limit::DurationMax(Duration::from_mins(1))),
    ("service.NAME.check", "interval", Limit::DurationMin(Duration::from_secs(1))),
    ("service.NAME.retries", "max", Limit::IntegerMax(5)),
    ("service.NAME.retries", "body_kept_max", Limit::SizeMax(1_000_000)),
    ("route.rate_limit", "wait_max", Limit::DurationMax(Duration::from_secs(10))),
];

impl Limit {
    /// Returns the limit of a key.
    pub(super) fn of(spec: &TableSpec, key: &KeySpec) -> Option<Limit> {
        let is_meant = |(path, name, _): &&(&str, &str, _)| *path == spec.path && *name == key.name;
        LIMITS.iter().find(is_meant).map(|(_, _, limit)| *limit)
    }

    /// Returns whether a value is within the limit. The reader refuses values of other types.
    pub(super) fn permits(self, value: &Value) -> bool {
        match (self, value) {
            (Limit::IntegerMax(max) | Limit::SizeMax(max), Value::Number(number)) => {
                number.as_f64().is_none_or(|number| number <= f64::from(max))
            }
            (Limit::SizeMax(max), Value::String(text)) => {
                size(text).map_or(true, |bytes| bytes <= u64::from(max))
            }
            (Limit::DurationMax(max), Value::String(text)) => {
                duration(text).map_or(true, |duration| duration <= max)
            }
            (Limit::DurationMin(min), Value::String(text)) => {
                duration(text).map_or(true, |duration| duration >= min)
            }
            _ => true,
        }
    }

    /// Returns the greatest number that a schema can state.
    pub(super) fn number_max(self) -> Option<u32> {
        match self {
            Limit::IntegerMax(max) | Limit::SizeMax(max) => Some(max),
            Limit::DurationMin(_) | Limit::DurationMax(_) => None,
        }
    }

    /// Returns it in words: `at most 1m`.
    pub(super) fn words(self) -> String {
        match self {
            Limit::DurationMin(min) => format!("at least {}", show_duration(min)),
            Limit::DurationMax(max) => format!("at most {}", show_duration(max)),
            Limit::IntegerMax(max) => format!("at most {max}"),
            Limit::SizeMax(max) => format!("at most {}", show_size(u64::from(max))),
        }
    }
}

/// A key as policies state it.
pub(super) struct PolicyKey {
    pub(super) name: String,
    pub(super) key: &'static KeySpec,
    pub(super) own: Option<Own>,
}

/// Returns the keys of a table that policies may state, in the table's order.
pub(super) fn permitted(spec: &TableSpec) -> impl Iterator<Item = PolicyKey> {
    let rules = RULES.iter().find(|rules| rules.path == spec.path);
    spec.keys.iter().filter_map(move |key| {
        let own = rules.and_then(|rules| rules.own.iter().find(|(name, _)| *name == key.name));
        let own = own.map(|(_, own)| *own);
        let is_permitted = rules.is_none_or(|rules| rules.permitted.contains(&key.name));
        let name = own.map_or_else(|| camel_case(key.name), |own| own.name().to_owned());
        (is_permitted || own.is_some()).then_some(PolicyKey { name, key, own })
    })
}

/// Returns the key of a table that policies call `name`.
///
/// # Errors
/// Policies may not state it: the reason, or the name that was probably meant.
pub(super) fn find(spec: &TableSpec, name: &str) -> Result<PolicyKey, String> {
    if let Some(found) = permitted(spec).find(|known| known.name == name) {
        return Ok(found);
    }
    let rules = RULES.iter().find(|rules| rules.path == spec.path);
    let is_meant = |key: &str| key == name || camel_case(key) == name;
    let forbidden = rules.into_iter().flat_map(|rules| rules.forbidden);
    if let Some((_, why)) = forbidden.into_iter().find(|(key, _)| is_meant(key)) {
        return Err(format!("a policy cannot state {}: {why}", quote(name)));
    }
    let renamed = rules.into_iter().flat_map(|rules| rules.own);
    if let Some((_, own)) = renamed.into_iter().find(|(key, _)| is_meant(key)) {
        return Err(format!("unknown key {}; write `{}`", quote(name), own.name()));
    }
    let names: Vec<_> = permitted(spec).map(|known| known.name).collect();
    // Comparing takes as long as both names are.
    let compared = if name.len() <= NAME_COMPARED_MAX_BYTES { names.as_slice() } else { &[] };
    let help = match nearest(name, compared.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys: {}", names.join(", ")),
    };
    Err(format!("unknown key {}; {help}", quote(name)))
}

/// Returns the name of a key in policies: `in_flight_max` → `inFlightMax`.
pub(super) fn camel_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    let mut begins_word = false;
    for c in key.chars() {
        match c {
            '_' => begins_word = true,
            c if std::mem::take(&mut begins_word) => name.push(c.to_ascii_uppercase()),
            c => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::spec::{Absent, Kind};
    use crate::schema::{AUTHENTICATION, ROUTE, SERVICE};

    #[test]
    fn every_key_is_permitted_forbidden_or_renamed_once() {
        let tables = [&SERVICE, &ROUTE, &AUTHENTICATION].into_iter().flat_map(TableSpec::tables);
        let tables: Vec<_> = tables.collect();
        for rules in RULES {
            let spec = tables.iter().find(|table| table.path == rules.path);
            let spec = spec.unwrap_or_else(|| panic!("no table {}", rules.path));
            let mut listed = rules.permitted.to_vec();
            listed.extend(rules.forbidden.iter().map(|(key, _)| key));
            listed.extend(rules.own.iter().map(|(key, _)| key));
            listed.sort_unstable();
            let mut keys: Vec<_> = spec.keys.iter().map(|key| key.name).collect();
            keys.sort_unstable();
            assert_eq!(listed, keys, "{}: list each key once in RULES", rules.path);
        }
    }

    /// The tables that policies reach.
    fn reached(spec: &'static TableSpec, found: &mut Vec<&'static TableSpec>) {
        found.push(spec);
        for known in permitted(spec).filter(|known| known.own.is_none()) {
            let mut kinds = vec![&known.key.kind];
            while let Some(kind) = kinds.pop() {
                match kind {
                    Kind::Table(below) | Kind::Tables(below) | Kind::NamedTables(below) => {
                        reached(below, found);
                    }
                    Kind::List(of) | Kind::OneOrMore(of) | Kind::Map(_, of) => kinds.push(of),
                    Kind::Either(of) => kinds.extend(of.iter()),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn no_policy_names_a_file_a_socket_or_a_command() {
        let mut tables = Vec::new();
        for top in [&SERVICE, &ROUTE, &AUTHENTICATION] {
            reached(top, &mut tables);
        }
        assert!(tables.len() > 12, "{}", tables.len());
        for known in tables.into_iter().flat_map(permitted).filter(|known| known.own.is_none()) {
            let words = known.key.kind.words();
            for word in ["file", "directory", "socket", "command"] {
                assert!(!words.contains(word), "{}: {words}", known.name);
                assert!(!known.key.name.split('_').any(|part| part == word), "{}", known.name);
            }
        }
    }

    #[test]
    fn limits_are_tighter_than_those_of_files_and_permit_the_defaults() {
        let tables = [&SERVICE, &ROUTE, &AUTHENTICATION].into_iter().flat_map(TableSpec::tables);
        let tables: Vec<_> = tables.collect();
        for (path, name, limit) in LIMITS {
            let spec = tables.iter().find(|table| table.path == *path);
            let key =
                spec.and_then(|spec| spec.key(name)).unwrap_or_else(|| panic!("{path} {name}"));
            assert_eq!(Limit::of(spec.unwrap(), key), Some(*limit), "{path}.{name} stands once");
            let (is_tighter, has_default) = match (key.kind, *limit, key.absent) {
                (Kind::Integer { max, .. }, Limit::IntegerMax(limit), Absent::Integer(default))
                | (Kind::Size { max, .. }, Limit::SizeMax(limit), Absent::Size(default)) => {
                    (u64::from(limit) < max, default <= u64::from(limit))
                }
                (
                    Kind::Duration { min, .. },
                    Limit::DurationMin(limit),
                    Absent::Duration(default),
                ) => (limit > min, default >= limit),
                (
                    Kind::Duration { max, .. },
                    Limit::DurationMax(limit),
                    Absent::Duration(default),
                ) => (limit < max, default <= limit),
                other => panic!("{path}.{name}: {other:?}"),
            };
            assert!(is_tighter && has_default, "{path}.{name}");
        }
    }

    #[test]
    fn names_are_converted_mechanically() {
        for (key, name) in [
            ("in_flight_max", "inFlightMax"),
            ("count_5xx", "count5xx"),
            ("check", "check"),
            ("idle_connections_max", "idleConnectionsMax"),
        ] {
            assert_eq!(camel_case(key), name);
        }
    }
}

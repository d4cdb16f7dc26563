//! Reads `[[route]]`.

use model::{
    Compression, ContentCoding, FieldChanges, FieldMatch, MediaRange, PathMatch, RateKey,
    RateKeyWord, RateLimit, Redirect, Rewrite,
};

use toml::de::DeValue;

use super::table::{Table, choose};
use super::{RawAction, RawForward, RawRoute, http, name, net};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong, either, quote};

/// The keys for a route's action, of which it has exactly one.
const ACTIONS: [&str; 4] = ["service", "split", "redirect", "deny"];

pub(super) fn read(mut table: Table<'_>) -> RawRoute {
    let found_before = table.problems.count();
    let listeners = table.texts("listener", name).unwrap_or_default();
    let hosts = hosts(&mut table);
    let path = path(&mut table);
    let method = table.text("method", http::method).map(|at| at.value);
    let fields = fields(&mut table);
    let query = matches(table.map("query", parameter_name, |text| Ok(text.to_owned())));
    let certain = !table.strange && table.problems.count() == found_before;
    let route = RawRoute {
        span: table.span.clone(),
        certain,
        name: table.text("name", name),
        listeners,
        hosts,
        method,
        fields,
        query,
        action: action(&mut table, &path),
        rate_limit: table.table("rate_limit").and_then(rate_limit),
        path,
    };
    table.finish();
    route
}

fn hosts(table: &mut Table<'_>) -> Vec<At<Option<model::HostPattern>>> {
    let any = At { value: None, span: table.span.clone() };
    match table.texts("host", net::host_pattern) {
        None => vec![any],
        Some(hosts) if hosts.is_empty() => {
            if is_empty_list(table.peek("host")) {
                table.problems.report(
                    Diagnostic::error("a route for no host at all", table.span_of("host"), "empty")
                        .help("leave `host` out to match any host"),
                );
            }
            vec![any]
        }
        Some(hosts) => hosts,
    }
}

fn path(table: &mut Table<'_>) -> PathMatch {
    let prefix = table.text("path", http::path_prefix);
    let exact = table.text("path_exact", http::path_exact);
    if let (Some(prefix), Some(exact)) = (&prefix, &exact) {
        table.problems.report(
            Diagnostic::error("a path is a prefix or exact, not both", exact.span.clone(), "exact")
                .other(prefix.span.clone(), "a prefix")
                .help("leave one out"),
        );
    }
    match (exact, prefix) {
        (Some(exact), _) => PathMatch::Exact(exact.value),
        (None, Some(prefix)) => prefix.value,
        (None, None) => PathMatch::Prefix(String::new()),
    }
}

fn fields(table: &mut Table<'_>) -> Vec<FieldMatch> {
    let named = |text: &str| match http::field_name(text)?.as_str() {
        "host" => Err(Wrong::new("Host is matched by itself").help("write host = \"…\" beside it")),
        name => Ok(name.to_owned()),
    };
    matches(table.map("header", named, http::field_value))
}

fn parameter_name(text: &str) -> Result<String, Wrong> {
    match text {
        "" => Err(Wrong::new("a parameter's name is missing")),
        _ => Ok(text.to_owned()),
    }
}

fn matches(pairs: Vec<(At<String>, At<String>)>) -> Vec<FieldMatch> {
    pairs.into_iter().map(|(n, v)| FieldMatch { name: n.value, value: v.value }).collect()
}

fn action(table: &mut Table<'_>, path: &PathMatch) -> RawAction {
    let service = table.text("service", name);
    let split: Vec<_> = table.tables("split").into_iter().filter_map(branch).collect();
    let redirect = table.table("redirect").map(|table| redirect(table, path));
    let deny = table.integer_if::<u16>("deny");
    let rewrite = table.table("rewrite").map(|table| rewrite(table, path));
    let compress = compress(table);
    let request_fields = table.table("request_header").map(field_changes);
    let response_fields = table.table("response_header").map(field_changes);
    if !one_action(table) {
        return RawAction::Unreadable;
    }
    let to = match (service, redirect, deny) {
        (Some(service), ..) => vec![(service, 1)],
        (None, Some(redirect), _) => return RawAction::Redirect(redirect),
        (None, None, Some(status)) => return RawAction::Deny(status.value),
        (None, None, None) => split,
    };
    if to.is_empty() {
        return RawAction::Unreadable;
    }
    if to.iter().all(|(_, weight)| *weight == 0) {
        table.problems.report(
            Diagnostic::error(
                "a split of which no branch takes anything",
                table.span_of("split"),
                "every weight is 0",
            )
            .help("give at least one branch a weight of 1 or more"),
        );
    }
    RawAction::Forward(Box::new(RawForward {
        to,
        rewrite: rewrite.unwrap_or_default(),
        compress,
        request_fields: request_fields.unwrap_or_default(),
        response_fields: response_fields.unwrap_or_default(),
    }))
}

/// Reports a missing action, more than one, and changes to requests that are not forwarded.
fn one_action(table: &mut Table<'_>) -> bool {
    let given: Vec<_> =
        ACTIONS.iter().filter_map(|&key| table.key_span(key).map(|span| (key, span))).collect();
    match given.as_slice() {
        [] if ACTIONS.iter().any(|key| table.has_or_means(key)) => false,
        [] => {
            table.problems.report_absence(
                Diagnostic::error(
                    "a route that does nothing",
                    table.span.clone(),
                    "what is done with its requests?",
                )
                .help(format!("write one of {}", either(&ACTIONS))),
            );
            false
        }
        [(action @ ("redirect" | "deny"), span)] => {
            for key in ["rewrite", "compress", "request_header", "response_header"] {
                if let Some(change) = table.key_span(key) {
                    table.problems.report(
                        Diagnostic::error(
                            format!("`{key}` has no effect on a route that passes nothing on"),
                            change,
                            "never used",
                        )
                        .other(span.clone(), format!("{action} is answered by Weir itself")),
                    );
                }
            }
            true
        }
        [("split", span)] if is_empty_list(table.peek("split")) => {
            table.problems.report(Diagnostic::error(
                "a split between no services",
                span.clone(),
                "at least one branch is needed",
            ));
            false
        }
        [_] => true,
        [(first, at), rest @ ..] => {
            for (key, span) in rest {
                table.problems.report(
                    Diagnostic::error(
                        format!("a route does one thing, not `{first}` and `{key}`"),
                        span.clone(),
                        "leave one out",
                    )
                    .other(at.clone(), "or this"),
                );
            }
            false
        }
    }
}

fn is_empty_list(value: Option<&DeValue<'_>>) -> bool {
    matches!(value, Some(DeValue::Array(items)) if items.is_empty())
}

fn branch(mut table: Table<'_>) -> Option<(At<std::sync::Arc<str>>, u32)> {
    let service = table.text("service", name);
    let weight = table.integer("weight").value;
    table.finish();
    Some((service?, weight))
}

fn redirect(mut table: Table<'_>, matched: &PathMatch) -> Redirect {
    let redirect = Redirect {
        status: table.integer("status").value,
        scheme: table.choice_if("scheme").map(|at| at.value.to_owned()),
        host: table.text("host", net::host).map(|at| at.value),
        port: table.integer_if("port").map(|at| at.value),
        path: table.text("path", http::path).map(|at| substitute(at.value, matched)),
    };
    let aims = ["scheme", "host", "port", "path"];
    if aims.iter().all(|key| table.key_span(key).is_none()) {
        table.problems.report_absence(
            Diagnostic::error(
                "a redirect to where the request already is",
                table.span.clone(),
                "clients would come back for ever",
            )
            .help(format!("write at least one of {}", either(&aims))),
        );
    }
    table.finish();
    redirect
}

fn rewrite(mut table: Table<'_>, matched: &PathMatch) -> Rewrite {
    let rewrite = Rewrite {
        prefix: table.text("prefix", http::path).map(|at| substitute(at.value, matched)),
        host: table.text("host", net::authority).map(|at| at.value),
    };
    table.finish();
    rewrite
}

/// Stores a prefix replacement like the prefix: without a trailing slash.
fn substitute(path: String, matched: &PathMatch) -> String {
    match matched {
        PathMatch::Exact(_) => path,
        PathMatch::Prefix(_) => path.trim_end_matches('/').to_owned(),
    }
}

fn field_changes(mut table: Table<'_>) -> FieldChanges {
    let pairs = |pairs: Vec<(At<String>, At<String>)>| {
        pairs.into_iter().map(|(n, v)| (n.value, v.value)).collect()
    };
    let removed = table.texts("remove", http::changeable_field_name).unwrap_or_default();
    let changes = FieldChanges {
        remove: removed.into_iter().map(|at| at.value).collect(),
        set: pairs(table.map("set", http::changeable_field_name, http::field_value)),
        add: pairs(table.map("add", http::changeable_field_name, http::field_value)),
    };
    table.finish();
    changes
}

fn compress(table: &mut Table<'_>) -> Option<Compression> {
    let on = || Compression {
        codings: read_all(defaults::COMPRESS_CODINGS, |word| word.parse().ok()),
        types: read_all(defaults::COMPRESS_TYPES, MediaRange::parse),
        length_min_bytes: defaults::COMPRESS_LENGTH_MIN,
    };
    match table.peek("compress") {
        None | Some(DeValue::Boolean(false)) => return None,
        Some(DeValue::Boolean(true)) => return Some(on()),
        Some(_) => {}
    }
    let mut table = table.table("compress")?;
    let codings = table.texts("codings", |text| choose(text, ContentCoding::WORDS));
    let types = table.texts("types", |text| {
        MediaRange::parse(text).ok_or_else(|| {
            Wrong::new("no media type").help("write \"text/html\", \"text/*\" or \"*/*+json\"")
        })
    });
    for (key, is_empty) in [
        ("codings", codings.as_ref().is_some_and(Vec::is_empty)),
        ("types", types.as_ref().is_some_and(Vec::is_empty)),
    ] {
        if is_empty && is_empty_list(table.peek(key)) {
            table.problems.report(
                Diagnostic::error("nothing would be compressed", table.span_of(key), "empty")
                    .help(format!("leave `{key}` out for the default, or write compress = false")),
            );
        }
    }
    let length_min_bytes = table.size("length_min").value;
    table.finish();
    let on = on();
    Some(Compression {
        codings: codings.map_or(on.codings, |codings| {
            codings.into_iter().filter_map(|at| at.value.parse().ok()).collect()
        }),
        types: types.map_or(on.types, |types| types.into_iter().map(|at| at.value).collect()),
        length_min_bytes,
    })
}

fn read_all<T>(words: &[&str], read: impl Fn(&str) -> Option<T>) -> Vec<T> {
    words.iter().filter_map(|word| read(word)).collect()
}

fn rate_limit(mut table: Table<'_>) -> Option<RateLimit> {
    let requests = table.integer_if::<u32>("requests");
    let per = table.duration("per").value;
    let burst = table.integer_if::<u32>("burst");
    let wait_max = table.duration("wait_max").value;
    let by = table.text("by", |text| {
        let (word, name) = key_part(text);
        match (word.parse(), name) {
            (Ok(RateKeyWord::Client), None) => Ok(RateKey::Client),
            (Ok(RateKeyWord::Field), Some(field)) => http::field_name(field).map(RateKey::Field),
            (Ok(RateKeyWord::Client), Some(_)) | (Ok(RateKeyWord::Field), None) | (Err(_), _) => {
                Err(unknown_key_part(text, &["client", "header:NAME"]))
            }
        }
    });
    table.finish();
    let requests = requests?.value;
    Some(RateLimit {
        by: by.map_or(RateKey::Client, |at| at.value),
        requests,
        per,
        burst: burst.map_or(requests, |at| at.value),
        wait_max,
    })
}

/// Splits `header:NAME` into its word and the name; `client` has no name.
pub(super) fn key_part(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((word, name)) => (word, Some(name.trim())),
        None => (text, None),
    }
}

/// Reports a part of a request that is not one of the supported ones.
pub(super) fn unknown_key_part(text: &str, known: &[&str]) -> Wrong {
    let wrong = Wrong::new("no part of a request");
    match text.to_ascii_lowercase().as_str() {
        "ip" | "client-ip" | "client_ip" | "source" | "remote_addr" | "address" | "clients" => {
            wrong.help("did you mean \"client\"?")
        }
        _ => {
            let meant = if http::field_name(text).is_ok() { text } else { "NAME" };
            let shown: Vec<_> = known.iter().map(|k| quote(&k.replace("NAME", meant))).collect();
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            wrong.help(format!("write {}", either(&shown)))
        }
    }
}

//! Reads `[[route]]`.

mod action;
mod conditions;
mod cors;
mod filters;
mod respond;

use model::PathMatch;

use super::table::{Table, is_empty_list};
use super::{RawRoute, error_page, http, maintenance, name, net};
use crate::diagnostic::{At, Diagnostic};

pub(super) use conditions::pattern;
pub(super) use filters::{key_part, unknown_key_part};

pub(super) fn read(mut table: Table<'_>) -> RawRoute {
    let found_before = table.problems.count();
    let listeners = table.texts("listener", name).unwrap_or_default();
    let hosts = hosts(&mut table);
    let path = path(&mut table);
    let method = table.text("method", http::method).map(|at| at.value);
    let (fields, query, conditions) = conditions::conditions(&mut table);
    let client_files = conditions::client_files(&mut table);
    let certain = !table.strange && table.problems.count() == found_before;
    let route = RawRoute {
        span: table.span.clone(),
        certain,
        name: table.text("name", name),
        priority: table.integer("priority").value,
        listeners,
        hosts,
        method,
        fields,
        query,
        conditions,
        client_files,
        action: action::action(&mut table, &path),
        authenticate: table.text("authenticate", name),
        authenticates: table.has_or_means("authenticate"),
        rate_limits: filters::rate_limits(&mut table),
        cors: cors::read(&mut table),
        maintenance: maintenance::read(&mut table),
        error_pages: error_page::read(&mut table),
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

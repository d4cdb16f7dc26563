//! Reads the action of a route.

use model::{
    FieldChanges, MessageChanges, PathChange, PathMatch, Redirect, Rewrite, RouteTimeouts,
};

use super::filters::{compress, mirrors};
use super::respond;
use crate::diagnostic::{Diagnostic, either};
use crate::raw::table::{Table, is_empty_list};
use crate::raw::{RawAction, RawBranch, RawForward, RawTarget, affinity, http, name, net, retries};

/// The keys for a route's action, of which it has exactly one.
const ACTIONS: [&str; 5] = ["service", "split", "redirect", "deny", "respond"];

pub(super) fn action(table: &mut Table<'_>, path: &PathMatch) -> RawAction {
    let service = table.text("service", name);
    let split: Vec<_> = table.tables("split").into_iter().filter_map(branch).collect();
    let redirect = table.table("redirect").map(|table| redirect(table, path));
    let deny = table.integer_if::<u16>("deny");
    let respond = respond::respond(table);
    let rewrite = table.table("rewrite").map(|table| rewrite(table, path));
    let compress = compress(table);
    let mirrors = mirrors(table);
    let fields = message_changes(table);
    let timeouts = table.table("timeouts").map(timeouts).unwrap_or_default();
    let retries = table.table("retries").map(retries::of_route).unwrap_or_default();
    let affinity = table.table("affinity").and_then(affinity::of_route);
    if !one_action(table) {
        return RawAction::Unreadable;
    }
    let own = redirect
        .map(RawAction::Redirect)
        .or(deny.map(|status| RawAction::Deny(status.value)))
        .or(respond.map(RawAction::Respond));
    let to = match (service, own) {
        (Some(service), _) => {
            let to = RawTarget::Service(service);
            vec![RawBranch { to, weight: 1, fields: MessageChanges::default() }]
        }
        (None, Some(own)) => return own,
        (None, None) => split,
    };
    if to.is_empty() {
        return RawAction::Unreadable;
    }
    if to.iter().all(|branch| branch.weight == 0) {
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
        mirrors,
        compress,
        fields,
        timeouts,
        retries,
        affinity,
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
        [(action @ ("redirect" | "deny" | "respond"), span)] => {
            for key in [
                "rewrite",
                "mirror",
                "compress",
                "request_header",
                "response_header",
                "timeouts",
                "retries",
                "affinity",
            ] {
                if let Some(change) = table.own_key_span(key) {
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

fn branch(mut table: Table<'_>) -> Option<RawBranch> {
    let service = table.text("service", name);
    let deny = table.integer_if::<u16>("deny");
    let weight = table.integer("weight").value;
    let fields = message_changes(&mut table);
    let to = match (service, deny) {
        (Some(service), None) => Some(RawTarget::Service(service)),
        (None, Some(status)) => Some(RawTarget::Deny(status.value)),
        (None, None) => {
            if !table.has_or_means("service") && !table.has_or_means("deny") {
                table.problems.report_absence(Diagnostic::error(
                    "a branch without `service` or `deny`",
                    table.span.clone(),
                    "what is done with its requests?",
                ));
            }
            None
        }
        (Some(service), Some(status)) => {
            table.problems.report(
                Diagnostic::error(
                    "a branch does one thing, not `service` and `deny`",
                    status.span,
                    "leave one out",
                )
                .other(service.span, "or this"),
            );
            None
        }
    };
    if let Some(RawTarget::Deny(_)) = to {
        for key in ["request_header", "response_header"] {
            if let Some(change) = table.own_key_span(key) {
                table.problems.report(Diagnostic::error(
                    format!("`{key}` has no effect on a branch that refuses its requests"),
                    change,
                    "never used",
                ));
            }
        }
    }
    table.finish();
    Some(RawBranch { to: to?, weight, fields })
}

fn redirect(mut table: Table<'_>, matched: &PathMatch) -> Redirect {
    let redirect = Redirect {
        status: table.integer("status").value,
        scheme: table.choice_if("scheme").map(|at| at.value.to_owned()),
        host: table.text("host", net::host).map(|at| at.value),
        port: table.integer_if("port").map(|at| at.value),
        path: path_change(&mut table, "path", matched),
    };
    let aims = ["scheme", "host", "port", "path", "full_path"];
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
        path: path_change(&mut table, "prefix", matched),
        host: table.text("host", net::authority).map(|at| at.value),
    };
    table.finish();
    rewrite
}

/// Reads what replaces the matched prefix, under `key`, or the whole path, under `full_path`.
fn path_change(
    table: &mut Table<'_>,
    key: &'static str,
    matched: &PathMatch,
) -> Option<PathChange> {
    let part = table.text(key, http::path);
    let whole = table.text("full_path", http::path);
    if let (Some(part), Some(whole)) = (&part, &whole) {
        table.problems.report(
            Diagnostic::error(
                format!("`{key}` and `full_path` both replace the path"),
                whole.span.clone(),
                "leave one out",
            )
            .other(part.span.clone(), "or this"),
        );
    }
    let part = part.map(|at| match matched {
        PathMatch::Exact(_) => PathChange::Whole(at.value),
        // Like the prefix itself.
        PathMatch::Prefix(_) => PathChange::Prefix(at.value.trim_end_matches('/').to_owned()),
    });
    whole.map(|at| PathChange::Whole(at.value)).or(part)
}

fn timeouts(mut table: Table<'_>) -> RouteTimeouts {
    let mut duration = |key| table.duration_if(key).map(|at| at.value);
    let timeouts = RouteTimeouts { total: duration("total"), attempt: duration("attempt") };
    table.finish();
    timeouts
}

/// Reads `request_header` and `response_header`.
fn message_changes(table: &mut Table<'_>) -> MessageChanges {
    let mut changes = |key| table.table(key).map(field_changes).unwrap_or_default();
    MessageChanges { request: changes("request_header"), response: changes("response_header") }
}

fn field_changes(mut table: Table<'_>) -> FieldChanges {
    let problems = table.problems;
    let removed = table.texts("remove", http::changeable_field_name).unwrap_or_default();
    let changes = FieldChanges {
        remove: removed.into_iter().map(|at| at.value).collect(),
        set: problems.texts(table.map("set", http::changeable_field_name, http::field_value)),
        add: problems.texts(table.map("add", http::changeable_field_name, http::field_value)),
    };
    table.finish();
    changes
}

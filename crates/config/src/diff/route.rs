//! Changes of routes.
//!
//! A route is matched by its conditions; one whose conditions have changed, by its name, if that is
//! unambiguous.

use std::sync::Arc;

use foldhash::HashMap;
use model::{
    Action, Compression, Condition, ContentCoding, Cors, Differing, FieldChanges, FieldMatch,
    Forward, HostPattern, LimitScope, MessageChanges, Mirror, PathMatch, RateLimit, Redirect,
    Respond, ResponseFilter, Rewrite, Route, RouteMatch, RouteRetries, RouteTimeouts, Snapshot,
    Split, SplitTarget, differing,
};

use super::{Changes, Words, affinity as affinities, or};
use model::units::{show_duration, show_size};

pub(super) fn changes(before: &Snapshot, after: &Snapshot) -> Changes {
    let mut changes = Changes::default();
    // Changes of Gateways share most of thousands of routes.
    let Differing { gone: old_ones, new: new_ones } = if have_same_ids(before, after) {
        differing(&before.routes, &after.routes)
    } else {
        Differing { gone: before.routes.iter().collect(), new: after.routes.iter().collect() }
    };
    changes.unchanged = after.routes.len() - new_ones.len();
    let new_ones = || new_ones.iter().map(|route| &***route);
    let mut new: HashMap<Conditions<'_>, &Route> =
        new_ones().map(|route| (conditions(&route.matches, after), route)).collect();
    let mut gone: Vec<&Route> = Vec::new();
    for old in old_ones {
        match new.remove(&conditions(&old.matches, before)) {
            Some(new) => changes.stays(&new.name, words((old, before), (new, after))),
            None => gone.push(old),
        }
    }
    // The remaining new ones, in the order in which they match.
    let mut added: Vec<&Route> =
        new_ones().filter(|route| new.contains_key(&conditions(&route.matches, after))).collect();
    for old in gone {
        let alike = |route: &&Route| route.name == old.name;
        match added.iter().position(alike) {
            Some(index) => {
                let new = added.remove(index);
                changes.stays(&new.name, words((old, before), (new, after)));
            }
            None => changes.removed.push(old.name.to_string()),
        }
    }
    changes.added = added.iter().map(|route| route.name.to_string()).collect();
    changes
}

/// Returns whether IDs stand for the same things in both configurations, so that routes that they share are equal.
fn have_same_ids(before: &Snapshot, after: &Snapshot) -> bool {
    let names = |of: &Snapshot| -> [Vec<Arc<str>>; 3] {
        [
            of.listeners.iter().map(|one| Arc::clone(&one.name)).collect(),
            of.services.iter().map(|one| Arc::clone(&one.name)).collect(),
            of.authentications.iter().map(|one| Arc::clone(&one.name)).collect(),
        ]
    };
    names(before) == names(after)
}

/// Conditions with names instead of IDs.
type Conditions<'a> = (
    Vec<&'a str>,
    Option<&'a HostPattern>,
    &'a PathMatch,
    Option<&'a str>,
    &'a [FieldMatch],
    &'a [FieldMatch],
    &'a [Condition],
);

fn conditions<'a>(matches: &'a RouteMatch, of: &'a Snapshot) -> Conditions<'a> {
    let RouteMatch {
        priority: _,
        listeners: _,
        host,
        path,
        method,
        fields,
        query,
        conditions,
        age: _,
    } = matches;
    (listeners(matches, of), host.as_ref(), path, method.as_deref(), fields, query, conditions)
}

fn listeners<'a>(matches: &RouteMatch, of: &'a Snapshot) -> Vec<&'a str> {
    let known = matches.listeners.iter().filter_map(|id| of.listeners.get(id.0 as usize));
    let mut names: Vec<&str> = known.map(|listener| &*listener.name).collect();
    names.sort_unstable();
    names
}

fn words((old, before): (&Route, &Snapshot), (new, after): (&Route, &Snapshot)) -> Words {
    let Route { name, matches, action, filters: _, maintenance, error_pages, written_at: _ } = old;
    let mut words = Words::default();
    words.value("name", name, &new.name, ToString::to_string);
    let (listeners, new_listeners) = (listeners(matches, before), listeners(&new.matches, after));
    words.value("listener", &listeners, &new_listeners, |names| {
        if names.is_empty() { "all".to_owned() } else { names.join(", ") }
    });
    let RouteMatch {
        priority,
        listeners: _,
        host,
        path,
        method,
        fields,
        query,
        conditions,
        age: _,
    } = matches;
    words.value("priority", priority, &new.matches.priority, ToString::to_string);
    words.value("host", host, &new.matches.host, |host| match host {
        None => "any".to_owned(),
        Some(host) => host.to_string(),
    });
    words.value("path", path, &new.matches.path, |path| match path {
        PathMatch::Exact(path) => format!("exactly {path}"),
        PathMatch::Prefix(prefix) => slash(prefix),
    });
    words.value("method", method, &new.matches.method, |method| or(method.as_ref(), "any"));
    words.hidden("header", fields, &new.matches.fields);
    words.hidden("query", query, &new.matches.query);
    words.hidden("other conditions", conditions, &new.matches.conditions);
    act((action, before), (&new.action, after), &mut words);
    let required = |route: &Route, of: &Snapshot| {
        route.authentication().map(|id| of.authentication(id).name.to_string())
    };
    words.value("authenticate", &required(old, before), &required(new, after), |name| {
        or(name.as_ref(), "none")
    });
    let limits = |route: &Route| route.rate_limits().map(limit).collect::<Vec<_>>();
    words.value("rate_limit", &limits(old), &limits(new), |limits| {
        or((!limits.is_empty()).then(|| limits.join("; ")), "none")
    });
    words.value("cors", &old.cors(), &new.cors(), |rules| or(rules.map(cors), "off"));
    words.value("maintenance", maintenance, &new.maintenance, |it| super::maintenance(it.as_ref()));
    words.hidden("error_page", error_pages, &new.error_pages);
    words
}

fn retry_words(old: &RouteRetries, new: &RouteRetries, words: &mut Words) {
    let RouteRetries { attempts_max, statuses, backoff } = old;
    words
        .value("retries.max", attempts_max, &new.attempts_max, |n| or(n.as_ref(), "the service's"));
    words.value("retries.status", statuses, &new.statuses, |set| {
        or(set.as_ref().map(super::statuses), "the service's")
    });
    words.value("retries.backoff", backoff, &new.backoff, |time| {
        or(time.map(show_duration), "the service's")
    });
}

fn act((old, before): (&Action, &Snapshot), (new, after): (&Action, &Snapshot), words: &mut Words) {
    match (old, new) {
        (Action::Forward(old), Action::Forward(new)) => {
            let Forward {
                to: _,
                rewrite,
                mirrors: _,
                filters,
                fields,
                timeouts,
                retries,
                affinity,
            } = &**old;
            let (to, new_to) = (branches(old, before), branches(new, after));
            words.value("service", &to, &new_to, String::clone);
            if to == new_to {
                words.hidden("header changes of the split", &own_changes(old), &own_changes(new));
            }
            let Rewrite { path, host } = rewrite;
            words.value("rewrite.path", path, &new.rewrite.path, |path| {
                path.as_ref().map_or_else(|| "unchanged".to_owned(), ToString::to_string)
            });
            words.value("rewrite.host", host, &new.rewrite.host, |host| {
                or(host.as_ref(), "unchanged")
            });
            let RouteTimeouts { total, attempt } = timeouts;
            words.value("timeouts.total", total, &new.timeouts.total, |time| {
                or(time.map(show_duration), "the service's")
            });
            words.value("timeouts.attempt", attempt, &new.timeouts.attempt, |time| {
                or(time.map(show_duration), "none")
            });
            retry_words(retries, &new.retries, words);
            affinities::of_route(affinity.as_deref(), new.affinity.as_deref(), words);
            let (mirrored, new_mirrored) = (mirrors(old, before), mirrors(new, after));
            words.value("mirror", &mirrored, &new_mirrored, |mirrors| or(mirrors.as_ref(), "none"));
            words.value("compress", filters, &new.filters, |filters| compression(filters));
            field_changes("request_header", &fields.request, &new.fields.request, words);
            field_changes("response_header", &fields.response, &new.fields.response, words);
        }
        (Action::Redirect(_), Action::Redirect(_))
        | (Action::Deny(_), Action::Deny(_))
        | (Action::Respond(_), Action::Respond(_)) => {
            let (shown, new_shown) = (action(old, before), action(new, after));
            words.value("action", &shown, &new_shown, String::clone);
            // Services are compared by name.
            if let (
                Action::Respond(Respond::Fixed { content, .. }),
                Action::Respond(Respond::Fixed { content: new, .. }),
            ) = (old, new)
            {
                words.hidden("respond.headers", &content.fields, &new.fields);
                words.hidden("respond.body", &content.body, &new.body);
            }
        }
        _ => words.0.push(format!("action: {} → {}", action(old, before), action(new, after))),
    }
}

/// Describes the mirrors of a route, services by name; `None`: it has none.
fn mirrors(forward: &Forward, of: &Snapshot) -> Option<String> {
    let mirrors = forward.mirrors.iter().map(|Mirror { service, share, body_max_bytes }| {
        let (name, max) = (&of.service(*service).name, show_size(u64::from(*body_max_bytes)));
        format!("{name} (share {share}, bodies up to {max})")
    });
    let mirrors: Vec<_> = mirrors.collect();
    (!mirrors.is_empty()).then(|| mirrors.join(", "))
}

fn action(action: &Action, of: &Snapshot) -> String {
    match action {
        Action::Forward(forward) => format!("service {}", branches(forward, of)),
        Action::Deny(denial) => format!("deny {}", denial.status),
        Action::Respond(Respond::Ready(services)) if services.is_empty() => {
            "respond ready".to_owned()
        }
        Action::Respond(Respond::Ready(services)) => {
            let names: Vec<&str> = services.iter().map(|id| &*of.service(*id).name).collect();
            format!("respond ready for {}", names.join(", "))
        }
        Action::Respond(Respond::Fixed { status, content }) => {
            let media_type = content.media_type.as_deref().unwrap_or("no content");
            format!("respond {status}, {media_type}")
        }
        Action::Redirect(Redirect { status, scheme, host, port, path }) => {
            let mut parts = vec![format!("redirect {status}")];
            parts.extend(scheme.clone());
            parts.extend(host.clone());
            parts.extend(port.map(|port| format!("port {port}")));
            parts.extend(path.as_ref().map(ToString::to_string));
            parts.join(" ")
        }
    }
}

/// Returns the changes to fields that each branch of a split has besides the route's.
fn own_changes(forward: &Forward) -> Vec<Option<&MessageChanges>> {
    forward.to.iter().map(|to| to.fields.as_ref().map(|fields| &fields.own)).collect()
}

fn branches(forward: &Forward, of: &Snapshot) -> String {
    let target = |branch: &Split| match branch.to {
        SplitTarget::Service(id) => of.service(id).name.to_string(),
        SplitTarget::Deny(denial) => format!("deny {}", denial.status),
    };
    match forward.to.as_slice() {
        [only] => target(only),
        several => {
            let share = |branch: &Split| format!("{} {}", target(branch), branch.weight);
            several.iter().map(share).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Names are shown, values are not: they may be secrets.
fn field_changes(key: &str, old: &FieldChanges, new: &FieldChanges, words: &mut Words) {
    if old == new {
        return;
    }
    let FieldChanges { remove, set, add } = old;
    words.value(&format!("{key}.remove"), remove, &new.remove, |names| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    });
    words.hidden(&format!("{key}.set"), set, &new.set);
    words.hidden(&format!("{key}.add"), add, &new.add);
}

fn compression(filters: &[ResponseFilter]) -> String {
    let shown = filters.iter().map(|ResponseFilter::Compress(rules)| {
        let Compression { codings, types, length_min_bytes } = rules;
        let codings: Vec<_> = codings.iter().map(ContentCoding::as_str).collect();
        let types: Vec<_> = types.iter().map(ToString::to_string).collect();
        let from = show_size(*length_min_bytes);
        format!("{} of {} from {from}", codings.join(", "), types.join(", "))
    });
    or(shown.reduce(|before, next| format!("{before}; {next}")), "off")
}

fn cors(rules: &Cors) -> String {
    let Cors { origins, methods, headers, expose, credentials, max_age } = rules;
    let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
    let mut parts = vec![origins.join(", ")];
    for (list, what) in [(methods, "methods"), (headers, "headers"), (expose, "exposed")] {
        parts.extend((!list.is_empty()).then(|| format!("{what} {list}")));
    }
    parts.extend(credentials.then(|| "with credentials".to_owned()));
    parts.extend(max_age.map(|age| format!("remembered for {}", show_duration(age))));
    parts.join("; ")
}

fn limit(limit: &RateLimit) -> String {
    let RateLimit { name, by, scope, requests, per, burst, wait_max, is_announced } = limit;
    let (per, wait) = (show_duration(*per), show_duration(*wait_max));
    let fields = if *is_announced { ", in response fields" } else { "" };
    let over = match scope {
        LimitScope::Balancer => "",
        LimitScope::Fleet => " over the fleet",
    };
    format!(
        "{name}: {requests} per {per} by {by}{over}, {burst} at once, others wait {wait} at most{fields}"
    )
}

/// The empty prefix is displayed as a slash.
fn slash(path: &str) -> String {
    if path.is_empty() { "/".to_owned() } else { path.to_owned() }
}

//! Routes as a table: what each matches and what it does.

use std::fmt::Write as _;

use model::{
    Action, Content, ContentCoding, Cors, FieldChanges, Forward, HostPattern, LimitScope,
    PathMatch, RateLimit, Respond, ResponseFilter, Route, RouteAffinity, RouteRetries,
    RouteTimeouts, SessionCarrier, Snapshot, Split, SplitTarget,
    units::{show_duration, show_size},
};

use super::columns::Columns;

pub(super) fn table(snapshot: &Snapshot) -> String {
    if snapshot.routes.is_empty() {
        return "none: every HTTP request is answered 404\n".to_owned();
    }
    let mut columns = Columns::headed(["#", "LISTENER", "HOST", "PATH", "AND", "THEN"]);
    for (index, route) in snapshot.routes.iter().enumerate() {
        let mut then: Vec<_> =
            route.maintenance.iter().map(|_| "in maintenance".to_owned()).collect();
        then.extend(action(&route.action, snapshot));
        then.extend(route.rate_limits().map(limit));
        then.extend(route.cors().map(cors));
        let required = route.authentication().map(|id| snapshot.authentication(id));
        then.extend(required.map(|required| format!("only with {required}")));
        then.extend(error_pages(route));
        columns.tall_row([
            vec![(index + 1).to_string()],
            listeners(route, snapshot),
            vec![host(route.matches.host.as_ref())],
            vec![path(&route.matches.path)],
            conditions(route),
            then,
        ]);
    }
    columns.text()
}

/// Empty where it holds for all, so that the column goes if it holds for all everywhere.
fn listeners(route: &Route, snapshot: &Snapshot) -> Vec<String> {
    let known =
        route.matches.listeners.iter().filter_map(|id| snapshot.listeners.get(id.0 as usize));
    known.map(|listener| listener.name.to_string()).collect()
}

fn host(host: Option<&HostPattern>) -> String {
    match host {
        None => "any".to_owned(),
        Some(host) => host.to_string(),
    }
}

fn path(path: &PathMatch) -> String {
    match path {
        PathMatch::Exact(path) => format!("= {path}"),
        PathMatch::Prefix(prefix) if prefix.is_empty() => "any".to_owned(),
        PathMatch::Prefix(prefix) => format!("{prefix} and below"),
    }
}

fn conditions(route: &Route) -> Vec<String> {
    let mut parts: Vec<String> = route.matches.method.iter().cloned().collect();
    let fields = route.matches.fields.iter();
    parts.extend(fields.map(|field| format!("{}: {}", field.name, field.value.shown())));
    let query = route.matches.query.iter();
    parts.extend(query.map(|query| format!("?{}={}", query.name, query.value.shown())));
    parts.extend(route.matches.conditions.iter().map(ToString::to_string));
    parts
}

/// What is done, then what is changed on the way.
fn action(action: &Action, snapshot: &Snapshot) -> Vec<String> {
    match action {
        Action::Deny(denial) => vec![format!("answer {}", denial.status)],
        Action::Respond(Respond::Fixed { status, content }) => {
            let Content { media_type, fields: _, body } = &**content;
            let what = media_type
                .as_ref()
                .map(|media_type| format!("{} of {media_type}", show_size(body.len() as u64)));
            vec![format!("answer {status}"), what.unwrap_or_else(|| "no content".to_owned())]
        }
        Action::Respond(Respond::Ready(services)) => {
            let names: Vec<&str> = services.iter().map(|id| &*snapshot.service(*id).name).collect();
            match names.as_slice() {
                [] => vec!["answer whether Weir takes work".to_owned()],
                names => {
                    vec![format!("answer whether Weir takes work and {} can", names.join(", "))]
                }
            }
        }
        Action::Redirect(redirect) => {
            let mut to: Vec<String> = Vec::new();
            to.extend(redirect.scheme.as_ref().map(|scheme| format!("scheme {scheme}")));
            to.extend(redirect.host.as_ref().map(|host| format!("host {host}")));
            to.extend(redirect.port.map(|port| format!("port {port}")));
            to.extend(redirect.path.as_ref().map(|path| format!("path {path}")));
            vec![format!("redirect {} to {}", redirect.status, to.join(", "))]
        }
        Action::Forward(forward) => {
            let mut parts = vec![branches(forward, snapshot)];
            let rewrite = &forward.rewrite;
            parts.extend(rewrite.path.as_ref().map(|path| format!("path becomes {path}")));
            parts.extend(rewrite.host.as_ref().map(|host| format!("Host becomes {host}")));
            parts.extend(changes("request", &forward.fields.request));
            parts.extend(forward.mirrors.iter().map(|mirror| {
                let (name, share) = (&snapshot.service(mirror.service).name, mirror.share * 100.0);
                format!("{}% copied to {name}", super::plan::rate(share))
            }));
            parts.extend(forward.filters.iter().map(|ResponseFilter::Compress(rules)| {
                let codings: Vec<_> = rules.codings.iter().map(ContentCoding::as_str).collect();
                format!("compressed by {}", codings.join(", "))
            }));
            parts.extend(changes("response", &forward.fields.response));
            let RouteTimeouts { total, attempt } = forward.timeouts;
            parts.extend(total.map(|total| match show_duration(total) {
                _ if total.is_zero() => "without a total timeout".to_owned(),
                total => format!("within {total}"),
            }));
            parts.extend(attempt.map(|max| format!("attempts within {}", show_duration(max))));
            parts.extend(retries(&forward.retries));
            parts.extend(forward.affinity.as_deref().map(affinity));
            parts
        }
    }
}

/// What a route says about retries, in place of its service.
fn retries(of_route: &RouteRetries) -> Option<String> {
    let RouteRetries { attempts_max, statuses, backoff } = of_route;
    let parts: Vec<_> = [
        attempts_max.map(|max| format!("at most {max}")),
        statuses.as_ref().map(|set| match set.0.as_slice() {
            [] => "no status".to_owned(),
            _ => format!("status {set}"),
        }),
        backoff.map(|time| format!("after {}", show_duration(time))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("retries: {}", parts.join(", ")))
}

/// What carries the sessions of a route, and when they end.
fn affinity(of: &RouteAffinity) -> String {
    let RouteAffinity { carrier, scope: _, lifetime_max, idle_max, key_file: _ } = of;
    let carrier = match carrier {
        SessionCarrier::Cookie { name, is_permanent: false } => format!("cookie {name}"),
        SessionCarrier::Cookie { name, is_permanent: true } => format!("permanent cookie {name}"),
        SessionCarrier::Field(name) => format!("header {name}"),
    };
    let lifetime = lifetime_max.map(|max| format!(", for {}", show_duration(max)));
    let idle = idle_max.map(|max| format!(", until unused for {}", show_duration(max)));
    format!(
        "bound to a server by {carrier}{}{}",
        lifetime.unwrap_or_default(),
        idle.unwrap_or_default()
    )
}

/// What each branch of a split does, with its share, and its own changes to fields in brackets.
fn branches(forward: &Forward, snapshot: &Snapshot) -> String {
    let target = |branch: &Split| {
        let mut text = match branch.to {
            SplitTarget::Service(id) => snapshot.service(id).name.to_string(),
            SplitTarget::Deny(denial) => format!("answer {}", denial.status),
        };
        // Writing to a String cannot fail.
        if forward.to.len() > 1 {
            let sum: f64 = forward.to.iter().map(|branch| f64::from(branch.weight)).sum();
            let percent = super::plan::rate(f64::from(branch.weight) / sum * 100.0);
            _ = write!(text, " {percent}%");
        }
        if let Some(fields) = &branch.fields {
            let own = &fields.own;
            let own = [changes("request", &own.request), changes("response", &own.response)];
            let own: Vec<_> = own.into_iter().flatten().collect();
            _ = write!(text, " ({})", own.join(", "));
        }
        text
    };
    forward.to.iter().map(target).collect::<Vec<_>>().join(", ")
}

/// `-removed =set +added`.
fn changes(of: &str, changes: &FieldChanges) -> Option<String> {
    let mut signs: Vec<_> = changes.remove.iter().map(|name| format!("-{name}")).collect();
    signs.extend(changes.set.iter().map(|(name, _)| format!("={name}")));
    signs.extend(changes.add.iter().map(|(name, _)| format!("+{name}")));
    signs.dedup();
    (!signs.is_empty()).then(|| format!("{of} fields {}", signs.join(" ")))
}

fn error_pages(route: &Route) -> Option<String> {
    let number = route.error_pages.len();
    let pages = if number == 1 { "error page" } else { "error pages" };
    (number > 0).then(|| format!("{number} {pages}"))
}

fn cors(rules: &Cors) -> String {
    let origins: Vec<_> = rules.origins.iter().map(ToString::to_string).collect();
    let credentials = if rules.credentials { ", with credentials" } else { "" };
    format!("for pages of {}{credentials}", origins.join(", "))
}

fn limit(limit: &RateLimit) -> String {
    let burst = if limit.burst == limit.requests {
        String::new()
    } else {
        format!(", {} at once", limit.burst)
    };
    let wait = if limit.wait_max.is_zero() {
        String::new()
    } else {
        format!(", others wait up to {}", show_duration(limit.wait_max))
    };
    let per = show_duration(limit.per);
    let over = match limit.scope {
        LimitScope::Balancer => "",
        LimitScope::Fleet => " over the fleet",
    };
    format!("at most {} per {per} and {}{over}{burst}{wait}", limit.requests, limit.by)
}

//! The answer of `weir explain route` as text.

use std::fmt::Write as _;

use admin_api::routes::{
    ConsideredRoute, ExplainedAnswer, ExplainedRequest, ExplainedRoute, ExplainedServer,
    RouteAction, RouteExplanation, RouteService, ServerOutcome,
};
use model::visible;

/// The longest line, in bytes.
const LINE_MAX_BYTES: usize = 4096;

/// Returns an explanation for people, in lines of mostly less than 120 columns.
pub(crate) fn text(explanation: &RouteExplanation) -> String {
    let mut out = String::new();
    head(explanation, &mut out);
    match &explanation.route {
        Some(route) => of_route(route, &mut out),
        None => nearest(&explanation.considered, &mut out),
    }
    if let Some(server) = &explanation.server {
        of_server(server, &mut out);
    }
    if let Some(answer) = &explanation.answer {
        of_answer(answer, &mut out);
    }
    others(explanation, &mut out);
    if !explanation.notes.is_empty() {
        heading(&mut out, "Notes");
        for note in &explanation.notes {
            line(&mut out, "", note);
        }
    }
    out
}

/// Adds a line. All texts go through here or [`lines`], [`heading`]: none of a configuration, of
/// discovery or of the request may control the terminal.
fn line(out: &mut String, label: &str, text: &str) {
    let text = visible(text, LINE_MAX_BYTES);
    // Writing to a String cannot fail.
    _ = if label.is_empty() {
        writeln!(out, "  {text}")
    } else {
        writeln!(out, "  {label:9}{text}")
    };
}

/// Adds a label before the first of several lines.
fn lines<'a>(out: &mut String, label: &str, texts: impl IntoIterator<Item = &'a str>) {
    for (number, text) in texts.into_iter().enumerate() {
        let text = visible(text, LINE_MAX_BYTES);
        _ = writeln!(out, "  {:9}{text}", if number == 0 { label } else { "" });
    }
}

/// Adds the first line of a section.
fn heading(out: &mut String, text: &str) {
    _ = writeln!(out, "\n{}", visible(text, LINE_MAX_BYTES));
}

fn head(explanation: &RouteExplanation, out: &mut String) {
    let ExplainedRequest { method, host, path, query, client } = &explanation.request;
    let query = query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    let request = format!("{method} {host}{path}{query}");
    _ = writeln!(out, "{}", visible(&request, LINE_MAX_BYTES));
    let listener = &explanation.listener;
    let on = format!("{} ({}): {}", listener.name, listener.address, listener.why);
    line(out, "listener", &on);
    if !listener.others.is_empty() {
        let others = listener.others.join(", ");
        line(out, "", &format!("         others that fit: {others} (--listener NAME)"));
    }
    if let Some(client) = client {
        line(out, "client", client);
    }
}

/// `3 "name", weir.toml:12`.
fn named(number: usize, name: &str, written_at: Option<&String>) -> String {
    let place = written_at.map(|place| format!(", {place}"));
    format!("{number} \"{name}\"{}", place.unwrap_or_default())
}

fn of_route(route: &ExplainedRoute, out: &mut String) {
    let named = named(route.number, &route.name, route.written_at.as_ref());
    heading(out, &format!("Route {named}"));
    lines(out, "matches", route.conditions.iter().map(String::as_str));
    line(out, "why", &route.why);
    line(out, "does", &action(route));
    if route.maintenance {
        line(out, "", "         but it is in maintenance");
    }
    if !route.mirrors.is_empty() {
        line(out, "copies", &format!("to {}", route.mirrors.join(", ")));
    }
    if let Some(name) = &route.authentication {
        line(out, "requires", &format!("authentication {name}"));
    }
    if !route.rate_limits.is_empty() {
        line(out, "limits", &format!("rate limit {}", route.rate_limits.join(", ")));
    }
}

fn action(route: &ExplainedRoute) -> String {
    let status = route.status.map(|status| format!(" with {status}")).unwrap_or_default();
    match route.action.known() {
        Some(RouteAction::Forward) => format!("forwards to {}", services(&route.services)),
        Some(RouteAction::Redirect) => format!("redirects{status}"),
        Some(RouteAction::Deny) => format!("refuses{status}"),
        Some(RouteAction::Respond) => format!("answers itself{status}"),
        None => route.action.as_str().to_owned(),
    }
}

fn services(services: &[RouteService]) -> String {
    let name = |one: &RouteService| match one.status {
        Some(status) => format!("a refusal with {status}"),
        None => one.name.clone(),
    };
    if let [only] = services {
        return name(only);
    }
    let sum: f64 = services.iter().map(|one| f64::from(one.weight)).sum();
    let shares = services.iter().map(|one| {
        let percent = f64::from(one.weight) / sum.max(1.0) * 100.0;
        format!("{} ({percent:.3}%)", name(one)).replace(".000%", "%")
    });
    shares.collect::<Vec<_>>().join(", ")
}

fn of_server(server: &ExplainedServer, out: &mut String) {
    let service = &server.service;
    let what = match (server.outcome.known(), &server.address) {
        (Some(ServerOutcome::Server), Some(address)) => {
            let name = server.name.as_ref().filter(|name| *name != address);
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            let example = if server.example { ", for example" } else { "" };
            format!("{address}{name} of service {service}{example}")
        }
        (Some(ServerOutcome::Waits), _) => format!("none yet, of service {service}"),
        _ => format!("none, of service {service}"),
    };
    heading(out, &format!("Server {what}"));
    line(out, "why", &server.why);
    let width = server.servers.iter().map(|one| one.address.len()).max().unwrap_or_default();
    let rows = server.servers.iter().map(|one| {
        let why = one.why.as_str().replace('_', " ");
        format!("{:width$}  {why}, {} in flight", one.address, one.in_flight)
    });
    let mut rows: Vec<String> = rows.collect();
    if server.not_listed > 0 {
        rows.push(format!("and {} more", server.not_listed));
    }
    lines(out, "servers", rows.iter().map(String::as_str));
}

fn of_answer(answer: &ExplainedAnswer, out: &mut String) {
    let status = answer.status.map(|status| format!(" {status}")).unwrap_or_default();
    heading(out, &format!("Answer{status}"));
    line(out, "why", &answer.why);
    line(out, "cause", &format!("{cause} (`weir explain {cause}`)", cause = answer.cause));
}

fn nearest(considered: &[ConsideredRoute], out: &mut String) {
    heading(out, "No route matches");
    if let Some(nearest) = considered.iter().find(|one| one.nearest) {
        let named = named(nearest.number, &nearest.name, nearest.written_at.as_ref());
        line(out, "nearest", &format!("route {named}"));
        line(out, "", &format!("         {}", nearest.why));
    }
}

fn others(explanation: &RouteExplanation, out: &mut String) {
    if explanation.considered.is_empty() {
        return;
    }
    heading(out, "Other routes, in the order in which they are tried");
    for other in &explanation.considered {
        line(out, "", &named(other.number, &other.name, other.written_at.as_ref()));
        line(out, "", &format!("   {}", other.why));
    }
    if explanation.not_listed > 0 {
        line(out, "", &format!("and {} more that are not listed", explanation.not_listed));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(explanation: serde_json::Value) -> String {
        text(&serde_json::from_value(explanation).unwrap())
    }

    #[test]
    fn an_explanation_line_by_line() {
        let explanation = json!({
            "listener": { "name": "public", "address": "0.0.0.0:443", "why": "it listens on port 443 with TLS" },
            "request": { "method": "GET", "host": "www.example.com", "path": "/listings\u{1b}" },
            "route": {
                "number": 2, "name": "listings", "written_at": "weir.toml:12",
                "conditions": ["host www.example.com", "path /listings and below"],
                "why": "all of its conditions hold", "action": "forward",
                "services": [{ "name": "app", "weight": 2 }, { "name": "new", "weight": 1 }],
            },
            "server": {
                "service": "app", "outcome": "server", "name": "app.internal:80", "address": "10.0.0.1:80",
                "example": true, "why": "chosen at random",
                "servers": [{ "address": "10.0.0.1:80", "why": "chosen" },
                            { "address": "10.0.0.22:80", "why": "not_drawn", "in_flight": 3 }],
            },
            "considered": [{ "number": 1, "name": "beta", "why": "header x-beta is absent" }],
            "notes": ["a note"],
        });
        assert_eq!(
            shown(explanation),
            "\
GET www.example.com/listings\\x1b
  listener public (0.0.0.0:443): it listens on port 443 with TLS

Route 2 \"listings\", weir.toml:12
  matches  host www.example.com
           path /listings and below
  why      all of its conditions hold
  does     forwards to app (66.667%), new (33.333%)

Server 10.0.0.1:80 (app.internal:80) of service app, for example
  why      chosen at random
  servers  10.0.0.1:80   chosen, 0 in flight
           10.0.0.22:80  not drawn, 3 in flight

Other routes, in the order in which they are tried
  1 \"beta\"
     header x-beta is absent

Notes
  a note
"
        );
    }

    #[test]
    fn no_text_controls_the_terminal() {
        let bad = "a\u{1b}[2J\r\nb\u{9b}";
        let said = shown(json!({
            "listener": { "name": bad, "address": bad, "why": bad, "others": [bad] },
            "request": { "method": bad, "host": bad, "path": bad, "query": bad, "client": bad },
            "route": {
                "number": 1, "name": bad, "written_at": bad, "conditions": [bad], "why": bad,
                "action": "forward", "services": [{ "name": bad, "weight": 1 }], "mirrors": [bad],
                "authentication": bad, "rate_limits": [bad],
            },
            "server": {
                "service": bad, "outcome": "server", "name": bad, "address": bad, "why": bad,
                "servers": [{ "address": bad, "why": bad }],
            },
            "answer": { "cause": bad, "why": bad },
            "considered": [{ "number": 2, "name": bad, "written_at": bad, "why": bad }],
            "notes": [bad],
        }));
        let is_safe = |character: char| character == '\n' || !character.is_control();
        assert!(said.chars().all(is_safe), "{said:?}");
        assert!(said.lines().all(|line| !line.starts_with('b')), "{said}");
    }

    #[test]
    fn without_a_route_the_nearest_is_named() {
        let said = shown(json!({
            "answer": { "status": 404, "cause": "destination_not_found", "why": "no route matches" },
            "considered": [{ "number": 1, "name": "a", "why": "host x is not y", "nearest": true }],
        }));
        assert!(
            said.contains(
                "No route matches\n  nearest  route 1 \"a\"\n           host x is not y\n"
            ),
            "{said}"
        );
        assert!(said.contains("Answer 404\n"), "{said}");
    }
}

//! What several files, defaults and substituted values amount to.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod files;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use config::{Checked, Surroundings as _};
use model::{Action, Respond, Snapshot};

fn snapshot(text: &str) -> Snapshot {
    match config::check(text, "test.toml", files::made()) {
        Ok(checked) => checked.snapshot,
        Err(report) => panic!("{}", report.render(false)),
    }
}

#[test]
fn included_tables_are_as_good_as_those_of_the_file_itself() {
    let apart = "[[route]]\npath = \"/accounts\"\nservice = \"accounts\"\n\
        [service.accounts]\ntls = { ca = \"ca.pem\" }\nserver = [{ address = \"10.0.0.1:443\" }]\n\
        [service.listings]\nserver = [{ address = \"10.0.0.2:80\" }]\n";
    let main = "[[listener]]\naddress = \"0.0.0.0:8080\"\n[[route]]\nservice = \"listings\"\n";
    let together = snapshot(&format!("{main}{apart}"));
    let include = |paths: &str| snapshot(&format!("include = [{paths}]\n{main}"));
    let by_pattern = include("\"include/*.toml\"");
    let turned = include("\"include/listings.toml\", \"include/accounts.toml\"");
    assert_eq!(by_pattern.routes, together.routes);
    assert_eq!(turned, by_pattern, "the order of files does not matter");
    let names = |snapshot: &Snapshot| -> Vec<_> {
        snapshot.services.iter().map(|service| service.name.clone()).collect()
    };
    assert_eq!(names(&by_pattern), names(&together));
    let tls = by_pattern.services[0].tls.as_ref().unwrap();
    assert_eq!(tls.ca.path.to_str(), Some("include/../ca.pem"), "relative to the included file");
}

#[test]
fn a_default_applies_to_tables_that_do_not_have_the_key() {
    let snapshot = snapshot(
        r#"
        include = ["include/listings.toml"]
        listener = [{ address = "0.0.0.0:80" }, { address = "0.0.0.0:81", timeouts = { head = "9s" } }]
        [defaults]
        listener = { timeouts = { idle = "7s" }, protocol = "http" }
        route = { compress = true, maintenance = true }
        service = { slow_start = "3s", check = { path = "/status" } }
        [[route]]
        service = "own"
        [[route]]
        path = "/listings"
        maintenance = false
        service = "listings"
        [[route]]
        path = "/old"
        redirect = { path = "/" }
        [service.own]
        slow_start = "5s"
        server = [{ address = "10.0.0.1:80" }]
        "#,
    );
    let [first, second] = &snapshot.listeners[..] else { panic!() };
    assert_eq!(first.timeouts.idle, Duration::from_secs(7));
    assert_eq!(second.timeouts.head, Duration::from_secs(9));
    assert_ne!(second.timeouts.idle, Duration::from_secs(7), "the whole value is replaced");
    let service = |name: &str| {
        let service = snapshot.services.iter().find(|service| &*service.name == name).unwrap();
        assert!(service.check.is_some());
        service.slow_start.unwrap().as_secs()
    };
    assert_eq!((service("own"), service("listings")), (5, 3), "in an included file too");
    let route = |name: &str| snapshot.routes.iter().find(|route| &*route.name == name).unwrap();
    let is_compressed = |name: &str| match &route(name).action {
        Action::Forward(forward) => !forward.filters.is_empty(),
        _ => false,
    };
    assert!(is_compressed("*/") && is_compressed("*/listings"));
    assert!(route("*/").maintenance.is_some() && route("*/listings").maintenance.is_none());
    assert!(matches!(route("*/old").action, Action::Redirect(_)));
}

#[test]
fn tls_by_default_is_not_for_listeners_that_pass_it_through() {
    let snapshot = snapshot(
        r#"
        [defaults.listener]
        tls = { certificates = [{ chain = "a.pem", key = "a.key" }] }
        [[listener]]
        address = "0.0.0.0:443"
        [[listener]]
        address = "0.0.0.0:444"
        protocol = "tcp"
        server_names = { "a.example.com" = "own" }
        [[route]]
        service = "own"
        [service.own]
        server = [{ address = "10.0.0.1:443" }]
        "#,
    );
    let has_tls: Vec<_> = snapshot.listeners.iter().map(|one| one.tls.is_some()).collect();
    assert_eq!(has_tls, [true, false]);
}

#[test]
fn what_has_no_default_is_reported_once() {
    let text = "[defaults.listener]\naddress = \"x\"\n[[listener]]\naddress = \"0.0.0.0:80\"\n\
        [[route]]\ndeny = 403\n";
    let report = config::check(text, "test.toml", files::made()).unwrap_err();
    let titles: Vec<_> = report.found.iter().map(|found| &*found.title).collect();
    assert_eq!(titles, ["\"address\" has no default"]);
}

/// Of `token`.
const SECRET: &str = "hunter2-hunter2";

#[test]
fn what_is_substituted_is_only_a_value() {
    let text = include_str!("cases/substitute.toml");
    let snapshot = snapshot(text);
    assert_eq!(snapshot.zone.as_deref(), Some("eu-west-1a"));
    assert_eq!(snapshot.listeners[0].address.port(), Some(8080));
    let names: Vec<_> = snapshot.services.iter().map(|service| &*service.name).collect();
    assert_eq!(names, ["app", "b"], "a value adds no service");
    let bearer = format!("Bearer {SECRET}");
    let forward = snapshot.routes.iter().find_map(|route| match &route.action {
        Action::Forward(forward) => Some((route, forward)),
        _ => None,
    });
    let (route, forward) = forward.unwrap();
    let set: Vec<_> =
        forward.fields.request.set.iter().map(|(name, value)| (&**name, &**value)).collect();
    let odd = "\"] } [service.c] ${ZONE} ${file:token}";
    assert_eq!(set, [("authorization", &*bearer), ("x-odd", odd)]);
    assert_eq!(&*route.matches.fields[0].value, SECRET, "without the line break");
    let respond = snapshot.routes.iter().find_map(|route| match &route.action {
        Action::Respond(Respond::Fixed { content, .. }) => Some((route, content)),
        _ => None,
    });
    let (route, content) = respond.unwrap();
    assert_eq!(&*content.body, b"hunter2\nhunter3${NAME}$${NAME}");
    assert_eq!(route.matches.conditions[0].to_string(), "path ~ ^a${1}|$$b[}]");
}

#[test]
fn a_secret_is_in_no_text_about_a_configuration() {
    let snapshot = snapshot(include_str!("cases/substitute.toml"));
    let shown = format!("{snapshot:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    for route in &snapshot.routes {
        assert!(!route.name.contains("hunter2"), "{}", route.name);
    }
    let text = include_str!("cases/substitute-slips.toml").replace("hunter2", "literal");
    let report = config::check(&text, "test.toml", files::made()).unwrap_err();
    let shown = format!("{report:?} {}", report.render(false));
    assert!(!shown.contains("hunter2") && !shown.contains("hunter3"), "{shown}");
}

/// A secret in place of each text in turn: whatever the message says, it is not the secret.
#[test]
fn no_message_quotes_a_secret() {
    let full = include_str!("cases/full.toml");
    let mut refused = 0;
    for (at, _) in full.match_indices('"') {
        let Some(length) = full[at + 1..].find(['"', '\n']) else { continue };
        for secret in ["${file:token}", "a${file:control}/"] {
            let text = format!("{}{secret}{}", &full[..=at], &full[at + 1 + length..]);
            let found = config::check(&text, "test.toml", files::made());
            let (Ok(Checked { report, .. }) | Err(report)) = &found;
            refused += usize::from(found.is_err());
            let shown = format!("{:?} {}", report.found, report.render(false));
            assert!(!shown.contains("hunter"), "{shown}");
            if let Ok(checked) = &found {
                let shown = format!("{:?}", checked.snapshot);
                assert!(!shown.contains("hunter"), "{shown}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn what_is_substituted_is_bounded() {
    let values = "\"${file:large}\", ".repeat(300);
    let text = format!(
        "[[listener]]\naddress = \"0.0.0.0:80\"\n[[route]]\nservice = \"a\"\n\
         request_header = {{ add = {{ x = [{values}] }} }}\n\
         [service.a]\nserver = [{{ address = \"10.0.0.1:80\" }}]\n"
    );
    let report = config::check(&text, "test.toml", files::made()).unwrap_err();
    let titles: Vec<_> = report.found.iter().map(|found| &*found.title).collect();
    assert_eq!(titles, ["more than 16 MB are substituted in all"]);
}

#[test]
fn the_text_alone_is_checked_without_variables_and_secrets() {
    let text = include_str!("cases/substitute.toml").replace("${FOLDER}", "substitute");
    let report = config::check_text(&text, "test.toml", files::made()).unwrap();
    assert!(report.found.is_empty(), "{}", report.render(false));
    let text = text.replace("slow_start =", "slowstart =");
    let report = config::check_text(&text, "test.toml", files::made()).unwrap_err();
    assert_eq!(report.found.len(), 1, "{}", report.render(false));
}

#[test]
fn routes_that_differ_in_secrets_have_different_names() {
    let route = |secret: &str| {
        format!("[[route]]\nheader = {{ X-Key = \"${{file:{secret}}}\" }}\ndeny = 403\n")
    };
    let listener = "[[listener]]\naddress = \"0.0.0.0:80\"\n";
    let names_of = |first: &str, second: &str| {
        let snapshot = snapshot(&format!("{listener}{}{}", route(first), route(second)));
        let name_of = |route: &std::sync::Arc<model::Route>| {
            (route.matches.fields[0].value.to_string(), route.name.to_string())
        };
        snapshot.routes.iter().map(name_of).collect::<HashMap<_, _>>()
    };
    let value = |file: &str| {
        let found = files::made().file(Path::new(file)).unwrap();
        String::from_utf8(found.material.bytes.to_vec()).unwrap().trim_end().to_owned()
    };
    // In order of the file, whatever the secrets are.
    for (first, second) in [("token", "other"), ("other", "token")] {
        let names = names_of(first, second);
        assert_eq!(names[&value(first)], "*/ x-key:(secret)");
        assert_eq!(names[&value(second)], "*/ x-key:(secret) #2");
    }
}

/// An unknown value in place of each text in turn, in a file without mistakes: as another value it may be
/// valid, so nothing else is wrong.
#[test]
fn an_unknown_value_makes_nothing_else_wrong() {
    let full = include_str!("cases/full.toml");
    let found = |text: &str| {
        let found = config::check_text(text, "test.toml", files::made());
        let (Ok(report) | Err(report)) = found;
        report.found.into_iter().map(|one| one.title).collect::<Vec<_>>()
    };
    let before = found(full);
    let mut unsubstituted = Vec::new();
    for place in values_in(full) {
        let text = format!("{}${{UNSET}}{}", &full[..place.start], &full[place.end..]);
        let what = format!("line {}, {}", full[..place.start].lines().count(), &full[place]);
        let after = found(&text);
        let new: Vec<_> = after.iter().filter(|title| !before.contains(title)).collect();
        assert!(new.is_empty(), "{what}: {new:?}");
        let named = config::check(&text, "test.toml", files::made());
        let (Ok(Checked { report, .. }) | Err(report)) = named;
        if !report.found.iter().any(|one| one.title.contains("UNSET")) {
            unsubstituted.push(what);
        }
    }
    assert!(unsubstituted.is_empty(), "{unsubstituted:#?}");
}

/// Returns where the texts of values are, of a file that has them on one line each and without escapes.
fn values_in(toml: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut start = 0;
    for line in toml.split_inclusive('\n') {
        let quotes: Vec<_> = line.match_indices('"').map(|(at, _)| start + at).collect();
        if !line.starts_with('#') {
            let between = quotes.chunks_exact(2).map(|pair| pair[0] + 1..pair[1]);
            places.extend(between.filter(|place| !toml[place.end + 1..].starts_with(" =")));
        }
        start += line.len();
    }
    places
}

//! Two texts, and what is said of the way from one to the other.

use super::*;

fn snapshot(text: &str) -> Snapshot {
    match crate::check(text, "test.toml", &()) {
        Ok(checked) => checked.snapshot,
        Err(found) => panic!("{}", crate::render(&found, text, "test.toml", false)),
    }
}

const BEFORE: &str = r#"
zone = "a"
drain_max = "30s"
[[listener]]
name = "public"
address = "0.0.0.0:8080"
timeouts = { idle = "60s" }
[[listener]]
name = "old"
address = "0.0.0.0:8081"
[[listener]]
name = "raw"
address = "0.0.0.0:8082"
protocol = "tcp"
service = "stays"
[[route]]
service = "app"
[[route]]
name = "images"
path = "/images"
service = "app"
[[route]]
path = "/gone"
deny = 410
[[route]]
listener = "public"
path = "/stays"
service = "stays"
request_header = { set = { X-Secret = "one" } }
[service.app]
in_flight_max = 4
check = { path = "/status" }
[[service.app.server]]
address = "10.0.0.1:80"
[[service.app.server]]
address = "10.0.0.2:80"
[service.stays]
[[service.stays.server]]
address = "10.0.0.3:80"
[service.gone]
[[service.gone.server]]
address = "10.0.0.4:80"
"#;

fn changed(name: &str, what: &[&str]) -> Changed {
    Changed { name: name.to_owned(), what: what.iter().map(|&word| word.to_owned()).collect() }
}

#[test]
fn nothing_changes_from_a_file_to_itself() {
    let (before, after) = (snapshot(BEFORE), snapshot(BEFORE));
    let found = diff(&before, &after);
    assert!(found.is_empty(), "{found:?}");
    assert_eq!((found.listeners.unchanged, found.routes.unchanged), (3, 4));
    assert_eq!((found.services.unchanged, found.servers.unchanged), (3, 4));
}

#[test]
fn ids_that_move_are_no_change() {
    // A listener and a service before all others.
    let text = BEFORE.replacen(
        "[[listener]]",
        "[[listener]]\nname = \"first\"\naddress = \"0.0.0.0:8000\"\n[[listener]]",
        1,
    ) + "[service.aaa]\n[[service.aaa.server]]\naddress = \"10.0.0.9:80\"\n";
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.listeners.added, ["first"]);
    assert_eq!(found.services.added, ["aaa"]);
    let changed = [&found.listeners, &found.routes, &found.services, &found.servers]
        .map(|changes| changes.changed.len());
    assert_eq!(changed, [0; 4], "{found:?}");
    assert!(found.settings.is_empty() && found.routes.is_empty());
}

#[test]
fn every_change_is_told_in_the_words_of_the_file() {
    let text = BEFORE
        .replace("drain_max = \"30s\"", "drain_max = \"1m\"")
        .replace("idle = \"60s\"", "idle = \"5s\", head = \"1s\"")
        .replace(
            "name = \"old\"\naddress = \"0.0.0.0:8081\"",
            "name = \"new\"\naddress = \"[::1]:81\"",
        )
        .replace(
            "path = \"/images\"\nservice = \"app\"",
            "path = \"/pictures\"\nservice = \"stays\"",
        )
        .replace("path = \"/gone\"", "path = \"/come\"")
        .replace("X-Secret = \"one\"", "X-Secret = \"two\"")
        .replace("in_flight_max = 4", "in_flight_max = 8\nbalance = \"random\"")
        .replace("path = \"/status\"", "path = \"/status\", interval = \"5s\", expect = 204")
        .replace("address = \"10.0.0.2:80\"", "address = \"10.0.0.2:80\"\nweight = 3")
        .replace("address = \"10.0.0.1:80\"", "address = \"10.0.0.5:80\"")
        .replace("service.gone", "service.come");
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.settings, ["drain_max: 30s → 1m"]);
    let Changes { added, removed, changed: listeners, unchanged } = found.listeners;
    assert_eq!((added, removed, unchanged), (vec!["new".into()], vec!["old".into()], 1));
    assert_eq!(
        listeners,
        [changed("public", &["timeouts.head: 10s → 1s", "timeouts.idle: 1m → 5s"])]
    );
    let Changes { added, removed, changed: routes, unchanged } = found.routes;
    assert_eq!((added, removed, unchanged), (vec!["*/come".into()], vec!["*/gone".into()], 1));
    assert_eq!(
        routes,
        [
            changed("*/stays on public", &["request_header.set changed"]),
            changed("images", &["path: /images → /pictures", "service: app → stays"]),
        ]
    );
    let Changes { added, removed, changed: services, unchanged } = found.services;
    assert_eq!((added, removed, unchanged), (vec!["come".into()], vec!["gone".into()], 1));
    assert_eq!(
        services,
        [changed(
            "app",
            &[
                "balance: round-robin → random",
                "in_flight_max: 4 → 8",
                "check.expect: 200-399 → 204",
                "check.interval: 2s → 5s",
            ]
        )]
    );
    let Changes { added, removed, changed: servers, unchanged } = found.servers;
    assert_eq!(added, ["app: 10.0.0.5:80"]);
    assert_eq!(removed, ["app: 10.0.0.1:80"]);
    assert_eq!(servers, [changed("app: 10.0.0.2:80", &["weight: 1 → 3"])]);
    assert_eq!(unchanged, 1);
}

#[test]
fn a_tcp_listener_names_its_service_and_a_route_what_becomes_of_it() {
    let text = BEFORE
        .replace("service = \"stays\"\n[[route]]", "service = \"app\"\n[[route]]")
        .replace("deny = 410", "redirect = { host = \"example.com\" }");
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.listeners.changed, [changed("raw", &["protocol: tcp to stays → tcp to app"])]);
    assert_eq!(
        found.routes.changed,
        [changed("*/gone", &["action: deny 410 → redirect 308 example.com"])]
    );
}

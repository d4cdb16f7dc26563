//! Every request reports how it ended: real failures, and the access log line, metric and answer that
//! each must produce.

mod situations;

use e2e::{NAMESPACES, Scene, run};
use situations::Table;

/// Causes that no situation here ends with, and why.
const NOT_MADE: &[(&str, &str)] = &[
    (
        "proxy_internal_error",
        "only a panic makes it, which no request is known to cause: made on real sockets in \
         `crates/proxy/src/isolate/tests.rs`, by an exchange that panics in the tests' build alone",
    ),
    ("listener_changed", "it needs a reload: made in `reload_security`"),
    ("misdirected_request", "it needs a certificate: made in `tls`"),
    (
        "proxy_configuration_error",
        "no file can demand it, only an object of Kubernetes: made in `kubernetes`",
    ),
    (
        "authentication_overloaded",
        "nine passwords of one client must wait at the same time, and keep a processor busy meanwhile: made \
         in `authentication`, by one worker",
    ),
    (
        "authentication_unavailable",
        "it needs an authentication server, which is a second service: made in `forward_auth`",
    ),
    (
        "authentication_timeout",
        "it needs an authentication server, which is a second service: made in `forward_auth`",
    ),
];

fn tables() -> [Table; 5] {
    [
        situations::on_loopback(),
        situations::stopping(),
        situations::in_zones(),
        situations::out_of_ports(),
        situations::unresolved(),
    ]
}

#[test]
fn what_goes_wrong_is_told() {
    let Some(scene) = Scene::new("causes", &[]) else {
        return;
    };
    situations::run(&scene, &situations::on_loopback());
}

#[test]
fn what_is_cut_off_by_a_stop_is_told() {
    let Some(scene) = Scene::new("causes-stop", &[]) else {
        return;
    };
    situations::run(&scene, &situations::stopping());
}

#[test]
fn what_a_network_does_is_told() {
    let Some(scene) = Scene::new("causes-network", &[NAMESPACES]) else {
        return;
    };
    situations::run(&scene, &situations::in_zones());
}

#[test]
fn a_machine_without_ports_is_told() {
    let Some(scene) = Scene::new("causes-ports", &[NAMESPACES]) else {
        return;
    };
    situations::run(&scene, &situations::out_of_ports());
}

#[test]
fn every_cause_is_made_or_it_is_said_why_not() {
    let Some(scene) = Scene::new("causes-all", &[]) else {
        return;
    };
    let listed = run(&scene, &["explain"]).stdout;
    // Two spaces, then the name; what `weir bench` says of itself comes last, and is no exchange's end.
    let of_exchanges = listed.lines().take_while(|line| !line.contains("weir bench"));
    let names = of_exchanges.filter_map(|line| line.strip_prefix("  "));
    let mut names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 40, "{listed}");
    let made = situations::causes(&tables());
    let strange = made.iter().filter(|name| !names.contains(name));
    assert_eq!(strange.count(), 0, "{made:?}");
    for (name, why) in NOT_MADE {
        assert!(!made.contains(name), "{name} is made after all");
        assert!(names.contains(name), "there is no {name}");
        println!("not made: {name}: {why}");
    }
    names.retain(|name| !made.contains(name) && !NOT_MADE.iter().any(|(known, _)| known == name));
    assert!(names.is_empty(), "no situation ends with {names:?}");
}

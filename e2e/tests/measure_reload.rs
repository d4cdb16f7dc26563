//! The effect of reloads and an upgrade on the latency of requests: `make measure`.

#[path = "scenarios/reload.rs"]
mod scenario;

use std::time::Duration;

use e2e::{Promises, Scene};
use scenario::{Clients, Measured};

const CLIENTS: Clients = Clients { connections: 200, pause: scenario::PACED, and_quiet: true };

#[test]
#[ignore = "takes two minutes: make measure"]
fn reloads_keep_the_99th_percentile() {
    let Some(scene) = Scene::alone("measure-reload", &["nginx", "wrk"]) else {
        return;
    };
    let measured = scenario::reloads(&scene, 100, Duration::from_mins(1), CLIENTS);
    p99_is_kept("100 reloads in a minute", &measured);
}

#[test]
#[ignore = "takes a minute: make measure"]
fn an_upgrade_keeps_the_99th_percentile() {
    let Some(scene) = Scene::alone("measure-upgrade", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, _, _successor) = scenario::upgrade(&scene, 30, CLIENTS);
    p99_is_kept("an upgrade", &measured);
}

/// Nothing is lost, and the 99th percentile is not above twice the quiet one. Only for a machine without
/// other work: on shared processors the quiet one alone varies fivefold from run to run.
fn p99_is_kept(what: &str, measured: &Measured) {
    println!("{measured:#?}");
    let mut promises = Promises::of("measure_reload");
    promises.at_most(&format!("{what}: requests lost"), measured.failed() as f64, 0.0, "");
    let quiet = measured.quiet.as_ref().expect("measured as well");
    let [busy, quiet] = [&measured.busy, quiet].map(|one| one.p99.as_secs_f64() * 1e3);
    promises.at_most(&format!("{what}: p99, beside twice the quiet one"), busy, quiet * 2.0, "ms");
    promises.hold();
}

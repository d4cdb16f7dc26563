//! Reloads and an upgrade under load, as many and as long as is promised: `make prove`.

#[path = "scenarios/reload.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes two minutes: make prove"]
fn a_hundred_reloads_in_a_minute_lose_nothing() {
    let Some(scene) = Scene::alone("prove-reload", &["nginx", "wrk"]) else {
        return;
    };
    let measured = scenario::reloads(&scene, 100, Duration::from_mins(1), 200);
    measured.assert_nothing_lost(true);
}

#[test]
#[ignore = "takes a minute: make prove"]
fn an_upgrade_loses_nothing() {
    let Some(scene) = Scene::alone("prove-upgrade", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, receipt, _heir) = scenario::upgrade(&scene, 30, 200);
    println!("{receipt:#}");
    measured.assert_nothing_lost(true);
}

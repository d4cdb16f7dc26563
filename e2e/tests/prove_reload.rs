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
    let measured = scenario::reloads(&scene, 100, Duration::from_mins(1), 200, scenario::PACED);
    measured.assert_nothing_lost();
}

#[test]
#[ignore = "takes a minute: make prove"]
fn reloads_flat_out_lose_nothing() {
    let Some(scene) = Scene::alone("prove-reload-flat-out", &["nginx", "wrk"]) else {
        return;
    };
    let measured = scenario::reloads(&scene, 50, Duration::from_secs(30), 200, scenario::FLAT_OUT);
    measured.assert_nothing_lost();
}

#[test]
#[ignore = "takes a minute: make prove"]
fn an_upgrade_loses_nothing() {
    let Some(scene) = Scene::alone("prove-upgrade", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, receipt, _heir) = scenario::upgrade(&scene, 30, 200, scenario::PACED);
    println!("{receipt:#}");
    measured.assert_nothing_lost();
}

#[test]
#[ignore = "takes a minute: make prove"]
fn an_upgrade_flat_out_loses_nothing() {
    let Some(scene) = Scene::alone("prove-upgrade-flat-out", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, _, _heir) = scenario::upgrade(&scene, 20, 200, scenario::FLAT_OUT);
    measured.assert_nothing_lost();
}

//! Reloads and upgrades under load lose nothing: `make prove`. `PROVE=long`: for two or three times as
//! long.

#[path = "scenarios/reload.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;
use scenario::Clients;

const PACED: Clients = Clients { connections: 200, pause: scenario::PACED, and_quiet: false };
const FLAT_OUT: Clients = Clients { pause: scenario::FLAT_OUT, ..PACED };

fn seconds(short: u32, long: u32) -> u32 {
    if e2e::is_long() { long } else { short }
}

#[test]
#[ignore = "takes half a minute: make prove"]
fn a_hundred_reloads_lose_nothing() {
    let Some(scene) = Scene::alone("prove-reload", &["nginx", "wrk"]) else {
        return;
    };
    // Three a second, with connections that are drained for up to four.
    let time = Duration::from_secs(seconds(33, 100).into());
    scenario::reloads(&scene, 100, time, PACED).assert_nothing_lost();
}

#[test]
#[ignore = "takes twenty seconds: make prove"]
fn reloads_flat_out_lose_nothing() {
    let Some(scene) = Scene::alone("prove-reload-flat-out", &["nginx", "wrk"]) else {
        return;
    };
    let time = Duration::from_secs(seconds(20, 60).into());
    scenario::reloads(&scene, 50, time, FLAT_OUT).assert_nothing_lost();
}

#[test]
#[ignore = "takes a quarter of a minute: make prove"]
fn an_upgrade_loses_nothing() {
    let Some(scene) = Scene::alone("prove-upgrade", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, receipt, _successor) = scenario::upgrade(&scene, seconds(15, 30), PACED);
    println!("{receipt:#}");
    measured.assert_nothing_lost();
}

#[test]
#[ignore = "takes a quarter of a minute: make prove"]
fn an_upgrade_flat_out_loses_nothing() {
    let Some(scene) = Scene::alone("prove-upgrade-flat-out", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, _, _successor) = scenario::upgrade(&scene, seconds(15, 30), FLAT_OUT);
    measured.assert_nothing_lost();
}

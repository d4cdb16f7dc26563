//! What reloads and an upgrade cost others in latency: `make measure`.

#[path = "scenarios/reload.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes two minutes: make measure"]
fn reloads_keep_the_99th_percentile() {
    let Some(scene) = Scene::alone("measure-reload", &["nginx", "wrk"]) else {
        return;
    };
    let measured = scenario::reloads(&scene, 100, Duration::from_mins(1), 200, scenario::PACED);
    measured.assert_p99_kept();
}

#[test]
#[ignore = "takes a minute: make measure"]
fn an_upgrade_keeps_the_99th_percentile() {
    let Some(scene) = Scene::alone("measure-upgrade", &["nginx", "wrk"]) else {
        return;
    };
    let (measured, _, _successor) = scenario::upgrade(&scene, 30, 200, scenario::PACED);
    measured.assert_p99_kept();
}

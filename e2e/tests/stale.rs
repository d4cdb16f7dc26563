//! Kept connections that the server closes while a POST is on its way: a short run.

#[path = "scenarios/stale.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
fn no_post_is_lost_to_a_connection_that_its_server_closed() {
    let Some(scene) = Scene::alone("stale", scenario::NEEDS) else {
        return;
    };
    let within = Duration::from_mins(1);
    let size = scenario::Size { requests: 2400, beside: 2400, wave: 400, within };
    let results = scenario::run(&scene, &size);
    // How often blind reuse fails in so short a time is chance, so that is only said.
    results.assert_nothing_lost();
}

//! Kept connections that the server closes while a POST is on its way, 100,000 times: `make prove`.

#[path = "scenarios/stale.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes six minutes: make prove"]
fn no_post_of_a_hundred_thousand_is_lost_where_blind_reuse_loses_some() {
    let Some(scene) = Scene::alone("prove-stale", scenario::NEEDS) else {
        return;
    };
    let within = Duration::from_mins(10);
    let size = scenario::Size { requests: 100_000, beside: 30_000, wave: 700, within };
    let results = scenario::run(&scene, &size);
    for blind in &results.blind {
        assert!(blind.failed() > 0, "the situation was not real: {blind:?}");
    }
    results.assert_nothing_lost();
}

//! Kept connections that the server closes while a POST is on its way, 15,000 times, or 100,000 times
//! with `PROVE=long`: `make prove`.

#[path = "scenarios/stale.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes a minute, or six: make prove"]
fn no_post_of_many_thousands_is_lost_where_blind_reuse_loses_some() {
    let Some(scene) = Scene::alone("prove-stale", scenario::NEEDS) else {
        return;
    };
    let within = Duration::from_mins(10);
    let (requests, beside) = if e2e::is_long() { (100_000, 30_000) } else { (15_000, 10_000) };
    let size = scenario::Size { requests, beside, wave: 700, within };
    let results = scenario::run(&scene, &size);
    for blind in &results.blind {
        assert!(blind.failed() > 0, "the situation was not real: {blind:?}");
    }
    results.assert_nothing_lost();
}

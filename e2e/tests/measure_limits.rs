//! How well the limits keep the slots in use, over a longer time: `make measure`.

#[path = "scenarios/limits.rs"]
mod scenario;

use std::time::Duration;

use e2e::{Promises, Scene};

#[test]
#[ignore = "takes a minute: make measure"]
fn slots_are_kept_busy_for_a_minute() {
    let Some(scene) = Scene::alone("measure-limits-busy", &["python3", "ab"]) else {
        return;
    };
    let share = scenario::busy_share(&scene, Duration::from_mins(1));
    let mut promises = Promises::of("measure_limits");
    promises.at_least("slots that are busy", share * 100.0, 98.0, "%");
    promises.hold();
}

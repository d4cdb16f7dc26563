//! The health-check storm over a minute: `make prove`.

#[path = "scenarios/probes.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes a minute: make prove"]
fn seventy_services_over_four_servers_probe_twice_a_second_for_a_minute() {
    let Some(scene) = Scene::alone("prove-storm", &["python3"]) else {
        return;
    };
    scenario::each_distinct_probe_runs_once(&scene, Duration::from_mins(1));
}

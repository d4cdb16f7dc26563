//! The health-check storm over half a minute, or a minute with `PROVE=long`: `make prove`.

#[path = "scenarios/probes.rs"]
mod scenario;

use std::time::Duration;

use e2e::Scene;

#[test]
#[ignore = "takes half a minute: make prove"]
fn seventy_services_over_four_servers_probe_twice_a_second() {
    let Some(scene) = Scene::alone("prove-storm", &["python3"]) else {
        return;
    };
    let time = Duration::from_secs(if e2e::is_long() { 60 } else { 30 });
    scenario::each_distinct_probe_runs_once(&scene, time);
}

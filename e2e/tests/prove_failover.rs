//! Failures under load, again and again: `make prove`.

#[path = "scenarios/failover.rs"]
mod scenario;

use e2e::{NAMESPACES, Scene};

#[test]
#[ignore = "takes half a minute: make prove"]
fn servers_are_killed_again_and_again() {
    let Some(scene) = Scene::alone("prove-kill", &["python3"]) else {
        return;
    };
    scenario::a_server_is_killed_and_returns(&scene, 9);
}

#[test]
#[ignore = "takes half a minute: make prove"]
fn a_zone_is_cut_off_again_and_again() {
    let Some(scene) = Scene::alone("prove-cut", &["python3", NAMESPACES]) else {
        return;
    };
    scenario::a_zone_is_cut_off_and_returns(&scene, 5);
}

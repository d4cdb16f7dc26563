//! Failures under load, again and again, about twice as often with `PROVE=long`: `make prove`.

#[path = "scenarios/failover.rs"]
mod scenario;

use e2e::{NAMESPACES, Scene};

#[test]
#[ignore = "takes a quarter of a minute: make prove"]
fn servers_are_killed_again_and_again() {
    let Some(scene) = Scene::alone("prove-kill", &["python3"]) else {
        return;
    };
    scenario::a_server_is_killed_and_returns(&scene, if e2e::is_long() { 9 } else { 5 });
}

#[test]
#[ignore = "takes a quarter of a minute: make prove"]
fn a_zone_is_cut_off_again_and_again() {
    let Some(scene) = Scene::alone("prove-cut", &["python3", NAMESPACES]) else {
        return;
    };
    scenario::a_zone_is_cut_off_and_returns(&scene, if e2e::is_long() { 5 } else { 3 });
}

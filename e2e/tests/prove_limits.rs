//! The limits over a longer time: `make prove`.

#[path = "scenarios/limits.rs"]
mod scenario;

use e2e::Scene;

#[test]
#[ignore = "takes half a minute: make prove"]
fn a_server_never_sees_more_than_its_limit_for_long() {
    let Some(scene) = Scene::alone("prove-limits-wrk", &["python3", "wrk"]) else {
        return;
    };
    let seen = scenario::never_more_than_the_limit(&scene, 30);
    println!("wrk -c 256 for 30 s: {seen:?}");
}

//! How long requests wait when a server or a zone is lost: `make measure`. That none is lost is held in
//! `failover.rs` and `prove_failover.rs`.

#[path = "scenarios/failover.rs"]
mod scenario;

use e2e::clients::Report;
use e2e::{NAMESPACES, Promises, Scene};

/// Beyond the detection.
const GRACE_MS: f64 = 1_000.0;

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn no_request_waits_longer_than_the_detection_of_a_killed_server() {
    let Some(scene) = Scene::alone("measure-kill", &["python3"]) else { return };
    judge("a killed server", &scenario::a_server_is_killed_and_returns(&scene, 3));
}

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn no_request_waits_longer_than_the_detection_of_a_lost_zone() {
    let Some(scene) = Scene::alone("measure-cut", &["python3", NAMESPACES]) else { return };
    judge("a lost zone", &scenario::a_zone_is_cut_off_and_returns(&scene, 3));
}

fn judge(what: &str, report: &Report) {
    let mut promises = Promises::of("measure_failover");
    let slowest = report.slowest().as_secs_f64() * 1e3;
    let most = scenario::DETECTION.as_secs_f64() * 1e3 + GRACE_MS;
    promises.at_most(&format!("{what}: the slowest request"), slowest, most, "ms");
    promises.hold();
}

//! How much of a server's limit members use together that share it, beside one balancer: `make measure`.

#[path = "fleet/slots.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod slots;
#[path = "fleet/stage.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod stage;

use e2e::{Promises, Scene, Zones};

use stage::{SERVERS, start_apps};

#[test]
#[ignore = "takes two minutes: make measure"]
fn a_limit_over_the_fleet_is_used_as_if_one_balancer_had_it() {
    let Some(scene) = Scene::alone("measure-fleet-slots", &["python3", "wrk"]) else { return };
    Zones::run(&[SERVERS], |zones| {
        let apps = start_apps(&scene, zones, 2, &["--work-ms", "50"]);
        let busy_share = |count, busy| {
            let members = slots::start(&scene, &apps, count);
            slots::busy_share(&scene, &apps, &members[..busy])
        };
        let alone = busy_share(1, 1);
        let mut promises = Promises::of("measure_fleet");
        for (count, busy) in [(3, 3), (3, 1), (32, 32), (32, 1)] {
            let what = format!(
                "slots in use with {count} members, {busy} with requests, beside one balancer's"
            );
            promises.at_least(&what, busy_share(count, busy) / alone * 100.0, 95.0, "%");
        }
        promises.hold();
    });
}

//! What Consul says about instances, and what Weir makes of it: which servers get requests, and how many.

use std::time::Duration;

use e2e::consul::{FakeConsul, Health, Instance};
use e2e::{Scene, Weir, http, wait};
use serde_json::Value;

use super::stage::{
    SOON, Server, Steady, config, consul_at, server, source, standings, wait_for_standings,
};

/// An instance for each server, all of them passing.
pub(super) fn instances(servers: &[&Server]) -> Vec<Instance> {
    let instance =
        |server: &&Server| Instance::new(&format!("web-{}", server.address()), server.address());
    servers.iter().map(instance).collect()
}

/// Starts a Consul whose service `web` has these servers.
pub(super) fn consul_with(scene: &Scene, servers: &[&Server]) -> FakeConsul {
    let fake = FakeConsul::start(scene.address(40, 8500));
    fake.set("web", &instances(servers));
    fake
}

#[test]
fn servers_come_and_go_and_change_and_no_request_is_lost() {
    let Some(scene) = Scene::new("discovery-changes", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    // One that returns again and again would be used last.
    let others = [14, 15, 16].map(|host| Server::start(&scene, host));
    let fake = consul_with(&scene, &[a, b]);
    let top = format!("zone = \"here\"\n{}", consul_at(&fake.url()));
    let weir = Weir::start(&scene, &config(&scene, &top, "consul = \"web\"", ""));
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    fake.set("web", &instances(&[a, b, c]));
    steady.only(&[11, 12, 13]);
    let object = &server(&weir, a.address())["listing"]["object"];
    assert_eq!(*object, format!("node1/web-{}", a.address()).as_str());
    for (one, health, standing) in [
        (14, Health::Critical, "critical"),
        (15, Health::ServiceMaintenance, "maintenance"),
        (16, Health::NodeMaintenance, "maintenance"),
    ] {
        let mut all = instances(&[a, &others[usize::from(one) - 14]]);
        all[1].health = health;
        fake.set("web", &all);
        wait_for_standings(&weir, &[(&[11], "listed"), (&[one], standing)]);
        steady.only(&[11]);
        let source = source(&weir, "app");
        assert_eq!((&source["listed"], &source["not_ready"]), (&1.into(), &1.into()));
        all[1].health = Health::Warning;
        fake.set("web", &all);
        wait_for_standings(&weir, &[(&[11, one], "listed")]);
        steady.only(&[11, one]);
    }
    fake.set("web", &instances(&[a, b]));
    steady.only(&[11, 12]);

    let mut weighted = instances(&[a, b]);
    weighted[0].weights = (9, 1);
    fake.set("web", &weighted);
    wait::until("the weight", SOON, || (server(&weir, a.address())["weight"] == 9).then_some(()));
    // Both workers turn by weight, so the shares are 9 to 1 but for what was under way.
    wait::until("requests by weight", SOON, || {
        let seen = steady.next(400);
        (seen["11"] > 7 * seen.get("12").copied().unwrap_or(0)).then_some(())
    });
    let mut zoned = instances(&[a, b]);
    zoned[0] = zoned[0].clone().meta("zone", "here").meta("weir-in-flight-max", "7");
    zoned[1] = zoned[1].clone().meta("zone", "there");
    fake.set("web", &zoned);
    steady.only(&[11]);
    let shown = server(&weir, a.address());
    assert_eq!((&shown["zone"], &shown["in_flight_max"]), (&"here".into(), &7.into()));
    fake.set("web", &instances(&[a, b]));
    steady.only(&[11, 12]);
    steady.finish();
}

#[test]
fn requests_in_flight_end_well_when_their_server_may_get_no_more() {
    for health in [
        Some(Health::Critical),
        Some(Health::ServiceMaintenance),
        Some(Health::NodeMaintenance),
        None,
    ] {
        let Some(scene) = Scene::new("discovery-in-flight", &[]) else { return };
        let (a, b) = (Server::start(&scene, 11), Server::start(&scene, 12));
        let fake = consul_with(&scene, &[&a]);
        let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", "");
        let weir = Weir::start(&scene, &text);
        let steady = Steady::start(&weir);
        steady.only(&[11]);
        let front = weir.front();
        let held = std::thread::spawn(move || http::get(front, "/held"));
        wait::until("the request at its server", SOON, || (a.held() == 1).then_some(()));
        let mut all = instances(&[&a, &b]);
        match health {
            Some(health) => all[0].health = health,
            None => drop(all.remove(0)),
        }
        fake.set("web", &all);
        steady.only(&[12]);
        assert!(!held.is_finished(), "{health:?}");
        a.release();
        let answer = held.join().unwrap().unwrap();
        assert_eq!((answer.status, answer.field("x-served-by")), (200, Some("11")), "{health:?}");
        steady.finish();
    }
}

#[test]
fn workers_at_one_address_add_up_to_its_limit() {
    let Some(scene) = Scene::new("discovery-added", &[]) else { return };
    let app = Server::start(&scene, 11);
    app.set_work_ms(20);
    let workers =
        |count: usize| (0..count).map(|n| Instance::new(&format!("worker-{n}"), app.address()));
    let fake = FakeConsul::start(scene.address(40, 8500));
    fake.set("web", &workers(3).collect::<Vec<_>>());
    let discover = "consul = \"web\", in_flight = \"added\"";
    let weir = Weir::start(&scene, &config(&scene, &consul_at(&fake.url()), discover, ""));
    let steady = Steady::start_with(&weir, "/", 12);
    let mut critical: Vec<_> = workers(3).collect();
    critical[0].health = Health::Critical;
    for (listed, limit) in [
        (workers(3).collect(), 3),
        (workers(2).collect(), 2),
        (workers(4).collect(), 4),
        (critical, 2),
    ] {
        fake.set("web", &listed);
        wait::until("the limit", SOON, || {
            (server(&weir, app.address())["in_flight_max"] == limit).then_some(())
        });
        assert_eq!(standings(&weir, "app"), [(11, "listed".to_owned())]);
        // Requests that came under a higher limit end first.
        wait::until("the concurrency at the server", SOON, || {
            steady.next(50);
            app.take_in_flight_max();
            steady.next(50);
            (app.take_in_flight_max() == limit).then_some(())
        });
        steady.next(200);
        assert_eq!(app.take_in_flight_max(), limit);
    }
    steady.finish();
}

#[test]
fn a_server_that_comes_and_goes_is_used_last() {
    let Some(scene) = Scene::new("discovery-flapping", &[]) else { return };
    let (a, b) = (Server::start(&scene, 11), Server::start(&scene, 12));
    let fake = consul_with(&scene, &[&a, &b]);
    let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    for times in 1..=4 {
        fake.set("web", &instances(&[&a]));
        wait_for_standings(&weir, &[(&[11], "listed")]);
        fake.set("web", &instances(&[&a, &b]));
        wait::until("the server to be back", SOON, || {
            (standings(&weir, "app").len() == 2).then_some(())
        });
        println!("return {times}: {:?}", standings(&weir, "app"));
    }
    wait_for_standings(&weir, &[(&[11], "listed"), (&[12], "flapping")]);
    assert_eq!(source(&weir, "app")["flapping"], 1);
    steady.only(&[11]);
    let before = b.requests();
    steady.next(200);
    assert_eq!(b.requests(), before);
    let mut all = instances(&[&a, &b]);
    all[0].health = Health::Critical;
    fake.set("web", &all);
    steady.only(&[12]);
    steady.finish();
}

#[test]
fn the_file_wins_over_the_source() {
    let Some(scene) = Scene::new("discovery-file-wins", &[]) else { return };
    let (a, b) = (Server::start(&scene, 11), Server::start(&scene, 12));
    let fake = consul_with(&scene, &[&a, &b]);
    let own = format!("[[service.app.server]]\naddress = \"{}\"\nweight = 5\n", a.address());
    let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", &own);
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    wait_for_standings(&weir, &[(&[11], "overridden"), (&[12], "listed")]);
    assert_eq!(server(&weir, a.address())["weight"], 5);
    let seen = steady.next(300);
    assert!(seen["11"] > 3 * seen["12"], "{seen:?}");
    // The source has no say in its health, either.
    let mut all = instances(&[&a, &b]);
    for one in &mut all {
        one.health = Health::Critical;
    }
    fake.set("web", &all);
    wait_for_standings(&weir, &[(&[11], "overridden"), (&[12], "critical")]);
    steady.only(&[11]);
    fake.set("web", &[]);
    wait_for_standings(&weir, &[(&[11], "in the file")]);
    steady.only(&[11]);
    steady.finish();
}

#[test]
fn a_thousand_changes_in_a_row_end_in_the_last_one() {
    let Some(scene) = Scene::new("discovery-burst", &[]) else { return };
    let (a, b) = (Server::start(&scene, 11), Server::start(&scene, 12));
    let fake = consul_with(&scene, &[&a]);
    let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11]);
    fake.take_requests();
    let begun = std::time::Instant::now();
    for n in 1..=1000_u32 {
        let mut all = instances(&[&a, &b]);
        all[0].weights.0 = 1 + n % 100;
        all[1].weights.0 = n;
        fake.set("web", &all);
        std::thread::sleep(Duration::from_millis(1));
    }
    wait::until("the last change", SOON, || {
        (server(&weir, b.address())["weight"] == 1000).then_some(())
    });
    // A question each 50 ms at most.
    let (asked, most) = (fake.requests().len(), begun.elapsed().as_millis() / 50 + 5);
    assert!(asked as u128 <= most, "{asked} questions, at most {most}");
    steady.finish();
}

/// Passive health never ejects the last server that may get requests, and those that are critical at the source may
/// not.
#[test]
fn the_last_server_is_not_ejected_while_the_others_are_critical() {
    let Some(scene) = Scene::new("discovery-eject", &[]) else { return };
    let b = Server::start(&scene, 12);
    // Nothing listens there.
    let gone = scene.address(11, 8080);
    let fake = FakeConsul::start(scene.address(40, 8500));
    let mut all = vec![Instance::new("web-gone", gone), Instance::new("web-b", b.address())];
    all[1].health = Health::Critical;
    fake.set("web", &all);
    let weir =
        Weir::start(&scene, &config(&scene, &consul_at(&fake.url()), "consul = \"web\"", ""));
    wait_for_standings(&weir, &[(&[11], "listed"), (&[12], "critical")]);
    for _ in 0..20 {
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 502);
    }
    let seen = server(&weir, gone);
    assert_eq!((&seen["ejected_for_ms"], &seen["eligible"]), (&Value::Null, &true.into()));
    assert_eq!(b.requests(), 0);
    // With another one that may get requests, it is.
    all[1].health = Health::Passing;
    fake.set("web", &all);
    wait::until("the ejection", SOON, || {
        let _ = http::get(weir.front(), "/");
        server(&weir, gone)["ejected_for_ms"].is_f64().then_some(())
    });
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
}

//! A source that suddenly lists few servers or none: the missing ones are held and used last.

use std::time::Duration;

use e2e::consul::{FakeConsul, Health};
use e2e::{Scene, Weir, http, wait};

use super::changes::{consul_with, instances};
use super::stage::{SOON, Server, Steady, config, consul_at, server, source, wait_for_standings};

/// Five servers, a Consul that lists them, and a Weir that uses them.
struct Stage {
    scene: Scene,
    servers: [Server; 5],
    fake: FakeConsul,
    weir: Weir,
}

const ALL: &[u8] = &[11, 12, 13, 14, 15];

impl Stage {
    fn start(name: &str, discover: &str, service: &str) -> Option<Stage> {
        let scene = Scene::new(name, &[])?;
        let servers = [11, 12, 13, 14, 15].map(|host| Server::start(&scene, host));
        let fake = consul_with(&scene, &servers.each_ref());
        let discover = format!("consul = \"web\"{discover}");
        let weir =
            Weir::start(&scene, &config(&scene, &consul_at(&fake.url()), &discover, service));
        wait_for_standings(&weir, &[(ALL, "listed")]);
        Some(Stage { scene, servers, fake, weir })
    }

    /// Lists the servers at these places, and no others.
    fn list(&self, places: &[usize]) {
        let listed: Vec<&Server> = places.iter().map(|&place| &self.servers[place]).collect();
        self.fake.set("web", &instances(&listed));
    }
}

#[test]
fn an_empty_answer_holds_all_servers_until_they_are_listed_again() {
    let Some(stage) = Stage::start("discovery-emptied", "", "") else { return };
    let steady = Steady::start(&stage.weir);
    steady.only(ALL);
    for _ in 0..3 {
        stage.list(&[]);
        wait_for_standings(&stage.weir, &[(ALL, "held")]);
        assert_eq!(source(&stage.weir, "app")["held"], 5);
        steady.only(ALL);
        // Some come back first. They get all requests.
        stage.list(&[0, 1]);
        wait_for_standings(&stage.weir, &[(&[11, 12], "listed"), (&[13, 14, 15], "held")]);
        steady.only(&[11, 12]);
        stage.list(&[0, 1, 2, 3, 4]);
        wait_for_standings(&stage.weir, &[(ALL, "listed")]);
        steady.only(ALL);
    }
    steady.finish();
    drop(stage.scene);
}

#[test]
fn held_servers_are_dropped_after_hold_max() {
    let Some(stage) = Stage::start("discovery-hold-max", ", hold_max = \"1s\"", "") else { return };
    let front = stage.weir.front();
    stage.list(&[]);
    let emptied = std::time::Instant::now();
    wait::until("no server", SOON, || {
        let status = http::get(front, "/").unwrap().status;
        (status != 200).then_some(())
    });
    assert!(emptied.elapsed() >= Duration::from_secs(1), "held for {:?}", emptied.elapsed());
    wait_for_standings(&stage.weir, &[]);
    // A source that lists no servers is no failed lookup of a name.
    let answer = http::get(front, "/").unwrap();
    stage.list(&[0]);
    wait_for_standings(&stage.weir, &[(&[11], "listed")]);
    assert_eq!(http::get(front, "/").unwrap().status, 200);
    assert_eq!(answer.status, 503, "{}", answer.text());
}

#[test]
fn without_holding_an_empty_answer_applies_at_once() {
    let Some(stage) = Stage::start("discovery-hold-none", ", hold_max = \"0s\"", "") else {
        return;
    };
    stage.list(&[]);
    wait_for_standings(&stage.weir, &[]);
    assert_ne!(http::get(stage.weir.front(), "/").unwrap().status, 200);
}

#[test]
fn most_servers_lost_at_once_are_held_and_used_last() {
    let Some(stage) = Stage::start("discovery-most", "", "") else { return };
    let steady = Steady::start(&stage.weir);
    steady.only(ALL);
    stage.list(&[0]);
    wait_for_standings(&stage.weir, &[(&[11], "listed"), (&[12, 13, 14, 15], "held")]);
    steady.only(&[11]);
    // The one that is left fails, too: the held ones are used.
    let mut critical = instances(&[&stage.servers[0]]);
    critical[0].health = Health::Critical;
    stage.fake.set("web", &critical);
    wait_for_standings(&stage.weir, &[(&[11], "critical"), (&[12, 13, 14, 15], "held")]);
    steady.only(&[12, 13, 14, 15]);
    stage.list(&[0, 1, 2]);
    wait_for_standings(&stage.weir, &[(&[11, 12, 13], "listed"), (&[14, 15], "held")]);
    steady.only(&[11, 12, 13]);
    steady.finish();
}

#[test]
fn servers_that_are_removed_one_by_one_leave_at_once() {
    let Some(stage) = Stage::start("discovery-one-by-one", "", "") else { return };
    let steady = Steady::start(&stage.weir);
    steady.only(ALL);
    for left in (1..5).rev() {
        let places: Vec<usize> = (0..left).collect();
        stage.list(&places);
        wait_for_standings(&stage.weir, &[(&ALL[..left], "listed")]);
        steady.only(&ALL[..left]);
    }
    steady.finish();
}

#[test]
fn servers_that_are_critical_are_not_held() {
    let Some(stage) = Stage::start("discovery-all-critical", "", "") else { return };
    let mut all = instances(&stage.servers.each_ref());
    for one in &mut all {
        one.health = Health::Critical;
    }
    stage.fake.set("web", &all);
    wait_for_standings(&stage.weir, &[(ALL, "critical")]);
    let source = source(&stage.weir, "app");
    let counts = ["listed", "not_ready", "held"].map(|name| source[name].as_u64().unwrap());
    assert_eq!(counts, [0, 5, 0]);
    wait::until("no server", SOON, || {
        (http::get(stage.weir.front(), "/").unwrap().status == 503).then_some(())
    });
    // Nor do they stay when they leave.
    stage.list(&[]);
    wait_for_standings(&stage.weir, &[]);
}

#[test]
fn held_servers_need_a_passing_check_where_there_is_one() {
    let check = "check = { path = \"/status\", interval = \"100ms\", timeout = \"90ms\", rise = 1, fall = 2 }";
    let Some(stage) = Stage::start("discovery-held-check", "", check) else { return };
    let ill = &stage.servers[4];
    wait::until("the checks", SOON, || {
        let is_up = |one: &Server| server(&stage.weir, one.address())["health"] == "up";
        stage.servers.iter().all(is_up).then_some(())
    });
    let steady = Steady::start(&stage.weir);
    steady.only(ALL);
    stage.list(&[]);
    wait_for_standings(&stage.weir, &[(ALL, "held")]);
    ill.fall_ill();
    steady.only(&ALL[..4]);
    let before = ill.requests();
    steady.next(200);
    assert_eq!(ill.requests(), before);
    steady.finish();
}

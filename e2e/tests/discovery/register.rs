//! Weir registers its listeners in Consul (`register` of a listener), and keeps the entries through drains,
//! reloads, upgrades and faults of the agent.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::consul::{FakeConsul, Health, Instance};
use e2e::nomad::FakeNomad;
use e2e::polling::{Fault, Recorded};
use e2e::{NewProcess, Process, Scene, Weir, binary, http, run, server_tables, wait};
use rustix::process::Signal;
use serde_json::json;

use super::reload::reload;
use super::stage::{SOON, Server, consul_at};

const EDGE: &str = "register = { consul = \"edge\", tags = [\"public\"] }";
const ID: &str = "weir-edge-8080";
const TOKEN: &str = "5ec4e700-0000-4000-8000-000000000000";

/// A configuration whose listener `public` has the key `register`, if it is not empty, with one server and
/// further tables.
fn registering(
    scene: &Scene,
    register: &str,
    server: &Server,
    more: &str,
    fake: &FakeConsul,
) -> String {
    let servers = server_tables("app", [server.address()]);
    scene.config(
        "workers = 2\nreload = { watch = false }\ndrain_delay = \"2s\"",
        &format!(
            "{register}\n\n{}\ntoken = \"{TOKEN}\"\n\n{more}\n[[route]]\nservice = \"app\"\n\n[service.app]\n{servers}",
            consul_at(&fake.url())
        ),
    )
}

fn agent(scene: &Scene) -> FakeConsul {
    FakeConsul::start(scene.address(40, 8500))
}

/// Waits until the service `edge` has exactly the entries with these IDs and states; returns them.
fn wait_for(fake: &FakeConsul, bound: Duration, wanted: &[(&str, Health)]) -> Vec<Instance> {
    let mut last = Vec::new();
    let found = wait::within(bound, || {
        last = fake.rows("edge");
        last.sort_by(|one, other| one.id.cmp(&other.id));
        let seen = last.iter().map(|one| (&*one.id, one.health));
        seen.eq(wanted.iter().copied()).then_some(())
    });
    assert!(found.is_some(), "waited for {wanted:?}; Consul has {last:?}");
    last
}

/// What `weir status` shows of the entry of the listener `public`.
fn shown(scene: &Scene) -> String {
    let status = run(scene, &["status", "--admin", &scene.admin().to_string()]).stdout;
    let line = status.lines().find(|line| line.starts_with("public: "));
    line.unwrap_or_default().to_owned()
}

/// Another process, whose servers are those of the service `edge`.
fn follower(scene: &Scene, fake: &FakeConsul) -> (Process, SocketAddr) {
    let front = scene.address(2, 8080);
    let text = format!(
        "workers = 1\nadmin = {{ address = \"{}\" }}\n[[listener]]\naddress = \"{front}\"\n\n{}\n\n\
         [[route]]\nservice = \"edge\"\n\n[service.edge]\ndiscover = {{ consul = \"edge\", saved = false }}\n",
        scene.address(2, 9900),
        consul_at(&fake.url())
    );
    let file = scene.file("follower.toml", text).display().to_string();
    (Process::start(scene, "follower", binary(), ["serve", &file]), front)
}

fn answers(front: SocketAddr) -> bool {
    http::get(front, "/").is_ok_and(|answer| answer.status == 200)
}

#[test]
fn a_listener_is_registered_and_found_by_another_weir_until_it_stops() {
    let Some(scene) = Scene::new("register-life", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    let all = wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    let Instance { address, port, tags, meta, .. } = &all[0];
    assert_eq!((address.as_str(), *port), (&*scene.ip(1).to_string(), 8080));
    assert_eq!((&tags[..], meta.len()), (&["public".to_owned()][..], 2));
    assert_eq!(meta["version"], weir.api("/api/v1/status")["version"]);
    wait::until("weir status", SOON, || {
        let line = shown(&scene);
        let is_registered = line.starts_with("public: registered as edge at ");
        (is_registered && line.ends_with(", check passing")).then_some(())
    });
    assert!(weir.metric("weir_registration_failing", &["listener=\"public\""]) < 0.5);
    assert!(fake.requests().iter().all(|one| one.token.as_deref() == Some(TOKEN)));

    let (_follower, front) = follower(&scene, &fake);
    wait::until("an answer through both", SOON, || answers(front).then_some(()));
    assert!(server.requests() > 0);

    weir.begin_to_stop();
    wait_for(&fake, Duration::from_secs(1), &[(ID, Health::Critical)]);
    assert!(answers(weir.front()), "the listener is still open");
    assert_eq!(weir.wait(SOON).code, Some(0));
    wait_for(&fake, Duration::from_millis(100), &[]);
    assert!(!answers(front));
}

#[test]
fn a_killed_weir_is_left_to_its_ttl() {
    let Some(scene) = Scene::new("register-kill", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    weir.kill();
    wait::measure_for(Duration::from_secs(1));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
}

#[test]
fn reloads_add_change_and_remove_entries() {
    let Some(scene) = Scene::new("register-reload", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let with = |register: &str, more: &str| registering(&scene, register, &server, more, &fake);
    let weir = Weir::start(&scene, &with("", ""));
    assert!(shown(&scene).is_empty());
    reload(&scene, &weir, &with(EDGE, ""));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    let other = format!(
        "[[listener]]\nname = \"other\"\naddress = \"{}\"\nregister = {{ consul = \"edge\" }}\n",
        scene.address(1, 8081)
    );
    let v2 = EDGE.replace("public", "v2");
    reload(&scene, &weir, &with(&v2, &other));
    wait_for(&fake, SOON, &[(ID, Health::Passing), ("weir-edge-8081", Health::Passing)]);
    wait::until("the changed tag", SOON, || {
        let all = fake.rows("edge");
        all.iter().any(|one| one.id == ID && one.tags == ["v2"]).then_some(())
    });
    reload(&scene, &weir, &with("", &other));
    wait_for(&fake, SOON, &[("weir-edge-8081", Health::Passing)]);
    reload(&scene, &weir, &with("", ""));
    reload(&scene, &weir, &with(EDGE, ""));
    reload(&scene, &weir, &with("", ""));
    wait_for(&fake, SOON, &[]);
    reload(&scene, &weir, &with(EDGE, ""));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
}

/// Numbers of the requests whose path has this end.
fn places(requests: &[Recorded], end: &str) -> Vec<usize> {
    let all = requests.iter().enumerate();
    all.filter(|(_, one)| one.path.ends_with(end)).map(|(place, _)| place).collect()
}

#[test]
fn an_entry_that_moves_is_registered_before_the_old_one_is_removed() {
    let Some(scene) = Scene::new("register-moves", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let with = |register: &str| registering(&scene, register, &server, "", &fake);
    let weir = Weir::start(&scene, &with(EDGE));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.take_requests();
    reload(&scene, &weir, &with("register = { consul = \"edge\", id = \"edge-1\", port = 8081 }"));
    let all = wait_for(&fake, SOON, &[("edge-1", Health::Passing)]);
    assert_eq!(all[0].port, 8081);
    let requests = fake.requests();
    let (registered, removed) =
        (places(&requests, "/register"), places(&requests, &format!("/deregister/{ID}")));
    assert!(registered.len() == 1 && removed.len() == 1, "{requests:?}");
    assert!(registered[0] < removed[0], "{requests:?}");
}

#[test]
fn a_new_token_is_used_for_a_registration_at_once() {
    let Some(scene) = Scene::new("register-token", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let text = registering(&scene, EDGE, &server, "", &fake);
    let weir = Weir::start(&scene, &text);
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.take_requests();
    let other = TOKEN.replace("5ec4e700", "5ec4e701");
    reload(&scene, &weir, &text.replace(TOKEN, &other));
    let first = wait::until("a request with it", SOON, || {
        fake.requests().into_iter().find(|one| one.token.as_ref() == Some(&other))
    });
    assert!(first.path.ends_with("/v1/agent/service/register"), "{first:?}");
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
}

#[test]
fn the_entry_of_another_process_is_left_alone_by_a_stop() {
    let Some(scene) = Scene::new("register-other", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.set("edge", &[Instance::new(ID, "10.9.9.9:8080".parse().unwrap())]);
    weir.begin_to_stop();
    let why = "another process has registered weir-edge-8080 (10.9.9.9:8080)";
    weir.wait_for_log(&[why], SOON);
    assert!(shown(&scene).contains(why), "{}", shown(&scene));
    assert_eq!(weir.wait(SOON).code, Some(0));
    let all = wait_for(&fake, Duration::from_millis(100), &[(ID, Health::Passing)]);
    assert_eq!(all[0].address, "10.9.9.9");
}

#[test]
fn an_agent_that_has_lost_its_data_gets_the_entry_back() {
    let Some(scene) = Scene::new("register-lost", &[]) else { return };
    let (server, mut fake) = (Server::start(&scene, 11), agent(&scene));
    let weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.stop();
    fake.forget();
    fake.start_again();
    wait_for(&fake, Duration::from_secs(15), &[(ID, Health::Passing)]);
    assert!(answers(weir.front()));
}

#[test]
fn an_agent_that_refuses_is_shown_without_the_token_and_affects_nothing() {
    let Some(scene) = Scene::new("register-refused", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    fake.set_fault(Some(Fault::Answer(403, format!("Permission denied: token {TOKEN}"))));
    let weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    let line = wait::until("the error", SOON, || {
        Some(shown(&scene)).filter(|line| line.contains("service:write for edge"))
    });
    assert!(line.contains("FAILING") && line.contains("403"), "{line}");
    assert!(weir.metric("weir_registration_failing", &["listener=\"public\""]) > 0.5);
    assert_eq!(weir.api("/api/v1/status")["ready"], true);
    assert!(answers(weir.front()));
    fake.set_fault(None);
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    weir.wait_for_log(&["accepts check updates again"], SOON);
    let log = weir.log();
    assert!(!log.contains(TOKEN) && !line.contains(TOKEN), "{log}");
    assert_eq!(log.matches("cannot keep the entry in Consul").count(), 1, "{log}");
}

#[test]
fn an_upgrade_keeps_the_entry() {
    let Some(scene) = Scene::new("register-upgrade", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.take_requests();
    let (_, _successor) = weir.upgrade(SOON);
    wait::until("the successor to register", SOON, || {
        fake.requests().iter().any(|one| one.path.ends_with("/register")).then_some(())
    });
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    assert!(fake.requests().iter().all(|one| !one.path.contains("deregister")));
    assert!(answers(weir.front()));
}

#[test]
fn a_new_process_that_is_given_up_does_not_touch_the_entry() {
    let Some(scene) = Scene::new("register-given-up", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let nomad = FakeNomad::start(scene.address(41, 4646));
    // The new process waits some seconds for its servers.
    let slow = format!(
        "[nomad]\naddress = \"{}\"\n\n[service.slow]\ndiscover = {{ nomad = \"slow\", saved = false }}\n",
        nomad.url()
    );
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, &slow, &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    nomad.set_fault(Some(Fault::Hang));
    nomad.take_requests();
    weir.process().signal(Signal::USR2);
    let line = weir.wait_for_log(&["a new process is starting"], SOON);
    // Only a process that knows nothing yet asks without an index.
    wait::until("the new process", SOON, || {
        nomad.requests().iter().any(|one| !one.query.contains("index=")).then_some(())
    });
    fake.take_requests();
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
    let successor = line.split("pid=").nth(1).unwrap_or_default();
    let successor: String = successor.chars().take_while(char::is_ascii_digit).collect();
    let successor = NewProcess::of(&json!({ "pid": successor.parse::<i32>().expect("a number") }));
    wait::until("its end", SOON, || (!successor.is_running()).then_some(()));
    assert!(fake.rows("edge").is_empty());
    let requests = fake.requests();
    assert!(places(&requests, "/register").is_empty(), "{requests:?}");
    assert_eq!(places(&requests, &format!("/deregister/{ID}")).len(), 1, "{requests:?}");
}

#[test]
fn a_stop_does_not_wait_long_for_an_agent_that_hangs() {
    let Some(scene) = Scene::new("register-hang", &[]) else { return };
    let (server, fake) = (Server::start(&scene, 11), agent(&scene));
    let mut weir = Weir::start(&scene, &registering(&scene, EDGE, &server, "", &fake));
    wait_for(&fake, SOON, &[(ID, Health::Passing)]);
    fake.set_fault(Some(Fault::Hang));
    weir.begin_to_stop();
    // Two seconds of `drain_delay`, two for the agent.
    assert_eq!(weir.wait(Duration::from_secs(8)).code, Some(0));
    assert!(weir.log().contains("not deregistered in time"), "{}", weir.log());
}

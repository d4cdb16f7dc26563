//! Servers from Nomad: what its registrations and tags say, and how it fails. `prove_nomad` has a real one.

use std::time::Duration;

use e2e::nomad::{FakeNomad, Registration};
use e2e::polling::Fault;
use e2e::{Scene, Weir, run, wait};

use super::faults::{Case, Fake, starts_empty, survive};
use super::stage::{
    SOON, Server, Steady, all_shown, config, has_no_secret, nomad_at, server, source, standings,
    wait_for_error, wait_for_standings,
};

const TOKEN: &str = "0b50e7e1-8d3c-4f0e-9d7c-5ec4e7000002";
const DISCOVER: &str = "nomad = \"web\"";

/// A registration for each server.
fn registrations(servers: &[&Server]) -> Vec<Registration> {
    (1..).zip(servers).map(|(n, server)| Registration::new(n, server.address())).collect()
}

impl Fake for FakeNomad {
    const DISCOVER: &'static str = DISCOVER;

    fn start(scene: &Scene) -> FakeNomad {
        FakeNomad::start(scene.address(40, 4646))
    }

    fn table(&self) -> String {
        nomad_at(&self.url())
    }

    fn list(&self, servers: &[&Server]) {
        self.set("web", &registrations(servers));
    }

    fn heal(&mut self) {
        self.set_fault(None);
        self.set_index_field(None);
        self.set_leader(true, Duration::ZERO);
    }
}

/// A Nomad that lists these servers, and a Weir with a steady client.
fn start(scene: &Scene, servers: &[&Server], discover: &str) -> (FakeNomad, Weir, Steady) {
    let fake = <FakeNomad as Fake>::start(scene);
    fake.list(servers);
    let weir = Weir::start(scene, &config(scene, &fake.table(), discover, ""));
    let steady = Steady::start(&weir);
    (fake, weir, steady)
}

#[test]
fn registrations_come_change_and_go() {
    let Some(scene) = Scene::new("discovery-nomad", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (fake, weir, steady) = start(&scene, &[a, b], DISCOVER);
    steady.only(&[11, 12]);
    let object = server(&weir, a.address())["listing"]["object"].clone();
    assert!(object.as_str().is_some_and(|text| text.contains("web/00000001")), "{object}");
    fake.list(&[a, b, c]);
    steady.only(&[11, 12, 13]);
    fake.list(&[a, b]);
    steady.only(&[11, 12]);
    let mut all = registrations(&[a, b]);
    for tag in ["weir.weight=9", "weir.in_flight_max=7", "weir.zone=here", "weir.version=v2"] {
        all[0] = all[0].clone().tag(tag);
    }
    fake.set("web", &all);
    wait::until("the values", SOON, || (server(&weir, a.address())["weight"] == 9).then_some(()));
    let shown = server(&weir, a.address());
    assert_eq!((&shown["zone"], &shown["in_flight_max"]), (&"here".into(), &7.into()));
    assert_eq!(shown["version"], "v2");
    all[0] = registrations(&[a])[0].clone().tag("weir.backup=true");
    fake.set("web", &all);
    steady.only(&[12]);
    all[1] = all[1].clone().tag("weir.weight=many");
    fake.set("web", &all);
    wait::until("the refusal", SOON, || (source(&weir, "app")["refused"] == 1).then_some(()));
    fake.list(&[a, b]);
    steady.only(&[11, 12]);
    fake.set("web", &[]);
    wait_for_standings(&weir, &[(&[11, 12], "held")]);
    steady.next(100);
    fake.list(&[a, b]);
    steady.only(&[11, 12]);
    steady.finish();
}

#[test]
fn only_registrations_with_the_tag_count() {
    let Some(scene) = Scene::new("discovery-nomad-tag", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (fake, weir, steady) = start(&scene, &[], "nomad = \"web\", tag = \"v2\", port = 8080");
    let mut all = registrations(&[a, b, c]);
    all[1] = all[1].clone().tag("v1").tag("v2");
    all[2] = all[2].clone().tag("v2.1");
    // The service's own port is another one.
    for one in &mut all {
        one.port = 9100;
    }
    fake.set("web", &all);
    wait_for_standings(&weir, &[(&[12], "listed")]);
    drop(steady);
    let steady = Steady::start(&weir);
    steady.only(&[12]);
    assert_eq!(source(&weir, "app")["refused"], 0);
    all[2] = all[2].clone().tag("v2");
    fake.set("web", &all);
    steady.only(&[12, 13]);
    steady.finish();
}

#[test]
fn workers_of_one_address_add_up_to_its_limit() {
    let Some(scene) = Scene::new("discovery-nomad-added", &[]) else { return };
    let app = Server::start(&scene, 11);
    let discover = "nomad = \"web\", in_flight = \"added\"";
    let (fake, weir, steady) = start(&scene, &[&app, &app, &app], discover);
    for count in [3, 2, 4] {
        fake.list(&vec![&app; count]);
        wait::until("the limit", SOON, || {
            (server(&weir, app.address())["in_flight_max"] == count).then_some(())
        });
        assert_eq!(standings(&weir, "app"), [(11, "listed".to_owned())]);
    }
    let tagged = |one: Registration| one.tag("weir.in_flight_max=5");
    fake.set("web", &registrations(&[&app, &app]).into_iter().map(tagged).collect::<Vec<_>>());
    wait::until("the limit", SOON, || {
        (server(&weir, app.address())["in_flight_max"] == 10).then_some(())
    });
    steady.finish();
}

#[test]
fn the_token_of_nomad_is_sent_and_shown_nowhere() {
    let Some(scene) = Scene::new("discovery-nomad-token", &[]) else { return };
    let a = Server::start(&scene, 11);
    let fake = <FakeNomad as Fake>::start(&scene);
    fake.list(&[&a]);
    let secret = scene.file("nomad.token", TOKEN);
    let table = format!(
        "{}\nnamespace = \"team 1\"\nregion = \"eu\"\ntoken = \"${{file:{}}}\"",
        fake.table(),
        secret.display()
    );
    let text = config(&scene, &table, DISCOVER, "");
    let place = scene.file("weir.toml", &text).display().to_string();
    let checked = [&["check", &place][..], &["check", "--json", &place]];
    let checked = checked.map(|words| run(&scene, words));
    let weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(&[11], "listed")]);
    wait::until("a question that waits", SOON, || {
        fake.requests().iter().any(|one| one.parameter("index").is_some()).then_some(())
    });
    for asked in fake.take_requests() {
        assert_eq!((asked.path.as_str(), asked.token.as_deref()), ("/v1/service/web", Some(TOKEN)));
        let parameters = ["namespace", "region", "stale"].map(|name| asked.parameter(name));
        assert_eq!(parameters, [Some("team%201"), Some("eu"), Some("")], "{asked:?}");
        if asked.parameter("index").is_some() {
            assert_eq!(asked.parameter("wait"), Some("1s"), "{asked:?}");
        }
    }
    fake.set_fault(Some(Fault::permission_denied()));
    println!("{}", wait_for_error(&weir, "app", &["403", "Permission denied"]));
    let mut shown = all_shown(&scene, &weir);
    shown.extend(checked.into_iter().flat_map(|one| [one.stdout, one.stderr]));
    has_no_secret(&shown, &[TOKEN]);
    assert!(shown.iter().any(|text| text.contains("team 1")), "the configuration is shown");
}

#[test]
fn servers_stay_while_nomad_fails() {
    survive::<FakeNomad>(&[
        Case::new("starts empty", starts_empty, &["nothing", "no leader"]),
        Case::new(
            "500",
            |fake| fake.set_fault(Some(Fault::no_leader())),
            &["500", "No cluster leader"],
        ),
        Case::new(
            "403",
            |fake| fake.set_fault(Some(Fault::permission_denied())),
            &["403", "Permission denied"],
        ),
        Case::new(
            "429",
            |fake| fake.set_fault(Some(Fault::rate_limited())),
            &["429", "rate limit"],
        ),
        Case::new("slow", |fake| fake.set_fault(Some(Fault::Slow(Duration::from_secs(2)))), &[]),
        Case::new("closes", |fake| fake.set_fault(Some(Fault::Close)), &["closed"]),
        Case::new("malformed", |fake| fake.set_fault(Some(Fault::malformed())), &["EOF"]),
        Case::new(
            "null",
            |fake| fake.set_fault(Some(Fault::Answer(200, "null".to_owned()))),
            &["null"],
        ),
        Case::new("index reset to 1", |fake| fake.set_index(1), &[]),
        Case::new("no index", |fake| fake.set_index_field(Some("")), &["no X-Nomad-Index"]),
        Case {
            name: "refuses",
            begin: FakeNomad::stop,
            end: FakeNomad::start_again,
            error: &["refused"],
        },
    ]);
}

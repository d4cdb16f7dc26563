//! Starts while the source does not answer, with the servers of the last run or without.

use e2e::consul::FakeConsul;
use e2e::polling::Fault;
use e2e::{Scene, Weir, http, wait};

use super::changes::{consul_with, instances};
use super::stage::{
    SOON, Server, Steady, config, consul_at, source, standings, wait_for_error, wait_for_recovery,
    wait_for_standings, wait_until_saved,
};

/// Two services with the same servers, of which only `app` uses those of the last run.
fn two_services(scene: &Scene, fake: &FakeConsul) -> String {
    let state = scene.folder().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let top = format!("state_directory = \"{}\"\n{}", state.display(), consul_at(&fake.url()));
    let other = "[service.new]\ndiscover = { consul = \"web\", saved = false }\n";
    let route = "[[route]]\npath = \"/new\"\nservice = \"new\"\n";
    config(scene, &top, "consul = \"web\"", &format!("{other}{route}"))
}

/// Waits until a file of the state directory names the server.
fn is_served(weir: &Weir, path: &str) -> bool {
    http::get(weir.front(), path).unwrap().status == 200
}

#[test]
fn a_start_without_the_source_uses_the_servers_of_the_last_run() {
    for is_refused in [true, false] {
        let Some(scene) = Scene::new("discovery-start", &[]) else { return };
        let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
        let [a, b, c] = &servers;
        let mut fake = consul_with(&scene, &[a, b]);
        let text = two_services(&scene, &fake);
        let mut weir = Weir::start(&scene, &text);
        wait_for_standings(&weir, &[(&[11, 12], "listed")]);
        assert_eq!(source(&weir, "app")["restored"], false);
        wait_until_saved(&scene, &[b.address()]);
        weir.begin_to_stop();
        weir.wait(SOON);
        if is_refused {
            fake.stop();
        } else {
            fake.set_fault(Some(Fault::Hang));
        }

        let weir = Weir::start(&scene, &text);
        let shown = source(&weir, "app");
        assert_eq!(shown["restored"], true, "{shown:#}");
        assert!(shown["answered_ms_ago"].is_null(), "{shown:#}");
        assert_eq!(standings(&weir, "new"), []);
        assert!(is_served(&weir, "/") && !is_served(&weir, "/new"));
        let steady = Steady::start(&weir);
        steady.only(&[11, 12]);
        if is_refused {
            wait_for_error(&weir, "app", &["refused"]);
            wait_for_error(&weir, "new", &["refused"]);
        }
        fake.set("web", &instances(&[b, c]));
        if is_refused {
            fake.start_again();
        } else {
            fake.set_fault(None);
            fake.disconnect();
        }
        steady.only(&[12, 13]);
        wait_for_recovery(&weir, "app");
        assert_eq!(source(&weir, "app")["restored"], false);
        wait::until("the other service", SOON, || is_served(&weir, "/new").then_some(()));
        steady.finish();
    }
}

#[test]
fn saved_servers_are_held_if_the_first_answer_is_empty() {
    let Some(scene) = Scene::new("discovery-start-empty", &[]) else { return };
    let servers = [11, 12].map(|host| Server::start(&scene, host));
    let fake = consul_with(&scene, &servers.each_ref());
    let text = two_services(&scene, &fake);
    let mut weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    wait_until_saved(&scene, &[servers[1].address()]);
    // Not even a time to say goodbye.
    weir.kill();
    fake.set("web", &[]);
    let weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(&[11, 12], "held")]);
    assert_eq!(source(&weir, "app")["restored"], false);
    assert!(is_served(&weir, "/") && !is_served(&weir, "/new"));
}

#[test]
fn saved_servers_of_another_source_are_not_used() {
    let Some(scene) = Scene::new("discovery-start-other", &[]) else { return };
    let a = Server::start(&scene, 11);
    let mut fake = consul_with(&scene, &[&a]);
    let text = two_services(&scene, &fake);
    let mut weir = Weir::start(&scene, &text);
    wait_until_saved(&scene, &[a.address()]);
    weir.begin_to_stop();
    weir.wait(SOON);
    fake.stop();
    let weir = Weir::start(
        &scene,
        &text.replace("consul = \"web\" }", "consul = \"web\", tag = \"v2\" }"),
    );
    wait_for_error(&weir, "app", &["refused"]);
    assert_eq!(standings(&weir, "app"), []);
    assert!(!is_served(&weir, "/"));
    drop(weir);
    // A file that is no such file is no reason not to start.
    for file in std::fs::read_dir(scene.folder().join("state")).unwrap().flatten() {
        if std::fs::read_to_string(file.path()).is_ok_and(|text| text.contains("\"services\"")) {
            std::fs::write(file.path(), "{\"version\": 1, \"services\": [").unwrap();
        }
    }
    fake.start_again();
    let weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(&[11], "listed")]);
    weir.wait_for_log(&["cannot read the saved servers"], SOON);
}

#[test]
fn an_upgrade_while_consul_fails_loses_nothing() {
    let Some(scene) = Scene::new("discovery-upgrade", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let mut fake = consul_with(&scene, &[a, b]);
    let mut weir = Weir::start(&scene, &two_services(&scene, &fake));
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    wait_until_saved(&scene, &[b.address()]);
    // Changes are not written at once; this one must not be lost.
    fake.set("web", &instances(&[a, b, c]));
    steady.only(&[11, 12, 13]);
    fake.stop();
    wait_for_error(&weir, "app", &["refused"]);
    let (_, _successor) = weir.upgrade(SOON);
    assert_eq!(source(&weir, "app")["restored"], true);
    steady.only(&[11, 12, 13]);
    fake.start_again();
    wait_for_recovery(&weir, "app");
    steady.only(&[11, 12, 13]);
    steady.finish();
}

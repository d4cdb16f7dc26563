//! Reloads that concern sources.

use e2e::consul::FakeConsul;
use e2e::{Scene, Weir, server_tables, wait};
use serde_json::Value;

use super::changes::{consul_with, instances};
use super::stage::{
    SOON, Server, Steady, config, consul_at, source, standings, wait_for_error, wait_for_recovery,
    wait_for_standings,
};

/// Reloads this configuration, which must come into force.
pub(super) fn reload(scene: &Scene, weir: &Weir, text: &str) -> Value {
    scene.file("weir.toml", text);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(
        (answer.status, &answer.json()["result"]),
        (200, &"applied".into()),
        "{}",
        answer.text()
    );
    answer.json()
}

/// Waits until Weir asks Consul with this tag and no other.
fn wait_for_tag(fake: &FakeConsul, tag: Option<&str>) {
    wait::until("questions with the tag", SOON, || {
        fake.take_requests();
        wait::until("five questions", SOON, || (fake.requests().len() >= 5).then_some(()));
        fake.requests().iter().all(|one| one.parameter("tag") == tag).then_some(())
    });
}

#[test]
fn reloads_that_change_sources_lose_nothing() {
    let Some(scene) = Scene::new("discovery-reload", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let fake = consul_with(&scene, &[a, b]);
    let consul = consul_at(&fake.url());
    let with = |discover: &str, rest: &str| config(&scene, &consul, discover, rest);
    let weir = Weir::start(&scene, &with("consul = \"web\", tag = \"v1\"", ""));
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    wait_for_tag(&fake, Some("v1"));
    reload(&scene, &weir, &with("consul = \"web\", tag = \"v2\"", ""));
    steady.only(&[11, 12]);
    wait_for_tag(&fake, Some("v2"));
    assert_eq!(source(&weir, "app")["source"], "consul web, tag v2");
    fake.set("web", &instances(&[b, c]));
    steady.only(&[12, 13]);

    // A service with a source is added, and requests go there.
    fake.set("other", &instances(&[a]));
    let added = with(
        "consul = \"web\"",
        "[service.other]\ndiscover = { consul = \"other\" }\n[[route]]\npath = \"/other\"\nservice = \"other\"\n",
    );
    let other = added.replacen("[[route]]\nservice = \"app\"", "[[route]]\nservice = \"other\"", 1);
    reload(
        &scene,
        &weir,
        &other.replace("\"/other\"\nservice = \"other\"", "\"/app\"\nservice = \"app\""),
    );
    steady.only(&[11]);
    assert_eq!(standings(&weir, "other"), [(11, "listed".to_owned())]);

    // Without a source.
    let file = config(&scene, &consul, "", &server_tables("app", [a.address(), b.address()]));
    let file = file.replace("discover = {  }", "").replace(&consul, "");
    reload(&scene, &weir, &file);
    steady.only(&[11, 12]);
    assert_eq!(source(&weir, "app"), Value::Null);
    assert!(!weir.api("/api/v1/services").to_string().contains("consul"));
    wait::until("no question", SOON, || (fake.held() == 0).then_some(()));
    reload(&scene, &weir, &with("consul = \"web\"", ""));
    steady.only(&[12, 13]);
    steady.finish();
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let Some(scene) = Scene::new("discovery-reload-fails", &[]) else { return };
    let first = Server::start(&scene, 11);
    let fake = consul_with(&scene, &[&first]);
    let consul = consul_at(&fake.url());
    let text = config(&scene, &consul, "consul = \"web\", tag = \"v1\"", "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11]);
    let url = fake.url();
    let cases: [(&str, &str); 5] = [
        ("tag = \"v1\"", "tag = \"v2\", file_sd = \"a.json\""),
        ("tag = \"v1\"", "tag = \"\""),
        ("tag = \"v1\" }", "tag = \"v2\" }\nno_such_key = 1"),
        ("wait = \"1s\"", "wait = \"0s\""),
        (&url, "http://127.0.0.1:1/path"),
    ];
    for ((from, to), host) in cases.into_iter().zip(12..) {
        let new = Server::start(&scene, host);
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text, "{from}");
        scene.file("weir.toml", wrong);
        let answer = weir.ask("/api/v1/reload");
        assert_eq!(answer.status, 422, "{to}: {}", answer.text());
        wait_for_tag(&fake, Some("v1"));
        fake.set("web", &instances(&[&first, &new]));
        steady.only(&[11, host]);
        fake.set("web", &instances(&[&first]));
        steady.only(&[11]);
        wait_for_recovery(&weir, "app");
    }
    steady.finish();
}

#[test]
fn a_reload_while_consul_fails_keeps_the_servers() {
    let Some(scene) = Scene::new("discovery-reload-fault", &[]) else { return };
    let (a, b) = (&Server::start(&scene, 11), &Server::start(&scene, 12));
    let mut fake = consul_with(&scene, &[a, b]);
    let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    // How Weir asks, what it does with the answer, and something that has nothing to do with it.
    let cases = [
        ("workers = 2", "workers = 2\ndrain_max = \"9s\""),
        ("wait = \"1s\"", "wait = \"2s\"\ntoken = \"another\""),
        ("consul = \"web\"", "consul = \"web\", hold_max = \"5m\""),
    ];
    for ((from, to), host) in cases.into_iter().zip(13..) {
        let new = Server::start(&scene, host);
        println!("{to}");
        fake.stop();
        wait_for_error(&weir, "app", &["refused"]);
        reload(&scene, &weir, &text.replace(from, to));
        wait_for_error(&weir, "app", &["refused"]);
        steady.only(&[11, 12]);
        wait_for_standings(&weir, &[(&[11, 12], "listed")]);
        fake.start_again();
        wait_for_recovery(&weir, "app");
        fake.set("web", &instances(&[a, b, &new]));
        steady.only(&[11, 12, host]);
        fake.set("web", &instances(&[a, b]));
        steady.only(&[11, 12]);
        reload(&scene, &weir, &text);
        steady.only(&[11, 12]);
    }
    steady.finish();
}

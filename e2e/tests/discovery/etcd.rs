//! Servers from a real etcd: keys that come, change and expire, restarts with and without data, and compaction.

use e2e::etcd::{ETCD, Etcd};
use e2e::{Scene, Weir, wait};
use serde_json::Value;

use super::stage::{
    ETCD_PREFIX, SOON, Server, Steady, WATCH_ETCD, config, etcd_at, key, put, server, source,
    wait_for_error, wait_for_recovery, wait_for_standings,
};

/// An etcd that lists these servers, and a Weir with a steady client.
fn start(scene: &Scene, servers: &[&Server]) -> (Etcd, Weir, Steady) {
    let etcd = Etcd::start(scene, 20);
    put(&etcd, servers);
    let weir = Weir::start(scene, &config(scene, &etcd_at(&[&etcd.url()]), WATCH_ETCD, ""));
    let steady = Steady::start(&weir);
    (etcd, weir, steady)
}

#[test]
fn keys_come_change_and_go() {
    let Some(scene) = Scene::new("discovery-etcd", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (etcd, weir, steady) = start(&scene, &[a, b]);
    steady.only(&[11, 12]);
    let object = server(&weir, a.address())["listing"]["object"].clone();
    assert!(object.as_str().is_some_and(|text| key(a).ends_with(text)), "{object}");
    put(&etcd, &[c]);
    steady.only(&[11, 12, 13]);
    // Keys beside the prefix do not count.
    etcd.put("/services/web", &scene.address(14, 8080).to_string());
    etcd.put("/services/web2/x", &scene.address(14, 8080).to_string());
    etcd.delete(&key(c));
    steady.only(&[11, 12]);

    let values = format!(
        "{{\"address\": \"{}\", \"weight\": 9, \"zone\": \"here\", \"in_flight_max\": 7, \"version\": \"v2\"}}",
        a.address()
    );
    etcd.put(&key(a), &values);
    wait::until("the values", SOON, || (server(&weir, a.address())["weight"] == 9).then_some(()));
    let shown = server(&weir, a.address());
    assert_eq!((&shown["zone"], &shown["version"]), (&"here".into(), &"v2".into()));
    assert_eq!(shown["in_flight_max"], 7);
    wait::until("requests by weight", SOON, || {
        let seen = steady.next(400);
        (seen["11"] > 7 * seen.get("12").copied().unwrap_or(0)).then_some(())
    });

    // A value that is not valid takes its server away, and is shown.
    etcd.put(&key(a), &values.replace("weight", "wieght"));
    wait::until("the refusal", SOON, || (source(&weir, "app")["refused"] == 1).then_some(()));
    let example = source(&weir, "app")["refused_examples"][0].to_string();
    assert!(example.contains("wieght"), "{example}");
    etcd.put(&key(a), &format!("{{\"Op\": 0, \"Addr\": \"{}\", \"Metadata\": null}}", a.address()));
    steady.only(&[11, 12]);
    assert_eq!(source(&weir, "app")["refused"], 0);
    assert_eq!(source(&weir, "app")["error"], Value::Null);
    steady.finish();
}

#[test]
fn a_key_that_expires_leaves() {
    let Some(scene) = Scene::new("discovery-etcd-lease", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (etcd, weir, steady) = start(&scene, &[a, b]);
    steady.only(&[11, 12]);
    etcd.put_with_lease(&key(c), &c.address().to_string(), &etcd.lease(2));
    wait::until("a request at the new server", SOON, || (c.requests() > 0).then_some(()));
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    steady.only(&[11, 12]);
    steady.finish();
}

#[test]
fn keys_that_are_deleted_at_once_hold_their_servers() {
    let Some(scene) = Scene::new("discovery-etcd-emptied", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (etcd, weir, steady) = start(&scene, &[a, b, c]);
    steady.only(&[11, 12, 13]);
    etcd.delete_all(ETCD_PREFIX);
    wait_for_standings(&weir, &[(&[11, 12, 13], "held")]);
    steady.only(&[11, 12, 13]);
    put(&etcd, &[a, b]);
    wait_for_standings(&weir, &[(&[11, 12], "listed"), (&[13], "held")]);
    steady.only(&[11, 12]);
    steady.finish();
}

#[test]
fn etcd_is_killed_and_returns_with_its_keys_and_without() {
    let Some(scene) = Scene::new("discovery-etcd-killed", &[ETCD]) else { return };
    let servers = [11, 12, 13, 14].map(|host| Server::start(&scene, host));
    let [a, b, c, d] = &servers;
    let (mut etcd, weir, steady) = start(&scene, &[a, b]);
    steady.only(&[11, 12]);
    etcd.kill();
    println!("{}", wait_for_error(&weir, "app", &["refused"]));
    steady.only(&[11, 12]);
    etcd.restart(&scene, true);
    wait_for_recovery(&weir, "app");
    put(&etcd, &[c]);
    steady.only(&[11, 12, 13]);

    // The revisions begin again at 1, so that Weir's watch would wait for one that comes much later.
    for n in 0..50 {
        etcd.put("/other", &n.to_string());
    }
    etcd.restart(&scene, false);
    wait_for_standings(&weir, &[(&[11, 12, 13], "held")]);
    steady.only(&[11, 12, 13]);
    put(&etcd, &[a, b, c, d]);
    steady.only(&[11, 12, 13, 14]);
    wait_for_recovery(&weir, "app");
    steady.finish();
}

#[test]
fn changes_that_were_compacted_away_are_seen() {
    let Some(scene) = Scene::new("discovery-etcd-compacted", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let (mut etcd, weir, steady) = start(&scene, &[a, b]);
    steady.only(&[11, 12]);
    etcd.restart_hidden(&scene);
    wait_for_error(&weir, "app", &["refused"]);
    put(&etcd, &[c]);
    let last = etcd.delete(&key(b));
    etcd.compact(last);
    steady.only(&[11, 12]);
    etcd.restart(&scene, true);
    steady.only(&[11, 13]);
    wait_for_recovery(&weir, "app");
    put(&etcd, &[b]);
    steady.only(&[11, 12, 13]);
    steady.finish();
}

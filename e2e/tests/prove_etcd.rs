//! Weir follows a real etcd through elections, bursts of changes and a restore, while a steady client loses no
//! request. Part of `make prove`.

#[path = "discovery/proof.rs"]
#[allow(dead_code, reason = "prove_consul uses the rest")]
mod proof;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "discovery uses the rest")]
mod stage;

use std::time::{Duration, Instant};

use e2e::etcd::{Cluster, ETCD, Etcd, post, put_body};
use e2e::http::Connection;
use e2e::{Scene, Weir, wait};
use proof::{Table, seen};
use serde_json::json;
use stage::{
    ETCD_PREFIX, SOON, Server, Steady, WATCH_ETCD, config, etcd_at, key, put, server, source,
    wait_for_recovery, wait_for_standings,
};

/// The key of a server that is none.
fn numbered(n: u32) -> String {
    format!("{ETCD_PREFIX}{n}")
}

#[test]
#[ignore = "part of `make prove`"]
fn the_leader_of_three_members_is_killed() {
    let Some(scene) = Scene::new("prove-etcd-cluster", &[ETCD]) else { return };
    let servers = [11, 12, 13, 14].map(|host| Server::start(&scene, host));
    let [a, b, c, d] = &servers;
    let mut cluster = Cluster::start(&scene, [20, 21, 22]);
    put(&cluster.members()[0], &[a, b]);
    let urls: Vec<String> = cluster.members().iter().map(Etcd::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let weir = Weir::start(&scene, &config(&scene, &etcd_at(&urls), WATCH_ETCD, ""));
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    // Each of them is killed while it leads; the one that Weir asks is among them.
    for (round, new) in [c, d].into_iter().enumerate() {
        let killed = cluster.kill_leader();
        let from = Instant::now();
        let mut errors = Vec::new();
        while from.elapsed() < Duration::from_secs(5) {
            let shown = source(&weir, "app");
            assert_eq!(
                (&shown["listed"], &shown["held"]),
                (&(2 + round).into(), &0.into()),
                "{shown:#}"
            );
            errors.extend(shown["error"].as_str().map(str::to_owned));
            table.steady.next(20);
        }
        errors.dedup();
        let leader = cluster.leader();
        put(&cluster.members()[leader], &[new]);
        let hosts = &[11, 12, 13, 14][..3 + round];
        let after = seen(&weir, &[(hosts, "listed")]);
        table.steady.only(hosts);
        wait_for_recovery(&weir, "app");
        table.row("leader killed, then a new key", &format!("errors {errors:?}"), after);
        let member = &mut cluster.members()[killed];
        member.restart(&scene, true);
        member.wait_until_ready();
    }
    let leader = cluster.leader();
    cluster.members()[leader].delete(&key(d));
    let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("all are back; a key is deleted", "3 listed", after);
    table.finish();
}

#[test]
#[ignore = "part of `make prove`"]
fn ten_thousand_puts_in_a_burst() {
    const WRITES: u32 = 10_000;
    const WRITERS: u32 = 32;
    const OTHERS: u32 = 500;
    let Some(scene) = Scene::new("prove-etcd-burst", &[ETCD]) else { return };
    let servers = [11, 12].map(|host| Server::start(&scene, host));
    let [a, b] = &servers;
    let etcd = Etcd::start(&scene, 20);
    put(&etcd, &[a, b]);
    // Keys that are deleted in a burst leave together with most others.
    let discover = format!("{WATCH_ETCD}, hold_max = \"0s\"");
    let weir = Weir::start(&scene, &config(&scene, &etcd_at(&[&etcd.url()]), &discover, ""));
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    let value = |weight: u32| json!({ "address": b.address(), "weight": weight }).to_string();
    let write = |from: u32| {
        let mut connection = Connection::open(etcd.harness_address()).unwrap();
        for n in (from..WRITES).step_by(WRITERS as usize) {
            // Every 20th is a new backup, which gets no requests; the others change a weight.
            let body = if n % 20 == 0 {
                let backup = json!({ "address": format!("127.0.0.3:{}", 1 + n), "backup": true });
                put_body(&numbered(n), &backup.to_string())
            } else {
                put_body(&key(b), &value(1 + n % 9))
            };
            let answer = post(&mut connection, "/v3/kv/put", &[], &body).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        (0..WRITERS).for_each(|from| drop(scope.spawn(move || write(from))));
    });
    etcd.put(&key(b), &value(77));
    let (took, written) = (begun.elapsed(), Instant::now());
    wait::until("the last change", SOON, || {
        (server(&weir, b.address())["weight"] == 77).then_some(())
    });
    let after = written.elapsed();
    let shown = source(&weir, "app");
    assert_eq!(
        (&shown["listed"], &shown["refused"]),
        (&(2 + OTHERS).into(), &0.into()),
        "{shown:#}"
    );
    let rate = f64::from(WRITES) / took.as_secs_f64();
    table.row(&format!("{WRITES} puts, {rate:.0}/s"), &format!("{} listed", 2 + OTHERS), after);
    let begun = Instant::now();
    for n in (0..WRITES).step_by(20) {
        etcd.delete(&numbered(n));
    }
    let after = seen(&weir, &[(&[11, 12], "listed")]);
    table.steady.only(&[11, 12]);
    let shown = format!("2 listed, {} ms after the first", begun.elapsed().as_millis());
    table.row(&format!("{OTHERS} keys are deleted"), &shown, after);
    table.finish();
}

#[test]
#[ignore = "part of `make prove`"]
fn etcd_begins_again_without_its_data() {
    let Some(scene) = Scene::new("prove-etcd-empty", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let mut etcd = Etcd::start(&scene, 20);
    for n in 0..1000 {
        etcd.put("/other", &n.to_string());
    }
    put(&etcd, &[a, b, c]);
    let weir = Weir::start(&scene, &config(&scene, &etcd_at(&[&etcd.url()]), WATCH_ETCD, ""));
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    for round in 1..=3 {
        etcd.restart(&scene, false);
        let after = seen(&weir, &[(&[11, 12, 13], "held")]);
        table.steady.only(&[11, 12, 13]);
        table.row(&format!("restarted without its data ({round})"), "3 held", after);
        put(&etcd, &[a, b]);
        let after = seen(&weir, &[(&[11, 12], "listed"), (&[13], "held")]);
        table.steady.only(&[11, 12]);
        table.row("two keys are set again", "2 listed, 1 held", after);
        put(&etcd, &[c]);
        let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
        table.steady.only(&[11, 12, 13]);
        table.row("the third is set again", "3 listed", after);
        wait_for_recovery(&weir, "app");
    }
    table.finish();
}

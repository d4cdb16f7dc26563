//! Weir follows SRV records of a real Knot DNS through changes of the zone, an empty one and restarts, while a steady
//! client loses no request. Part of `make prove`.

#[path = "discovery/proof.rs"]
#[allow(dead_code, reason = "prove_consul uses the rest")]
mod proof;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "discovery uses the rest")]
mod stage;

use std::time::Instant;

use e2e::knot::{KNOT, Knot};
use e2e::{Scene, Weir, wait};
use proof::{Table, seen};
use stage::{
    SOON, Server, Steady, config, server, source, wait_for_error, wait_for_recovery,
    wait_for_standings,
};

/// SRV records of `_http._tcp.web`: host, priority and weight of each, and the addresses of the targets.
fn records(scene: &Scene, all: &[(u8, u16, u16)]) -> String {
    let record = |&(host, priority, weight): &(u8, u16, u16)| {
        format!(
            "_http._tcp.web SRV {priority} {weight} 8080 s{host}.web\ns{host}.web A {}\n",
            scene.ip(host)
        )
    };
    all.iter().map(record).collect()
}

#[test]
#[ignore = "needs a program that only `make prove` installs"]
fn a_zone_changes_empties_and_is_not_served() {
    let Some(scene) = Scene::new("prove-dns-srv", &KNOT) else { return };
    let servers = [11, 12, 13, 14].map(|host| Server::start(&scene, host));
    let first = [(11, 10, 1), (12, 10, 1), (13, 20, 0)];
    let mut knot = Knot::start(&scene, 20, &records(&scene, &first));
    let top = format!("resolver = \"{}\"", knot.address());
    let discover = "dns_srv = \"_http._tcp.web.example\"";
    let weir = Weir::start(&scene, &config(&scene, &top, discover, ""));
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);

    knot.set(&scene, &records(&scene, &[(12, 10, 1), (14, 10, 9), (13, 20, 0)]));
    let after = seen(&weir, &[(&[12, 13, 14], "listed")]);
    table.steady.only(&[12, 14]);
    table.row("another server, with another weight", "3 listed, 1 of them a backup", after);
    wait::until("requests by weight", SOON, || {
        let seen = table.steady.next(400);
        (seen["14"] > 7 * seen.get("12").copied().unwrap_or(0)).then_some(())
    });
    knot.set(&scene, &records(&scene, &[(13, 20, 0), (12, 30, 0)]));
    let changed = Instant::now();
    table.steady.only(&[13]);
    table.row("the lowest priority is gone", "the next one serves", changed.elapsed());
    knot.set(&scene, &records(&scene, &first));
    let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12]);
    table.row("it is back", "3 listed", after);

    knot.set(&scene, "");
    let emptied = Instant::now();
    let error = wait_for_error(&weir, "app", &["no such name"]);
    let after = emptied.elapsed();
    table.steady.only(&[11, 12]);
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.row("the zone is empty (NXDOMAIN)", &error, after);
    knot.set(&scene, "_http._tcp.web TXT none");
    let emptied = Instant::now();
    table.steady.only(&[11, 12]);
    wait_for_error(&weir, "app", &["no SRV records"]);
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.row("the name has no SRV records", "3 listed", emptied.elapsed());
    knot.set(&scene, &records(&scene, &first));
    let filled = Instant::now();
    wait_for_recovery(&weir, "app");
    table.row("the records are back", "3 listed", filled.elapsed());

    knot.kill();
    let killed = Instant::now();
    let error = wait_for_error(&weir, "app", &[]);
    let after = killed.elapsed();
    table.steady.only(&[11, 12]);
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.row("knot is killed", &error, after);
    knot.start_again(&scene);
    let ready = Instant::now();
    wait_for_recovery(&weir, "app");
    let after = ready.elapsed();
    knot.set(&scene, &records(&scene, &[(11, 10, 1), (12, 10, 1), (14, 10, 1)]));
    wait_for_standings(&weir, &[(&[11, 12, 14], "listed")]);
    table.steady.only(&[11, 12, 14]);
    table.row("knot is started again", "3 listed", after);
    assert!(servers.iter().all(|one| one.requests() > 0), "every server has had its turn");
    table.finish();
}

/// 200 records do not fit into a datagram, so that the answer is truncated and Weir asks again over TCP.
#[test]
#[ignore = "needs a program that only `make prove` installs"]
fn two_hundred_records_come_over_tcp() {
    let Some(scene) = Scene::new("prove-dns-srv-tcp", &KNOT) else { return };
    let servers = [11, 12].map(|host| Server::start(&scene, host));
    let mut all = vec![(11, 10, 1), (12, 10, 1)];
    // Backups, at which nothing listens.
    all.extend((30..228).map(|host| (host, 20, 1)));
    let mut knot = Knot::start(&scene, 20, &records(&scene, &all));
    let top = format!("resolver = \"{}\"", knot.address());
    let discover = "dns_srv = \"_http._tcp.web.example\"";
    let started = Instant::now();
    let weir = Weir::start(&scene, &config(&scene, &top, discover, ""));
    wait::until("all records", SOON, || (source(&weir, "app")["listed"] == 200).then_some(()));
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);
    table.row("200 records", "200 listed", started.elapsed());
    all[1].2 = 5;
    knot.set(&scene, &records(&scene, &all));
    let changed = Instant::now();
    wait::until("the weight", SOON, || {
        let [a, b] = servers.each_ref().map(|one| server(&weir, one.address())["weight"].clone());
        (b.as_u64()? == 5 * a.as_u64()?).then_some(())
    });
    table.row("one weight of 200 changes", "in use", changed.elapsed());
    table.finish();
}

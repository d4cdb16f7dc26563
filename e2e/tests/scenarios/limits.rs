//! What the limits guarantee, with the duration as an argument: short ones run in
//! `limits.rs`, long ones in `prove_limits.rs`, a timed one in `measure_limits.rs`.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::time::Duration;

use e2e::clients::{Wrk, ab, wrk};
use e2e::{App, Scene, Weir, wait};

/// wrk with 256 connections against two servers of four slots each, over two services that share
/// them. Returns what wrk saw; the servers' own counts are asserted.
pub(crate) fn never_more_than_the_limit(scene: &Scene, seconds: u32) -> Wrk {
    let apps = [11, 12].map(|host| App::start(scene, host, &["--work-ms", "2", "--size", "200"]));
    let service = "in_flight_max = 4\nqueue = { length_max = 1000, wait_max = \"20s\" }";
    // More workers than cores, so that the count is really shared.
    let config = scene.one_service(service, &apps.each_ref().map(App::address));
    let config = config.replace("workers = 2", "workers = 4");
    let weir = Weir::start(scene, &config);
    let most = || apps.each_ref().map(|app| app.stat("in_flight_max"));
    let seen = std::thread::scope(|scope| {
        let front = weir.front();
        let load = scope.spawn(move || wrk(scene, front, "/", 256, seconds));
        wait::measure_for(Duration::from_secs(u64::from(seconds) - 1));
        assert_eq!(most(), [4, 4], "under load: never more than the limit, and all of it");
        load.join().expect("wrk")
    });
    assert_eq!((seen.non_2xx_3xx, seen.socket_errors), (0, 0), "{seen:?}");
    // wrk ends by closing its connections in the middle of their requests. The servers go on
    // working on what they have, so its slots must not be given to others yet.
    assert_eq!(most(), [4, 4], "after the clients went away");
    seen
}

/// 24 clients over 6 servers of 4 slots, work of 300 ms and 50 kB: the share of the slots that
/// were busy, as the servers measured it.
pub(crate) fn busy_share(scene: &Scene, measured: Duration) -> f64 {
    let apps: Vec<App> = (11..17)
        .map(|host| App::start(scene, host, &["--work-ms", "300", "--size", "50000"]))
        .collect();
    let servers: Vec<_> = apps.iter().map(App::address).collect();
    let service = "balance = \"least-connections\"\nin_flight_max = 4";
    let weir = Weir::start(scene, &scene.one_service(service, &servers));
    let warm_up_s = 2;
    std::thread::scope(|scope| {
        let seconds = (measured.as_secs_f64() + 3.0).ceil() as u32 + warm_up_s;
        let load = scope.spawn(move || ab(scene, scene.front(), "/", 24, seconds));
        wait::until("every slot to be in use", Duration::from_secs(10), || {
            let in_use: u64 = apps.iter().map(|app| app.stat("in_flight")).sum();
            (in_use >= 20).then_some(())
        });
        apps.iter().for_each(App::reset);
        wait::measure_for(measured);
        let stats: Vec<_> = apps.iter().map(App::stats).collect();
        let sum = |name: &str| stats.iter().map(|s| s[name].as_f64().unwrap()).sum::<f64>();
        let share = sum("busy_s") / (4.0 * sum("window_s"));
        for row in &stats {
            println!("{}: {} requests, busy {}", row["name"], row["requests"], row["busy_s"]);
            assert!(row["in_flight_max"].as_u64().unwrap() <= 4, "{row}");
        }
        let seen = load.join().expect("ab");
        assert_eq!((seen.non_2xx, seen.failed), (0, 0), "{seen:?}");
        println!("busy: {:.2} % of 24 slots; {:.1} requests/s", share * 100.0, seen.per_second);
        drop(weir);
        share
    })
}

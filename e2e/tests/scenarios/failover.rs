//! What happens to requests when servers and zones go away and come back, over as many rounds as
//! asked for: one in `failover.rs`, more in `prove_failover.rs`; how long requests wait is judged in
//! `measure_failover.rs`.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::time::Duration;

use e2e::clients::{Load, Report};
use e2e::{App, Scene, Weir, Zones, wait};

const CHECK: &str =
    "check = { path = \"/status\", interval = \"400ms\", timeout = \"300ms\", rise = 2, fall = 2 }";

/// From the moment a server stops answering until it is marked down, at worst: the probe that is
/// just over, then `fall` intervals with their jitter of a tenth, and the last one's timeout.
pub(crate) const DETECTION: Duration = Duration::from_millis(400 * 2 + 80 + 300);

const CLIENTS: u32 = 16;

/// Until a failure is logged, on a busy machine.
const NOTICED_WITHIN: Duration = Duration::from_secs(15);

/// Idempotent requests see no error but responses that had begun.
fn unharmed(load: Load, rounds: u64) -> Report {
    let report = load.finish();
    println!("{:#}", report.json);
    assert_eq!(report.without_response(), 0, "no response at all: {:#}", report.json);
    assert!(
        report.broken_off() <= rounds * u64::from(CLIENTS),
        "at most what had begun may break off: {:#}",
        report.json
    );
    assert_eq!(report.status(200) + report.broken_off(), report.requests(), "{:#}", report.json);
    report
}

fn wait_until_serving(app: &App) {
    app.reset();
    wait::until(&format!("{} to be given requests", app.name()), Duration::from_secs(10), || {
        (app.stat("requests") >= 20).then_some(())
    });
}

/// SIGKILL of one of three servers under load, and its return; yields what clients saw.
pub(crate) fn a_server_is_killed_and_returns(scene: &Scene, rounds: u64) -> Report {
    let mut apps: Vec<App> =
        [11, 12, 13].map(|host| App::start(scene, host, &["--work-ms", "5"])).into();
    let servers: Vec<_> = apps.iter().map(App::address).collect();
    let weir = Weir::start(scene, &scene.one_service(CHECK, &servers));
    let load = Load::start(scene, weir.front(), "/?size=2000", CLIENTS);
    apps.iter().for_each(wait_until_serving);
    for round in 0..rounds {
        let app = &mut apps[(round % 3) as usize];
        let address = app.address().to_string();
        let logged = weir.log().len();
        app.kill();
        weir.wait_for_log_from(logged, &[&address, "down"], NOTICED_WITHIN);
        let logged = weir.log().len();
        app.restart(scene);
        weir.wait_for_log_from(logged, &[&address, "up"], NOTICED_WITHIN);
        wait_until_serving(app);
    }
    unharmed(load, rounds)
}

/// One of two zones is cut off by dropped packets under load, and comes back; yields what clients saw.
pub(crate) fn a_zone_is_cut_off_and_returns(scene: &Scene, rounds: u64) -> Report {
    Zones::run(&["a", "b"], |zones| {
        let start = |zone: &str, host: u8| {
            let address = zones.address(zone, host, 8080);
            let name = format!("{zone}{host}");
            zones.inside(zone, || App::start_at(scene, &name, address, &["--work-ms", "10"]))
        };
        let a = [start("a", 11), start("a", 12)];
        let b = [start("b", 11), start("b", 12)];
        let tables = |apps: &[App], zone: &str| -> String {
            let table = |app: &App| {
                format!(
                    "[[service.app.server]]\naddress = \"{}\"\nzone = \"{zone}\"\n",
                    app.address()
                )
            };
            apps.iter().map(table).collect()
        };
        // No zone of its own: both zones serve, so that a cut hits requests under way.
        let config = scene.config(
            "workers = 2",
            &format!(
                "[[route]]\nservice = \"app\"\n[service.app]\n{CHECK}\n{}{}",
                tables(&a, "a"),
                tables(&b, "b")
            ),
        );
        let weir = Weir::start(scene, &config);
        let load = Load::start(scene, weir.front(), "/?size=2000", CLIENTS);
        a.iter().chain(&b).for_each(wait_until_serving);
        for _ in 0..rounds {
            let logged = weir.log().len();
            zones.cut("b");
            for app in &b {
                let address = app.address().to_string();
                weir.wait_for_log_from(logged, &[&address, "down"], NOTICED_WITHIN);
            }
            a.iter().for_each(wait_until_serving);
            let logged = weir.log().len();
            zones.restore("b");
            for app in &b {
                let address = app.address().to_string();
                weir.wait_for_log_from(logged, &[&address, "up"], NOTICED_WITHIN);
                wait_until_serving(app);
            }
        }
        unharmed(load, rounds)
    })
}

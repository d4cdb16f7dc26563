//! The health-check storm of many services over the same servers, measured for as long as asked:
//! a few seconds in `health.rs`, a minute in `prove_health.rs`.

use std::time::Duration;

use e2e::{App, Scene, Weir, run, wait};

/// 70 services over the same 4 servers, each checked every 2 s: 2 probes/s in all, not 140.
pub(crate) fn each_distinct_probe_runs_once(scene: &Scene, measured: Duration) {
    let apps = [11, 12, 13, 14].map(|host| App::start(scene, host, &[]));
    let service = |n: usize| {
        let name = format!("s{n}");
        let servers = e2e::server_tables(&name, apps.each_ref().map(App::address));
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\n\
             check = {{ path = \"/status\", expect = 200, interval = \"2s\" }}\n{servers}"
        )
    };
    let services: String = (0..70).map(service).collect();
    let config = scene.config("", &services);

    let plan = run(scene, &["check", &scene.file("storm.toml", &config).to_string_lossy()]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    assert!(plan.stdout.contains("140"), "the plan says what it saves: {}", plan.stdout);

    let _weir = Weir::start(scene, &config);
    wait::until("every server to be probed", Duration::from_secs(10), || {
        apps.iter().all(|app| app.stat("probes") > 0).then_some(())
    });
    apps.iter().for_each(App::reset);
    wait::measure_for(measured);
    let probes: u64 = apps.iter().map(|app| app.stat("probes")).sum();
    let per_second = probes as f64 / measured.as_secs_f64();
    println!("{probes} probes in {measured:?}: {per_second:.2}/s");
    // A window may cut off or take in one probe of each server.
    let slack = 4.0 / measured.as_secs_f64() + 0.2;
    assert!((per_second - 2.0).abs() <= slack, "{per_second:.2} probes/s instead of 2");
}

//! Rate limits that hold over the fleet (`scope = "fleet"`).

use std::net::SocketAddr;

use e2e::{App, Scene, Zones, http, run, wait};
use serde_json::Value;

use super::stage::{Member, SERVERS, SOON, Settings, cut, start_apps, wait_until_all_see};

/// Requests per second that pass, over the fleet.
pub(crate) const LIMIT: f64 = 100.0;

/// A route with this limit.
fn route(apps: &[App]) -> String {
    let servers = e2e::server_tables("app", apps.iter().map(App::address));
    format!(
        "[[route]]\nservice = \"app\"\n\
         rate_limit = {{ requests = {LIMIT}, per = \"1s\", burst = 20, scope = \"fleet\" }}\n{servers}"
    )
}

/// Members that each know all others.
pub(crate) fn start(scene: &Scene, apps: &[App], count: usize) -> Vec<Member> {
    let settings = Settings { knows: (0..count).collect(), ..Settings::new(&route(apps)) };
    let start = |number| Member::start_unready(scene, number, &settings);
    let members: Vec<Member> = (0..count).map(start).collect();
    members.iter().for_each(Member::wait_until_ready);
    wait_until_all_see(&members, count - 1);
    members
}

/// Requests to some members at a rate each, for a time. Returns how many passed, per second, and how many were
/// refused.
pub(crate) fn pass(scene: &Scene, members: &[(&Member, f64)], seconds: u32) -> (f64, u64) {
    let (mut passed, mut refused) = (0.0, 0);
    std::thread::scope(|scope| {
        let load = |(member, rate): &(&Member, f64)| {
            let (front, rate) = (member.front(scene), *rate);
            scope.spawn(move || bench(scene, front, rate, seconds))
        };
        let loads: Vec<_> = members.iter().map(load).collect();
        for load in loads {
            let run = load.join().expect("bench");
            let status = |class: &str| run["totals"]["statuses"][class].as_u64().unwrap_or(0);
            assert_eq!(
                run["totals"]["requests"].as_u64(),
                Some(status("200") + status("429")),
                "{run}"
            );
            passed += status("200") as f64 / f64::from(seconds);
            refused += status("429");
        }
    });
    (passed, refused)
}

fn bench(scene: &Scene, front: SocketAddr, per_s: f64, seconds: u32) -> Value {
    let (url, per_s, time) = (format!("http://{front}/"), per_s.to_string(), format!("{seconds}s"));
    let file = scene.folder().join(format!("bench-{}.json", front.ip()));
    let file = file.to_str().expect("a path");
    let words = ["bench", "-q", "--rate", &per_s, "-t", &time, "--json", file, &url];
    let run = run(scene, &words);
    let text =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    serde_json::from_str(&text).expect("a run")
}

#[test]
fn a_rate_limit_over_the_fleet_counts_the_requests_of_all_members() {
    let Some(scene) = Scene::new("fleet-rates", &["python3", "nft"]) else { return };
    Zones::run(&[SERVERS], |zones| limit_rates(&scene, zones));
}

/// How much more than the limit may pass in so many seconds: what may come at once, at first at each of three
/// members, and one part in ten of the rest.
fn most(limit: f64, seconds: u32) -> f64 {
    1.1 * limit + 3.0 * 20.0 / f64::from(seconds)
}

/// How much passes at least: on a busy machine, requests come in waves.
fn least(limit: f64) -> f64 {
    0.5 * limit
}

fn limit_rates(scene: &Scene, zones: &Zones) {
    let apps = start_apps(scene, zones, 2, &[]);
    let members = start(scene, &apps, 3);
    let all: Vec<&Member> = members.iter().collect();
    let equal = |per_s: f64| all.iter().map(|one| (*one, per_s)).collect::<Vec<_>>();

    let (passed, refused) = pass(scene, &[(all[1], 0.8 * LIMIT)], 3);
    assert_eq!(refused, 0, "{passed} per second at one member alone, less than the limit");
    let (passed, refused) = pass(scene, &equal(LIMIT), 6);
    assert!(
        (least(LIMIT)..=most(LIMIT, 6)).contains(&passed) && refused > 0,
        "{passed} per second"
    );
    show(scene, all[1]);

    // The third is cut off.
    zones.nft_here(&cut(scene, &[2], &[0, 1]));
    wait::until("the partition to be noticed", SOON, || {
        (all[2].others().is_empty() && all[1].others().len() == 1).then_some(())
    });
    for (part, at) in [(2.0 / 3.0, &all[..2]), (1.0 / 3.0, &all[2..])] {
        let loads: Vec<_> = at.iter().map(|one| (*one, LIMIT)).collect();
        let (passed, _) = pass(scene, &loads, 6);
        let wanted = least(LIMIT * part)..=most(LIMIT * part, 6);
        assert!(wanted.contains(&passed), "{passed} per second at {} members", at.len());
    }
    let status = run(scene, &["status", "--admin", &all[2].admin().to_string()]).stdout;
    assert!(status.contains("so 33% of each limit is used"), "{status}");
    zones.nft_here("delete table inet cut");
    wait_until_all_see(&members, 2);
    let (passed, refused) = pass(scene, &[(all[0], 0.8 * LIMIT)], 3);
    assert_eq!(refused, 0, "{passed} per second after the partition");
}

/// Status and metrics name the limits.
fn show(scene: &Scene, member: &Member) {
    assert_eq!(member.fleet()["rates"]["limits"], 1);
    let status = run(scene, &["status", "--admin", &member.admin().to_string()]).stdout;
    assert!(status.contains("rate limits: 1 limit shared"), "{status}");
    let metrics = http::get(member.admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("weir_fleet_rate_limit_ratio 1"), "{metrics}");
}

//! The servers' limits that members share (`in_flight_scope = "fleet"`).

use std::time::Duration;

use e2e::clients::wrk;
use e2e::{App, Scene, Zones, http, run, wait};

use super::stage::{Member, SERVERS, SOON, Settings, cut, start_apps, wait_until_all_see};

/// The limit of each server, over the fleet.
const LIMIT: u64 = 4;
/// Connections of each client.
const CONNECTIONS: u32 = 16;

/// A service with these servers, whose limit the fleet shares.
fn service(apps: &[App]) -> String {
    let servers = e2e::server_tables("app", apps.iter().map(App::address));
    format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = {LIMIT}\nin_flight_scope = \"fleet\"\n\
         queue = {{ length_max = 500, wait_max = \"20s\" }}\ntimeouts = {{ total = \"8s\" }}\n{servers}"
    )
}

/// Members that each know all others.
pub(crate) fn start(scene: &Scene, apps: &[App], count: usize) -> Vec<Member> {
    let settings = Settings { knows: (0..count).collect(), ..Settings::new(&service(apps)) };
    let start = |number| Member::start_unready(scene, number, &settings);
    let members: Vec<Member> = (0..count).map(start).collect();
    members.iter().for_each(Member::wait_until_ready);
    wait_until_all_see(&members, count - 1);
    members.iter().for_each(wait_until_settled);
    members
}

fn wait_until_settled(member: &Member) {
    wait::until("shares of the servers' slots", SOON, || {
        let is_settled = member.fleet()["slots"]["is_settled"] == true;
        (is_settled && slots_of(member, "servers") == 2).then_some(())
    });
}

/// Requests by these members for some seconds. Returns the most requests in flight that each server saw. All
/// requests are answered.
fn most_in_flight(scene: &Scene, apps: &[App], members: &[&Member], seconds: u32) -> Vec<u64> {
    apps.iter().for_each(App::reset);
    let fronts: Vec<_> = members.iter().map(|member| member.front(scene)).collect();
    std::thread::scope(|scope| {
        let load = |front| scope.spawn(move || wrk(scene, front, "/", CONNECTIONS, seconds));
        let loads: Vec<_> = fronts.into_iter().map(load).collect();
        for load in loads {
            let seen = load.join().expect("wrk");
            assert_eq!((seen.non_2xx_3xx, seen.socket_errors), (0, 0), "{seen:?}");
            assert!(seen.requests > 0, "{seen:?}");
        }
    });
    apps.iter().map(|app| app.stat("in_flight_max")).collect()
}

/// Returns the share of the slots that is busy while 96 clients of these members wait, as the servers measure it.
/// All requests are answered, and each server has as many in flight as its limit allows at times, and never more.
pub(crate) fn busy_share(scene: &Scene, apps: &[App], members: &[Member]) -> f64 {
    const MEASURED: Duration = Duration::from_secs(15);
    let connections = 96 / u32::try_from(members.len()).expect("few members");
    std::thread::scope(|scope| {
        let load = |front| scope.spawn(move || wrk(scene, front, "/", connections, 20));
        let loads: Vec<_> = members.iter().map(|member| member.front(scene)).map(load).collect();
        wait::measure_for(Duration::from_secs(3));
        apps.iter().for_each(App::reset);
        wait::measure_for(MEASURED);
        let stats: Vec<_> = apps.iter().map(App::stats).collect();
        for load in loads {
            let seen = load.join().expect("wrk");
            assert_eq!((seen.non_2xx_3xx, seen.socket_errors), (0, 0), "{seen:?}");
            assert!(seen.requests > 0, "{seen:?}");
        }
        let most = stats.iter().map(|row| row["in_flight_max"].as_u64());
        assert!(most.eq([Some(LIMIT); 2]), "{stats:?}");
        let sum = |name: &str| -> f64 { stats.iter().filter_map(|row| row[name].as_f64()).sum() };
        sum("busy_s") / (LIMIT as f64 * sum("window_s"))
    })
}

#[test]
fn a_limit_over_the_fleet_is_never_exceeded_and_goes_where_requests_wait() {
    let Some(scene) = Scene::new("fleet-slots", &["python3", "wrk", "nft"]) else { return };
    Zones::run(&[SERVERS], |zones| share_limits(&scene, zones));
}

fn share_limits(scene: &Scene, zones: &Zones) {
    let apps = start_apps(scene, zones, 2, &["--work-ms", "10"]);
    let mut members = start(scene, &apps, 3);
    let shares: Vec<u64> = members.iter().map(|one| slots_of(one, "share")).collect();
    assert_eq!(shares.iter().sum::<u64>(), 2 * LIMIT, "{shares:?}");

    let all: Vec<&Member> = members.iter().collect();
    assert_eq!(most_in_flight(scene, &apps, &all, 3), [LIMIT, LIMIT], "all members");
    assert_eq!(most_in_flight(scene, &apps, &all[..1], 2), [LIMIT, LIMIT], "one member");
    show(scene, &members[1]);

    partition(scene, zones, &apps, &members);

    // One that dies keeps its share while it is in the list of members, and has it again when it is back.
    members[2].process().kill();
    members.truncate(2);
    let all: Vec<&Member> = members.iter().collect();
    let during = most_in_flight(scene, &apps, &all, 3);
    assert!(during.iter().all(|most| *most <= LIMIT), "after a death: {during:?}");
    let settings = Settings { knows: vec![0, 1, 2], ..Settings::new(&service(&apps)) };
    members.push(Member::start(scene, 2, &settings));
    wait_until_all_see(&members, 2);
    wait_until_settled(&members[2]);
    let all: Vec<&Member> = members.iter().collect();
    let after = most_in_flight(scene, &apps, &all, 3);
    assert!(after.iter().all(|most| *most <= LIMIT), "after a restart: {after:?}");
}

/// A partition begins while one member has the others' slots.
fn partition(scene: &Scene, zones: &Zones, apps: &[App], members: &[Member]) {
    let rules = cut(scene, &[0], &[1, 2]);
    let all: Vec<&Member> = members.iter().collect();
    std::thread::scope(|scope| {
        let before = scope.spawn(|| most_in_flight(scene, apps, &all[..1], 3));
        // Slots may still be lent from before: what counts is that requests use them.
        let share = slots_of(&members[0], "share");
        wait::until("requests in slots of others", SOON, || {
            let services = members[0].api("/api/v1/services");
            let servers = services["services"][0]["servers"].as_array()?.clone();
            let in_flight = servers.iter().filter_map(|server| server["in_flight"].as_u64());
            (in_flight.sum::<u64>() > share).then(|| zones.nft_here(&rules))
        });
        assert_eq!(before.join().expect("requests"), [LIMIT, LIMIT]);
    });
    wait::until("the others to have their slots back", SOON, || {
        members[1..].iter().all(|member| slots_of(member, "lent") == 0).then_some(())
    });
    wait::until("the partition to be noticed", SOON, || {
        (members[0].others().is_empty() && members[1].others().len() == 1).then_some(())
    });
    let during = most_in_flight(scene, apps, &all, 3);
    assert_eq!(during, [LIMIT, LIMIT], "each side has its shares");
    let part = most_in_flight(scene, apps, &all[1..], 2);
    assert!(part.iter().sum::<u64>() < 2 * LIMIT, "the other side's shares are unused: {part:?}");
    let missing = members[0].fleet()["slots"]["missing"].as_array().map_or(0, Vec::len);
    assert_eq!(missing, 2);

    zones.nft_here("delete table inet cut");
    wait_until_all_see(members, 2);
    wait::until("all slots to be lent", SOON, || {
        (most_in_flight(scene, apps, &all[1..2], 1) == [LIMIT, LIMIT]).then_some(())
    });
}

fn slots_of(member: &Member, which: &str) -> u64 {
    member.fleet()["slots"][which].as_u64().unwrap_or(0)
}

/// Status and metrics name the slots.
fn show(scene: &Scene, member: &Member) {
    let status = run(scene, &["status", "--admin", &member.admin().to_string()]).stdout;
    assert!(status.contains("2 servers"), "{status}");
    let metrics = http::get(member.admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("weir_fleet_slots{state=\"share\"}"), "{metrics}");
}

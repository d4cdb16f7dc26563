//! Tests of probe plans with a simulated clock.

use std::net::SocketAddr;

use model::{
    Address, CheckKind, HttpVersion, Material, ProxyVersion, Service, ServiceTls, StatusSet,
};

use super::*;
use crate::testing::service;

fn http(host: Option<&str>, interval_ms: u64) -> Arc<Check> {
    Arc::new(Check {
        kind: CheckKind::Http {
            method: "GET".into(),
            path: "/status".into(),
            host: host.map(Into::into),
            fields: vec![],
            expect: StatusSet(vec![(200, 200)]),
            body: model::BodyExpectation::default(),
            reuse: true,
        },
        port: None,
        clear_text: false,
        http: None,
        interval: Duration::from_millis(interval_ms),
        timeout: Duration::from_secs(1),
        rise: 2,
        fall: 3,
    })
}

fn address(n: u8) -> Address {
    SocketAddr::from(([10, 0, n, 5], 8080)).into()
}

fn consumer(id: u64, server: Address, check: Arc<Check>) -> Consumer {
    of_service(id, &service(&format!("service-{id}"), &check), &server.to_string(), server)
}

fn of_service(id: u64, service: &Service, name: &str, server: Address) -> Consumer {
    let probe = Arc::new(service.probe(name, server).expect("a check"));
    let check = Arc::new(service.check.clone().expect("a check"));
    Consumer { id: ConsumerId(id), service: service.name.clone(), check, probe }
}

/// Runs the plan for `seconds`, each probe ending after `probe_ms`; returns the starts.
fn simulate(plan: &mut Plan, seconds: u64, probe_ms: u64) -> Vec<(Moment, ProbeId)> {
    let end = Moment::from_millis(seconds * 1000);
    let mut ends: BTreeSet<(Moment, ProbeId)> = BTreeSet::new();
    let mut starts = Vec::new();
    while let Some(now) = plan.next_due().filter(|&due| due < end) {
        while let Some(&(at, id)) = ends.first().filter(|(at, _)| *at <= now) {
            ends.remove(&(at, id));
            plan.finished(id);
        }
        for id in plan.due(now, usize::MAX) {
            starts.push((now, id));
            ends.insert((now + Duration::from_millis(probe_ms), id));
        }
    }
    starts
}

fn seventy_over_four(interval_ms: u64) -> Vec<Consumer> {
    (0..280).map(|n| consumer(n, address((n % 4) as u8), http(Some("mesh"), interval_ms))).collect()
}

#[test]
fn seventy_services_over_four_endpoints_are_two_probes_a_second() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut plan = Plan::new(seventy_over_four(2000), Moment::ZERO, fastrand::Rng::with_seed(seed));
    assert_eq!(plan.len(), 4);
    let report = plan.report();
    assert!((report.probes_per_s() - 2.0).abs() < 1e-9);
    assert!((report.unshared_per_s() - 140.0).abs() < 1e-9);
    assert_eq!(report.rows.len(), 4);
    assert!(report.rows.iter().all(|row| (row.probes_per_s - 0.5).abs() < 1e-9));

    let starts = simulate(&mut plan, 1000, 5);
    assert!((1960..=2040).contains(&starts.len()), "{} starts in 1000 s", starts.len());
}

#[test]
fn first_starts_are_spread_evenly_and_later_ones_jittered_by_a_tenth() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let consumers = (0..100).map(|n| consumer(n, address(n as u8), http(None, 2000))).collect();
    let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(seed));
    let starts = simulate(&mut plan, 60, 1);
    // Of 100 probes, each tenth of the first interval gets its tenth, give or take one.
    let mut first: HashMap<ProbeId, Moment> = HashMap::new();
    for &(at, id) in &starts {
        first.entry(id).or_insert(at);
    }
    let mut tenths = [0; 10];
    for at in first.values() {
        tenths[(at.as_micros() / 200_000) as usize] += 1;
    }
    assert_eq!(tenths.iter().sum::<i32>(), 100);
    assert!(tenths.iter().all(|n| (8..=12).contains(n)), "{tenths:?}");

    let mut last: HashMap<ProbeId, Moment> = HashMap::new();
    let mut gaps = Vec::new();
    for &(at, id) in &starts {
        if let Some(before) = last.insert(id, at) {
            gaps.push(at.since(before).as_secs_f64());
        }
    }
    assert!(gaps.iter().all(|gap| (1.8..=2.2).contains(gap)));
    assert!(gaps.iter().any(|gap| *gap < 1.85) && gaps.iter().any(|gap| *gap > 2.15));
}

#[test]
fn anything_that_could_change_the_answer_keeps_two_checks_apart() {
    let now = Moment::ZERO;
    let rng = fastrand::Rng::with_seed(1);
    let hosts = vec![
        consumer(1, address(1), http(Some("a"), 2000)),
        consumer(2, address(1), http(Some("b"), 2000)),
    ];
    assert_eq!(Plan::new(hosts, now, rng.clone()).len(), 2);

    let mut on_port = (*http(Some("a"), 2000)).clone();
    on_port.port = Some(8080);
    let same_after_port = vec![
        consumer(1, address(1), http(Some("a"), 2000)),
        consumer(2, SocketAddr::from(([10, 0, 1, 5], 9999)).into(), Arc::new(on_port)),
    ];
    assert_eq!(Plan::new(same_after_port, now, rng).len(), 1);
}

#[test]
fn the_shortest_interval_asked_for_is_kept() {
    let consumers = vec![
        consumer(1, address(1), http(Some("a"), 10_000)),
        consumer(2, address(1), http(Some("a"), 1000)),
        consumer(3, address(1), http(Some("a"), 5000)),
    ];
    let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(7));
    let report = plan.report();
    assert!((report.probes_per_s() - 1.0).abs() < 1e-9);
    assert!((report.unshared_per_s() - 1.3).abs() < 1e-9);
    let starts = simulate(&mut plan, 100, 1);
    assert!((97..=103).contains(&starts.len()), "{}", starts.len());
}

#[test]
fn a_probe_that_still_runs_is_not_started_again() {
    let consumers = vec![consumer(1, address(1), http(None, 1000))];
    let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
    let starts = simulate(&mut plan, 100, 2500);
    // Each run spans two or three turns, and the next start is a turn of its own.
    assert!((28..=36).contains(&starts.len()), "{}", starts.len());
    assert!(starts.windows(2).all(|w| w[1].0.since(w[0].0) >= Duration::from_millis(2500)));
}

#[test]
fn without_room_a_probe_stays_due_and_starts_when_there_is() {
    let consumers = (0..10).map(|n| consumer(n, address(n as u8), http(None, 1000))).collect();
    let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
    let now = Moment::from_millis(1000);
    assert_eq!(plan.due(now, 4).len(), 4);
    assert!(plan.next_due().is_some_and(|due| due <= now));
    assert_eq!(plan.due(now, 0).len(), 0);
    assert_eq!(plan.due(now, 100).len(), 6);
    assert!(plan.next_due().is_some_and(|due| due > now));
}

#[test]
fn after_a_long_stop_each_probe_starts_once_not_once_per_missed_turn() {
    let consumers = (0..5).map(|n| consumer(n, address(n as u8), http(None, 1000))).collect();
    let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
    let late = Moment::from_millis(3_600_000);
    let started = plan.due(late, usize::MAX);
    assert_eq!(started.len(), 5);
    for id in started {
        plan.finished(id);
    }
    assert_eq!(plan.due(late, usize::MAX).len(), 0);
}

#[test]
fn an_update_keeps_names_phases_and_running_probes() {
    let start: Vec<_> = (0..4).map(|n| consumer(n, address(n as u8), http(None, 10_000))).collect();
    let mut plan = Plan::new(start.clone(), Moment::ZERO, fastrand::Rng::with_seed(11));
    let due_before: Vec<_> = plan.queue.iter().copied().collect();
    let (first_due, first) = due_before[0];
    assert_eq!(plan.due(first_due, 1), vec![first]);
    let queue_before: HashMap<_, _> = plan.queue.iter().map(|&(at, id)| (id, at)).collect();

    let gone = due_before[3].1;
    let gone_server = plan.probe(gone).expect("in the plan").consumers[0].probe.address;
    let mut next: Vec<_> = start.into_iter().filter(|c| c.probe.address != gone_server).collect();
    next.push(consumer(9, address(9), http(None, 10_000)));
    let now = first_due + Duration::from_millis(1);
    plan.update(next, now);

    assert!(plan.probe(gone).is_none());
    plan.finished(gone);
    assert_eq!(plan.len(), 4);
    for &(at, id) in &plan.queue {
        match queue_before.get(&id) {
            Some(before) => assert_eq!(at, *before, "the phase moved"),
            None => assert!(at > now && at <= now + Duration::from_secs(10)),
        }
    }
    // The running one is still running: its next turn starts nothing.
    let far = queue_before[&first];
    assert!(!plan.due(far, usize::MAX).contains(&first));
    plan.finished(first);
}

#[test]
fn a_shorter_interval_takes_effect_within_itself() {
    let mut plan = Plan::new(
        vec![consumer(1, address(1), http(None, 3_600_000))],
        Moment::ZERO,
        fastrand::Rng::with_seed(2),
    );
    let now = Moment::from_millis(10);
    plan.update(vec![consumer(1, address(1), http(None, 500))], now);
    assert!(plan.next_due().is_some_and(|due| due <= now + Duration::from_millis(500)));
    plan.update(vec![], now);
    assert!(plan.is_empty() && plan.next_due().is_none());
}

/// Each of these services differs from all before it in one setting.
#[test]
fn tls_the_version_of_http_and_the_proxy_header_keep_probes_apart() {
    let check = http(Some("a"), 2000);
    let base = service("s", &check);
    let ca = |name: &str| Material { path: name.into(), bytes: name.as_bytes().into() };
    let tls = |name: Option<&str>, verify, ca| {
        let name = name.map(Into::into);
        Some(Arc::new(ServiceTls { name, names: Vec::new(), verify, ca, certificate: None }))
    };
    let named = tls(Some("x.internal"), true, ca("ca.pem"));
    // Same length and same file, but another authority.
    let renewed = Material { bytes: b"CA.PEM".as_slice().into(), ..ca("ca.pem") };
    let services = [
        base.clone(),
        Service { tls: named.clone(), ..base.clone() },
        Service { tls: tls(None, true, ca("ca.pem")), ..base.clone() },
        Service { tls: tls(Some("x.internal"), false, ca("ca.pem")), ..base.clone() },
        Service { tls: tls(Some("x.internal"), true, renewed), ..base.clone() },
        Service { http: HttpVersion::Http2, ..base.clone() },
        Service { send_proxy: Some(ProxyVersion::V1), ..base.clone() },
        Service { send_proxy: Some(ProxyVersion::V2), ..base.clone() },
        service("s", &Check { kind: CheckKind::Tcp, ..(*check).clone() }),
        Service { http: HttpVersion::Http2, ..service("s", &grpc("", &check)) },
        Service { http: HttpVersion::Http2, ..service("s", &grpc("listings", &check)) },
    ];
    let probes = |times: u64| {
        let all = (0..times).flat_map(|time| {
            let numbered = (time * 100..).zip(&services);
            numbered.map(|(id, service)| of_service(id, service, "10.0.1.5:8080", address(1)))
        });
        Plan::new(all.collect(), Moment::ZERO, fastrand::Rng::with_seed(1)).len()
    };
    assert_eq!(probes(1), services.len());
    assert_eq!(probes(3), services.len(), "equal ones are one");
}

fn grpc(service: &str, like: &Check) -> Check {
    Check { kind: CheckKind::Grpc { service: service.into(), host: None }, ..like.clone() }
}

#[test]
fn what_does_not_change_the_answer_keeps_no_two_probes_apart() {
    let plan = |all| Plan::new(all, Moment::ZERO, fastrand::Rng::with_seed(1)).len();
    let check = Check { kind: CheckKind::Tcp, ..(*http(None, 2000)).clone() };
    let base = service("s", &check);
    // Probes that are not HTTP have no HTTP version.
    let two = Service { http: HttpVersion::Http2, ..base.clone() };
    let at = address(1);
    let name = at.to_string();
    assert_eq!(plan(vec![of_service(1, &base, &name, at), of_service(2, &two, &name, at)]), 1);

    // The name that one service configures is the one that another derives.
    let ca = Material { path: "ca.pem".into(), bytes: b"ca".as_slice().into() };
    let tls = ServiceTls { name: None, names: Vec::new(), verify: true, ca, certificate: None };
    let said = ServiceTls { name: Some("x.internal".into()), ..tls.clone() };
    let found = Service { tls: Some(Arc::new(tls)), ..base.clone() };
    let said = Service { tls: Some(Arc::new(said)), ..base };
    let name = "x.internal:8080";
    let all = vec![of_service(1, &found, name, at), of_service(2, &said, name, at)];
    assert_eq!(all[0].probe.spec.tls.as_ref().map(|tls| &*tls.name), Some("x.internal"));
    assert_eq!(plan(all), 1);
    let v6 = "[fd00::1]:8080";
    let by_address = of_service(3, &found, v6, v6.parse().expect("an address"));
    assert_eq!(by_address.probe.spec.tls.as_ref().map(|tls| &*tls.name), Some("fd00::1"));
}

/// A change of one service's consumers gives the plan that an update with all of them would give, and touches
/// no other probe.
#[test]
fn a_change_of_one_service_is_an_update_of_the_whole() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let shown = |plan: &Plan| -> BTreeSet<(Address, Duration, Vec<ConsumerId>)> {
        let probes = plan.probes.values().map(|planned| &planned.probe);
        let row = |probe: &Probe| {
            let ids = probe.consumers.iter().map(|consumer| consumer.id).collect();
            (probe.identity.address, probe.interval, ids)
        };
        probes.map(row).collect()
    };
    for _ in 0..200 {
        let mut changed = Plan::new(Vec::new(), Moment::ZERO, fastrand::Rng::with_seed(1));
        let mut services: Vec<Vec<Consumer>> = vec![Vec::new(); 4];
        for step in 0..20 {
            let now = Moment::from_millis(step * 700);
            let which = rng.usize(0..services.len());
            let interval_ms = 1000 * rng.u64(1..4);
            let servers = (0..6_u8).filter(|_| rng.bool());
            let new: Vec<_> = servers
                .map(|n| {
                    consumer(which as u64 * 10 + u64::from(n), address(n), http(None, interval_ms))
                })
                .collect();
            let gone = services[which].iter().map(|one| (Arc::clone(&one.probe), one.id));
            let gone: Vec<_> = gone.collect();
            let before: BTreeSet<ProbeId> = changed.probes.keys().copied().collect();
            changed.change(&gone, new.clone(), now);
            services[which] = new;
            let all: Vec<_> = services.iter().flatten().cloned().collect();
            let updated = Plan::new(all.clone(), now, fastrand::Rng::with_seed(1));
            assert_eq!(shown(&changed), shown(&updated), "seed {seed}, step {step}");
            let stay = all.iter().filter_map(|one| changed.id_of(&one.probe));
            let stay = stay.filter(|id| before.contains(id)).count();
            let known = changed.probes.keys().filter(|id| before.contains(id)).count();
            assert!(stay >= known, "seed {seed}: a probe that is still needed keeps its ID");
            assert_eq!(changed.queue.len(), changed.probes.len(), "seed {seed}: one start each");
        }
    }
}

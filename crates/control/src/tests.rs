//! Tests of the control thread as a whole: a registry, servers on loopback, time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use decide::{Admission, Ask, Endpoint, LiveService, Registry};
use model::{Address, Administrative, Check, CheckKind, Health, Moment, PassiveHealth, StatusSet};
use tokio::net::TcpListener;

use crate::testing::{DEADLINE, DnsServer, Reply, addresses, block_on, service, shared, tcp_check};
use crate::{Control, Options, start};

/// Polls until `condition` holds.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let looked = tokio::time::timeout(DEADLINE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(looked.await.is_ok(), "{what}: not within the deadline");
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of loopback");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

fn live(registry: &Registry) -> Arc<LiveService> {
    registry.load_full().services[0].clone()
}

fn endpoint(registry: &Registry, address: Address) -> Arc<Endpoint> {
    live(registry).endpoints().by_address(address).expect("a server").clone()
}

fn begin(services: Vec<model::Service>, resolver: Option<SocketAddr>) -> (Arc<Registry>, Control) {
    let registry = Arc::new(Registry::new());
    let control = start(registry.clone(), shared(services, resolver), Options::default());
    (registry, control.expect("starts"))
}

#[test]
fn a_server_goes_down_and_up_and_its_health_outlives_a_reload() {
    block_on(async {
        let (one, one_at) = listener().await;
        let (_two, two_at) = listener().await;
        let servers = [one_at.to_string(), two_at.to_string()];
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let of = |interval_ms| vec![service("s", &servers, Some(tcp_check(interval_ms)))];
        let (registry, control) = begin(of(20), None);
        assert_eq!(control.status().plan().probes(), 2);
        let state = endpoint(&registry, one_at.into()).state.clone();
        until("up", || state.health() == Health::Up).await;

        drop(one);
        until("down", || state.health() == Health::Down).await;
        until("not eligible", || !live(&registry).endpoints().is_eligible(one_at.into())).await;

        // A reload that makes the check slower keeps the known health.
        control.publish(shared(of(60_000), None)).expect("published");
        assert_eq!(endpoint(&registry, one_at.into()).state.health(), Health::Down);
        assert!(!live(&registry).endpoints().is_eligible(one_at.into()));

        // One that removes the check makes the server usable again.
        control.publish(shared(vec![service("s", &servers, None)], None)).expect("published");
        assert_eq!(endpoint(&registry, one_at.into()).state.health(), Health::Unknown);
        assert!(live(&registry).endpoints().is_eligible(one_at.into()));
        assert_eq!(control.status().plan().probes(), 0);

        let _one = TcpListener::bind(one_at).await.expect("the same port");
        control.publish(shared(of(20), None)).expect("published");
        until("up again", || endpoint(&registry, one_at.into()).state.health() == Health::Up).await;
        control.shutdown();
    });
}

#[test]
fn how_probes_went_is_counted_by_address() {
    block_on(async {
        let (listener, at) = listener().await;
        let servers = [at.to_string()];
        let services = |check| vec![service("s", &servers.each_ref().map(String::as_str), check)];
        let (registry, control) = begin(services(Some(tcp_check(10))), None);
        let status = control.status();
        let probed = || status.probed().get(&at.into()).copied().unwrap_or_default();
        until("three probes", || probed().ended >= 3).await;
        assert_eq!(probed().failed, 0);
        assert!(probed().time >= probed().last && probed().last > Duration::ZERO);
        drop(listener);
        until("a failure", || probed().failed > 0).await;
        until("down", || endpoint(&registry, at.into()).state.health() == Health::Down).await;
        // Addresses no longer probed are not reported.
        control.publish(shared(services(None), None)).expect("published");
        assert!(status.probed().is_empty());
        control.shutdown();
    });
}

#[test]
fn servers_by_name_follow_dns_and_are_checked_and_survive_its_failure() {
    block_on(async {
        let dns = DnsServer::start().await;
        dns.set("app.test", addresses(&["127.0.0.1"], 1), Reply::Empty);
        let (_listener, at) = listener().await;
        let named = format!("app.test:{}", at.port());
        let services = || vec![service("s", &[&named], Some(tcp_check(20)))];
        let (registry, control) = begin(services(), Some(dns.address));
        let status = control.status();
        let waiter = status.clone();
        // The DNS server lives on this thread.
        let waited = tokio::task::spawn_blocking(move || waiter.wait_resolved(DEADLINE));
        assert!(waited.await.expect("no panic"), "resolved");
        assert!(live(&registry).endpoints().by_address(at.into()).is_some(), "before requests");
        until("up", || {
            let endpoints = live(&registry).endpoints();
            endpoints.by_address(at.into()).is_some_and(|one| one.state.health() == Health::Up)
        })
        .await;
        assert_eq!(status.discovered()[0].host, "app.test");
        assert_eq!(status.plan().rows.len(), 1);

        // A second address is added; nothing listens there.
        dns.set("app.test", addresses(&["127.0.0.1", "127.0.0.2"], 1), Reply::Empty);
        let other = SocketAddr::from(([127, 0, 0, 2], at.port()));
        until("the new server is down", || {
            let endpoints = live(&registry).endpoints();
            endpoints.by_address(other.into()).is_some_and(|one| one.state.health() == Health::Down)
        })
        .await;
        assert_eq!(endpoint(&registry, at.into()).state.health(), Health::Up);

        // DNS fails: nothing changes. A reload then: nothing changes either.
        dns.set("app.test", Reply::ServerFailure, Reply::ServerFailure);
        until("failure noticed", || status.discovered()[0].error.is_some()).await;
        control.publish(shared(services(), Some(dns.address))).expect("published");
        assert_eq!(live(&registry).endpoints().all.len(), 2);
        assert_eq!(endpoint(&registry, other.into()).state.health(), Health::Down);
        control.shutdown();
    });
}

#[test]
fn names_that_a_reload_brings_have_their_addresses_from_the_first_request_on() {
    block_on(async {
        let dns = DnsServer::start().await;
        let reply = || addresses(&["127.0.0.7"], 60);
        dns.set("new.internal", reply(), addresses(&[], 60));
        let (registry, control) =
            begin(vec![service("s", &["127.0.0.1:9"], None)], Some(dns.address));
        let next = shared(vec![service("s", &["new.internal:9"], None)], Some(dns.address));
        control.prepare(next.clone()).expect("prepared");
        until("resolved", || control.status().wait_resolved(Duration::ZERO)).await;
        assert_eq!(live(&registry).endpoints().all[0].row.address.to_string(), "127.0.0.1:9");

        // No reader ever sees the service without a server.
        let watcher = std::thread::spawn({
            let registry = registry.clone();
            move || {
                let mut fewest = usize::MAX;
                while live(&registry)
                    .endpoints()
                    .by_address(SocketAddr::from(([127, 0, 0, 7], 9)).into())
                    .is_none()
                {
                    fewest = fewest.min(live(&registry).endpoints().eligible.len());
                }
                fewest.min(live(&registry).endpoints().eligible.len())
            }
        });
        let published = control.publish(next).expect("published");
        assert_eq!(published.services[0].endpoints().eligible.len(), 1);
        assert_eq!(watcher.join().expect("no panic"), 1);
        control.shutdown();
    });
}

#[test]
fn an_ejection_ends_when_its_time_is_over() {
    block_on(async {
        let mut spec = service("s", &["127.0.0.1:1", "127.0.0.1:2"], None);
        spec.passive = Some(PassiveHealth {
            failures: 1,
            count_5xx: true,
            eject: Duration::from_millis(100),
            eject_max: Duration::from_secs(1),
            share_max: 0.5,
        });
        let (registry, control) = begin(vec![spec.clone()], None);
        let at = SocketAddr::from(([127, 0, 0, 1], 1));
        let live = live(&registry);
        let (endpoint, all) = (endpoint(&registry, at.into()), live.endpoints());
        let now = os::clock::now();
        let attempt = health::attempt::Attempt {
            state: &endpoint.state,
            trial: live.trial(),
            blame: health::blame::Blame::Certain,
            drawn: false,
            chosen_at: now,
            now,
            response_timeout: Duration::from_secs(1),
        };
        let policy = spec.passive.as_ref().expect("set above");
        let states = || all.all.iter().map(|endpoint| &*endpoint.state);
        let ejected = health::outlier::on_outcome(&attempt, policy, states);
        let ejected = ejected.expect("one failure is enough");
        live.refresh(os::clock::now());
        assert!(!live.endpoints().is_eligible(at.into()));
        until("readmitted", || live.endpoints().is_eligible(at.into())).await;
        assert!(os::clock::now() >= ejected.until);
        control.shutdown();
    });
}

#[test]
fn a_server_in_maintenance_is_not_checked() {
    block_on(async {
        let (closed, at) = listener().await;
        let (_open, other_at) = listener().await;
        let servers = [at, other_at].map(|at| at.to_string());
        let servers = servers.each_ref().map(String::as_str);
        let (registry, control) = begin(vec![service("s", &servers, Some(tcp_check(20)))], None);
        let state = endpoint(&registry, at.into()).state.clone();
        until("up", || state.health() == Health::Up).await;
        state.set_administrative(Administrative::Maintenance);
        drop(closed);
        // The other server's probes serve as the clock: they have the same interval. One probe may
        // have been in progress; three failures would take the server down.
        let status = control.status();
        let probes =
            |of: SocketAddr| status.probed().get(&of.into()).map_or(0, |probed| probed.ended);
        let before = (probes(at), probes(other_at));
        until("ten probes of the other", || probes(other_at) >= before.1 + 10).await;
        assert!(probes(at) <= before.0 + 1, "{} probes in maintenance", probes(at) - before.0);
        assert_eq!(state.health(), Health::Up);
        state.set_administrative(Administrative::Ready);
        until("down", || state.health() == Health::Down).await;
        assert!(!live(&registry).endpoints().is_eligible(at.into()));
        assert!(control.is_running());
        control.shutdown();
    });
}

/// Probes queue behind the requests of a server that is at its limit; that must not mark it down
/// while it answers those.
#[test]
fn a_full_server_that_answers_is_not_taken_down_by_probes_that_time_out() {
    block_on(async {
        let (listener, at) = listener().await;
        let kind = CheckKind::Http {
            method: "GET".into(),
            path: "/".into(),
            host: None,
            fields: vec![],
            expect: StatusSet(vec![(200, 200)]),
            body: model::BodyExpectation::default(),
            reuse: true,
        };
        let timeout = Duration::from_millis(150);
        let mut spec = service("s", &[&at.to_string()], None);
        spec.check = Some(Check { kind, timeout, ..tcp_check(160) });
        spec.in_flight_max = Some(1);
        let (registry, control) = begin(vec![spec], None);
        let ask = Ask { key: None, affinity: None, avoid: &[] };
        let mut rng = fastrand::Rng::with_seed(1);
        let admitted = live(&registry).admit(&ask, &mut rng, os::clock::now());
        let Admission::Go(slot) = admitted else { panic!("a free slot") };

        // Six probes arrive and are never answered; requests are, meanwhile.
        let state = endpoint(&registry, at.into()).state.clone();
        let mut kept_open = Vec::new();
        // The last response is later than the start of any probe here, however slow this machine
        // is.
        state.note_response(os::clock::now() + DEADLINE * 10);
        while kept_open.len() < 6 {
            kept_open.push(listener.accept().await.expect("accepts"));
        }
        assert_eq!(state.health(), Health::Unknown);

        // It no longer answers: now they count.
        state.note_response(Moment::ZERO);
        until("down", || state.health() == Health::Down).await;
        drop(slot);
        control.shutdown();
    });
}

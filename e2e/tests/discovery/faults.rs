//! A source fails: the servers that are known stay, Weir says why, and sees by itself when it is over.

use std::time::Duration;

use e2e::consul::FakeConsul;
use e2e::polling::{Api, Fault, LongPolling};
use e2e::{Scene, Weir};

use super::changes::{consul_with, instances};
use super::stage::{
    Server, Steady, config, consul_at, source, wait_for_error, wait_for_recovery,
    wait_for_standings,
};

/// A source inside the test, which lists what the test says and fails on demand.
pub(super) trait Fake: Sized {
    /// What `discover` says.
    const DISCOVER: &'static str;

    /// Starts one.
    fn start(scene: &Scene) -> Self;

    /// The table of the configuration that names it.
    fn table(&self) -> String;

    /// Lists these servers and no others.
    fn list(&self, servers: &[&Server]);

    /// Ends every fault.
    fn heal(&mut self);
}

impl Fake for FakeConsul {
    const DISCOVER: &'static str = "consul = \"web\"";

    fn start(scene: &Scene) -> FakeConsul {
        FakeConsul::start(scene.address(40, 8500))
    }

    fn table(&self) -> String {
        consul_at(&self.url())
    }

    fn list(&self, servers: &[&Server]) {
        self.set("web", &instances(servers));
    }

    fn heal(&mut self) {
        self.set_fault(None);
        self.set_index_field(None);
        self.set_leader(true, Duration::ZERO);
    }
}

/// How a source fails, and what Weir shows.
pub(super) struct Case<F> {
    pub(super) name: &'static str,
    pub(super) begin: fn(&mut F),
    pub(super) end: fn(&mut F),
    /// Words of the error; none: the answers are usable.
    pub(super) error: &'static [&'static str],
}

impl<F: Fake> Case<F> {
    /// A fault that requests meet.
    pub(super) const fn new(
        name: &'static str,
        begin: fn(&mut F),
        error: &'static [&'static str],
    ) -> Case<F> {
        Case { name, begin, end: F::heal, error }
    }
}

const HUGE: usize = (16 << 20) + 1;

/// An agent that has just started: it has no leader yet, and has not read its own data.
pub(super) fn starts_empty<A: Api>(fake: &mut LongPolling<A>) {
    fake.set_leader(false, Duration::ZERO);
    fake.set("web", &[]);
}

const CASES: &[Case<FakeConsul>] = &[
    Case::new("starts empty", starts_empty, &["nothing", "no leader"]),
    Case::new(
        "500",
        |fake| fake.set_fault(Some(Fault::no_leader())),
        &["500", "No cluster leader"],
    ),
    Case::new(
        "403",
        |fake| fake.set_fault(Some(Fault::acl_not_found())),
        &["403", "ACL not found", "service:read"],
    ),
    Case::new(
        "429",
        |fake| fake.set_fault(Some(Fault::rate_limited())),
        &["429", "rate limit", "http_max_conns_per_client"],
    ),
    Case::new("slow", |fake| fake.set_fault(Some(Fault::Slow(Duration::from_secs(2)))), &[]),
    Case::new("closes", |fake| fake.set_fault(Some(Fault::Close)), &["closed"]),
    Case::new("malformed", |fake| fake.set_fault(Some(Fault::malformed())), &["EOF"]),
    Case::new(
        "huge",
        |fake| fake.set_fault(Some(Fault::Huge(HUGE))),
        &["more than 16777216 bytes"],
    ),
    Case::new(
        "null",
        |fake| fake.set_fault(Some(Fault::Answer(200, "null".to_owned()))),
        &["null"],
    ),
    Case::new(
        "no list",
        |fake| fake.set_fault(Some(Fault::Answer(200, "{\"error\": \"\\u001b[31m\"}".to_owned()))),
        &["map"],
    ),
    Case::new("index reset to 1", |fake| fake.set_index(1), &[]),
    Case::new("index 0", |fake| fake.set_index_field(Some("0")), &[]),
    Case::new("no index", |fake| fake.set_index_field(Some("")), &["no X-Consul-Index"]),
    Case::new("odd index", |fake| fake.set_index_field(Some("-7")), &["not a number"]),
    Case {
        name: "refuses",
        begin: FakeConsul::stop,
        end: FakeConsul::start_again,
        error: &["refused"],
    },
];

/// Two servers stay, and another one comes while Consul fails. It is a new one each time: one that returns again
/// and again is used last.
pub(super) fn survive<F: Fake>(cases: &[Case<F>]) {
    let Some(scene) = Scene::new("discovery-faults", &[]) else { return };
    let (a, b) = (&Server::start(&scene, 11), &Server::start(&scene, 12));
    let mut fake = F::start(&scene);
    fake.list(&[a, b]);
    let text = config(&scene, &fake.table(), F::DISCOVER, "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    for (case, host) in cases.iter().zip(13..) {
        let new = Server::start(&scene, host);
        println!("{}", case.name);
        (case.begin)(&mut fake);
        if !case.error.is_empty() {
            let error = wait_for_error(&weir, "app", case.error);
            println!("{}: {error}", case.name);
            assert!(!error.contains(char::is_control), "{error:?}");
            let shown = source(&weir, "app");
            assert_eq!((&shown["listed"], &shown["held"]), (&2.into(), &0.into()), "{shown:#}");
        }
        steady.only(&[11, 12]);
        fake.list(&[a, b, &new]);
        steady.next(20);
        (case.end)(&mut fake);
        steady.only(&[11, 12, host]);
        wait_for_recovery(&weir, "app");
        fake.list(&[a, b]);
        wait_for_standings(&weir, &[(&[11, 12], "listed")]);
        steady.only(&[11, 12]);
    }
    let asked = steady.finish();
    println!("{asked} requests, none lost");
}

#[test]
fn servers_stay_while_consul_fails() {
    survive(CASES);
}

#[test]
fn servers_stay_while_consul_hangs() {
    // A question may be under way for half a minute longer than it waits.
    survive::<FakeConsul>(&[Case {
        name: "hangs",
        begin: |fake| fake.set_fault(Some(Fault::Hang)),
        end: |fake| {
            fake.set_fault(None);
            fake.disconnect();
        },
        error: &["time"],
    }]);
}

#[test]
fn a_connection_that_consul_closes_between_two_questions_is_no_failure() {
    let Some(scene) = Scene::new("discovery-closed", &[]) else { return };
    let a = Server::start(&scene, 11);
    let fake = consul_with(&scene, &[&a]);
    let text = config(&scene, &consul_at(&fake.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11]);
    for host in 12..17 {
        let b = Server::start(&scene, host);
        fake.disconnect();
        fake.set("web", &instances(&[&a, &b]));
        steady.only(&[11, host]);
        fake.disconnect();
        fake.set("web", &instances(&[&a]));
        steady.only(&[11]);
    }
    wait_for_recovery(&weir, "app");
    steady.finish();
}

#[test]
fn servers_are_dropped_when_the_source_has_failed_for_longer_than_kept_max() {
    let Some(scene) = Scene::new("discovery-kept", &[]) else { return };
    let a = Server::start(&scene, 11);
    let fake = consul_with(&scene, &[&a]);
    let discover = "consul = \"web\", kept_max = \"2s\"";
    let weir = Weir::start(&scene, &config(&scene, &consul_at(&fake.url()), discover, ""));
    wait_for_standings(&weir, &[(&[11], "listed")]);
    fake.set_fault(Some(Fault::no_leader()));
    wait_for_error(&weir, "app", &["500"]);
    wait_for_standings(&weir, &[]);
    assert_ne!(e2e::http::get(weir.front(), "/").unwrap().status, 200);
    fake.set_fault(None);
    wait_for_standings(&weir, &[(&[11], "listed")]);
    assert_eq!(e2e::http::get(weir.front(), "/").unwrap().status, 200);
}

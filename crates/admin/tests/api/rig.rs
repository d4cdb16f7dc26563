//! An API on loopback, and a client that asks it one thing a connection.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admin::{Door, Listener, Sources, Token};
use admin_api::changes::Change;
use admin_api::checks::{Endpoint, Plan, Probe, ProbeResults};
use admin_api::findings::Findings;
use admin_api::fleet::{
    Datagrams, Fleet, FleetMember, FleetOrder, FleetOrders, FleetProblem, FleetTickets,
    IgnoredMember, SharedProbes, SharedRates, SharedSlots,
};
use admin_api::published::{PublishedRoute, PublishedRoutes, TagSource};
use admin_api::receipt::{
    HandedOver, Process, Reload, ReloadResult, Reloads, Trigger, Upgrade, UpgradeResult,
};
use admin_api::services::{RefusedEntry, ScalingCalls, ServiceSource, WantedServers};
use admin_api::status::{
    Acme, AcmeCertificate, AcmeFailure, AcmeRefusal, Kubernetes, Registration,
};
use decide::Registry;
use model::histogram::SharedHistogram;
use model::{
    Address, AddressFound, Administrative, Cause, FleetProblemKind, Material, Mirrored, Moment,
    TcpSample, Timings,
};
use observe::exposition::{
    BudgetGauges, KeySetGauges, ProbeGauges, RegistrationGauges, ReloadGauges, SourceGauges,
    SourcesGauges, TagGauges, TelemetryGauges,
};
use observe::{InFlight, InFlightReport, KeptExchange, KeptFor, Stage};
use serde_json::{Value, json};

const CONFIGURATION: &str = r#"
zone = "a"
metrics = { server_histograms = true }

[[listener]]
name = "public"
address = "127.0.0.1:8080"
tls = { certificates = [{ chain = "a.pem" }] }

[[route]]
host = "api.example.com"
path = "/listings"
service = "listings"

[service.listings]
in_flight_max = 4

[[service.listings.server]]
address = "127.0.0.1:5001"
zone = "a"

[[service.listings.server]]
address = "[::1]:5002"
zone = "b"
"#;

/// A certificate and its key, whatever file is asked for.
struct Certificate(String);

impl Certificate {
    fn make() -> Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["api.example.com".to_owned()];
        let chain = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        Certificate(format!("{}{}", chain.pem(), key.serialize_pem()))
    }
}

impl config::Surroundings for Certificate {
    fn file(&self, path: &Path) -> Result<config::Found, config::Unreadable> {
        let material = Material { path: path.to_path_buf(), bytes: self.0.as_bytes().into() };
        Ok(config::Found { material, only_root: true, open_to_others: false })
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

pub(crate) struct Api {
    pub(crate) handle: admin::Handle,
    pub(crate) registry: Arc<Registry>,
    pub(crate) ready: Arc<AtomicBool>,
}

fn acme() -> Acme {
    Acme {
        directory: "https://acme.example.com/directory".to_owned(),
        running: true,
        certificates: vec![AcmeCertificate {
            names: vec!["a.example.com".to_owned()],
            not_after: Some("2026-12-01T00:00:00.000Z".to_owned()),
            next_attempt: Some("2026-11-21T00:00:00.000Z".to_owned()),
            renewal_by_authority: false,
            ordered_by: None,
            failure: Some(AcmeFailure {
                what: "the order was refused".to_owned(),
                refused: vec![AcmeRefusal {
                    name: "a.example.com".to_owned(),
                    why: "connection refused".to_owned(),
                }],
                count: 2,
            }),
        }],
    }
}

fn source() -> ServiceSource {
    ServiceSource {
        source: "consul listings".to_owned(),
        listed: 2,
        refused: 1,
        refused_examples: vec![RefusedEntry {
            object: "node1/web-3".to_owned(),
            why: "the service has no port".to_owned(),
        }],
        answered_ms_ago: Some(12.0),
        changed_ms_ago: Some(1500.0),
        failing_for_ms: Some(10.0),
        error: Some("Consul answers 500".to_owned()),
        index: Some(42),
        ..ServiceSource::default()
    }
}

fn registration() -> Registration {
    Registration {
        service: "edge".to_owned(),
        id: "weir-edge-8080".to_owned(),
        address: "10.0.0.5:8080".to_owned(),
        check: Some("passing".to_owned()),
        registered_for_ms: Some(1500.0),
        failing_for_ms: Some(12.0),
        error: Some("Consul answers 500".to_owned()),
    }
}

fn fleet() -> Fleet {
    let member = |name: &str, address: &str| FleetMember {
        name: name.to_owned(),
        address: address.to_owned(),
        zone: Some("a".to_owned()),
        host: name.to_owned(),
    };
    Fleet {
        error: None,
        own: Some(member("edge-1", "10.0.0.5:7946")),
        members: vec![member("edge-2", "10.0.0.6:7946")],
        problems: vec![FleetProblem {
            kind: FleetProblemKind::Missing.into(),
            member: Some("10.0.0.7:7946".to_owned()),
            why: None,
            for_s: 75,
        }],
        probers: 2,
        probes: SharedProbes { assigned: 3, stood_in: 1, relied: 4 },
        ignored: vec![IgnoredMember { name: "edge-2".to_owned(), probes: 1 }],
        slots: SharedSlots {
            servers: 12,
            is_settled: false,
            missing: vec!["10.0.0.7:7946".to_owned()],
            share: 16,
            lent: 3,
            borrowed: 2,
        },
        rates: SharedRates {
            limits: 2,
            keys: 35,
            part: 0.75,
            missing: vec!["10.0.0.7:7946".to_owned()],
            untracked: 0,
            unknown: 0,
        },
        orders: FleetOrders {
            drain: 1,
            maintenance: 0,
            servers: vec![FleetOrder {
                service: "listings".to_owned(),
                address: "10.0.1.5:80".to_owned(),
                state: Administrative::Drain.into(),
                member: "edge-2".to_owned(),
            }],
            refused: 0,
        },
        tickets: Some(FleetTickets {
            keys: 2,
            sealing_age_s: Some(4_321),
            behind: vec!["edge-2".to_owned()],
            not_sharing: vec!["edge-3".to_owned()],
            error: None,
            fetches_failed: 1,
            connections_refused: 3,
        }),
        datagrams: Datagrams {
            accepted: 900,
            refused: BTreeMap::from([("unknown_key".to_owned(), 3)]),
            unread: 1,
            sent: 800,
            send_errors: 2,
            received_bytes: 90_000,
            sent_bytes: 80_000,
        },
        name_conflicts: 1,
        rejoins: 2,
    }
}

fn kubernetes() -> Kubernetes {
    Kubernetes {
        running: true,
        connected: true,
        leading: true,
        failing: [("httproutes".to_owned(), "403: forbidden".to_owned())].into(),
        forbidden: vec!["list httproutes".to_owned()],
        absent: vec!["TLSRoute".to_owned()],
        ..Kubernetes::default()
    }
}

fn published_routes() -> PublishedRoutes {
    let source = TagSource {
        published: 1,
        refused: 1,
        refused_examples: vec![RefusedEntry {
            object: "listings: weir.route=evil.example/".to_owned(),
            why: "host `evil.example` is not among the allowed ones".to_owned(),
        }],
        answered_ms_ago: Some(12.0),
        index: Some(42),
        ..TagSource::default()
    };
    let route = PublishedRoute {
        service: "listings".to_owned(),
        host: "listings.apps.example".to_owned(),
        path: "/".to_owned(),
        tag: "weir.route=listings.apps.example".to_owned(),
        index: Some(42),
        published_ms_ago: Some(1500.0),
        ..PublishedRoute::default()
    };
    PublishedRoutes { source: Some(source), routes: vec![route] }
}

fn source_gauges() -> SourcesGauges {
    let propagation = SharedHistogram::default();
    propagation.record(Duration::from_micros(300));
    let service = SourceGauges {
        service: "listings".into(),
        servers: [("listed", 2), ("not_ready", 1), ("held", 0), ("flapping", 0)],
        age: Some(Duration::from_millis(12)),
        is_failing: true,
        refused: 1,
    };
    let tags = TagGauges { published: 3, held: 1, refused: 2, is_failing: true };
    let registrations = vec![RegistrationGauges { listener: "public".into(), is_failing: true }];
    SourcesGauges {
        services: vec![service],
        registrations,
        tags: Some(tags),
        propagation: propagation.totals(),
    }
}

fn probe() -> ProbeGauges {
    ProbeGauges {
        address: address("127.0.0.1:5001").into(),
        per_second: 0.5,
        per_second_unshared: 35.0,
        ended: 10,
        failed: 2,
        time: Duration::from_millis(30),
        last: Duration::from_millis(3),
    }
}

fn wanted_servers() -> HashMap<Arc<str>, WantedServers> {
    let wanted = WantedServers {
        number: Some(13),
        reason: "more_load".to_owned(),
        why: "840 requests/s".to_owned(),
        calls: Some(ScalingCalls { servers: Some(12), succeeded: 3, failed: 1, error: None }),
    };
    HashMap::from([(Arc::from("listings"), wanted)])
}

/// Everything that the API can be connected to, with something to show.
pub(crate) fn sources() -> Sources {
    Sources {
        wanted_servers: Some(Arc::new(wanted_servers)),
        plan: Arc::new(plan),
        configuration: Arc::new(|snapshot| json!({ "zone": snapshot.zone.as_deref() })),
        probes: Arc::new(|| vec![probe()]),
        worker_connections: Some(Arc::new(|| vec![2, 1])),
        request_buffers: Some(Arc::new(BudgetGauges::default)),
        compression: Some(Arc::new(BudgetGauges::default)),
        mirrors: Some(Arc::new(BudgetGauges::default)),
        telemetry: Some(Arc::new(|| {
            vec![TelemetryGauges { signal: "traces", sent: 7, dropped: vec![("queue_full", 1)] }]
        })),
        server_sources: Some(Arc::new(|| HashMap::from([(Arc::from("listings"), source())]))),
        fleet_order: None,
        published_routes: Some(Arc::new(published_routes)),
        fleet: Some(Arc::new(|| Some(fleet()))),
        registrations: Some(Arc::new(|| HashMap::from([(Arc::from("public"), registration())]))),
        server_source_gauges: Some(Arc::new(source_gauges)),
        key_sets: Some(Arc::new(|| {
            vec![KeySetGauges {
                authentication: "issuer".to_owned(),
                keys: 2,
                fetched: 3,
                failed: 1,
                fetched_at: Some(Duration::from_secs(1_763_619_180)),
            }]
        })),
        idle_connections: Some(Arc::new(|| HashMap::from([(address("127.0.0.1:5001").into(), 3)]))),
        in_flight: Some(Arc::new(|wanted| {
            let all = vec![in_flight("a", 30), in_flight("b", 10)];
            let (in_flight, now) = (all.len(), os::clock::now());
            let is_wanted = |one: &InFlight| wanted.takes(one.service.as_deref(), one.since, now);
            let requests: Vec<_> = all.into_iter().filter(is_wanted).collect();
            // As if one worker had reported only these.
            InFlightReport { in_flight, matching: requests.len(), requests, workers_silent: 1 }
        })),
        reload: Some(Arc::new(|| Ok(receipt()))),
        upgrade: Some(Arc::new(|| {
            Ok(Upgrade {
                result: UpgradeResult::Upgraded.into(),
                pid: 13,
                version: "1.2.4".to_owned(),
                predecessor: Process { pid: 12, version: "1.2.3".to_owned() },
                took_ms: 300,
                handed_over: HandedOver {
                    listeners: vec!["public".to_owned()],
                    sockets: 2,
                    servers: 2,
                },
            })
        })),
        reloads: Some(Arc::new(|| Reloads { reloads: vec![receipt()] })),
        findings: Some(Arc::new(findings)),
        history: Some(Arc::new(Mutex::new(crate::traffic::history()))),
        changes: Some(Arc::new(changes)),
        reload_gauges: Some(Arc::new(|| ReloadGauges {
            applied: 1,
            unchanged: 0,
            refused: 0,
            last_refused: false,
            last_at: Some(Duration::from_secs(1_763_619_180)),
        })),
        acme: Some(Arc::new(|| Some(acme()))),
        kubernetes: Some(Arc::new(kubernetes)),
        switches: admin::Switches::default(),
    }
}

/// One finding, and something that could not be checked.
fn findings() -> Findings {
    serde_json::from_value(json!({
        "enabled": true,
        "interval_ms": 10_000,
        "looks": 3,
        "looked_at_unix_ms": 1_763_619_180_000_u64,
        "findings": [{
            "rule": "sack_off",
            "subject": "net.ipv4.tcp_sack",
            "severity": "warning",
            "certainty": "certain",
            "what": "Selective acknowledgements are off.",
            "evidence": [{ "name": "net.ipv4.tcp_sack", "figure": 0 }],
            "why": "Loss costs more.",
            "remedy": [{ "action": "Turn them on", "commands": [], "risk": "none" }],
            "verify": "it is 1",
            "source": ["/proc/sys/net/ipv4/tcp_sack"],
            "is_present": true,
            "first_seen_unix_ms": 1_763_619_170_000_u64,
            "last_seen_unix_ms": 1_763_619_180_000_u64,
        }],
        "could_not_check": [{ "what": "the kernel's log", "reason": "/dev/kmsg: refused" }],
    }))
    .unwrap()
}

/// A drained server, and a finding.
fn changes() -> Vec<Change> {
    let drained = json!({
        "at_unix_ms": 1_763_619_180_000_u64,
        "kind": "state",
        "effect": "neutral",
        "service": "listings",
        "server": "127.0.0.1:5001",
        "what": "127.0.0.1:5001 of listings is being drained.",
    });
    let found = json!({
        "at_unix_ms": 1_763_619_170_000_u64,
        "kind": "finding",
        "effect": "trouble",
        "finding": { "rule": "sack_off", "subject": "net.ipv4.tcp_sack" },
        "what": "Selective acknowledgements are off.",
    });
    serde_json::from_value(json!([drained, found])).unwrap()
}

/// One address, probed for two services.
fn plan() -> Plan {
    let probe = Probe {
        what: "GET /health".to_owned(),
        interval_ms: 2_000,
        services: vec!["listings".to_owned(), "search".to_owned()],
    };
    Plan {
        probes: 2,
        probes_per_s: 0.5,
        unshared_per_s: 1.0,
        endpoints: vec![Endpoint {
            endpoint: "127.0.0.1:5001".to_owned(),
            probes_per_s: 0.5,
            unshared_per_s: 1.0,
            probes: vec![probe],
            results: Some(ProbeResults { ended: 10, failed: 2, last_ms: Some(3.0) }),
            ..Endpoint::default()
        }],
    }
}

/// What a reload that changed nothing says; who makes it tests the rest.
pub(crate) fn receipt() -> Reload {
    Reload {
        result: ReloadResult::Unchanged.into(),
        trigger: Trigger::Api.into(),
        at: "2025-11-20T06:13:00Z".to_owned(),
        took_ms: 1.5,
        generation: 1,
        ..Reload::default()
    }
}

/// A request that came in at `millis` after the process began.
pub(crate) fn in_flight(request_id: &str, millis: u64) -> InFlight {
    InFlight {
        since: Moment::from_millis(millis),
        stage: Stage::Response,
        request_id: request_id.to_owned(),
        client: address("192.0.2.1:40000"),
        listener: Arc::from("public"),
        method: "GET".to_owned(),
        host: "api.example.com".to_owned(),
        path: "/listings/1".to_owned(),
        service: Some(Arc::from("listings")),
        server: Some(address("127.0.0.1:5001").into()),
        attempts: 1,
    }
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

impl Api {
    pub(crate) fn start() -> Api {
        Api::with(sources())
    }

    pub(crate) fn with(sources: Sources) -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Api::behind(Door::of(Listener::Tcp(listener), None), sources)
    }

    pub(crate) fn with_token(token: &str) -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let token = Token::parse(token.as_bytes());
        assert!(token.is_some());
        Api::behind(Door::of(Listener::Tcp(listener), token), sources())
    }

    pub(crate) fn behind(door: Door, sources: Sources) -> Api {
        let checked = config::check(CONFIGURATION, "weir.toml", &Certificate::make())
            .unwrap_or_else(|errors| panic!("{errors:#?}"));
        let registry = Arc::new(Registry::with_seed(0));
        registry.publish(Arc::new(checked.snapshot), Moment::from_millis(1));
        let way = TcpSample { round_trip: Duration::from_micros(750), ..TcpSample::default() };
        for service in &registry.load_full().services {
            service.endpoints().all.iter().for_each(|server| server.state.tcp.note(&way));
        }
        let ready = Arc::new(AtomicBool::new(true));
        let counters = Arc::new(observe::Registry::new());
        let shard = counters.add_shard();
        let (service, listener) = (Arc::from("listings"), Arc::from("public"));
        for (cause, status) in [(Cause::Completed, 200), (Cause::QueueFull, 429)] {
            let timings = Timings { total: Duration::from_millis(5), ..Timings::default() };
            shard.service(&service).exchange_ended(cause, Some(status), 1, &timings);
            shard.listener(&listener).exchanges.count(cause, Some(status));
        }
        shard.service(&service).mirrored[Mirrored::SameStatus as usize].increment();
        for (at_ms, name) in [(1, "listings"), (2, "other")] {
            shard.kept.keep(KeptExchange {
                ended: Moment::from_millis(at_ms),
                kept_for: KeptFor::Slowest,
                is_of_client: false,
                service: Some(name.into()),
                line: format!(r#"{{"request_id":"of {name}","total_ms":5}}"#).into_bytes().into(),
            });
        }
        let nowhere = Cause::DestinationNotFound;
        shard.listener(&listener).exchanges.count(nowhere, Some(404));
        shard.listener(&listener).connections_accepted.add(2);
        shard.listener(&listener).client_addresses[AddressFound::Found as usize].increment();
        let exposed = admin::Exposed {
            registry: Arc::clone(&registry),
            counters,
            sources,
            ready: Arc::clone(&ready),
            workers: 3,
            version: "1.2.3",
        };
        Api { handle: admin::start(door, exposed).unwrap(), registry, ready }
    }

    /// Host and port, as a client on this machine says them.
    pub(crate) fn authority(&self) -> String {
        match self.handle.address() {
            Address::Ip(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.authority()), "")
    }

    pub(crate) fn get_with(&self, path: &str, field: &str) -> Answer {
        let host = self.authority();
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n"), "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        let host = self.authority();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        self.send(&head, body)
    }

    /// Asks for a response that has no end: reads its head and what comes with it.
    pub(crate) fn begin(&self, path: &str, fields: &str) -> Endless {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.authority());
        let Address::Ip(address) = self.handle.address() else { panic!("on loopback") };
        let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
        stream.get_ref().set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_ascii_lowercase();
        Endless { answer: Answer { status, head, body: String::new() }, stream }
    }

    /// Sends a head without its last line and a body, and reads until the server closes.
    pub(crate) fn send(&self, head: &str, body: &str) -> Answer {
        let request = format!("{head}Connection: close\r\n\r\n{body}");
        match self.handle.address() {
            Address::Ip(address) => Answer::to(&request, TcpStream::connect(address).unwrap()),
            Address::Unix(path) => {
                Answer::to(&request, UnixStream::connect(path.as_path()).unwrap())
            }
        }
    }
}

/// A response that is still being sent.
pub(crate) struct Endless {
    pub(crate) answer: Answer,
    stream: BufReader<TcpStream>,
}

impl Endless {
    /// Returns the next event's name and data, past comments; `None` at the end.
    pub(crate) fn event(&mut self) -> Option<(String, Value)> {
        let mut name = None;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Lines between are those of chunks.
            if let Some(event) = line.strip_prefix("event: ") {
                name = Some(event.trim_end().to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name.unwrap(), serde_json::from_str(data).unwrap()));
            }
        }
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn to(request: &str, mut stream: impl Read + Write) -> Answer {
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }

    /// An answer that is no success says why, to programs and to people.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, name: &str) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["error"], name);
        problem["message"].as_str().unwrap().to_owned()
    }
}

//! The probe plan for people: how many probes each endpoint bears, what sharing saves, and which
//! probes would be one if they did not differ in a detail.
//!
//! Works from a running plan ([`crate::plan::Plan::report`]) or from a configuration alone
//! ([`of_snapshot`]); in the latter, servers given by name stand under their name. Texts are built
//! here, layout is the reader's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{CheckKind, ServerTarget, Snapshot};

use crate::plan::INTERVAL_MIN;

/// Near-duplicates listed per endpoint; the rest is counted.
pub const NEAR_DUPLICATES_LISTED_MAX: usize = 16;

/// Two probes that differ in more details than this are simply two probes.
const NEAR_DIFFERENCES_MAX: usize = 2;

/// Where probes go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A known address.
    Address(SocketAddr),
    /// A name not resolved yet, with its port.
    Name(String, u16),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) => address.fmt(f),
            Endpoint::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// The whole plan.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Per endpoint, by address, then by name.
    pub rows: Vec<Row>,
}

/// The probes of one endpoint.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where they go (a check's own port applied).
    pub endpoint: Endpoint,
    /// Its distinct probes, most frequent first.
    pub probes: Vec<ProbeRow>,
    /// Probes a second that it bears.
    pub probes_per_s: f64,
    /// What they would be if every service checked for itself.
    pub unshared_per_s: f64,
    /// Probes that would be one but for a detail.
    pub near_duplicates: Vec<NearDuplicate>,
    /// Further near-duplicates, not listed.
    pub near_duplicates_more: usize,
}

/// One distinct probe.
#[derive(Clone, Debug)]
pub struct ProbeRow {
    /// What it does, for people: `GET /status, Host api.example.com, expects 200`.
    pub what: String,
    /// Time between two of it.
    pub interval: Duration,
    /// Whom it serves, by name.
    pub services: Vec<Arc<str>>,
}

/// Two probes of one endpoint that differ in a detail or two. Prints as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearDuplicate {
    /// Services that use the one.
    pub one: Vec<Arc<str>>,
    /// Services that use the other.
    pub other: Vec<Arc<str>>,
    /// In what they differ.
    pub differences: Vec<Difference>,
}

/// One detail in which two probes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The detail: `kind`, `method`, `path`, `Host`, `fields`, `expect`, `reuse`.
    pub aspect: &'static str,
    /// Its value in the one.
    pub one: String,
    /// Its value in the other.
    pub other: String,
}

impl fmt::Display for NearDuplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("same endpoint, differ in ")?;
        for (n, difference) in self.differences.iter().enumerate() {
            let joint = if n == 0 { "" } else { " and " };
            let Difference { aspect, one, other } = difference;
            write!(f, "{joint}{aspect}: {one} vs {other}")?;
        }
        write!(f, " ({} vs {})", Names(&self.one), Names(&self.other))
    }
}

impl Report {
    /// Probes a second to all endpoints together.
    pub fn probes_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.probes_per_s).sum()
    }

    /// What they would be if every service checked for itself.
    pub fn unshared_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.unshared_per_s).sum()
    }

    /// Distinct probes.
    pub fn probes(&self) -> usize {
        self.rows.iter().map(|row| row.probes.len()).sum()
    }
}

/// The plan that a configuration leads to, without a runtime. Servers given by name are counted
/// as one endpoint each, under their name.
pub fn of_snapshot(snapshot: &Snapshot) -> Report {
    let mut asked = Vec::new();
    for service in &snapshot.services {
        let Some(check) = &service.check else {
            continue;
        };
        for server in &service.servers {
            let (endpoint, kind) = match &server.target {
                ServerTarget::Address(address) => {
                    let identity = check.identity(*address);
                    (Endpoint::Address(identity.address), identity.kind)
                }
                ServerTarget::Name { host, port } => {
                    let endpoint = Endpoint::Name(host.clone(), check.port.unwrap_or(*port));
                    let mut kind = check.kind.clone();
                    if let CheckKind::Http { host: probe_host, .. } = &mut kind {
                        probe_host.get_or_insert_with(|| server.target.to_string());
                    }
                    (endpoint, kind)
                }
            };
            let interval = check.interval.max(INTERVAL_MIN);
            asked.push(Asked { endpoint, kind, interval, service: service.name.clone() });
        }
    }
    build(asked)
}

/// One service's wish for one server.
pub(crate) struct Asked {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: CheckKind,
    pub(crate) interval: Duration,
    pub(crate) service: Arc<str>,
}

pub(crate) fn build(asked: Vec<Asked>) -> Report {
    let mut endpoints: BTreeMap<Endpoint, Vec<Asked>> = BTreeMap::new();
    for one in asked {
        endpoints.entry(one.endpoint.clone()).or_default().push(one);
    }
    Report { rows: endpoints.into_iter().map(|(endpoint, asked)| row(endpoint, asked)).collect() }
}

fn row(endpoint: Endpoint, asked: Vec<Asked>) -> Row {
    let unshared_per_s = asked.iter().map(|one| per_s(one.interval)).sum();
    // Keyed by its text, which tells all of it, so that the order is the same on every run.
    let mut distinct: BTreeMap<String, (CheckKind, ProbeRow)> = BTreeMap::new();
    for one in asked {
        let what = describe(&one.kind);
        let (_, probe) = distinct.entry(what.clone()).or_insert_with(|| {
            (one.kind, ProbeRow { what, interval: one.interval, services: Vec::new() })
        });
        probe.interval = probe.interval.min(one.interval);
        probe.services.push(one.service);
    }
    let (kinds, mut probes): (Vec<_>, Vec<_>) = distinct.into_values().unzip();
    for probe in &mut probes {
        probe.services.sort_unstable();
    }
    let (near_duplicates, near_duplicates_more) = near_duplicates(&kinds, &probes);
    probes.sort_by_key(|probe| probe.interval);
    Row {
        endpoint,
        probes_per_s: probes.iter().map(|probe| per_s(probe.interval)).sum(),
        unshared_per_s,
        probes,
        near_duplicates,
        near_duplicates_more,
    }
}

/// Each probe beside the nearest of those before it, so that n alike give n - 1 sentences rather
/// than one for every pair.
fn near_duplicates(kinds: &[CheckKind], probes: &[ProbeRow]) -> (Vec<NearDuplicate>, usize) {
    let mut found = Vec::new();
    for later in 1..kinds.len() {
        if found.len() == NEAR_DUPLICATES_LISTED_MAX {
            return (found, kinds.len() - later);
        }
        let nearest = (0..later)
            .map(|earlier| (differences(&kinds[earlier], &kinds[later]), earlier))
            .min_by_key(|(differences, _)| differences.len());
        if let Some((differences, earlier)) = nearest
            && differences.len() <= NEAR_DIFFERENCES_MAX
        {
            found.push(NearDuplicate {
                one: probes[earlier].services.clone(),
                other: probes[later].services.clone(),
                differences,
            });
        }
    }
    (found, 0)
}

fn differences(one: &CheckKind, other: &CheckKind) -> Vec<Difference> {
    let pairs = aspects(one).into_iter().zip(aspects(other));
    pairs
        .filter(|((_, one), (_, other))| one != other)
        // Between a TCP and an HTTP check only the kind is worth a word.
        .filter(|((aspect, one), (_, other))| {
            *aspect == "kind" || (one.is_some() && other.is_some())
        })
        .map(|((aspect, one), (_, other))| Difference {
            aspect,
            one: one.unwrap_or_default(),
            other: other.unwrap_or_default(),
        })
        .collect()
}

fn aspects(kind: &CheckKind) -> [(&'static str, Option<String>); 7] {
    let (name, http) = match kind {
        CheckKind::Tcp => ("tcp", None),
        CheckKind::Http { method, path, host, fields, expect, reuse } => {
            let fields: Vec<_> = fields.iter().map(|(n, v)| format!("{n}: {v}")).collect();
            let fields = if fields.is_empty() { "none".into() } else { fields.join(", ") };
            let host = host.clone().unwrap_or_default();
            let reuse = reuse.to_string();
            let expect = expect_text(&expect.0);
            ("http", Some([method.clone(), path.clone(), host, fields, expect, reuse]))
        }
    };
    let [method, path, host, fields, expect, reuse] = match http {
        Some(values) => values.map(Some),
        None => [const { None }; 6],
    };
    [
        ("kind", Some(name.into())),
        ("method", method),
        ("path", path),
        ("Host", host),
        ("fields", fields),
        ("expect", expect),
        ("reuse", reuse),
    ]
}

fn describe(kind: &CheckKind) -> String {
    match kind {
        CheckKind::Tcp => "tcp connect".into(),
        CheckKind::Http { method, path, host, fields, expect, reuse } => {
            let mut parts = vec![format!("{method} {path}")];
            parts.extend(host.as_ref().map(|host| format!("Host {host}")));
            parts.extend(fields.iter().map(|(name, value)| format!("{name}: {value}")));
            parts.push(format!("expects {}", expect_text(&expect.0)));
            parts.extend((!reuse).then(|| "a connection each".to_owned()));
            parts.join(", ")
        }
    }
}

fn expect_text(ranges: &[(u16, u16)]) -> String {
    let texts: Vec<_> = ranges
        .iter()
        .map(|&(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") })
        .collect();
    texts.join(",")
}

fn per_s(interval: Duration) -> f64 {
    1.0 / interval.as_secs_f64()
}

/// Up to three names, then how many more.
struct Names<'a>(&'a [Arc<str>]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 3;
        let shown: Vec<&str> = self.0.iter().take(SHOWN_MAX).map(|name| &**name).collect();
        f.write_str(&shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        Balance, Check, ExpectStatus, Log, QueueLimits, Retries, ServerSpec, Service,
        ServiceTimeouts, WhenAllDown, ZonePolicy,
    };

    fn asked(service: &str, path: &str, host: &str, interval_s: u64) -> Asked {
        Asked {
            endpoint: Endpoint::Address(SocketAddr::from(([10, 0, 1, 5], 8080))),
            kind: CheckKind::Http {
                method: "GET".into(),
                path: path.into(),
                host: Some(host.into()),
                fields: vec![],
                expect: ExpectStatus(vec![(200, 200)]),
                reuse: true,
            },
            interval: Duration::from_secs(interval_s),
            service: service.into(),
        }
    }

    #[test]
    fn probes_that_differ_in_a_detail_are_explained() {
        let report = build(vec![
            asked("listings", "/status", "a", 2),
            asked("search", "/status", "b", 2),
            asked("photos", "/status", "a", 1),
        ]);
        let row = &report.rows[0];
        assert_eq!(row.probes.len(), 2);
        assert_eq!(row.probes[0].what, "GET /status, Host a, expects 200");
        assert_eq!(row.near_duplicates.len(), 1);
        assert_eq!(
            row.near_duplicates[0].to_string(),
            "same endpoint, differ in Host: a vs b (listings, photos vs search)"
        );
        assert!((row.probes_per_s - 1.5).abs() < 1e-9);
        assert!((row.unshared_per_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn probes_that_differ_in_much_are_not_called_alike_and_tcp_is_near_http() {
        let mut other = asked("other", "/deep", "z", 2);
        if let CheckKind::Http { method, .. } = &mut other.kind {
            *method = "HEAD".into();
        }
        let mut tcp = asked("tcp", "", "", 2);
        tcp.kind = CheckKind::Tcp;
        let row = build(vec![asked("one", "/status", "a", 2), other, tcp]).rows.remove(0);
        assert_eq!(row.probes.len(), 3);
        let texts: Vec<_> = row.near_duplicates.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["same endpoint, differ in kind: http vs tcp (one vs tcp)"]);
    }

    #[test]
    fn a_thousand_virtual_hosts_do_not_make_a_thousand_sentences() {
        let all = (0..1000).map(|n| asked("s", "/status", &format!("h{n}"), 2)).collect();
        let row = build(all).rows.remove(0);
        assert_eq!(row.near_duplicates.len(), NEAR_DUPLICATES_LISTED_MAX);
        assert_eq!(row.near_duplicates.len() + row.near_duplicates_more, 999);
    }

    #[test]
    fn a_reused_and_a_fresh_probe_stay_two() {
        let mut fresh = asked("prefork", "/status", "a", 2);
        if let CheckKind::Http { reuse, .. } = &mut fresh.kind {
            *reuse = false;
        }
        let row = build(vec![asked("one", "/status", "a", 2), fresh]).rows.remove(0);
        assert_eq!(row.probes.len(), 2);
        assert!(row.near_duplicates[0].to_string().contains("reuse: "));
    }

    #[test]
    fn a_configuration_alone_has_a_plan_with_names_under_their_name() {
        let second = Duration::from_secs(1);
        let server = |target| ServerSpec { target, zone: None, weight: 1, backup: false };
        let address = ServerTarget::Address(SocketAddr::from(([10, 0, 1, 5], 8080)));
        let name = ServerTarget::Name { host: "listings.internal".into(), port: 8080 };
        let mut kind = asked("", "/status", "", 2).kind;
        if let CheckKind::Http { host, .. } = &mut kind {
            *host = None;
        }
        let service = |service: &str, port| Service {
            name: service.into(),
            balance: Balance::RoundRobin,
            in_flight_max: None,
            queue: QueueLimits { length_max: 0, wait_max: second },
            when_full: 429,
            when_all_down: WhenAllDown::Refuse,
            check: Some(Check {
                kind: kind.clone(),
                port,
                interval: 2 * second,
                timeout: second,
                rise: 2,
                fall: 3,
            }),
            passive: None,
            zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 },
            affinity: None,
            slow_start: None,
            timeouts: ServiceTimeouts {
                connect: second,
                response: second,
                idle: second,
                keep_alive: second,
                total: None,
            },
            retries: Retries { attempts_max: 1, body_kept_max_bytes: 0 },
            idle_connections_max: 1,
            servers: vec![server(address.clone()), server(name.clone())],
        };
        let snapshot = Snapshot {
            zone: None,
            workers: None,
            connections_max: 1,
            drain_max: second,
            run_as: None,
            admin: None,
            metrics: model::Metrics::none(),
            resolver: None,
            log: Log::none(),
            reload: model::Reload { watch: false },
            listeners: vec![],
            routes: vec![],
            services: vec![service("a", None), service("b", None), service("c", Some(9000))],
        };
        let report = of_snapshot(&snapshot);
        let rows: Vec<_> = report.rows.iter().map(|row| row.endpoint.to_string()).collect();
        let names = ["listings.internal:8080", "listings.internal:9000"];
        assert_eq!(rows, ["10.0.1.5:8080", "10.0.1.5:9000", names[0], names[1]]);
        assert!((report.probes_per_s() - 2.0).abs() < 1e-9);
        assert!((report.unshared_per_s() - 3.0).abs() < 1e-9);
        assert_eq!(report.rows[1].probes[0].what, "GET /status, Host 10.0.1.5:8080, expects 200");
        assert!(report.rows[2].probes[0].what.contains("Host listings.internal:8080"));
    }
}

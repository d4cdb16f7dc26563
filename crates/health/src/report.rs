//! The probe plan for people: how many probes each endpoint bears, what sharing saves, and which
//! probes would be one if they did not differ in a detail.
//!
//! Works from a running plan ([`crate::plan::Plan::report`]) or from a configuration alone
//! ([`of_snapshot`]); in the latter, servers given by name stand under their name. Texts are built
//! here, layout is the reader's.

mod describe;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{ProbeSpec, ServerTarget, Snapshot};

use describe::{describe, differences};

/// Intervals shorter than this are run at this; protects against a zero.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Near-duplicates listed per endpoint; the rest is counted.
pub const NEAR_DUPLICATES_LISTED_MAX: usize = 16;

/// How many probes of one endpoint each is compared with.
const NEAR_LOOK_BACK_MAX: usize = 64;

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
    /// The detail: `kind`, `method`, `path`, `Host`, `fields`, `expect`, `reuse`, `service`, `TLS`,
    /// `HTTP`, `PROXY`.
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
            let name = server.target.to_string();
            let probe = match &server.target {
                ServerTarget::Address(address) => service
                    .probe(&name, *address)
                    .map(|identity| (Endpoint::Address(identity.address), identity.spec)),
                ServerTarget::Name { host, port } => {
                    let endpoint = Endpoint::Name(host.clone(), check.port.unwrap_or(*port));
                    service.probe_by_name(&name).map(|spec| (endpoint, spec))
                }
            };
            let interval = check.interval.max(INTERVAL_MIN);
            asked.extend(probe.map(|(endpoint, spec)| Asked {
                endpoint,
                spec,
                interval,
                service: service.name.clone(),
            }));
        }
    }
    build(asked)
}

/// One service's wish for one server.
pub(crate) struct Asked {
    pub(crate) endpoint: Endpoint,
    pub(crate) spec: ProbeSpec,
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
    // Keyed by its text, so that the order is the same on every run. The text does not tell all of
    // TLS, so probes of one text may be several.
    let mut distinct: BTreeMap<(String, usize), (ProbeSpec, ProbeRow)> = BTreeMap::new();
    for one in asked {
        let what = describe(&one.spec);
        let mut key = (what.clone(), 0);
        while distinct.get(&key).is_some_and(|(spec, _)| *spec != one.spec) {
            key.1 += 1;
        }
        let (_, probe) = distinct.entry(key).or_insert_with(|| {
            (one.spec, ProbeRow { what, interval: one.interval, services: Vec::new() })
        });
        probe.interval = probe.interval.min(one.interval);
        probe.services.push(one.service);
    }
    let (specs, mut probes): (Vec<_>, Vec<_>) = distinct.into_values().unzip();
    for probe in &mut probes {
        probe.services.sort_unstable();
    }
    let (near_duplicates, near_duplicates_more) = near_duplicates(&specs, &probes);
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
fn near_duplicates(specs: &[ProbeSpec], probes: &[ProbeRow]) -> (Vec<NearDuplicate>, usize) {
    let mut found = Vec::new();
    for later in 1..specs.len() {
        if found.len() == NEAR_DUPLICATES_LISTED_MAX {
            return (found, specs.len() - later);
        }
        // They stand in order of their text, so what is near stands near.
        let nearest = (later.saturating_sub(NEAR_LOOK_BACK_MAX)..later)
            .map(|earlier| (differences(&specs[earlier], &specs[later]), earlier))
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
mod tests;

//! The probe plan for display: how many probes each endpoint receives, what sharing saves, and
//! which probes could be merged but for a detail.
//!
//! Works from a running plan ([`crate::plan::Plan::report`]) or from a configuration alone
//! ([`of_snapshot`]); in the latter, servers given by name are listed under their name. Texts are
//! built here; the caller does the layout.

mod describe;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::{Address, ProbeSpec, ServerTarget, Snapshot};

use describe::{describe, differences};

/// Minimum interval; shorter ones, including zero, are raised to this.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Maximum number of near-duplicates listed per endpoint; the rest are counted.
pub const NEAR_DUPLICATES_LISTED_MAX: usize = 16;

/// Number of an endpoint's probes that each is compared with.
const NEAR_LOOK_BACK_MAX: usize = 64;

/// Two probes that differ in more details than this are not near-duplicates.
const NEAR_DIFFERENCES_MAX: usize = 2;

/// The target of probes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A known address.
    Address(Address),
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
    /// Probes per second that it receives.
    pub probes_per_s: f64,
    /// Probes per second if every service checked separately.
    pub unshared_per_s: f64,
    /// Probes that could be merged but for a detail.
    pub near_duplicates: Vec<NearDuplicate>,
    /// Further near-duplicates, not listed.
    pub near_duplicates_more: usize,
}

/// One distinct probe.
#[derive(Clone, Debug)]
pub struct ProbeRow {
    /// A description of the probe: `GET /status, Host api.example.com, expects 200`.
    pub what: String,
    /// Its interval.
    pub interval: Duration,
    /// The services that use it, by name.
    pub services: Vec<Arc<str>>,
}

/// Two probes of one endpoint that differ in one or two details. Displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearDuplicate {
    /// Services that use the first.
    pub one: Vec<Arc<str>>,
    /// Services that use the second.
    pub other: Vec<Arc<str>>,
    /// How they differ.
    pub differences: Vec<Difference>,
}

/// One detail in which two probes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The detail: `kind`, `method`, `path`, `Host`, `fields`, `expect`, `reuse`, `service`, `TLS`,
    /// `HTTP`, `PROXY`.
    pub aspect: &'static str,
    /// Its value in the first.
    pub one: String,
    /// Its value in the second.
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
    /// Returns the probes per second to all endpoints together.
    pub fn probes_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.probes_per_s).sum()
    }

    /// Returns the probes per second if every service checked separately.
    pub fn unshared_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.unshared_per_s).sum()
    }

    /// Returns the number of distinct probes.
    pub fn probes(&self) -> usize {
        self.rows.iter().map(|row| row.probes.len()).sum()
    }
}

/// Returns the plan that a configuration results in, without running it. Servers given by name are
/// counted as one endpoint each, under their name.
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

/// One service's check of one server.
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
    // Keyed by its text, so that the order is the same on every run. The text does not contain all
    // TLS settings, so several probes may have the same text.
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

/// Pairs each probe with the nearest of those before it, so that n similar ones give n - 1
/// sentences rather than one for every pair.
fn near_duplicates(specs: &[ProbeSpec], probes: &[ProbeRow]) -> (Vec<NearDuplicate>, usize) {
    let mut found = Vec::new();
    for later in 1..specs.len() {
        if found.len() == NEAR_DUPLICATES_LISTED_MAX {
            return (found, specs.len() - later);
        }
        // They are sorted by their text, so similar ones are adjacent.
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

/// Displays up to three names, then how many more.
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

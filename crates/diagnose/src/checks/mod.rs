//! The load that health checks put on each endpoint, computed from a configuration: how many checks
//! a second over all balancers, and what they would be if each balancer checked each endpoint once
//! and shared the verdict.
//!
//! A company had 70 services with the same endpoints on 32 nodes, each checked every 2 s for
//! itself: 70 × 32 / 2 = 1,120 connections a second on each endpoint, where 16 would do. Its
//! provider throttled them, and with them everything else.

mod haproxy;
mod weir;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use haproxy::of_haproxy;
pub use weir::of_snapshot;

/// Checks that are read from one configuration; further ones are counted as left out.
pub const CHECKS_MAX: usize = 200_000;

/// Connections a second at which providers were seen to throttle small instances.
pub const STORM_PER_S: f64 = 500.0;

/// One service's check of one endpoint, on one balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The service (`backend`) that asks.
    pub service: String,
    /// Where the check goes, `host:port`.
    pub endpoint: String,
    /// What it does: `connect`, `GET /health`. Checks that do the same at one endpoint can be
    /// shared.
    pub kind: String,
    /// Time between two checks, in milliseconds; never zero.
    pub interval_ms: u64,
}

/// What a configuration asks to be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// In order of the file.
    pub checks: Vec<Check>,
    /// Processes that each run all checks (HAProxy's `nbproc`, gone since 2.5); mostly 1.
    pub processes: u64,
    /// Whether the balancer shares equal checks by itself, as Weir does.
    pub is_shared: bool,
    /// What was not understood, with its line, and what it means for the result.
    pub notes: Vec<String>,
}

/// The checks of one endpoint by all balancers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointLoad {
    /// Where the checks go.
    pub endpoint: String,
    /// Services that check it.
    pub services: u64,
    /// Different checks among them.
    pub distinct: u64,
    /// Shortest interval, in milliseconds.
    pub interval_ms: u64,
    /// Checks a second when every service checks for itself.
    pub unshared_per_s: f64,
    /// Checks a second when each balancer runs equal checks once.
    pub shared_per_s: f64,
}

/// The load of all endpoints, those with most first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Balancers (nodes) with this configuration.
    pub nodes: u64,
    /// Whether the balancer shares equal checks by itself: then `shared_per_s` is what happens.
    pub is_shared: bool,
    /// By load.
    pub endpoints: Vec<EndpointLoad>,
    /// What was not understood.
    pub notes: Vec<String>,
}

impl Load {
    /// What really goes to an endpoint.
    pub fn per_s(&self, endpoint: &EndpointLoad) -> f64 {
        if self.is_shared { endpoint.shared_per_s } else { endpoint.unshared_per_s }
    }

    /// Endpoints that bear a storm of checks which sharing would end, or at least halve.
    pub fn storms(&self) -> impl Iterator<Item = &EndpointLoad> {
        let is_storm = |one: &&EndpointLoad| {
            !self.is_shared
                && one.unshared_per_s >= STORM_PER_S
                && one.shared_per_s <= one.unshared_per_s / 2.0
        };
        self.endpoints.iter().filter(is_storm)
    }
}

/// The load of `checks` when `nodes` balancers have the same configuration.
pub fn load(checks: &Checks, nodes: u64) -> Load {
    let mut by_endpoint: BTreeMap<&str, Vec<&Check>> = BTreeMap::new();
    for check in &checks.checks {
        by_endpoint.entry(&check.endpoint).or_default().push(check);
    }
    let times = nodes.saturating_mul(checks.processes.max(1)) as f64;
    let per_s = |interval_ms: u64| 1000.0 / interval_ms.max(1) as f64 * times;
    let mut endpoints: Vec<EndpointLoad> = by_endpoint
        .into_iter()
        .map(|(endpoint, all)| {
            // A shared check runs as often as the service that wants it most often.
            let mut distinct: BTreeMap<&str, u64> = BTreeMap::new();
            for check in &all {
                let interval = distinct.entry(&check.kind).or_insert(check.interval_ms);
                *interval = check.interval_ms.min(*interval);
            }
            let services: BTreeSet<&str> = all.iter().map(|check| check.service.as_str()).collect();
            EndpointLoad {
                endpoint: endpoint.to_owned(),
                services: services.len() as u64,
                distinct: distinct.len() as u64,
                interval_ms: distinct.values().copied().min().unwrap_or(1),
                unshared_per_s: all.iter().map(|check| per_s(check.interval_ms)).sum(),
                shared_per_s: distinct.values().map(|&interval| per_s(interval)).sum(),
            }
        })
        .collect();
    // Stable: equal loads stay in order of name.
    endpoints.sort_by(|one, other| other.unshared_per_s.total_cmp(&one.unshared_per_s));
    Load { nodes, is_shared: checks.is_shared, endpoints, notes: checks.notes.clone() }
}

#[cfg(test)]
mod tests;

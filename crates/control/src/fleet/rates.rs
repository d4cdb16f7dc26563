//! The rate limits that hold over the fleet (`scope = "fleet"`): passes the workers' counts to the crate `quota` and
//! applies its results.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use decide::Registry;
use decide::rate::{PartKey, RateTable, Side, limit_id};
use fleet::seal::Key;
use model::{LimitScope, Moment, RateLimit, RateReading, RateTerms, Snapshot};
use quota::{MemberAt, Quota};

/// The rate limits that this member shares with the others.
#[derive(Debug)]
pub(super) struct SharedRates {
    registry: Arc<Registry>,
    quota: Quota,
}

/// Figures about the rate limits that hold over the fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatesState {
    /// Limits that hold over the fleet.
    pub limits: usize,
    /// Keys whose requests come to other members, too, or to others alone.
    pub keys: usize,
    /// The part of each limit that the members have that answer; 1: all listed members do.
    pub side: f64,
    /// Listed members that do not answer.
    pub missing: Vec<SocketAddr>,
    /// Requests that were counted by this balancer alone, since too many keys were in use.
    pub untracked: u64,
    /// Counts from other members for limits that this one does not have.
    pub unknown: u64,
}

impl SharedRates {
    pub(super) fn new(registry: Arc<Registry>, own: &fleet::Member, now: Moment) -> SharedRates {
        SharedRates { registry, quota: Quota::new(own.address, now) }
    }

    /// Sets the fleet's key, under which the keys of requests are hashed.
    ///
    /// # Errors
    ///
    /// In one line, if no key can be derived.
    pub(super) fn set_key(&mut self, key: &Key) -> Result<(), String> {
        let derived = key.derive("rate limit keys v1").map_err(|error| error.to_string())?;
        let half = derived.first_chunk().ok_or("a derived key is too short")?;
        self.registry.rate().shared().begin(PartKey::new(*half));
        Ok(())
    }

    /// Follows the limits of a configuration.
    pub(super) fn follow(&mut self, snapshot: &Snapshot) {
        let mut limits = HashMap::new();
        for route in &snapshot.routes {
            let of_fleet = route.rate_limits().filter(|limit| limit.scope == LimitScope::Fleet);
            limits.extend(of_fleet.map(|limit| (limit_id(&route.name, limit), limit.clone())));
        }
        self.registry.rate().shared().retain(|limit| limits.contains_key(&limit));
        self.quota.set_limits(limits);
    }

    pub(super) fn set_listed(&mut self, listed: &[SocketAddr]) {
        self.quota.set_listed(listed.iter().copied().collect());
        self.set_side();
    }

    pub(super) fn set_live<'a>(&mut self, live: impl Iterator<Item = &'a fleet::Member>) {
        self.quota.set_live(live.map(member_at));
        self.set_side();
    }

    /// Takes a message. Returns whether it is one.
    pub(super) fn on_message(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        let mut buckets = Buckets { table: self.registry.rate(), now };
        self.quota.on_message(from.start.0, bytes, &mut buckets).is_ok()
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.quota.next_due()
    }

    /// Does what is due; returns messages for all other members.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<Vec<u8>> {
        if self.next_due().is_none_or(|due| now < due) {
            return Vec::new();
        }
        let messages = self.quota.turn(&mut Buckets { table: self.registry.rate(), now }, now);
        self.set_side();
        messages
    }

    /// Counts alone from now on. Returns the last messages for all other members.
    pub(super) fn retire(&mut self, now: Moment) -> Vec<Vec<u8>> {
        let messages = self.quota.turn(&mut Buckets { table: self.registry.rate(), now }, now);
        self.registry.rate().shared().retire();
        messages
    }

    pub(super) fn state(&self) -> RatesState {
        RatesState {
            limits: self.quota.limits_count(),
            keys: self.quota.keys_of_others(),
            side: self.quota.side().fraction(),
            missing: self.quota.missing(),
            untracked: self.registry.rate().shared().untracked(),
            unknown: self.quota.unknown(),
        }
    }

    fn set_side(&self) {
        let members = u32::try_from(self.quota.members()).unwrap_or(u32::MAX);
        let side = Side { share: self.quota.side(), members };
        self.registry.rate().shared().set_side(side);
    }
}

/// The workers' table, at a time.
struct Buckets<'a> {
    table: &'a RateTable,
    now: Moment,
}

impl quota::Buckets for Buckets<'_> {
    fn readings(&mut self) -> Vec<RateReading> {
        self.table.shared().readings()
    }

    fn charge(&mut self, limit: &RateLimit, key: u64, requests: u32) {
        self.table.charge(limit, key, requests, self.now);
    }

    fn set_terms(&mut self, key: u64, terms: RateTerms) {
        self.table.shared().set_terms(key, terms);
    }

    fn forget(&mut self, reading: &RateReading) -> bool {
        self.table.shared().forget(reading)
    }
}

fn member_at(member: &fleet::Member) -> MemberAt {
    MemberAt { address: member.address, start: member.start.0 }
}

#[cfg(test)]
mod tests;

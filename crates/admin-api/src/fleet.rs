//! `/api/v1/fleet`: the fleet of balancers as this one sees it.

use std::collections::BTreeMap;

use model::{Administrative, FleetProblemKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

/// The fleet as this balancer sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fleet {
    /// Why this process is not a member at present; null if it is one.
    pub error: Option<String>,
    /// This member; null if it is not one at present.
    pub own: Option<FleetMember>,
    /// The other members that live, by name.
    pub members: Vec<FleetMember>,
    /// Problems of the fleet. Some are normal for a few seconds after a start.
    pub problems: Vec<FleetProblem>,
    /// How many members of each zone run each health check.
    pub probers: u8,
    /// Who runs this member's health checks.
    pub probes: SharedProbes,
    /// Members whose results contradict this member's own, by name.
    pub ignored: Vec<IgnoredMember>,
    /// This member's slots of the servers whose concurrency limits the fleet shares.
    pub slots: SharedSlots,
    /// The rate limits that hold over the fleet.
    pub rates: SharedRates,
    /// States of servers that are set for the whole fleet.
    pub orders: FleetOrders,
    /// The session ticket keys that members share; null: they are not shared (`[fleet] tls`).
    pub tickets: Option<FleetTickets>,
    /// What was received and sent since this process joined.
    pub datagrams: Datagrams,
    /// Messages from another process that has this member's name.
    pub name_conflicts: u64,
    /// How often this member joined again after the others had declared it down.
    pub rejoins: u64,
}

/// A problem of the fleet, as this balancer sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetProblem {
    /// The kind of problem.
    pub kind: Word<FleetProblemKind>,
    /// The name of the member concerned, or its address if no member answers there; null: it concerns this balancer.
    pub member: Option<String>,
    /// The reason; null: unknown.
    pub why: Option<String>,
    /// For how many seconds it has lasted.
    pub for_s: u64,
}

/// A member of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetMember {
    /// Its name, unique in the fleet.
    pub name: String,
    /// Where its datagrams go.
    pub address: String,
    /// Its zone; null: none.
    pub zone: Option<String>,
    /// The machine it runs on.
    pub host: String,
}

/// Who runs the distinct health checks that a member needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SharedProbes {
    /// Those that this member runs for its zone.
    pub assigned: usize,
    /// Those that it runs for itself, since results of others are missing or contradict each other.
    pub stood_in: usize,
    /// Those whose results come from others.
    pub relied: usize,
}

/// A member's slots of the servers whose concurrency limits the fleet shares (`in_flight_scope = "fleet"`), added up
/// over these servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SharedSlots {
    /// Servers whose limit the fleet shares; 0: none, and the other fields mean nothing.
    pub servers: usize,
    /// The members agree on their shares.
    pub is_settled: bool,
    /// Addresses of members that have shares and do not answer.
    pub missing: Vec<String>,
    /// The slots that belong to this member, those that it has lent included.
    pub share: u64,
    /// Those of its share that it has lent to other members.
    pub lent: u64,
    /// Those that it has borrowed from other members.
    pub borrowed: u64,
}

/// The rate limits that hold over the fleet (`scope = "fleet"`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SharedRates {
    /// How many there are; 0: none, and the other fields mean nothing.
    pub limits: usize,
    /// Clients, or other keys that requests are counted by, with requests at other members at present.
    pub keys: usize,
    /// The part of each limit that the members have that answer this one, above 0; 1 if all listed ones do.
    pub part: f64,
    /// Addresses of listed members that do not answer.
    pub missing: Vec<String>,
    /// Requests that were counted by this balancer alone, since too many keys were in use.
    pub untracked: u64,
    /// Counts of other members for limits that this one does not have.
    pub unknown: u64,
}

/// States of servers that are set for the whole fleet (`weir drain --fleet`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetOrders {
    /// Servers that are drained for the whole fleet.
    pub drain: usize,
    /// Servers that are in maintenance for the whole fleet.
    pub maintenance: usize,
    /// The first 100 of them, by service and address.
    pub servers: Vec<FleetOrder>,
    /// States from other members that were refused since this process joined: there were too many, or their versions
    /// were not plausible.
    pub refused: u64,
}

/// A server whose state is set for the whole fleet. At one member it may have been changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetOrder {
    /// The service.
    pub service: String,
    /// The server's address.
    pub address: String,
    /// Its state.
    pub state: Word<Administrative>,
    /// The member through which it was set.
    pub member: String,
}

/// The session ticket keys that members share: with them, a client resumes its session at any member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetTickets {
    /// Keys that this member has.
    pub keys: usize,
    /// The age of the key that encrypts new tickets, in seconds; null: no shared key is in use, and this member's
    /// tickets are valid only here.
    pub sealing_age_s: Option<u64>,
    /// Members that share keys and do not have the newest one, by name.
    pub behind: Vec<String>,
    /// Members that do not share keys, by name: without `tls` in `[fleet]`, of a version without it, or not listening
    /// on TCP.
    pub not_sharing: Vec<String>,
    /// Why this member shares neither keys nor certificates, or why the last fetch from another one failed; null: neither.
    pub error: Option<String>,
    /// Fetches of session ticket keys and certificates from other members that failed since this process joined.
    pub fetches_failed: u64,
    /// Connections to the fleet's TCP port that ended without an answer since then: no TLS, no certificate of a
    /// member, an unknown request, longer than 5 s, or too many at once.
    pub connections_refused: u64,
}

/// Which members have confirmed that a server's state is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetConfirmation {
    /// The members, this one included. Unless it is a dry run, listed members that do not answer are included.
    pub members: usize,
    /// Those that have confirmed it; 0 for a dry run.
    pub confirmed: usize,
    /// Those that have not within 3 seconds.
    pub unconfirmed: Vec<UnconfirmedMember>,
}

/// A member that has not confirmed a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnconfirmedMember {
    /// Its name; empty: a listed member that does not answer.
    pub name: String,
    /// Where its datagrams go.
    pub address: String,
}

/// The numbers of servers whose state is set for the whole fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetOrderCounts {
    /// Drained.
    pub drain: usize,
    /// In maintenance.
    pub maintenance: usize,
}

/// A member whose results are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IgnoredMember {
    /// Its name.
    pub name: String,
    /// For how many health checks.
    pub probes: usize,
}

/// Counts of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Datagrams {
    /// Received and understood.
    pub accepted: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Opened, but of no known form, from a process that is no member, or for an earlier process of this one.
    pub unread: u64,
    /// Sent.
    pub sent: u64,
    /// Not sent: the system refused.
    pub send_errors: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// The fleet in a few figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetSummary {
    /// Why this process is not a member at present; null if it is one.
    pub error: Option<String>,
    /// This member's name; null if it is not a member at present.
    pub name: Option<String>,
    /// The members that live, this one included.
    pub members: usize,
    /// Those of this member's zone, this one included.
    pub members_in_zone: usize,
    /// Problems of the fleet. Some are normal for a few seconds after a start.
    pub problems: Vec<FleetProblem>,
    /// How many members of each zone run each health check.
    pub probers: u8,
    /// Who runs this member's health checks.
    pub probes: SharedProbes,
    /// Members whose results contradict this member's own, by name.
    pub ignored: Vec<IgnoredMember>,
    /// This member's slots of the servers whose concurrency limits the fleet shares.
    pub slots: SharedSlots,
    /// The rate limits that hold over the fleet.
    pub rates: SharedRates,
    /// How many servers have a state that is set for the whole fleet.
    pub orders: FleetOrderCounts,
    /// The session ticket keys that members share; null: they are not shared.
    pub tickets: Option<FleetTickets>,
    /// Messages from another process that has this member's name; a few after a restart.
    pub name_conflicts: u64,
}

impl Fleet {
    /// Returns the fleet in a few figures.
    pub fn summary(&self) -> FleetSummary {
        let own = usize::from(self.own.is_some());
        let zone = self.own.as_ref().map(|own| &own.zone);
        let in_zone = self.members.iter().filter(|other| Some(&other.zone) == zone).count();
        FleetSummary {
            error: self.error.clone(),
            name: self.own.as_ref().map(|own| own.name.clone()),
            members: self.members.len() + own,
            members_in_zone: in_zone + own,
            problems: self.problems.clone(),
            probers: self.probers,
            probes: self.probes,
            ignored: self.ignored.clone(),
            slots: self.slots.clone(),
            rates: self.rates.clone(),
            tickets: self.tickets.clone(),
            orders: FleetOrderCounts {
                drain: self.orders.drain,
                maintenance: self.orders.maintenance,
            },
            name_conflicts: self.name_conflicts,
        }
    }
}

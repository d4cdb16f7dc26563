//! The fleet as this member sees it, for status and metrics: written by the control loop, read by any thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use fleet::seal::Refusal;
use health::shared::exchange::Shares;
use model::{FleetProblemKind, Moment};

use super::orders::OrdersState;
use super::rates::RatesState;
use super::slots::SlotsState;
use super::tickets::TicketsState;

/// The fleet as this member sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetState {
    /// Why this process is not a member at present. One line.
    pub error: Option<String>,
    /// This member; `None`: it is not one at present.
    pub own: Option<FleetMember>,
    /// The others that live, by name.
    pub others: Vec<FleetMember>,
    /// How many members of a zone run each probe.
    pub probers: u8,
    /// Who runs this member's probes.
    pub shares: Shares,
    /// Members whose results are ignored since they contradict this member's own, and for how many probes.
    pub ignored: Vec<(Arc<str>, usize)>,
    /// The servers' slots that the fleet shares.
    pub slots: SlotsState,
    /// The rate limits that hold over the fleet.
    pub rates: RatesState,
    /// The states of servers that are set for the whole fleet.
    pub orders: OrdersState,
    /// The session ticket keys that the fleet shares; `None`: `[fleet]` has no `tls`.
    pub tickets: Option<TicketsState>,
    /// What was received and sent.
    pub counts: DatagramCounts,
    /// Messages from another process that has this member's name.
    pub name_conflicts: u64,
    /// Whether there were at least ten in each of two minutes: more than a restart causes.
    pub has_name_conflict: bool,
    /// How often this member joined again after the others had declared it down.
    pub rejoins: u64,
    /// Its problems, in order of kind and subject.
    pub problems: Vec<FleetProblem>,
}

/// A problem of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetProblem {
    /// The kind of problem.
    pub kind: FleetProblemKind,
    /// The name of the member concerned, or its address if no member answers there; empty: it concerns this balancer.
    pub subject: Arc<str>,
    /// The reason, where it is known.
    pub why: Option<String>,
    /// Since when it has lasted.
    pub since: Moment,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetMember {
    /// Unique in the fleet.
    pub name: Arc<str>,
    /// Where its datagrams go.
    pub address: SocketAddr,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// The machine it runs on.
    pub host: Arc<str>,
}

/// Datagrams since the member started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Received and understood.
    pub accepted: u64,
    /// Refused, in the order of [`Refusal::ALL`].
    pub(super) refused: [u64; Refusal::ALL.len()],
    /// Opened, but of another form, of a kind that this version does not know, from a process that is no member,
    /// or for an earlier process of this one.
    pub unread: u64,
    /// Sent.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Not sent: the system refused.
    pub send_errors: u64,
}

impl DatagramCounts {
    /// Returns the numbers of refused datagrams, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refusal::ALL.iter().map(Refusal::as_str).zip(self.refused)
    }
}

/// The state, shared.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Option<Arc<FleetState>>>);

impl Shared {
    /// Returns the state; `None` without a fleet.
    pub(crate) fn get(&self) -> Option<Arc<FleetState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, state: Option<FleetState>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state.map(Arc::new);
    }
}

//! By which table this member computes its shares, while the members change.
//!
//! A member *offers* a table when it uses no more than its shares under it, and under all that it offered
//! since it last *committed* one. It commits the table that it offers when each other member in it offers
//! the same, and has seen this offer. So when a member commits a table, all others are bound by it, until
//! they in turn commit one that this member must be bound by.
//!
//! A process that starts has committed none, and no share. It also commits if members of the table do not
//! answer, unless one that does has committed another table: then those that do not answer may have larger
//! shares under that one.

use std::net::SocketAddr;
use std::time::Duration;

use model::Moment;

use crate::server::Server;
use crate::table::Table;
use crate::wire::Offer;

/// How long a process that starts waits for members that do not answer: long enough for the leases that an earlier
/// process at its address granted to expire.
const SETTLE: Duration = Duration::from_secs(4);

/// How long a process that starts and knows no other member waits for a list of them.
const SETTLE_ALONE: Duration = Duration::from_secs(2);

/// With more changes than this since the last agreement, the member has no share until the next one.
const BOUNDS_MAX: usize = 16;

/// The tables of one member.
#[derive(Debug)]
pub(crate) struct Agreement {
    own: SocketAddr,
    wanted: Table,
    is_offered: bool,
    number: u32,
    committed: Option<Table>,
    /// The tables that were wanted since the last commit.
    bounds: Vec<Table>,
    /// When the wanted table, or who of it answers, last changed.
    changed_at: Moment,
}

impl Agreement {
    pub(crate) fn new(own: SocketAddr, now: Moment) -> Agreement {
        let alone = Table::new([own].into());
        Agreement {
            own,
            wanted: alone.clone(),
            is_offered: false,
            number: 0,
            committed: None,
            bounds: vec![alone],
            changed_at: now,
        }
    }

    pub(crate) fn wanted(&self) -> &Table {
        &self.wanted
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.committed.is_some() && self.bounds.is_empty()
    }

    /// Sets the table that this member wants. Returns whether it is another one.
    pub(crate) fn want(&mut self, table: Table, now: Moment) -> bool {
        if table == self.wanted {
            return false;
        }
        if self.bounds.len() < BOUNDS_MAX {
            self.bounds.push(table.clone());
        } else {
            self.bounds = vec![Table::new([].into())];
        }
        self.wanted = table;
        (self.is_offered, self.changed_at) = (false, now);
        true
    }

    /// Other members answer now than before.
    pub(crate) fn note_change(&mut self, now: Moment) {
        self.changed_at = now;
    }

    /// Sets this member's share of a server, and whom else to ask for slots.
    pub(crate) fn set_shares(&self, server: &mut Server) {
        let (key, max) = (server.key, server.max);
        let bounds = self.committed.iter().chain(&self.bounds);
        let shares = bounds.map(|table| table.share(key, max, self.own));
        let least = shares.min().unwrap_or_default();
        server.set_share(if self.committed.is_some() { least } else { 0 });
        server.is_for_all = max as usize >= self.wanted.len();
        server.owners = self.wanted.shares(key, max);
        server.owners.retain(|(owner, _)| *owner != self.own);
    }

    /// Offers the wanted table: this member uses no more than its shares.
    pub(crate) fn offer(&mut self) {
        if !std::mem::replace(&mut self.is_offered, true) {
            self.number = self.number.wrapping_add(1);
        }
    }

    /// Returns what to tell a member that is here, of whose offers this number was seen.
    pub(crate) fn to_tell(&self, seen: u32, is_complete: bool) -> Offer {
        Offer {
            offered: if self.is_offered { self.wanted.digest() } else { 0 },
            number: self.number,
            committed: self.committed.as_ref().map_or(0, Table::digest),
            seen,
            is_complete,
        }
    }

    /// Commits the wanted table if that is safe. `offer_of` returns what a member that answers said. Returns
    /// whether shares may have changed.
    pub(crate) fn try_commit(
        &mut self,
        offer_of: impl Fn(SocketAddr) -> Option<Offer>,
        now: Moment,
    ) -> bool {
        if self.is_settled() || !self.is_offered {
            return false;
        }
        let digest = self.wanted.digest();
        let is_cold = self.committed.is_none();
        let mut all_answer = true;
        for other in self.wanted.others(self.own) {
            let Some(offer) = offer_of(other) else {
                all_answer = false;
                continue;
            };
            let is_bound = offer.offered == digest && offer.seen == self.number;
            if !is_bound || is_cold && !offer.is_complete {
                return false;
            }
        }
        // If one that answers has committed another table, one that does not may have done so, too.
        let mut others = self.wanted.others(self.own).filter_map(&offer_of);
        let is_alone = self.wanted.len() == 1;
        let settled_after = if is_alone { SETTLE_ALONE } else { SETTLE };
        let may_be_alone = is_cold
            && now.since(self.changed_at) >= settled_after
            && others.all(|offer| [0, digest].contains(&offer.committed));
        if (!all_answer || is_cold && is_alone) && !may_be_alone {
            return false;
        }
        self.committed = Some(self.wanted.clone());
        self.bounds.clear();
        true
    }
}

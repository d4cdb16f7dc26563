//! Which connections can take a request; enforces the configured number of connections.

use super::plan::Protocol;
use super::recorder::LATE_NS;
use super::worker::Worker;

/// Between two connections that a thread opens while it is behind, beyond those that replace closed
/// ones: 4,000 a second are enough to reach soon what the load needs, and no storm.
const OPENING_NS: u64 = 250_000;

impl Worker {
    /// Whether a request for `target` would find a connection, or room for one.
    pub(crate) fn can_begin(&self, target: usize) -> bool {
        let site = self.shared.plan.targets[target].site;
        !self.spare[site].is_empty()
            || !self.ahead[site].is_empty()
            || self.has_room()
            || self.idle_one().is_some()
    }

    /// Whether there are fewer connections than were asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.table.len() < self.connections_max
    }

    /// Whether a start is late and had better wait for a connection in use than open one more now.
    /// After a pause of this machine hundreds may be due at once: a connection for each would make all
    /// that follow later, and the server would see a storm that was not intended.
    pub(crate) fn is_behind(&self, target: usize, intended: u64, now: u64) -> bool {
        let plan = &self.shared.plan;
        let site = plan.targets[target].site;
        plan.shape.is_open()
            && plan.keep_alive
            && plan.protocol != Protocol::Connect
            && now.saturating_sub(intended) > LATE_NS
            && now < self.next_opening_ns()
            && self.spare[site].is_empty()
            && self.ahead[site].is_empty()
    }

    /// When a start that is behind opens a connection, unless one is spare before.
    pub(crate) fn next_opening_ns(&self) -> u64 {
        if self.has_closed { self.opened_ns } else { self.opened_ns + OPENING_NS }
    }

    /// A connection that was opened ahead of requests is up, taken or gone.
    pub(super) fn no_longer_ahead(&mut self, site: usize, index: usize) {
        if let Some(at) = self.ahead[site].iter().position(|&other| other == index) {
            self.ahead[site].swap_remove(at);
        }
    }

    /// Sees to it that one more connection may be opened, by closing one that does nothing; whether
    /// it may.
    pub(super) fn make_room(&mut self) -> bool {
        if self.has_room() {
            return true;
        }
        let Some(index) = self.idle_one() else { return false };
        self.close(index);
        true
    }

    /// A connection, to whatever site, that does nothing.
    fn idle_one(&self) -> Option<usize> {
        let is_idle = |index: &&usize| {
            self.table.peek(**index).is_some_and(|connection| connection.under_way() == 0)
        };
        self.spare.iter().find_map(|spare| spare.iter().rev().find(is_idle)).copied()
    }

    /// A connection has room for a request.
    pub(super) fn offer(&mut self, index: usize) {
        let Some(connection) = self.table.get(index) else { return };
        if !std::mem::replace(&mut connection.is_spare, true) {
            self.spare[connection.site].push(index);
        }
    }

    /// As [`Worker::offer`], but others come first.
    pub(super) fn offer_last(&mut self, index: usize) {
        self.withdraw(index);
        let Some(connection) = self.table.get(index) else { return };
        connection.is_spare = true;
        self.spare[connection.site].insert(0, index);
    }

    /// A connection has no room any more.
    pub(super) fn withdraw(&mut self, index: usize) {
        let Some(connection) = self.table.get(index) else { return };
        if std::mem::replace(&mut connection.is_spare, false) {
            let spare = &mut self.spare[connection.site];
            if let Some(at) = spare.iter().rposition(|&other| other == index) {
                spare.remove(at);
            }
        }
    }

    /// Closes a connection. What was under way on it is the caller's to account for.
    pub(super) fn close(&mut self, index: usize) {
        self.withdraw(index);
        let Some(connection) = self.table.release(index) else { return };
        self.has_closed = true;
        self.no_longer_ahead(connection.site, index);
        if self.shared.plan.reset
            && let Some(link) = &connection.link
        {
            // Without it the close is only an ordinary one.
            let _ = os::socket::set_linger_zero(&link.socket);
        }
    }
}

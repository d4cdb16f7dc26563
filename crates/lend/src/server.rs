//! The slots of one server: this member's share, and what it has lent and borrowed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use model::Moment;

use crate::allot::{Division, divide};
use crate::peer::{Lease, Peer, UNUSED_AFTER};
use crate::wire::Row;

/// How long a borrowed slot that is not needed is kept.
const IDLE: Duration = Duration::from_millis(100);

/// After the end of a lease and the longest request, no request uses its slots: a turn may come this much later, and
/// clocks differ in speed. The lender waits longer ([`UNUSED_AFTER`]).
const LATE: Duration = Duration::from_millis(500);

/// After this time without an acknowledgement a row is sent again.
const REPEAT: Duration = Duration::from_millis(100);

/// The most slots of a server that a fleet shares: a higher limit counts as this.
pub const SLOTS_MAX: u32 = u16::MAX as u32;

/// Totals beyond this are nonsense.
const TOTAL_MAX: u64 = 1 << 62;

/// How the slots of one server are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many may be used.
    pub allowed: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that wait for a slot.
    pub waiting: u32,
}

/// The slots of one server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) key: u64,
    pub(crate) max: u32,
    pub(crate) request_max: Duration,
    pub(crate) share: u32,
    /// Each member has a share: then what a member needs of its own comes first.
    pub(crate) is_for_all: bool,
    /// The other members that have shares.
    pub(crate) owners: Vec<(SocketAddr, u32)>,
    pub(crate) loans: BTreeMap<SocketAddr, Loan>,
    /// Lent to processes that have been replaced, and until when they may use them.
    orphans: Vec<(u32, Moment)>,
    /// Since when more has been used or lent than this member has.
    over_since: Option<Moment>,
    /// Since when it has had more than it needs.
    idle_since: Option<Moment>,
}

/// What one member and another have lent each other of a server.
#[derive(Debug, Default)]
pub(crate) struct Loan {
    /// Totals: lent to the other, given back by it, and called back.
    lent: u64,
    returned: u64,
    called_back: u64,
    /// Totals: borrowed from the other, given back to it, and called back by it.
    borrowed: u64,
    given_back: u64,
    owed_back: u64,
    /// How many the other could use in addition, and this member of the other's.
    its_want: u32,
    want: u32,
    /// Borrowed from an earlier process of the other, and still in use.
    of_before: u32,
    /// What the other still uses of what an earlier process of this member had lent.
    its_of_before: u32,
    /// The last row that was sent, in which message, and when.
    sent: Option<(Row, u64, Moment)>,
    /// The other has received it.
    is_received: bool,
    /// The message with the newest row that was received.
    read: u64,
}

impl Loan {
    /// Returns how many slots the other has of this member's.
    pub(crate) fn out(&self) -> u32 {
        small(self.lent.saturating_sub(self.returned))
    }

    /// The same, with what an earlier process of this member had lent.
    pub(crate) fn total_out(&self) -> u32 {
        self.out().saturating_add(self.its_of_before)
    }

    /// Returns how many slots this member has of the other's.
    fn held(&self) -> u32 {
        small(self.borrowed.saturating_sub(self.given_back))
    }

    fn owed(&self) -> u32 {
        small(self.owed_back.saturating_sub(self.given_back)).min(self.held())
    }

    /// Gives back up to so many slots, as far as there are free ones. Returns how many.
    fn give(&mut self, wanted: i64, free: &mut i64) -> i64 {
        let given = wanted.min(*free).max(0);
        self.given_back += given as u64;
        *free -= given;
        given
    }

    /// Whether either has slots of the other.
    pub(crate) fn is_open(&self) -> bool {
        self.total_out() > 0 || self.held() > 0 || self.of_before > 0
    }

    /// Whether the other still has to be told what this member uses of its earlier process's slots.
    pub(crate) fn is_before_untold(&self, server: u64) -> bool {
        self.of_before > 0 && !self.is_told(server)
    }

    /// Whether the other knows the present state.
    fn is_told(&self, server: u64) -> bool {
        let row = self.row(server);
        match &self.sent {
            None => row == Row { server, ..Row::default() },
            Some((sent, ..)) => *sent == row && self.is_received,
        }
    }

    /// Notes whether the other has received the last row.
    pub(crate) fn note_received(&mut self, peer: &Peer) {
        if let Some((_, number, _)) = self.sent {
            self.is_received = self.is_received || peer.has_received(number);
        }
    }

    fn row(&self, server: u64) -> Row {
        let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        Row {
            server,
            lent: self.lent,
            returned: self.returned,
            given_back: self.given_back,
            called_back: self.called_back,
            wanted: short(self.want),
            of_before: short(self.of_before),
        }
    }

    /// Returns the row that should be sent now.
    pub(crate) fn due(&self, server: u64, now: Moment) -> Option<Row> {
        let row = self.row(server);
        let is_due = match &self.sent {
            None => row != Row { server, ..Row::default() },
            Some((sent, _, at)) => *sent != row || !self.is_received && now.since(*at) >= REPEAT,
        };
        is_due.then_some(row)
    }

    pub(crate) fn note_sent(&mut self, row: Row, number: u64, now: Moment) {
        (self.sent, self.is_received) = (Some((row, number, now)), false);
    }

    /// Takes a row from the message with this number. `is_of_epoch`: the other has seen the present epoch.
    pub(crate) fn on_row(&mut self, row: &Row, number: u64, is_of_epoch: bool) {
        if is_of_epoch && row.given_back > self.lent && row.given_back < TOTAL_MAX {
            // What was lent before is not known here any more: the totals go on from there.
            (self.lent, self.returned) = (row.given_back, row.given_back);
        } else if is_of_epoch {
            self.returned = self.returned.max(row.given_back.min(self.lent));
        }
        // This member may have forgotten what it gave back.
        self.given_back = self.given_back.max(row.returned.min(row.lent));
        let most = self.given_back.saturating_add(SLOTS_MAX.into());
        self.borrowed = self.borrowed.max(row.lent.min(most));
        self.owed_back = self.owed_back.max(row.called_back);
        if number > self.read {
            self.read = number;
            self.its_want = row.wanted.into();
            self.its_of_before = row.of_before.into();
        }
    }

    /// The other has another process now. Returns what the ones before it have of this member's.
    pub(crate) fn restart(&mut self) -> u32 {
        let out = self.total_out();
        let of_before = self.of_before.saturating_add(self.held());
        *self = Loan { of_before, ..Loan::default() };
        out
    }

    /// Takes back all that was lent: the other has had no lease for so long that it uses none.
    pub(crate) fn forfeit(&mut self) {
        (self.lent, self.returned, self.called_back) = (0, 0, 0);
        (self.its_want, self.its_of_before) = (0, 0);
    }

    /// The other has taken back all that it had lent.
    pub(crate) fn forget_borrowed(&mut self) {
        (self.borrowed, self.given_back, self.owed_back) = (0, 0, 0);
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What a server's slots are used for, in this turn.
#[derive(Clone, Copy, Debug)]
struct Balance {
    /// This member's own that are not lent; negative while its share has become smaller.
    own: i64,
    /// Borrowed, with a lease.
    borrowed: i64,
    /// Borrowed without a lease, or of a process that was replaced: to be given back.
    expired: i64,
    /// Called back by the lenders.
    owed: i64,
}

impl Server {
    pub(crate) fn new(key: u64) -> Server {
        Server {
            key,
            max: 0,
            request_max: Duration::ZERO,
            share: 0,
            is_for_all: false,
            owners: Vec::new(),
            loans: BTreeMap::new(),
            orphans: Vec::new(),
            over_since: None,
            idle_since: None,
        }
    }

    /// Whether something is lent, borrowed or wanted by others, or they may not know the present state.
    pub(crate) fn is_open(&self) -> bool {
        let is_open = |loan: &Loan| loan.is_open() || loan.its_want > 0 || !loan.is_told(self.key);
        !self.orphans.is_empty() || self.loans.values().any(is_open)
    }

    /// Returns how many slots are lent, and how many borrowed.
    pub(crate) fn totals(&self) -> (u32, u32) {
        let sum = |of: fn(&Loan) -> u32| self.loans.values().map(of).fold(0, u32::saturating_add);
        (sum(Loan::total_out), sum(Loan::held))
    }

    /// Whether something may have to change soon although no message arrives.
    pub(crate) fn is_active(&self, is_live: impl Fn(SocketAddr) -> bool) -> bool {
        let mut loans = self.loans.iter();
        loans.any(|(other, loan)| {
            is_live(*other) && (loan.is_open() || loan.its_want > 0 || loan.want > 0)
        })
    }

    /// Processes were replaced: what they had borrowed may be used until then.
    pub(crate) fn orphan(&mut self, slots: u32, until: Moment) {
        if slots > 0 {
            self.orphans.push((slots, until));
        }
    }

    /// Returns how many of this member's own slots are not lent.
    pub(crate) fn own(&self) -> u32 {
        u32::try_from(self.balance(|_| Lease::Ended(None)).own).unwrap_or_default()
    }

    fn balance(&self, lease: impl Fn(SocketAddr) -> Lease) -> Balance {
        let mut balance = Balance { own: self.share.into(), borrowed: 0, expired: 0, owed: 0 };
        balance.own -= self.orphans.iter().map(|(slots, _)| i64::from(*slots)).sum::<i64>();
        for (other, loan) in &self.loans {
            balance.own -= i64::from(loan.total_out());
            balance.expired += i64::from(loan.of_before);
            if lease(*other) == Lease::Holds {
                balance.borrowed += i64::from(loan.held());
                balance.owed += i64::from(loan.owed());
            } else {
                balance.expired += i64::from(loan.held());
            }
        }
        balance
    }

    /// Decides what is used, lent and given back from now on. `lease`: of what a member has lent; `hears`: it hears
    /// this member; `allow` sets how many slots may be used and returns how many are. Returns whether this
    /// member uses and lends no more than its share and what it has borrowed, as far as its requests end.
    pub(crate) fn turn(
        &mut self,
        usage: Usage,
        lease: impl Fn(SocketAddr) -> Lease,
        hears: impl Fn(SocketAddr) -> bool,
        allow: impl FnOnce(u32) -> u32,
        now: Moment,
    ) -> bool {
        self.orphans.retain(|(_, until)| *until > now);
        let is_quiet = self.loans.is_empty() && self.orphans.is_empty() && usage.waiting == 0;
        if is_quiet && usage.allowed == self.share && usage.in_flight <= self.share {
            self.over_since = None;
            return true;
        }
        self.end_leases(&lease, now);
        let balance = self.balance(&lease);
        let need = i64::from(usage.in_flight) + i64::from(usage.waiting);
        let targets = self.targets(balance, need, hears, now);
        let to_lend = self.to_lend(&targets, balance.own);
        let hold = balance.own + balance.borrowed;
        let idle = self.idle(hold - need, balance, now);
        let allowed = (hold - balance.owed - to_lend - idle).clamp(0, self.max.into()) as u32;
        let in_flight = if allowed == usage.allowed { usage.in_flight } else { allow(allowed) };
        let mut free = hold + balance.expired - i64::from(allowed.max(in_flight));
        let is_over = free < 0 || balance.own < 0;
        self.give_back(&mut free, idle, &lease);
        self.lend(&targets, &mut free, balance.own);
        self.want(need - hold);
        !self.is_over_for_now(is_over, now)
    }

    /// Sets this member's share.
    pub(crate) fn set_share(&mut self, share: u32) {
        if share < self.share {
            self.over_since = None;
        }
        self.share = share;
    }

    /// Returns whether to wait before a table is offered, since more is used or lent than this member has. That ends
    /// after the longest request, so that a tunnel does not keep the fleet from a new table.
    fn is_over_for_now(&mut self, is_over: bool, now: Moment) -> bool {
        if !is_over {
            self.over_since = None;
            return false;
        }
        let since = *self.over_since.get_or_insert(now);
        now.since(since) < UNUSED_AFTER + self.request_max
    }

    /// Returns how many of this member's slots each other should have, and how many it keeps; calls back what others
    /// have beyond that.
    fn targets(
        &mut self,
        balance: Balance,
        need: i64,
        hears: impl Fn(SocketAddr) -> bool,
        now: Moment,
    ) -> Division {
        let claims = self.loans.iter().map(|(other, loan)| {
            let wanted = if hears(*other) { loan.its_want } else { 0 };
            loan.out().saturating_add(wanted)
        });
        let needs: Vec<u32> = claims.collect();
        let own = (need - balance.borrowed).clamp(0, self.max.into()) as u32;
        let lent: i64 = self.loans.values().map(|loan| i64::from(loan.out())).sum();
        let total = (balance.own + lent).clamp(0, SLOTS_MAX.into()) as u32;
        let first = if self.is_for_all { own } else { 0 };
        let targets = divide(&needs, own, first, total, now);
        for (loan, target) in self.loans.values_mut().zip(&targets.others) {
            let most = loan.lent.saturating_sub(u64::from(*target));
            loan.called_back = loan.called_back.max(most);
        }
        targets
    }

    /// Returns how many slots to lend that this member has itself.
    fn to_lend(&self, targets: &Division, own: i64) -> i64 {
        let more = self.loans.values().zip(&targets.others);
        let more: i64 =
            more.map(|(loan, target)| i64::from(target.saturating_sub(loan.out()))).sum();
        more.min(own - i64::from(targets.own)).max(0)
    }

    /// Returns how many borrowed slots have not been needed for a while.
    fn idle(&mut self, surplus: i64, balance: Balance, now: Moment) -> i64 {
        let surplus = surplus.min(balance.borrowed - balance.owed).max(0);
        if surplus == 0 {
            self.idle_since = None;
            return 0;
        }
        let since = *self.idle_since.get_or_insert(now);
        if now.since(since) >= IDLE { surplus } else { 0 }
    }

    /// Gives back the slots that no request can use any more, since their leases ended so long ago. If more requests are
    /// in flight than other slots permit, these use too many of this member's own.
    fn end_leases(&mut self, lease: impl Fn(SocketAddr) -> Lease, now: Moment) {
        let unused_after = self.request_max + LATE;
        for (other, loan) in &mut self.loans {
            if let Lease::Ended(Some(at)) = lease(*other)
                && now.since(at) >= unused_after
            {
                (loan.given_back, loan.of_before) = (loan.borrowed, 0);
            }
        }
    }

    /// Gives slots back: those without a lease, those called back, and those not needed.
    ///
    /// Requests end in any order, and a request that began with one slot may be left with another. Slots whose leases ended
    /// first go back first: the requests that are left then began before the later leases ended, and end in time.
    fn give_back(&mut self, free: &mut i64, mut idle: i64, lease: impl Fn(SocketAddr) -> Lease) {
        let loans = self.loans.iter_mut();
        let mut loans: Vec<(Lease, &mut Loan)> =
            loans.map(|(other, loan)| (lease(*other), loan)).collect();
        loans.sort_by_key(|(lease, _)| *lease);
        for (lease, loan) in &mut loans {
            let old = i64::from(loan.of_before).min(*free).max(0);
            loan.of_before -= old as u32;
            *free -= old;
            if *lease != Lease::Holds {
                loan.give(i64::from(loan.held()), free);
            }
        }
        let leased = loans.iter_mut().filter(|(lease, _)| *lease == Lease::Holds);
        let mut leased: Vec<&mut Loan> = leased.map(|(_, loan)| &mut **loan).collect();
        for loan in &mut leased {
            loan.give(i64::from(loan.owed()), free);
        }
        for loan in &mut leased {
            idle -= loan.give(i64::from(loan.held()).min(idle), free);
        }
    }

    /// Lends free slots.
    fn lend(&mut self, targets: &Division, free: &mut i64, mut own: i64) {
        for (loan, target) in self.loans.values_mut().zip(&targets.others) {
            let more = i64::from(target.saturating_sub(loan.out()));
            let given = more.min(*free).min(own).max(0);
            loan.lent += given as u64;
            *free -= given;
            own -= given;
        }
    }

    /// Asks the other owners for slots that are missing.
    fn want(&mut self, missing: i64) {
        let missing = missing.clamp(0, self.max.into()) as u32;
        self.loans.values_mut().for_each(|loan| loan.want = 0);
        for (owner, share) in &self.owners {
            let want = missing.min(*share);
            if want > 0 {
                self.loans.entry(*owner).or_default().want = want;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASED: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
    const ENDED: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 2);

    /// A server with one slot that is called back, and one whose lease ended at 0.
    fn borrower() -> Server {
        let mut server = Server::new(1);
        (server.max, server.request_max) = (4, Duration::from_secs(4));
        let called_back = Loan { borrowed: 1, owed_back: 1, ..Loan::default() };
        server.loans.insert(LEASED, called_back);
        server.loans.insert(ENDED, Loan { borrowed: 1, ..Loan::default() });
        server
    }

    fn turn(server: &mut Server, in_flight: u32, at_ms: u64) -> bool {
        let usage = Usage { allowed: 0, in_flight, waiting: 0 };
        let lease = |other| match other {
            LEASED => Lease::Holds,
            _ => Lease::Ended(Some(Moment::ZERO)),
        };
        server.turn(usage, lease, |_| true, |_| in_flight, Moment::from_millis(at_ms))
    }

    #[test]
    fn a_slot_whose_lease_has_ended_goes_back_before_one_that_is_called_back() {
        let mut server = borrower();
        assert!(turn(&mut server, 1, 100));
        assert_eq!((server.loans[&ENDED].held(), server.loans[&LEASED].held()), (0, 1));
    }

    #[test]
    fn a_slot_whose_lease_has_ended_is_not_kept_beyond_the_longest_request() {
        let mut server = borrower();
        assert!(turn(&mut server, 2, 4_400));
        assert_eq!(server.loans[&ENDED].held(), 1);
        turn(&mut server, 2, 4_500);
        assert_eq!((server.loans[&ENDED].held(), server.loans[&LEASED].held()), (0, 1));
        assert!(server.over_since.is_some());
    }
}

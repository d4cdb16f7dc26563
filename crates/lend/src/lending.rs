//! One member: its tables, its peers, and the slots of each server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use model::Moment;

use crate::agreement::Agreement;
use crate::peer::{Lease, Peer};
use crate::server::{Loan, SLOTS_MAX, Server, Usage};
use crate::table::Table;
use crate::wire::{self, Malformed, Message, ROWS_MAX, Row};

/// How often there is a turn while something is lent, borrowed or wanted, and how often otherwise.
const TURN: Duration = Duration::from_millis(20);
const TURN_QUIET: Duration = Duration::from_millis(250);

/// A member that no longer answers, did not say that it ends, and was never named by the list of members keeps its
/// share for this time.
const FORGET: Duration = Duration::from_hours(1);

/// After the end that a process has announced, its share is divided.
const END_MARGIN: Duration = Duration::from_secs(1);

/// The most messages to one member in a turn; the rest is sent in the next.
const MESSAGES_MAX: usize = 32;

/// The most servers that are not known here and that messages of others have named; rows of more are ignored.
const UNKNOWN_MAX: usize = 10_000;

/// How many earlier starts of a member's process are remembered.
const STARTS_MAX: usize = 8;

/// A process of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberAt {
    /// Where the member is, in the list of members.
    pub address: SocketAddr,
    /// The start of its process.
    pub start: [u8; 16],
}

/// A server whose slots the fleet shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimit {
    /// The hash of its name, the same at all members.
    pub key: u64,
    /// Its slots, over the whole fleet; at most [`SLOTS_MAX`] are used.
    pub max: u32,
    /// How long a request may take at most; slots that were lent are not used for longer after their lease.
    pub request_max: Duration,
}

/// The slots of this balancer, by the place of the server in the list given to [`Lending::set_servers`].
pub trait Slots {
    /// Returns how they are used.
    fn usage(&mut self, at: usize) -> Usage;
    /// Sets how many may be used from now on, and returns how many are in use at that instant: from then on not
    /// more than `allowed`, except that those in use beyond it end one after another.
    fn allow(&mut self, at: usize, allowed: u32) -> u32;
}

/// What a member has of a server's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its share.
    pub share: u32,
    /// How many of it are lent to others.
    pub lent: u32,
    /// How many are borrowed from others.
    pub borrowed: u32,
}

/// One member of a fleet that shares slots.
#[derive(Debug)]
pub struct Lending {
    own: MemberAt,
    agreement: Agreement,
    /// The list of members, as configured or discovered.
    listed: BTreeSet<SocketAddr>,
    /// Members that no longer answer, and until when they keep their share.
    lost: BTreeMap<SocketAddr, Moment>,
    peers: BTreeMap<SocketAddr, Peer>,
    /// First those that the caller knows, in its order; then those of which something is lent or borrowed, or that
    /// only messages of others have named.
    servers: Vec<Server>,
    known: usize,
    by_key: HashMap<u64, usize>,
    /// This process ends by then.
    ends_at: Option<Moment>,
    next_turn: Moment,
}

impl Lending {
    /// Returns a member that knows no other.
    pub fn new(own: MemberAt, now: Moment) -> Lending {
        Lending {
            own,
            agreement: Agreement::new(own.address, now),
            listed: BTreeSet::new(),
            lost: BTreeMap::new(),
            peers: BTreeMap::new(),
            servers: Vec::new(),
            known: 0,
            by_key: HashMap::new(),
            ends_at: None,
            next_turn: now,
        }
    }

    /// Sets the list of members, as configured or discovered, with or without this one. One that leaves the list
    /// and does not answer loses its share.
    pub fn set_listed(&mut self, listed: BTreeSet<SocketAddr>, now: Moment) {
        let before = std::mem::replace(&mut self.listed, listed);
        for gone in before.difference(&self.listed) {
            let ends_at = self.peers.get(gone).and_then(|peer| peer.ends_at);
            match (self.lost.get_mut(gone), ends_at) {
                (Some(until), Some(ends_at)) => *until = ends_at + END_MARGIN,
                (Some(until), None) => *until = now,
                (None, _) => {}
            }
        }
        let listed = self.peers.iter_mut().filter(|(one, _)| self.listed.contains(*one));
        listed.for_each(|(_, peer)| peer.was_listed = true);
        self.update_table(now);
    }

    /// Sets which others answer. Of several processes at one address, the one that was not known before counts.
    pub fn set_live(&mut self, live: &[MemberAt], now: Moment) {
        self.agreement.note_change(now);
        let mut starts: BTreeMap<SocketAddr, Vec<[u8; 16]>> = BTreeMap::new();
        for one in live.iter().filter(|one| one.address != self.own.address) {
            starts.entry(one.address).or_default().push(one.start);
        }
        for (address, peer) in &mut self.peers {
            if peer.is_live && !starts.contains_key(address) {
                peer.is_live = false;
                let is_off_the_list = peer.was_listed && !self.listed.contains(address);
                let keeps_for = if is_off_the_list { Duration::ZERO } else { FORGET };
                let ends_at = peer.ends_at.map(|at| at + END_MARGIN);
                self.lost.insert(*address, ends_at.unwrap_or(now + keeps_for));
            }
        }
        for (address, starts) in starts {
            self.lost.remove(&address);
            let Some((&first, rest)) = starts.split_first() else { continue };
            let peer = self.peers.entry(address).or_insert_with(|| {
                let mut peer = Peer::new(first, now);
                peer.starts_before = rest.to_vec();
                peer
            });
            peer.is_live = true;
            peer.was_listed |= self.listed.contains(&address);
            let is_new =
                |start: &&[u8; 16]| **start != peer.start && !peer.starts_before.contains(*start);
            let new = starts.iter().find(is_new).copied();
            // Or the present one has ended, and those that are left were known before.
            let other = (!starts.contains(&peer.start)).then_some(first);
            if let Some(start) = new.or(other) {
                self.replace(address, start, now);
            }
        }
        self.update_table(now);
    }

    /// A member has another process now.
    fn replace(&mut self, address: SocketAddr, start: [u8; 16], now: Moment) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        for server in &mut self.servers {
            let until = peer.forfeits_at(server.request_max);
            if let Some(loan) = server.loans.get_mut(&address) {
                let out = loan.restart();
                server.orphan(out, until);
            }
        }
        let mut next = Peer::new(start, now);
        next.starts_before = std::mem::take(&mut peer.starts_before);
        next.starts_before.truncate(STARTS_MAX - 1);
        next.starts_before.insert(0, peer.start);
        next.was_listed = peer.was_listed;
        *peer = next;
    }

    /// Sets the servers. Those that are no longer named are remembered while something of them is lent or borrowed.
    pub fn set_servers(&mut self, limits: &[ServerLimit], now: Moment) {
        let mut before: BTreeMap<u64, Server> =
            self.servers.drain(..).map(|server| (server.key, server)).collect();
        let mut servers = Vec::with_capacity(limits.len());
        for limit in limits {
            let mut server = before.remove(&limit.key).unwrap_or_else(|| Server::new(limit.key));
            let max = limit.max.min(SLOTS_MAX);
            if server.max != max || server.owners.is_empty() {
                server.max = max;
                self.agreement.set_shares(&mut server);
            }
            server.request_max = limit.request_max;
            servers.push(server);
        }
        if self.known == 0 && !servers.is_empty() {
            // The others have not been asked for their offers yet.
            self.agreement.note_change(now);
        }
        self.known = servers.len();
        for mut server in before.into_values() {
            if server.is_open() {
                server.max = 0;
                self.agreement.set_shares(&mut server);
                servers.push(server);
                continue;
            }
            for other in server.loans.keys() {
                self.peers.get_mut(other).into_iter().for_each(Peer::forget_agreed);
            }
        }
        self.by_key = servers.iter().zip(0..).map(|(server, at)| (server.key, at)).collect();
        self.servers = servers;
        self.next_turn = now;
    }

    /// Tells the others that this process ends within a time.
    pub fn end(&mut self, within: Duration, now: Moment) {
        self.ends_at = Some(now + within);
        self.peers.values_mut().for_each(Peer::hurry);
        self.hurry(now);
    }

    /// Takes a message from another process.
    ///
    /// # Errors
    ///
    /// If the bytes are no message. One from a process that is not known is ignored.
    pub fn on_message(
        &mut self,
        from: MemberAt,
        bytes: &[u8],
        now: Moment,
    ) -> Result<(), Malformed> {
        let message = wire::read(bytes)?;
        let peer = self.peers.get_mut(&from.address);
        let Some(peer) = peer.filter(|peer| peer.start == from.start && peer.is_live) else {
            return Ok(());
        };
        if message.epoch < peer.its_epoch || peer.is_stale(&message) {
            return Ok(());
        }
        if message.epoch > peer.its_epoch {
            peer.its_epoch = message.epoch;
            let loans = self.servers.iter_mut().filter_map(|one| one.loans.get_mut(&from.address));
            loans.for_each(Loan::forget_borrowed);
        }
        let offer_before = peer.offer;
        if peer.on_message(&message, now) {
            let ends_after = Duration::from_secs(message.ends_after_s.into());
            peer.ends_at = (message.ends_after_s > 0).then(|| now + ends_after);
        }
        let is_news = offer_before != peer.offer || !message.rows.is_empty();
        if is_news {
            peer.hurry();
            self.next_turn = now;
        }
        let is_of_epoch = message.seen_epoch == peer.epoch;
        for row in &message.rows {
            if let Some(server) = self.server_of(row.server) {
                let loan = server.loans.entry(from.address).or_default();
                loan.on_row(row, message.number, is_of_epoch);
            }
        }
        Ok(())
    }

    /// Returns a server, which may be known to others only.
    fn server_of(&mut self, key: u64) -> Option<&mut Server> {
        let at = match self.by_key.get(&key) {
            Some(at) => *at,
            None if self.servers.len() - self.known >= UNKNOWN_MAX => return None,
            None => {
                self.by_key.insert(key, self.servers.len());
                self.servers.push(Server::new(key));
                self.servers.len() - 1
            }
        };
        self.servers.get_mut(at)
    }

    /// The next turn is due now.
    pub fn hurry(&mut self, now: Moment) {
        self.next_turn = self.next_turn.min(now);
    }

    /// Returns when the next [`Lending::turn`] is due.
    pub fn next_due(&self) -> Moment {
        self.next_turn
    }

    /// Decides how many slots of each server are used from now on, and what is lent and given back. Returns the
    /// messages to send.
    pub fn turn(&mut self, slots: &mut impl Slots, now: Moment) -> Vec<(MemberAt, Vec<u8>)> {
        self.forget(now);
        self.forfeit(now);
        let mut fits = true;
        let peer = |other| self.peers.get(&other);
        let lease = |other| peer(other).map_or(Lease::Ended(None), |peer| peer.lease(now));
        let hears = |other| peer(other).is_some_and(|peer| peer.hears(now));
        for (at, server) in self.servers.iter_mut().enumerate() {
            // Of one that only others know, nothing is used.
            let is_known = at < self.known;
            let usage = if is_known { slots.usage(at) } else { Usage::default() };
            let allow = |allowed| if is_known { slots.allow(at, allowed) } else { 0 };
            fits &= server.turn(usage, lease, hears, allow, now);
        }
        if fits {
            self.agreement.offer();
        }
        let is_live = |other| peer(other).is_some_and(|peer| peer.is_live);
        let is_active = self.servers.iter().any(|server| server.is_active(is_live));
        self.next_turn = now + if is_active { TURN } else { TURN_QUIET };
        let offer_of = |other| self.peers.get(&other).filter(|peer| peer.is_live)?.offer;
        if self.known > 0 && self.agreement.try_commit(offer_of, now) {
            self.update_shares();
            self.next_turn = now;
            self.peers.values_mut().for_each(Peer::hurry);
        }
        self.messages(now)
    }

    /// Ends this member's part: from now on it uses only what is its own and not lent.
    pub fn retire(&mut self, slots: &mut impl Slots) {
        for (at, server) in self.servers.iter().take(self.known).enumerate() {
            slots.allow(at, server.own());
        }
    }

    /// Whether the members agree on their shares.
    pub fn is_settled(&self) -> bool {
        self.agreement.is_settled()
    }

    /// Returns the members that have shares and do not answer.
    pub fn missing(&self) -> impl Iterator<Item = SocketAddr> {
        let is_live = |other: &SocketAddr| self.peers.get(other).is_some_and(|peer| peer.is_live);
        self.agreement.wanted().others(self.own.address).filter(move |other| !is_live(other))
    }

    /// Returns what this member has of a server's slots.
    pub fn standing(&self, at: usize) -> Standing {
        let Some(server) = self.servers.get(at) else { return Standing::default() };
        let (lent, borrowed) = server.totals();
        Standing { share: server.share, lent, borrowed }
    }

    /// Drops members whose time is over, and what is known of those that have nothing any more.
    fn forget(&mut self, now: Moment) {
        let before = self.lost.len();
        self.lost.retain(|_, until| *until > now);
        if self.lost.len() != before {
            self.update_table(now);
        }
        let table = self.agreement.wanted();
        // A process that comes back within this time goes on with the totals that it knows.
        let is_gone = |peer: &Peer| !peer.is_live && now.since(peer.heard_at) >= FORGET;
        let gone = self.peers.iter().filter(|(one, peer)| is_gone(peer) && !table.contains(**one));
        let mut gone: BTreeSet<SocketAddr> = gone.map(|(address, _)| *address).collect();
        for (address, loan) in self.servers.iter().flat_map(|server| &server.loans) {
            if gone.is_empty() {
                return;
            }
            if loan.is_open() {
                gone.remove(address);
            }
        }
        for server in &mut self.servers {
            server.loans.retain(|address, _| !gone.contains(address));
        }
        self.peers.retain(|address, _| !gone.contains(address));
    }

    fn update_table(&mut self, now: Moment) {
        let live = self.peers.iter().filter(|(_, peer)| peer.is_live).map(|(address, _)| *address);
        let members = live.chain(self.listed.iter().copied()).chain(self.lost.keys().copied());
        let table = Table::new(members.chain([self.own.address]).collect());
        if self.agreement.want(table, now) {
            self.update_shares();
        }
        self.next_turn = now;
    }

    fn update_shares(&mut self) {
        self.servers.iter_mut().for_each(|server| self.agreement.set_shares(server));
    }

    /// Takes back what was lent to members that have not been heard for so long that they use none of it.
    fn forfeit(&mut self, now: Moment) {
        let mut longest: BTreeMap<SocketAddr, Duration> = BTreeMap::new();
        for server in &self.servers {
            for (address, _) in server.loans.iter().filter(|(_, loan)| loan.total_out() > 0) {
                let known = longest.entry(*address).or_default();
                *known = server.request_max.max(*known);
            }
        }
        for (address, longest) in longest {
            let peer = self.peers.get_mut(&address);
            if let Some(peer) = peer.filter(|peer| peer.forfeits_at(longest) <= now) {
                peer.epoch = now.as_micros().max(peer.epoch + 1);
                let loans = self.servers.iter_mut().filter_map(|one| one.loans.get_mut(&address));
                loans.for_each(Loan::forfeit);
            }
        }
    }

    fn messages(&mut self, now: Moment) -> Vec<(MemberAt, Vec<u8>)> {
        let mut due: BTreeMap<SocketAddr, Vec<Row>> = BTreeMap::new();
        // Those that have not been told all that is used of what an earlier process had lent.
        let mut untold: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        for server in &mut self.servers {
            for (other, loan) in &mut server.loans {
                let Some(peer) = self.peers.get(other).filter(|peer| peer.is_live) else {
                    continue;
                };
                loan.note_received(peer);
                if let Some(row) = loan.due(server.key, now) {
                    due.entry(*other).or_default().push(row);
                }
                if loan.is_before_untold(server.key) {
                    *untold.entry(*other).or_default() += 1;
                }
            }
        }
        let mut messages = Vec::new();
        for address in self.peers.keys().copied().collect::<Vec<_>>() {
            let rows = due.remove(&address).unwrap_or_default();
            // All that is untold may be in one message.
            let told = rows.iter().filter(|row| row.of_before > 0).count();
            let untold = untold.get(&address).copied().unwrap_or_default();
            let is_complete = untold == 0 || untold == told && rows.len() <= ROWS_MAX;
            self.messages_to(address, &rows, is_complete, now, &mut messages);
        }
        messages
    }

    fn messages_to(
        &mut self,
        address: SocketAddr,
        rows: &[Row],
        is_complete: bool,
        now: Moment,
        messages: &mut Vec<(MemberAt, Vec<u8>)>,
    ) {
        let peer = self.peers.get_mut(&address).filter(|peer| peer.is_live);
        let has_servers = self.known > 0;
        let Some(peer) = peer.filter(|peer| {
            let is_wanted = has_servers || peer.has_servers || self.ends_at.is_some();
            !rows.is_empty() || is_wanted && peer.is_announce_due(now)
        }) else {
            return;
        };
        let offer = self.agreement.to_tell(peer.offer.map_or(0, |offer| offer.number), is_complete);
        let ends_after = self.ends_at.map(|at| at.since(now).as_secs().saturating_add(1));
        let ends_after_s = ends_after.map_or(0, |s| u32::try_from(s).unwrap_or(u32::MAX));
        let chunks = rows.chunks(ROWS_MAX).map(<[Row]>::to_vec).take(MESSAGES_MAX);
        for rows in chunks.chain(rows.is_empty().then(Vec::new)) {
            let head = peer.next_message(offer, now);
            for row in &rows {
                let server = self.by_key.get(&row.server).and_then(|at| self.servers.get_mut(*at));
                if let Some(loan) = server.and_then(|one| one.loans.get_mut(&address)) {
                    loan.note_sent(*row, head.number, now);
                }
            }
            let mut bytes = Vec::new();
            wire::write(&Message { ends_after_s, has_servers, rows, ..head }, &mut bytes);
            messages.push((MemberAt { address, start: peer.start }, bytes));
        }
    }
}

#[cfg(test)]
mod tests;

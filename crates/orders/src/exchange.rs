//! One member: its table, the messages that it exchanges with the others, and who has confirmed which order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{Administrative, Moment};

use crate::order::{Order, ServerKey, Version};
use crate::table::{Full, Merged, ORDERS_MAX, Table, bucket};
use crate::wire::{self, Acknowledged, Message};

/// How long a new order is sent again to those that have not acknowledged it.
const SENT_MAX: Duration = Duration::from_secs(10);
/// How often.
const AGAIN: Duration = Duration::from_millis(250);
/// How often a member compares its table with that of one other.
const COMPARE: Duration = Duration::from_secs(1);
/// The most messages with orders that are sent to one member at once.
const MESSAGES_MAX: usize = 16;

/// How often an order is made again over others that are older although their versions are greater.
const AGAIN_MAX: u32 = 8;

/// How long it is worth waiting for confirmations of an order. Less than the time for which it is sent.
pub const WAIT_MAX: Duration = Duration::from_secs(3);

/// Another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name: 1 to 64 bytes.
    pub name: Arc<str>,
    /// Where its datagrams go.
    pub address: SocketAddr,
    /// Which start of its process it is.
    pub start: [u8; 16],
}

/// Who has confirmed orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The members that lived when an order was made or live now, this one included.
    pub members: usize,
    /// Those of them that have not confirmed all of the orders, by name.
    pub unconfirmed: Vec<Peer>,
}

/// What a message has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The table has changed.
    pub is_news: bool,
    /// Messages for its sender.
    pub answers: Vec<Vec<u8>>,
    /// Orders that were refused: the table is full, or their counters are too great.
    pub refused: usize,
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The orders that one member knows, and its side of their exchange.
#[derive(Debug)]
pub struct Orders {
    own: Peer,
    table: Table,
    /// The other members that live, by start.
    live: BTreeMap<[u8; 16], Peer>,
    /// The same, the next to compare tables with first.
    turns: VecDeque<[u8; 16]>,
    /// Orders of this member that not all others may have.
    sent: BTreeMap<ServerKey, Sent>,
    compare_at: Moment,
    /// Moves on, so that all orders are sent if there are too many for one time.
    cursor: usize,
}

#[derive(Debug)]
struct Sent {
    version: Version,
    state: Administrative,
    made_at: Moment,
    /// How often it was made again.
    again: u32,
    /// The members that lived when it was made.
    asked: Vec<Peer>,
    /// Starts of those that have it.
    got: BTreeSet<[u8; 16]>,
    again_at: Moment,
    until: Moment,
}

impl Orders {
    /// Returns a member that knows these orders of its earlier process, and no other member yet. What is not valid
    /// among them is left out.
    pub fn new(own: Peer, known: Vec<(ServerKey, Order)>, now: Moment) -> Orders {
        let mut table = Table::new();
        for (key, order) in known.into_iter().filter(|(key, _)| key.is_valid()) {
            table.merge(key, order, now);
        }
        Orders {
            own,
            table,
            live: BTreeMap::new(),
            turns: VecDeque::new(),
            sent: BTreeMap::new(),
            compare_at: now,
            cursor: 0,
        }
    }

    /// Sets which other members live.
    pub fn set_live(&mut self, peers: impl Iterator<Item = Peer>, now: Moment) {
        let before = std::mem::take(&mut self.live);
        self.live = peers.map(|peer| (peer.start, peer)).collect();
        let live = &self.live;
        self.turns.retain(|start| live.contains_key(start));
        for start in live.keys().filter(|start| !before.contains_key(*start)) {
            self.turns.push_front(*start);
            self.compare_at = now;
        }
    }

    /// Returns whether the table has room for orders about these servers.
    pub fn has_room(&self, keys: &[ServerKey]) -> bool {
        let keys: BTreeSet<&ServerKey> = keys.iter().collect();
        // Those of servers that are ready give way.
        let stays = |key: &ServerKey, order: &Order| {
            order.state != Administrative::Ready && !keys.contains(key)
        };
        let lasting = self.table.iter().filter(|(key, order)| stays(key, order)).count();
        lasting + keys.len() <= ORDERS_MAX
    }

    /// Makes an order: a server is to have this state at all members. It is sent with the next [`Orders::turn`].
    ///
    /// # Errors
    /// The table is full.
    pub fn make(
        &mut self,
        key: ServerKey,
        state: Administrative,
        now: Moment,
    ) -> Result<Version, Full> {
        let maker = (&self.own.start, &self.own.name);
        let version = self.table.make(key.clone(), state, maker, now)?;
        let asked = self.live.values().cloned().collect();
        let until = now + SENT_MAX;
        let (got, again_at, made_at) = (BTreeSet::new(), now, now);
        let sent = Sent { version, state, made_at, again: 0, asked, got, again_at, until };
        self.sent.insert(key, sent);
        Ok(version)
    }

    /// Makes the order of this member about a server again if one that was made before it has replaced it: its maker
    /// did not know as many orders, because it had just started or was cut off.
    fn insist(&mut self, key: &ServerKey, now: Moment) {
        let Some(replaced) = self.table.get(key) else { return };
        let Some(sent) = self.sent.get_mut(key) else { return };
        let is_older = replaced.version > sent.version
            && replaced.age(now) > now.since(sent.made_at)
            && replaced.state != sent.state;
        if !is_older || now >= sent.until || sent.again >= AGAIN_MAX {
            return;
        }
        let maker = (&self.own.start, &self.own.name);
        if let Ok(version) = self.table.make(key.clone(), sent.state, maker, now) {
            (sent.version, sent.again, sent.again_at) = (version, sent.again + 1, now);
            sent.got.clear();
        }
    }

    /// Returns whether the valid order about a server states this, or there is none any more.
    pub fn is_in_force(&self, key: &ServerKey, state: Administrative) -> bool {
        self.table.get(key).is_none_or(|order| order.state == state)
    }

    /// Applies a message of the member with this start.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn on_message(
        &mut self,
        from: [u8; 16],
        bytes: &[u8],
        now: Moment,
    ) -> Result<Received, Malformed> {
        match wire::read(bytes, now).ok_or(Malformed)? {
            Message::Orders { wants_answer, rows } => {
                Ok(self.on_orders(from, wants_answer, rows, now))
            }
            Message::Got(got) => {
                for Acknowledged { key, version } in got {
                    for (sent_key, sent) in &mut self.sent {
                        if version >= sent.version && sent_key.hash() == key {
                            sent.got.insert(from);
                        }
                    }
                }
                Ok(Received::default())
            }
            Message::Digest(hash, orders) => {
                let is_same = hash == self.table.hash() && orders as usize == self.table.len();
                let answer = (!is_same).then(|| wire::parts(self.table.buckets(), false));
                Ok(Received { answers: answer.into_iter().collect(), ..Received::default() })
            }
            Message::Parts { is_answer, hashes } => {
                let mut answers = self.differing(&hashes, now);
                if !is_answer {
                    answers.push(wire::parts(self.table.buckets(), true));
                }
                Ok(Received { answers, ..Received::default() })
            }
        }
    }

    fn on_orders(
        &mut self,
        from: [u8; 16],
        wants_answer: bool,
        rows: Vec<(ServerKey, Order)>,
        now: Moment,
    ) -> Received {
        let mut received = Received::default();
        let (mut got, mut newer) = (Vec::new(), Vec::new());
        for (key, order) in rows {
            let (hash, version) = (key.hash(), order.version);
            match self.table.merge(key.clone(), order, now) {
                Merged::New => {
                    received.is_news = true;
                    self.has(from, &key, version);
                    self.insist(&key, now);
                }
                Merged::Known => self.has(from, &key, version),
                Merged::Older => newer.push(key),
                Merged::Refused => {
                    received.refused += 1;
                    continue;
                }
            }
            got.push(Acknowledged { key: hash, version });
        }
        if wants_answer {
            received.answers = wire::pack_got(&got);
        }
        let newer = newer.iter().filter_map(|key| Some((key, self.table.get(key)?)));
        let (messages, _) = wire::pack(newer, false, MESSAGES_MAX, now);
        received.answers.extend(messages);
        received
    }

    /// Notes that a member has this order, or one that replaces it.
    fn has(&mut self, member: [u8; 16], key: &ServerKey, version: Version) {
        if let Some(sent) = self.sent.get_mut(key).filter(|sent| version >= sent.version) {
            sent.got.insert(member);
        }
    }

    /// Returns messages with the orders in the parts whose hashes differ from these.
    fn differing(&mut self, hashes: &[u64; crate::table::BUCKETS], now: Moment) -> Vec<Vec<u8>> {
        let own = self.table.buckets();
        let differs: Vec<bool> = own.iter().zip(hashes).map(|(own, other)| own != other).collect();
        let is_in = |key: &ServerKey| differs.get(bucket(key)).copied().unwrap_or(false);
        let rows: Vec<_> = self.table.iter().filter(|(key, _)| is_in(key)).collect();
        let from = self.cursor.checked_rem(rows.len()).unwrap_or(0);
        let turned = rows.iter().cycle().skip(from).take(rows.len()).copied();
        let (messages, packed) = wire::pack(turned, false, MESSAGES_MAX, now);
        if packed < rows.len() {
            self.cursor = self.cursor.wrapping_add(packed);
        }
        messages
    }

    /// Does what is due. Returns messages for other members.
    pub fn turn(&mut self, now: Moment) -> Vec<(Peer, Vec<u8>)> {
        let mut messages = self.send_again(now);
        if self.compare_at <= now {
            self.compare_at = now + COMPARE;
            self.table.drop_over(now);
            self.sent.retain(|_, sent| sent.until > now);
            self.turns.rotate_left(usize::from(!self.turns.is_empty()));
            let next = self.turns.back().and_then(|start| self.live.get(start));
            let digest = wire::digest(self.table.hash(), self.table.len());
            messages.extend(next.map(|peer| (peer.clone(), digest)));
        }
        messages
    }

    fn send_again(&mut self, now: Moment) -> Vec<(Peer, Vec<u8>)> {
        let is_due = |sent: &Sent| sent.again_at <= now && now < sent.until;
        let mut messages = Vec::new();
        for (start, peer) in &self.live {
            let lacking =
                self.sent.iter().filter(|(_, sent)| is_due(sent) && !sent.got.contains(start));
            // The newest order about the server, which another member may have made.
            let rows = lacking.filter_map(|(key, _)| Some((key, self.table.get(key)?)));
            let (packed, _) = wire::pack(rows, true, MESSAGES_MAX, now);
            messages.extend(packed.into_iter().map(|message| (peer.clone(), message)));
        }
        for sent in self.sent.values_mut().filter(|sent| sent.again_at <= now) {
            sent.again_at = now + AGAIN;
        }
        messages
    }

    /// Returns when [`Orders::turn`] next has work to do.
    pub fn next_due(&self) -> Moment {
        let lacks = |sent: &&Sent| self.live.keys().any(|start| !sent.got.contains(start));
        let again = self.sent.values().filter(|sent| sent.again_at < sent.until).filter(lacks);
        let again = again.map(|sent| sent.again_at).min();
        again.map_or(self.compare_at, |again| again.min(self.compare_at))
    }

    /// Returns who has confirmed the orders of this member about these servers, up to [`WAIT_MAX`] after they were
    /// made.
    pub fn confirmation(&self, keys: &[ServerKey]) -> Confirmation {
        let sent: Vec<&Sent> = keys.iter().filter_map(|key| self.sent.get(key)).collect();
        let mut members: BTreeMap<&str, &Peer> = BTreeMap::new();
        for peer in sent.iter().flat_map(|sent| &sent.asked).chain(self.live.values()) {
            // A process that lives replaces an earlier one of its name.
            members.insert(&peer.name, peer);
        }
        let has_all = |peer: &Peer| sent.iter().all(|sent| sent.got.contains(&peer.start));
        let unconfirmed = members.values().filter(|peer| !has_all(peer));
        Confirmation {
            members: members.len() + 1,
            unconfirmed: unconfirmed.map(|peer| Peer::clone(peer)).collect(),
        }
    }

    /// Returns which of these addresses belong to no member that lives.
    pub fn missing<'a>(
        &'a self,
        listed: &'a [SocketAddr],
    ) -> impl Iterator<Item = SocketAddr> + 'a {
        let lives = |address: &SocketAddr| {
            *address == self.own.address || self.live.values().any(|one| one.address == *address)
        };
        listed.iter().copied().filter(move |address| !lives(address))
    }

    /// Returns all orders, by server.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerKey, &Order)> {
        self.table.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_millis(ms)
    }

    fn peer(number: u8) -> Peer {
        Peer {
            name: format!("b{number}").into(),
            address: ([10, 0, 0, number], 7946).into(),
            start: [number; 16],
        }
    }

    fn member(number: u8, others: &[u8]) -> Orders {
        let mut member = Orders::new(peer(number), Vec::new(), at(0));
        member.set_live(others.iter().map(|other| peer(*other)), at(0));
        member
    }

    fn key(port: u16) -> ServerKey {
        ServerKey { service: "web".into(), address: ([10, 0, 1, 5], port).into() }
    }

    /// Delivers messages and their answers until there are no more.
    fn deliver(from: &mut Orders, to: &mut Orders, messages: Vec<Vec<u8>>, now: Moment) -> usize {
        let mut count = messages.len();
        for message in messages {
            let answers = to.on_message(from.own.start, &message, now).unwrap().answers;
            count += deliver(to, from, answers, now);
        }
        count
    }

    fn to(messages: Vec<(Peer, Vec<u8>)>, number: u8) -> Vec<Vec<u8>> {
        messages.into_iter().filter(|(to, _)| to.start == [number; 16]).map(|(_, it)| it).collect()
    }

    fn compared(from: &mut Orders, with: &mut Orders, now: Moment) -> usize {
        let digest = wire::digest(from.table.hash(), from.table.len());
        deliver(from, with, vec![digest], now)
    }

    fn states(member: &Orders) -> Vec<(u16, Administrative)> {
        member.iter().map(|(key, order)| (key.address.port(), order.state)).collect()
    }

    #[test]
    fn an_order_is_sent_to_all_until_they_have_it() {
        let (mut a, mut b) = (member(1, &[2, 3]), member(2, &[1, 3]));
        a.make(key(80), Administrative::Drain, at(0)).unwrap();
        let unconfirmed = |a: &Orders| -> Vec<String> {
            let Confirmation { members: 3, unconfirmed } = a.confirmation(&[key(80)]) else {
                panic!("not three members");
            };
            unconfirmed.iter().map(|peer| peer.name.to_string()).collect()
        };
        let first = a.turn(at(0));
        assert_eq!(unconfirmed(&a), ["b2", "b3"]);
        deliver(&mut a, &mut b, to(first, 2), at(1));
        assert_eq!(unconfirmed(&a), ["b3"]);
        assert_eq!(states(&b), [(80, Administrative::Drain)]);
        assert!(a.turn(at(249)).is_empty());
        assert_eq!(a.next_due(), at(250));
        let again = a.turn(at(250));
        assert!(again.len() == 1 && again[0].0 == peer(3));
        let mut c = member(3, &[1, 2]);
        deliver(&mut a, &mut c, to(again, 3), at(251));
        assert_eq!(unconfirmed(&a), Vec::<String>::new());
        assert!(a.turn(at(500)).is_empty());
        assert_eq!(a.next_due(), at(1_000));
    }

    #[test]
    fn an_order_is_sent_again_for_ten_seconds() {
        let mut a = member(1, &[2]);
        a.make(key(80), Administrative::Drain, at(0)).unwrap();
        let sent = (0..20_000).filter(|ms| {
            let messages = a.turn(at(*ms));
            messages.iter().any(|(_, bytes)| bytes[1] == 1)
        });
        assert_eq!(sent.count(), 40);
    }

    #[test]
    fn a_member_that_is_gone_without_a_word_has_not_confirmed_and_its_next_process_counts_in_its_place()
     {
        let mut a = member(1, &[2]);
        a.make(key(80), Administrative::Drain, at(0)).unwrap();
        a.set_live([].into_iter(), at(100));
        let confirmation = a.confirmation(&[key(80)]);
        assert_eq!(confirmation, Confirmation { members: 2, unconfirmed: vec![peer(2)] });
        let next = Peer { start: [22; 16], ..peer(2) };
        a.set_live([next.clone()].into_iter(), at(200));
        assert_eq!(a.confirmation(&[key(80)]).unconfirmed, std::slice::from_ref(&next));
        let mut b = Orders::new(next, Vec::new(), at(0));
        let again = a.turn(at(250)).into_iter().map(|(_, message)| message).collect();
        deliver(&mut a, &mut b, again, at(251));
        assert_eq!(a.confirmation(&[key(80)]), Confirmation { members: 2, unconfirmed: vec![] });
    }

    #[test]
    fn an_order_of_a_member_that_knew_less_counts_if_it_is_the_later_one() {
        let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
        for state in [Administrative::Maintenance, Administrative::Drain] {
            b.make(key(80), state, at(0)).unwrap();
        }
        // It has just started.
        a.make(key(80), Administrative::Ready, at(60_000)).unwrap();
        for ms in [60_000, 60_001] {
            let sent = to(a.turn(at(ms)), 2);
            deliver(&mut a, &mut b, sent, at(ms));
        }
        assert_eq!(states(&a), [(80, Administrative::Ready)]);
        assert_eq!(states(&b), states(&a));
        assert!(a.is_in_force(&key(80), Administrative::Ready));
        assert!(a.confirmation(&[key(80)]).unconfirmed.is_empty());
    }

    #[test]
    fn a_newer_order_is_the_answer_to_an_older_one() {
        let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
        a.make(key(80), Administrative::Drain, at(0)).unwrap();
        for state in [Administrative::Drain, Administrative::Maintenance] {
            b.make(key(80), state, at(0)).unwrap();
        }
        let sent = to(a.turn(at(0)), 2);
        deliver(&mut a, &mut b, sent, at(1));
        assert_eq!(states(&a), [(80, Administrative::Maintenance)]);
        assert_eq!(states(&b), states(&a));
        // It has an order that is newer than that of this member.
        assert!(a.confirmation(&[key(80)]).unconfirmed.is_empty());
        let sent = to(b.turn(at(1)), 1);
        deliver(&mut b, &mut a, sent, at(2));
        assert!(b.confirmation(&[key(80)]).unconfirmed.is_empty());
    }

    #[test]
    fn tables_that_differ_are_made_alike_from_either_side() {
        for is_first in [true, false] {
            let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
            for port in 0..40 {
                a.make(key(port), Administrative::Drain, at(0)).unwrap();
            }
            b.make(key(100), Administrative::Ready, at(0)).unwrap();
            let sent = if is_first {
                compared(&mut a, &mut b, at(1))
            } else {
                compared(&mut b, &mut a, at(1))
            };
            assert_eq!(a.table.hash(), b.table.hash());
            assert_eq!(states(&a), states(&b));
            assert!(sent <= 12, "{sent} messages");
            assert_eq!(compared(&mut a, &mut b, at(2)), 1, "only the digest");
        }
    }

    #[test]
    fn one_difference_in_a_large_table_costs_few_messages() {
        let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
        for port in 0..ORDERS_MAX as u16 - 1 {
            let version = a.make(key(port), Administrative::Drain, at(0)).unwrap();
            let order = a.table.get(&key(port)).unwrap().clone();
            assert_eq!(order.version, version);
            b.table.merge(key(port), order, at(0));
        }
        a.make(key(60_000), Administrative::Drain, at(0)).unwrap();
        let sent = compared(&mut a, &mut b, at(1));
        assert_eq!(a.table.hash(), b.table.hash());
        assert!(sent < 16, "{sent} messages");
    }

    #[test]
    fn a_large_table_arrives_in_bounded_pieces() {
        let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
        for port in 0..ORDERS_MAX as u16 {
            a.make(key(port), Administrative::Drain, at(0)).unwrap();
        }
        let rounds = (0..100).take_while(|round| {
            let sent = compared(&mut a, &mut b, at(*round));
            assert!(sent <= 3 + 2 * MESSAGES_MAX, "{sent} messages");
            a.table.hash() != b.table.hash()
        });
        let rounds = rounds.count();
        assert!(rounds < 20, "{rounds} rounds");
    }

    #[test]
    fn a_new_member_is_compared_with_at_once_and_all_others_in_turn() {
        let mut a = member(1, &[2, 3, 4]);
        let compared_with = |from, a: &mut Orders| {
            let sent: Vec<u8> = a.turn(at(from)).into_iter().map(|(to, _)| to.start[0]).collect();
            assert_eq!(sent.len(), 1);
            sent[0]
        };
        let seen: BTreeSet<u8> = (0..3).map(|n| compared_with(n * 1_000, &mut a)).collect();
        assert_eq!(seen, BTreeSet::from([2, 3, 4]));
        a.set_live([2, 3, 4, 5].into_iter().map(peer), at(2_100));
        assert_eq!(compared_with(2_100, &mut a), 5);
        let seen: BTreeSet<u8> = (0..4).map(|n| compared_with(3_100 + n * 1_000, &mut a)).collect();
        assert_eq!(seen, BTreeSet::from([2, 3, 4, 5]));
    }

    #[test]
    fn what_is_refused_is_counted_and_not_acknowledged() {
        let (mut a, mut b) = (member(1, &[2]), member(2, &[1]));
        for port in 0..ORDERS_MAX as u16 {
            b.make(key(port), Administrative::Drain, at(0)).unwrap();
        }
        assert!(!b.has_room(&[key(1), key(60_000)]));
        assert!(b.has_room(&[key(1), key(2)]) && a.has_room(&[key(1), key(60_000)]));
        a.make(key(60_000), Administrative::Drain, at(0)).unwrap();
        let sent = to(a.turn(at(0)), 2);
        let received = b.on_message([1; 16], &sent[0], at(1)).unwrap();
        assert_eq!((received.refused, received.is_news), (1, false));
        assert!(received.answers.is_empty());
        assert_eq!(a.confirmation(&[key(60_000)]).unconfirmed, [peer(2)]);
    }

    #[test]
    fn the_orders_of_an_earlier_process_are_known() {
        let mut before = member(1, &[]);
        before.make(key(80), Administrative::Drain, at(0)).unwrap();
        let mut known: Vec<_> = before.iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        let local = ServerKey { service: "web".into(), address: ([127, 0, 0, 1], 80).into() };
        known.push((local, known[0].1.clone()));
        let mut after = Orders::new(Peer { start: [9; 16], ..peer(1) }, known, at(0));
        assert_eq!(states(&after), [(80, Administrative::Drain)]);
        let made = after.make(key(80), Administrative::Ready, at(0)).unwrap();
        assert_eq!(made.counter, 2);
    }
}

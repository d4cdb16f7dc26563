//! The table of orders: which one about each server is valid, and hashes to compare tables by.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use model::{Administrative, Moment, mix};

use crate::order::{Order, ServerKey, Version};

/// The most orders in a table.
pub const ORDERS_MAX: usize = 4_096;
/// How long an order is kept that makes a server ready: other members may not know yet that it replaces another.
pub const READY_KEPT: Duration = Duration::from_hours(24);
/// The greatest counter of a received order. Counters grow by one with each order, so a greater one is an error. (A
/// holder of the key who sends this one ends the exchange of orders: the next ones are refused.)
pub const COUNTER_MAX: u64 = 1 << 62;

/// An order that is to be dropped within this time is not learned any more: members know its age to some seconds.
const ALMOST_OVER: Duration = Duration::from_mins(1);

/// Number of parts into which the orders are divided by hash, so that two members find where their tables differ.
pub(crate) const BUCKETS: usize = 64;

/// The table has no room for an order about another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What became of an order from another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// It is in the table now.
    New,
    /// It was in the table already, or it replaces nothing and would be dropped within [`ALMOST_OVER`].
    Known,
    /// The table has a newer one.
    Older,
    /// It is refused: the table is full, or its counter is too great.
    Refused,
}

/// The orders that this member knows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    orders: BTreeMap<ServerKey, Order>,
    /// The greatest counter that this member has seen.
    counter: u64,
    /// The sum of the orders' hashes in each part.
    buckets: [u64; BUCKETS],
}

impl Table {
    pub(crate) fn new() -> Table {
        Table { orders: BTreeMap::new(), counter: 0, buckets: [0; BUCKETS] }
    }

    /// Enters an order of this member, which replaces all that it knows about the server.
    pub(crate) fn make(
        &mut self,
        key: ServerKey,
        state: Administrative,
        maker: (&[u8; 16], &std::sync::Arc<str>),
        now: Moment,
    ) -> Result<Version, Full> {
        if self.orders.len() >= ORDERS_MAX && !self.orders.contains_key(&key) {
            self.drop_oldest_ready(now)?;
        }
        self.counter = self.counter.saturating_add(1);
        let version = Version { counter: self.counter, start: *maker.0 };
        let age = (Duration::ZERO, now);
        self.put(key, Order { state, version, member: maker.1.clone(), age });
        Ok(version)
    }

    /// Merges an order of another member.
    pub(crate) fn merge(&mut self, key: ServerKey, order: Order, now: Moment) -> Merged {
        if order.version.counter > COUNTER_MAX {
            return Merged::Refused;
        }
        let is_full = self.orders.len() >= ORDERS_MAX;
        match self.orders.get_mut(&key) {
            None if is_over(&order, now + ALMOST_OVER) => return Merged::Known,
            None if is_full => return Merged::Refused,
            Some(known) if known.version > order.version => return Merged::Older,
            Some(known) if known.version == order.version => {
                // Ages are rounded down when they are sent.
                if order.age(now) > known.age(now) {
                    known.age = order.age;
                }
                return Merged::Known;
            }
            None | Some(_) => {}
        }
        self.counter = self.counter.max(order.version.counter);
        self.put(key, order);
        Merged::New
    }

    /// Drops what is over.
    pub(crate) fn drop_over(&mut self, now: Moment) {
        let buckets = &mut self.buckets;
        self.orders.retain(|key, order| {
            let is_over = is_over(order, now);
            if is_over {
                take_from(buckets, key, order);
            }
            !is_over
        });
    }

    /// Makes room for one order.
    fn drop_oldest_ready(&mut self, now: Moment) -> Result<(), Full> {
        let ready = self.orders.iter().filter(|(_, it)| it.state == Administrative::Ready);
        let (oldest, _) = ready.max_by_key(|(_, it)| it.age(now)).ok_or(Full)?;
        let oldest = oldest.clone();
        if let Some(order) = self.orders.remove(&oldest) {
            take_from(&mut self.buckets, &oldest, &order);
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &ServerKey) -> Option<&Order> {
        self.orders.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ServerKey, &Order)> {
        self.orders.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(crate) fn buckets(&self) -> &[u64; BUCKETS] {
        &self.buckets
    }

    /// Returns one hash of the whole table.
    pub(crate) fn hash(&self) -> u64 {
        self.buckets.iter().fold(0, |hash, bucket| mix(hash ^ bucket))
    }

    fn put(&mut self, key: ServerKey, order: Order) {
        let (bucket, hash) = place(&key, &order);
        if let Some(sum) = self.buckets.get_mut(bucket) {
            *sum = sum.wrapping_add(hash);
        }
        match self.orders.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(order);
            }
            Entry::Occupied(mut entry) => {
                let before = entry.insert(order);
                take_from(&mut self.buckets, entry.key(), &before);
            }
        }
    }
}

/// Returns which part the order about a server is in.
pub(crate) fn bucket(key: &ServerKey) -> usize {
    key.hash() as usize % BUCKETS
}

fn place(key: &ServerKey, order: &Order) -> (usize, u64) {
    (bucket(key), mix(key.hash() ^ order.version.hash()))
}

fn take_from(buckets: &mut [u64; BUCKETS], key: &ServerKey, order: &Order) {
    let (bucket, hash) = place(key, order);
    if let Some(sum) = buckets.get_mut(bucket) {
        *sum = sum.wrapping_sub(hash);
    }
}

fn is_over(order: &Order, now: Moment) -> bool {
    order.state == Administrative::Ready && order.age(now) >= READY_KEPT
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_millis(1_000);

    fn key(port: u16) -> ServerKey {
        ServerKey { service: "web".into(), address: ([10, 0, 0, 1], port).into() }
    }

    fn order(counter: u64, start: u8, state: Administrative) -> Order {
        let version = Version { counter, start: [start; 16] };
        Order { state, version, member: "b1".into(), age: (Duration::ZERO, NOW) }
    }

    fn full() -> Table {
        let mut table = Table::new();
        for port in 0..ORDERS_MAX as u16 {
            let merged = table.merge(key(port), order(1, 1, Administrative::Drain), NOW);
            assert_eq!(merged, Merged::New);
        }
        table
    }

    #[test]
    fn orders_merge_in_any_sequence_to_the_same_table() {
        let all: Vec<(ServerKey, Order)> = [
            (key(1), order(1, 1, Administrative::Drain)),
            (key(1), order(2, 1, Administrative::Ready)),
            (key(1), order(2, 2, Administrative::Maintenance)),
            (key(2), order(3, 1, Administrative::Drain)),
        ]
        .into();
        let mut rng = fastrand::Rng::with_seed(1);
        let mut tables = (0..50).map(|_| {
            let mut table = Table::new();
            // Each twice.
            let mut sequence = [all.clone(), all.clone()].concat();
            rng.shuffle(&mut sequence);
            for (key, order) in sequence {
                table.merge(key, order, NOW);
            }
            table
        });
        let first = tables.next().unwrap();
        assert_eq!(first.get(&key(1)).unwrap().state, Administrative::Maintenance);
        assert!(tables.all(|one| one.orders == first.orders && one.buckets == first.buckets));
    }

    #[test]
    fn an_order_of_this_member_replaces_all_that_it_knows() {
        let mut table = Table::new();
        table.merge(key(1), order(7, 255, Administrative::Drain), NOW);
        let made = table.make(key(1), Administrative::Ready, (&[0; 16], &"b0".into()), NOW);
        assert_eq!(made, Ok(Version { counter: 8, start: [0; 16] }));
        assert_eq!(table.get(&key(1)).unwrap().state, Administrative::Ready);
        assert_eq!(table.merge(key(1), order(7, 255, Administrative::Drain), NOW), Merged::Older);
    }

    #[test]
    fn a_full_table_takes_orders_only_about_servers_that_it_has() {
        let mut table = full();
        let drain = order(9, 1, Administrative::Drain);
        assert_eq!(table.merge(key(60_000), drain.clone(), NOW), Merged::Refused);
        let maker = (&[1; 16], &"b1".into());
        assert_eq!(table.make(key(60_000), Administrative::Drain, maker, NOW), Err(Full));
        assert_eq!(table.merge(key(1), drain, NOW), Merged::New);
        // One that has become ready gives its place away.
        assert!(table.make(key(2), Administrative::Ready, maker, NOW).is_ok());
        assert!(table.make(key(60_000), Administrative::Drain, maker, NOW).is_ok());
        assert_eq!(table.get(&key(2)), None);
        assert_eq!(table.len(), ORDERS_MAX);
    }

    #[test]
    fn a_counter_that_is_too_great_does_not_get_into_the_table() {
        let mut table = Table::new();
        for counter in [u64::MAX, COUNTER_MAX + 1] {
            let merged = table.merge(key(1), order(counter, 1, Administrative::Drain), NOW);
            assert_eq!(merged, Merged::Refused);
        }
        assert_eq!(
            table.merge(key(1), order(COUNTER_MAX, 1, Administrative::Drain), NOW),
            Merged::New
        );
        let made = table.make(key(1), Administrative::Ready, (&[0; 16], &"b0".into()), NOW);
        assert_eq!(made.unwrap().counter, COUNTER_MAX + 1);
    }

    #[test]
    fn ready_servers_are_forgotten_after_a_day_and_not_learned_again() {
        let mut table = Table::new();
        let ready = order(2, 1, Administrative::Ready);
        table.merge(key(1), ready.clone(), NOW);
        table.merge(key(2), order(1, 1, Administrative::Drain), NOW);
        let almost = NOW + READY_KEPT.saturating_sub(Duration::from_secs(1));
        table.drop_over(almost);
        assert_eq!(table.len(), 2);
        table.drop_over(NOW + READY_KEPT);
        assert_eq!(table.len(), 1);
        let mut other = Table::new();
        other.merge(key(2), order(1, 1, Administrative::Drain), NOW);
        assert_eq!((table.hash(), table.buckets), (other.hash(), other.buckets));
        assert_eq!(table.merge(key(1), ready.clone(), NOW + READY_KEPT), Merged::Known);
        assert_eq!(table.len(), 1);
        // It still replaces an older order.
        table.merge(key(1), order(1, 1, Administrative::Drain), NOW);
        assert_eq!(table.merge(key(1), ready, NOW + READY_KEPT), Merged::New);
    }

    #[test]
    fn the_greatest_age_counts() {
        let mut table = Table::new();
        let mut ready = order(2, 1, Administrative::Ready);
        table.merge(key(1), ready.clone(), NOW);
        ready.age = (Duration::from_hours(23), NOW);
        assert_eq!(table.merge(key(1), ready.clone(), NOW), Merged::Known);
        ready.age = (Duration::from_hours(1), NOW);
        table.merge(key(1), ready, NOW);
        assert_eq!(table.get(&key(1)).unwrap().age(NOW), Duration::from_hours(23));
    }
}

//! Answers of the API server that count for a short while.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use model::Moment;

/// Keeps a bounded number of values, each until its time is over.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries_max: usize,
    entries: HashMap<K, (V, Moment)>,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// Returns an empty cache of at most so many values.
    pub fn new(entries_max: usize) -> Cache<K, V> {
        Cache { entries_max, entries: HashMap::new() }
    }

    /// Returns a value whose time is not over.
    pub fn get(&self, key: &K, now: Moment) -> Option<V> {
        self.entries.get(key).filter(|(_, until)| *until > now).map(|(value, _)| value.clone())
    }

    /// Keeps a value for this long, and drops those whose time is over. If there are too many, the one that would end first
    /// is dropped.
    pub fn put(&mut self, key: K, value: V, keep: Duration, now: Moment) {
        self.entries.retain(|_, (_, until)| *until > now);
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, (_, until))| *until);
            let Some(first) = first.map(|(key, _)| key.clone()) else { return };
            self.entries.remove(&first);
        }
        self.entries.insert(key, (value, now + keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_and_are_bounded() {
        let at = |seconds| Moment::ZERO + Duration::from_secs(seconds);
        let mut cache = Cache::new(2);
        let keep = Duration::from_secs;
        cache.put("a", 1, keep(10), at(0));
        cache.put("b", 2, keep(5), at(0));
        assert_eq!((cache.get(&"a", at(9)), cache.get(&"a", at(10))), (Some(1), None));
        // The one that ends first is dropped.
        cache.put("c", 3, keep(20), at(1));
        assert_eq!((cache.get(&"b", at(1)), cache.get(&"a", at(1))), (None, Some(1)));
        // The same key takes no other's place.
        cache.put("c", 4, keep(20), at(2));
        assert_eq!((cache.get(&"c", at(2)), cache.get(&"a", at(2))), (Some(4), Some(1)));
        // Those that are over are dropped.
        cache.put("d", 5, keep(1), at(15));
        assert_eq!((cache.get(&"c", at(15)), cache.get(&"d", at(15))), (Some(4), Some(5)));
        assert_eq!(cache.entries.len(), 2);
        cache.put("c", 6, keep(1), at(16));
        assert_eq!(cache.entries.len(), 1);
        let mut none = Cache::new(0);
        none.put("a", 1, keep(1), at(0));
        assert_eq!(none.get(&"a", at(0)), None);
    }
}

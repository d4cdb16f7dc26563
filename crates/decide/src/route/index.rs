//! A hash index from hashes to small numbers: open addressing, filled once, then read-only.
//!
//! Keys stay with the caller, who compares them; this is how parts of a request are looked up
//! without first being copied together. Keys come from the configuration, and requests only read,
//! so no client can make the index slow, and a plain fast hash is enough.

/// Positions by hash. At most half of the slots are used.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// A power of two of slots, or none.
    slots: Vec<Slot>,
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    position: u32,
}

/// Marks a free slot; no caller has this many positions.
const FREE: u32 = u32::MAX;

impl Index {
    /// Adds `position` under `hash`. Of equal keys, the first one added is found.
    pub(super) fn insert(&mut self, hash: u64, position: u32) {
        debug_assert_ne!(position, FREE);
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.place(Slot { hash, position });
        self.used += 1;
    }

    /// Returns the position added under `hash` that `is_equal` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_equal: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        // Terminates, since half of the slots are free.
        loop {
            count_probe();
            let slot = self.slots[at];
            if slot.position == FREE {
                return None;
            }
            if slot.hash == hash && is_equal(slot.position) {
                return Some(slot.position);
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(8);
        let free = Slot { hash: 0, position: FREE };
        let old = std::mem::replace(&mut self.slots, vec![free; slots]);
        // Begins after a free slot: equal keys that were placed across the end of the slots keep their order.
        let first = old.iter().position(|slot| slot.position == FREE).unwrap_or(0);
        let (end, start) = old.split_at(first);
        for slot in start.iter().chain(end).filter(|slot| slot.position != FREE) {
            self.place(*slot);
        }
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.slots[at].position != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

/// FNV-1a over 64 bits, its ends mixed: keys are a few bytes each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hasher(u64);

impl Hasher {
    /// Keys under different `scope`s are different keys.
    pub(super) fn new(scope: u32) -> Hasher {
        Hasher((u64::from(scope) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[inline]
    pub(super) fn bytes(mut self, bytes: impl Iterator<Item = u8>) -> Hasher {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// Separates two values: no byte has this effect.
    pub(super) fn part(mut self) -> Hasher {
        self.0 = (self.0 ^ 0x1_0000).wrapping_mul(0x0000_0100_0000_01b3);
        self
    }

    #[inline]
    pub(super) fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

#[cfg(not(test))]
#[inline]
pub(super) fn count_probe() {}

#[cfg(test)]
pub(super) use counting::count_probe;

#[cfg(test)]
pub(super) mod counting {
    //! Counts the cost of a search for tests: index slots and rules examined.
    use std::cell::Cell;

    thread_local!(static PROBES: Cell<u32> = const { Cell::new(0) });

    pub(in super::super) fn count_probe() {
        PROBES.set(PROBES.get() + 1);
    }

    /// Returns this thread's probes since the last call.
    pub(in super::super) fn take_probes() -> u32 {
        PROBES.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_keys_the_first_one_is_found_wherever_it_lies() {
        for hash in 0..8 {
            let mut index = Index::default();
            for position in 0..20 {
                index.insert(hash, position);
                assert_eq!(index.find(hash, |_| true), Some(0), "{hash} {position}");
            }
        }
    }
}

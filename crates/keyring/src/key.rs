//! Keys, without their secrets.

use std::time::Duration;

use model::Moment;

/// The most keys that a member has. Normally there are two or three; more while the sides of a partition make their own, and
/// when members start while others do not answer.
pub const KEYS_MAX: usize = 16;

/// The greatest generation that is accepted. It grows by one with each key, so a greater one is an error.
pub(crate) const GENERATION_MAX: u64 = 1 << 62;

/// Which key. Of two keys the greater one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName {
    /// Greater than those of all keys that its maker knew.
    pub generation: u64,
    /// A digest of the secret; it stands in the tickets.
    pub id: [u8; 16],
}

/// A key that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: KeyName,
    /// How old it was at the moment beside it: each process has a clock of its own.
    pub age: (Duration, Moment),
}

impl Key {
    /// Returns how long ago it was made.
    pub fn age(&self, now: Moment) -> Duration {
        let (age, at) = self.age;
        age.saturating_add(now.since(at))
    }
}

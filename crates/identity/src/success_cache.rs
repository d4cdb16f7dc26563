//! A cache of successful password verifications, so that a client that sends its password with
//! every request pays for the slow hash once in a while.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use model::Moment;

use crate::{Credentials, Users};

/// The longest time that a success may be remembered.
pub const TTL_MAX: Duration = Duration::from_secs(3600);

/// The most successes that a cache may be asked to remember: 3 MiB.
pub const ENTRIES_MAX: usize = 65_536;

/// Number of locks, so that threads rarely contend.
const SHARDS: usize = 16;

/// Entries in which a success may be stored.
const WAYS: usize = 8;

/// Remembers successes for a limited time, in a table of fixed size.
///
/// The key of an entry is an HMAC-SHA-256, under a random key of this process, of the user, the
/// password and the digest of the user's hash in the table. Neither passwords nor anything that
/// could be tested against guesses without the random key is kept. Because the hash is part of the
/// key, a success does not outlive a change of the user's password or the removal of the user,
/// while those of other users survive a reload.
///
/// Failures are not remembered: attackers cannot fill the table, and a user whose password was just
/// set is not turned away. An entry ends `ttl` after the verification, however often it is used. In
/// its last quarter, one lookup returns [`Lookup::EndsSoon`], so that the password
/// of a busy user can be verified again before.
///
/// Share one cache between all threads (`Arc`). A lookup locks one of 16 shards while it compares
/// up to eight entries; the HMAC is computed before, without a lock. If a set of eight is full, the
/// entry that ends first is replaced.
pub struct SuccessCache {
    key: Key,
    ttl: Duration,
    shards: [Mutex<Vec<Set>>; SHARDS],
    sets_per_shard: usize,
}

type Set = [Entry; WAYS];

#[derive(Clone, Copy)]
struct Entry {
    digest: [u8; 32],
    /// [`Moment::ZERO`] in a free entry.
    ends_at: Moment,
    /// From then on one lookup returns [`Lookup::EndsSoon`]; `ends_at` after it has.
    renew_at: Moment,
}

const FREE: Entry = Entry { digest: [0; 32], ends_at: Moment::ZERO, renew_at: Moment::ZERO };

/// What the cache knows about credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// They were not verified less than `ttl` before.
    Unknown,
    /// They were.
    Known,
    /// They were, and should be verified again now, so that they stay known. Returned once for each
    /// success.
    EndsSoon,
}

/// Credentials as the cache knows them: a keyed digest. Made by [`SuccessCache::ticket`].
///
/// Two tickets are equal if and only if they are for the same user, password and hash of the user:
/// what is found out about one is true of the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    digest: [u8; 32],
    is_known: bool,
}

impl fmt::Debug for Ticket {
    /// Writes no digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

impl SuccessCache {
    /// Returns an empty cache for `entries_max` successes, at least 8 and at most [`ENTRIES_MAX`],
    /// that are remembered for `ttl`, at most [`TTL_MAX`]. A `ttl` of zero remembers nothing.
    ///
    /// `key` must be random and new for each process.
    pub fn new(key: [u8; 32], entries_max: usize, ttl: Duration) -> SuccessCache {
        let sets = entries_max.min(ENTRIES_MAX).div_ceil(WAYS);
        SuccessCache {
            key: Key::new(HMAC_SHA256, &key),
            ttl: ttl.min(TTL_MAX),
            shards: Default::default(),
            sets_per_shard: sets.div_ceil(SHARDS).max(1),
        }
    }

    /// Returns the ticket of `credentials` under the hashes of `users`. Pass the same `users` to
    /// [`Users::verify`], so that a reload between the two cannot mix old and new.
    pub fn ticket(&self, users: &Users, credentials: &Credentials) -> Ticket {
        let (is_known, hash_digest) = users.hash_digest(credentials.user());
        let mut context = Context::with_key(&self.key);
        // Fixed lengths first and the length of the user's name, so that no two inputs are the same
        // bytes.
        context.update(&hash_digest);
        context.update(&(credentials.user().len() as u64).to_be_bytes());
        context.update(credentials.user().as_bytes());
        context.update(credentials.password());
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        Ticket { digest, is_known }
    }

    /// Whether these credentials were verified less than `ttl` before `now`.
    pub fn lookup(&self, ticket: &Ticket, now: Moment) -> bool {
        let (shard, set) = self.place(ticket);
        let sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sets.get(set).is_some_and(|set| {
            set.iter().any(|entry| entry.ends_at > now && entry.digest == ticket.digest)
        });
        found && ticket.is_known
    }

    /// Looks credentials up for a request that they let pass, see [`Lookup`].
    pub fn consult(&self, ticket: &Ticket, now: Moment) -> Lookup {
        if !ticket.is_known {
            return Lookup::Unknown;
        }
        let (shard, set) = self.place(ticket);
        let mut sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = sets.get_mut(set).into_iter().flatten();
        match entries.find(|entry| entry.ends_at > now && entry.digest == ticket.digest) {
            None => Lookup::Unknown,
            Some(entry) if entry.renew_at > now => Lookup::Known,
            Some(entry) => {
                entry.renew_at = entry.ends_at;
                Lookup::EndsSoon
            }
        }
    }

    /// Remembers that these credentials were verified at `now`. Call it only after
    /// [`Verdict::Accepted`](crate::Verdict::Accepted); the ticket of an unknown user is ignored.
    pub fn insert(&self, ticket: &Ticket, now: Moment) {
        if !ticket.is_known || self.ttl.is_zero() {
            return;
        }
        let (shard, set) = self.place(ticket);
        let mut sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.is_empty() {
            *sets = vec![[FREE; WAYS]; self.sets_per_shard];
        }
        let Some(set) = sets.get_mut(set) else { return };
        let same = set.iter().position(|entry| entry.digest == ticket.digest);
        let first_to_end = || set.iter().enumerate().min_by_key(|(_, entry)| entry.ends_at);
        let at = same.or_else(|| first_to_end().map(|(at, _)| at)).unwrap_or_default();
        let ends_at = now + self.ttl;
        set[at] = Entry { digest: ticket.digest, ends_at, renew_at: now + self.ttl * 3 / 4 };
    }

    /// Returns the shard and the set of a ticket. The digest is keyed, so clients can neither choose
    /// a set nor learn from the time of the comparison.
    fn place(&self, ticket: &Ticket) -> (&Mutex<Vec<Set>>, usize) {
        let bits =
            ticket.digest.iter().take(8).fold(0, |sum, &b| (sum << 8) | u64::from(b)) as usize;
        (&self.shards[bits % SHARDS], bits / SHARDS % self.sets_per_shard)
    }
}

impl fmt::Debug for SuccessCache {
    /// Writes neither the key nor digests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuccessCache").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "anna:$2y$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O";
    const NEW: &str = "anna:$2b$05$2pFTRvnNWJqx3SnXfIFuZ.1j9chgggXGiinJ6dpxMZBnmrZXmS/ya";
    const BOB: &str = "bob:$5$saltofauser5$wzI7489Tn1zREa6VMVgNQMSDMgjCH5phpcKZIxmjei9";
    const TTL: Duration = Duration::from_secs(60);

    fn users(lines: &[&str]) -> Users {
        Users::parse(lines.join("\n").as_bytes()).unwrap()
    }

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials::new(user, password.as_bytes()).unwrap()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn a_success_is_remembered_for_its_time_and_no_longer() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        let ticket = cache.ticket(&users(&[OLD]), &credentials("anna", "secret"));
        assert!(!cache.lookup(&ticket, at(0)));
        cache.insert(&ticket, at(10));
        assert!(cache.lookup(&ticket, at(10)));
        // Lookups do not prolong it.
        assert!(cache.lookup(&ticket, at(69)));
        assert!(!cache.lookup(&ticket, at(70)));
        cache.insert(&ticket, at(70));
        assert!(cache.lookup(&ticket, at(129)));
    }

    #[test]
    fn one_lookup_returns_that_a_success_ends_soon() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        let ticket = cache.ticket(&users(&[OLD]), &credentials("anna", "secret"));
        assert_eq!(cache.consult(&ticket, at(0)), Lookup::Unknown);
        cache.insert(&ticket, at(10));
        assert_eq!(cache.consult(&ticket, at(54)), Lookup::Known);
        assert_eq!(cache.consult(&ticket, at(55)), Lookup::EndsSoon);
        // Only once, and the end stays the same if the password is not verified again.
        assert_eq!(cache.consult(&ticket, at(55)), Lookup::Known);
        assert_eq!(cache.consult(&ticket, at(69)), Lookup::Known);
        assert_eq!(cache.consult(&ticket, at(70)), Lookup::Unknown);
        cache.insert(&ticket, at(60));
        assert_eq!(cache.consult(&ticket, at(104)), Lookup::Known);
        assert_eq!(cache.consult(&ticket, at(119)), Lookup::EndsSoon);
        assert_eq!(cache.consult(&ticket, at(120)), Lookup::Unknown);
        let unknown = cache.ticket(&users(&[OLD]), &credentials("mallory", "secret"));
        cache.insert(&unknown, at(60));
        assert_eq!(cache.consult(&unknown, at(60)), Lookup::Unknown);
    }

    #[test]
    fn tickets_are_equal_for_the_same_user_password_and_hash_only() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        let ticket = |lines: &[&str], user, password| {
            cache.ticket(&users(lines), &credentials(user, password))
        };
        let anna = ticket(&[OLD], "anna", "secret");
        // Other users of the file do not matter.
        assert_eq!(anna, ticket(&[BOB, OLD], "anna", "secret"));
        assert_ne!(anna, ticket(&[NEW], "anna", "secret"));
        assert_ne!(anna, ticket(&[OLD], "anna", "secres"));
        // A user that is unknown, but has the hash of a known one as a stand-in.
        let hash = OLD.split_once(':').unwrap().1;
        let unknown = ticket(&[OLD], "ann", "secret");
        assert_ne!(unknown, ticket(&[&format!("ann:{hash}")], "ann", "secret"));
    }

    #[test]
    fn other_passwords_users_and_splits_of_the_two_miss() {
        let table =
            users(&[OLD, BOB, "ann:$2y$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O"]);
        let cache = SuccessCache::new([7; 32], 100, TTL);
        cache.insert(&cache.ticket(&table, &credentials("anna", "secret")), at(0));
        // `ann` even has the same hash, and the same bytes together with its password.
        for (user, password) in [
            ("anna", "secres"),
            ("anna", ""),
            ("bob", "secret"),
            ("ann", "asecret"),
            ("ANNA", "secret"),
        ] {
            let ticket = cache.ticket(&table, &credentials(user, password));
            assert!(!cache.lookup(&ticket, at(0)), "{user}");
        }
    }

    #[test]
    fn a_reload_keeps_only_what_did_not_change() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        let before = users(&[OLD, BOB]);
        let [anna, bob] = [credentials("anna", "secret"), credentials("bob", "secret")];
        for who in [&anna, &bob] {
            cache.insert(&cache.ticket(&before, who), at(0));
        }
        let changed = users(&[NEW, BOB]);
        assert!(!cache.lookup(&cache.ticket(&changed, &anna), at(1)));
        assert!(cache.lookup(&cache.ticket(&changed, &bob), at(1)));
        let removed = users(&[BOB]);
        assert!(!cache.lookup(&cache.ticket(&removed, &anna), at(1)));
        // A verification that began before the reload and ends after it does not help either.
        cache.insert(&cache.ticket(&before, &anna), at(2));
        assert!(!cache.lookup(&cache.ticket(&changed, &anna), at(2)));
        assert!(!cache.lookup(&cache.ticket(&removed, &anna), at(2)));
        // With the old file back, the old success counts until its end.
        assert!(cache.lookup(&cache.ticket(&before, &anna), at(2)));
    }

    #[test]
    fn an_unknown_user_is_never_remembered() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        for table in [users(&[OLD]), users(&[])] {
            let ticket = cache.ticket(&table, &credentials("mallory", "secret"));
            cache.insert(&ticket, at(0));
            assert!(!cache.lookup(&ticket, at(0)));
        }
    }

    #[test]
    fn digests_depend_on_the_key() {
        let table = users(&[OLD]);
        let [one, other] = [1, 2].map(|key| SuccessCache::new([key; 32], 100, TTL));
        let anna = credentials("anna", "secret");
        let ticket = one.ticket(&table, &anna);
        other.insert(&ticket, at(0));
        assert!(!other.lookup(&other.ticket(&table, &anna), at(0)));
    }

    #[test]
    fn the_table_is_bounded_and_the_oldest_gives_way() {
        let table = users(&[OLD]);
        let cache = SuccessCache::new([7; 32], 1, TTL);
        let ticket = |n: u64| cache.ticket(&table, &credentials("anna", &n.to_string()));
        for n in 0..10_000 {
            cache.insert(&ticket(n), at(n / 1000));
            assert!(cache.lookup(&ticket(n), at(n / 1000)));
        }
        let kept = (0..10_000).filter(|&n| cache.lookup(&ticket(n), at(10))).count();
        assert_eq!(kept, SHARDS * WAYS);
        assert!((9_000..10_000).filter(|&n| cache.lookup(&ticket(n), at(10))).count() > 120);
    }

    #[test]
    fn without_time_to_live_nothing_is_remembered() {
        let table = users(&[OLD]);
        let cache = SuccessCache::new([7; 32], 100, Duration::ZERO);
        let ticket = cache.ticket(&table, &credentials("anna", "secret"));
        cache.insert(&ticket, at(0));
        assert!(!cache.lookup(&ticket, at(0)));
        // A free entry is not one of digest zero.
        let zero = Ticket { digest: [0; 32], is_known: true };
        assert!(!cache.lookup(&zero, at(0)));
        let cache = SuccessCache::new([7; 32], usize::MAX, Duration::MAX);
        cache.insert(&zero, at(0));
        assert!(cache.lookup(&zero, at(3599)) && !cache.lookup(&zero, at(3600)));
    }

    #[test]
    fn threads_share_one_cache() {
        let table = users(&[OLD]);
        // So large that no set fills up: a thread that is ahead would displace what another has inserted.
        let cache = SuccessCache::new([7; 32], 64_000, TTL);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (cache, table) = (&cache, &table);
                scope.spawn(move || {
                    for n in 0..500 {
                        let password = (thread % 2 * 1000 + n).to_string();
                        let ticket = cache.ticket(table, &credentials("anna", &password));
                        cache.insert(&ticket, at(n));
                        assert!(cache.lookup(&ticket, at(n)));
                    }
                });
            }
        });
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let cache = SuccessCache::new([7; 32], 100, TTL);
        let ticket = cache.ticket(&users(&[OLD]), &credentials("anna", "secret"));
        assert_eq!(format!("{ticket:?}"), "Ticket { .. }");
        assert_eq!(format!("{cache:?}"), "SuccessCache { ttl: 60s, .. }");
    }
}

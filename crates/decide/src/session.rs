//! Sessions of routes with affinity: what a client's cookie or header field says, when it still holds,
//! and when the client needs a new value.
//!
//! A value is encrypted and authenticated under the affinity key, so that a client can neither read nor change
//! it: not the server, and not the times by which its session ends. What a client can do is repeat
//! a value that it was given, until the session in it ends.

use std::time::Duration;

use model::{AffinityKey, RouteAffinity};

use crate::token::{hash_key, mix, siphash};

/// How far ahead another balancer's clock may be: the start of a session that is later is not believed.
const AHEAD_MAX_S: u32 = 60;
/// What the keys of sessions are derived from. [`crate::affinity_token`] hashes no such message.
const LABELS: [&[u8]; 4] = [b"session tag 0", b"session tag 1", b"session pad 0", b"session pad 1"];
/// The tag, the service, the server and the times, each as 16 hexadecimal digits.
const TEXT_BYTES: usize = 64;

/// A client's session: its service and server, and when it was used. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// [`service_token`] of the service.
    pub service: u64,
    /// [`crate::server_token`] of the server.
    pub server: u64,
    /// When it began.
    began_s: u32,
    /// When the client was last given a value.
    seen_s: u32,
}

/// The key of the sessions of one scope.
#[derive(Clone, Copy)]
pub struct SessionKey {
    tag: [u8; 16],
    pad: [u8; 16],
    scope: u64,
}

impl SessionKey {
    /// Derives the key for the sessions of an affinity.
    pub fn new(key: &AffinityKey, affinity: &RouteAffinity) -> SessionKey {
        let [tag_0, tag_1, pad_0, pad_1] = LABELS.map(|label| siphash(key.bytes(), label));
        let (tag, pad) = (joined([tag_0, tag_1]), joined([pad_0, pad_1]));
        // Under the key, so that two scopes with the same hash cannot be found.
        let scope = siphash(&tag, affinity.scope.as_bytes());
        SessionKey { tag, pad, scope }
    }

    /// Returns the value for the client.
    pub fn seal(&self, session: &Session) -> String {
        let words = session.words();
        let tag = self.tag(words);
        let [service, server, times] = self.padded(tag, words);
        format!("{tag:016x}{service:016x}{server:016x}{times:016x}")
    }

    /// Returns the session in a value, unless it was not made with this key for this scope.
    pub fn open(&self, value: &[u8]) -> Option<Session> {
        if value.len() != TEXT_BYTES || !value.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut words = [0; 4];
        for (word, digits) in words.iter_mut().zip(value.chunks_exact(16)) {
            *word = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        let [tag, encrypted @ ..] = words;
        let words = self.padded(tag, encrypted);
        // A difference in time would tell a client nothing: it cannot compute the tag for another value.
        (self.tag(words) == tag).then(|| Session::from_words(words))
    }

    /// Returns the words combined with a pad that only this tag has. This is SIV (Rogaway and Shrimpton 2006) with
    /// SipHash-2-4 as its pseudorandom function: equal sessions have equal values, and nothing else shows.
    fn padded(&self, tag: u64, words: [u64; 3]) -> [u64; 3] {
        let mut number = 0_u64;
        words.map(|word| {
            number += 1;
            word ^ siphash(&self.pad, &joined([tag, number]))
        })
    }

    fn tag(&self, [service, server, times]: [u64; 3]) -> u64 {
        let mut message = [0; 32];
        message[..16].copy_from_slice(&joined([service, server]));
        message[16..].copy_from_slice(&joined([times, self.scope]));
        siphash(&self.tag, &message)
    }
}

fn joined(words: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_be_bytes());
    bytes[8..].copy_from_slice(&words[1].to_be_bytes());
    bytes
}

/// Returns what stands for a service in sessions.
pub fn service_token(name: &str) -> u64 {
    hash_key(name.as_bytes())
}

impl Session {
    /// Returns a session that begins at `wall`, the time since 1970.
    pub fn new(service: u64, server: u64, wall: Duration) -> Session {
        let now_s = seconds(wall);
        Session { service, server, began_s: now_s, seen_s: now_s }
    }

    /// Returns whether it lasts until now. It ends after its lifetime, up to a second early, and
    /// after the idle time without requests, at most a sixtieth or two seconds late.
    pub fn holds(&self, affinity: &RouteAffinity, wall: Duration) -> bool {
        let now_s = seconds(wall);
        let is_ahead = self.began_s.max(self.seen_s) > now_s.saturating_add(AHEAD_MAX_S);
        let is_within =
            |since: u32, max: Option<u32>| max.is_none_or(|max| now_s.saturating_sub(since) < max);
        let idle_max = affinity.idle_max.map(|max| seconds(max).saturating_add(step(max)));
        !is_ahead
            && is_within(self.began_s, affinity.lifetime_max.map(seconds))
            && is_within(self.seen_s, idle_max)
    }

    /// Returns the session for the client of a response from a server, unless the client has it already: a new one if
    /// the request had none (`asked`) or went to another server, or the same one with the time of this use if that is due.
    pub fn renewed(
        asked: Option<Session>,
        (service, server): (u64, u64),
        affinity: &RouteAffinity,
        wall: Duration,
    ) -> Option<Session> {
        let same = asked.filter(|asked| (asked.service, asked.server) == (service, server));
        let Some(same) = same else {
            return Some(Session::new(service, server, wall));
        };
        let age_s = seconds(wall).saturating_sub(same.seen_s);
        let is_due = affinity.idle_max.is_some_and(|max| age_s >= step(max));
        is_due.then(|| Session { seen_s: seconds(wall), ..same })
    }

    /// Returns the rest of its lifetime, at least a second; `None`: it is not limited.
    pub fn left(&self, affinity: &RouteAffinity, wall: Duration) -> Option<Duration> {
        let age_s = seconds(wall).saturating_sub(self.began_s);
        let left_s = |max: Duration| u64::from(seconds(max).saturating_sub(age_s).max(1));
        affinity.lifetime_max.map(|max| Duration::from_secs(left_s(max)))
    }

    /// Returns a number that stays the same while the session lasts, and differs between sessions.
    pub fn fixed(&self) -> u64 {
        mix(self.server ^ mix(u64::from(self.began_s)))
    }

    fn words(self) -> [u64; 3] {
        let times = u64::from(self.began_s) << 32 | u64::from(self.seen_s);
        [self.service, self.server, times]
    }

    fn from_words([service, server, times]: [u64; 3]) -> Session {
        Session { service, server, began_s: (times >> 32) as u32, seen_s: times as u32 }
    }
}

/// Returns how old a value must be before a request renews it: a response with a new value for each request
/// would cost more than it gains.
fn step(idle_max: Duration) -> u32 {
    (seconds(idle_max) / 60).max(1)
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use model::SessionCarrier;

    use super::*;

    const START: Duration = Duration::from_secs(1_800_000_000);

    fn affinity(scope: &str, lifetime_s: u64, idle_s: u64) -> RouteAffinity {
        let limit = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
        RouteAffinity {
            carrier: SessionCarrier::Field("x".into()),
            scope: scope.into(),
            lifetime_max: limit(lifetime_s),
            idle_max: limit(idle_s),
            key_file: None,
        }
    }

    fn key(byte: u8, scope: &str) -> SessionKey {
        SessionKey::new(&AffinityKey::new([byte; 16]), &affinity(scope, 0, 0))
    }

    #[test]
    fn a_value_opens_with_its_key_in_its_scope_only() {
        let session = Session { service: 1, server: 2, began_s: 3, seen_s: 4 };
        let value = key(1, "a").seal(&session);
        assert_eq!(value.len(), TEXT_BYTES);
        assert_eq!(key(1, "a").open(value.as_bytes()), Some(session));
        assert_eq!(key(1, "a").open(value.to_uppercase().as_bytes()), Some(session));
        assert_eq!(key(1, "b").open(value.as_bytes()), None);
        assert_eq!(key(2, "a").open(value.as_bytes()), None);
        // The same in every process and version, as other balancers and clients keep it.
        let fixed = "4ec413b967861722f2dc8c74bc0af092b15d3088d75504b422d42497f5afb023";
        assert_eq!(value, fixed);
    }

    #[test]
    fn no_part_of_a_value_can_be_changed_or_left_out() {
        let key = key(7, "a");
        let session = Session::new(11, 12, START);
        let value = key.seal(&session).into_bytes();
        for at in 0..value.len() {
            assert_eq!(key.open(&value[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut other = value.clone();
                other[at] ^= 1 << bit;
                // The other case of a letter is the same digit.
                let is_same = other.eq_ignore_ascii_case(&value);
                assert_eq!(key.open(&other).is_some(), is_same, "bit {bit} of {at}");
            }
        }
        let longer = [&value[..], b"0"].concat();
        let signed = [b"+", &value[1..]].concat();
        for other in [b"".as_slice(), &longer, &signed, &[0xff; TEXT_BYTES], &[b'0'; TEXT_BYTES]] {
            assert_eq!(key.open(other), None, "{other:?}");
        }
        // Halves of two values do not make a third.
        let second = key.seal(&Session::new(11, 13, START)).into_bytes();
        let mixed = [&value[..32], &second[32..]].concat();
        assert_eq!(key.open(&mixed), None);
    }

    #[test]
    fn values_of_one_server_look_unrelated() {
        let key = key(7, "a");
        let values: Vec<_> = (0..4)
            .map(|age| key.seal(&Session::new(11, 12, START + Duration::from_secs(age))))
            .collect();
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                let same = |at: usize| one[at..at + 16] == other[at..at + 16];
                assert!(![0, 16, 32, 48].into_iter().any(same), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_session_ends_after_its_lifetime_and_after_the_idle_time() {
        // Lifetime and idle time, age of the session and time since the last value, whether it holds.
        for (lifetime_s, idle_s, age_s, idle_for_s, expected) in [
            (0, 0, 4_000_000, 4_000_000, true),
            (10, 0, 9, 9, true),
            (10, 0, 10, 0, false),
            (0, 10, 1_000, 10, true),
            (0, 10, 1_000, 11, false),
            (0, 3_600, 9_999, 3_659, true),
            (0, 3_600, 9_999, 3_660, false),
            (10, 10, 9, 9, true),
            (100, 10, 50, 20, false),
        ] {
            let affinity = affinity("a", lifetime_s, idle_s);
            let age = Duration::from_secs(age_s);
            let session = Session::new(1, 2, START);
            let seen_s = seconds(START + age) - idle_for_s;
            let session = Session { seen_s, ..session };
            let case = (lifetime_s, idle_s, age_s, idle_for_s);
            assert_eq!(session.holds(&affinity, START + age), expected, "{case:?}");
        }
    }

    #[test]
    fn a_clock_may_be_a_minute_ahead() {
        let affinity = affinity("a", 10, 0);
        let begun = |ahead_s| Session::new(1, 2, START + Duration::from_secs(ahead_s));
        assert!(begun(60).holds(&affinity, START));
        assert!(!begun(61).holds(&affinity, START));
        // Such as after a clock that was far ahead has been corrected.
        assert!(!Session::new(1, 2, Duration::MAX).holds(&affinity, START));
    }

    #[test]
    fn a_client_is_told_of_new_sessions_and_of_their_use() {
        let wall = |at_s| START + Duration::from_secs(at_s);
        let session = Session::new(1, 2, START);
        let used = |at_s| Session { seen_s: seconds(wall(at_s)), ..session };
        // The idle time, the session of the request, the server that answers, and when; the session that is sent.
        for (idle_s, asked, server, at_s, expected) in [
            (0, None, 2, 5, Some(Session::new(1, 2, wall(5)))),
            (0, Some(session), 2, 5, None),
            (0, Some(session), 3, 5, Some(Session::new(1, 3, wall(5)))),
            (10, Some(session), 2, 0, None),
            (10, Some(session), 2, 1, Some(used(1))),
            (600, Some(session), 2, 9, None),
            (600, Some(session), 2, 10, Some(used(10))),
        ] {
            let affinity = affinity("a", 0, idle_s);
            let told = Session::renewed(asked, (1, server), &affinity, wall(at_s));
            assert_eq!(told, expected, "{idle_s} {server} {at_s}");
        }
    }

    #[test]
    fn what_is_left_of_a_lifetime() {
        let session = Session::new(1, 2, START);
        let left = |lifetime_s, at_s| {
            let affinity = affinity("a", lifetime_s, 0);
            session.left(&affinity, START + Duration::from_secs(at_s)).map(|left| left.as_secs())
        };
        assert_eq!([left(0, 5), left(10, 0), left(10, 7)], [None, Some(10), Some(3)]);
        assert_eq!(left(10, 20), Some(1));
    }
}

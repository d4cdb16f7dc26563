//! What is known about one name: merges answers into a set that a bad answer cannot empty.
//!
//! Pure. Each address family is tracked separately, so that a failed AAAA query does not remove the
//! IPv6 servers while A still answers; but a family that is answered with "none" while the other
//! has addresses is really gone.

use std::net::IpAddr;
use std::time::Duration;

use model::Moment;
use transport::names::{Answer, Family, Source};

/// A name is looked up again after its TTL, within these bounds.
pub(crate) const TTL_MIN: Duration = Duration::from_secs(1);
pub(crate) const TTL_MAX: Duration = Duration::from_secs(60 * 60);

/// After a failure it is looked up again after 1, 2, 4 … seconds, at most this.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Maximum number of addresses kept per name.
pub(crate) const ADDRESSES_MAX: usize = 1024;

/// One name's addresses, and how fresh they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    v4: Vec<IpAddr>,
    v6: Vec<IpAddr>,
    source: Option<Source>,
    /// When the addresses were last changed.
    changed_at: Option<Moment>,
    /// When an answer last confirmed them.
    confirmed_at: Option<Moment>,
    failures: u32,
    error: Option<String>,
}

impl Known {
    /// Returns the last good set, IPv4 first, sorted.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.v4.iter().chain(&self.v6).copied()
    }

    pub(crate) fn source(&self) -> Option<Source> {
        self.source
    }

    pub(crate) fn changed_at(&self) -> Option<Moment> {
        self.changed_at
    }

    pub(crate) fn confirmed_at(&self) -> Option<Moment> {
        self.confirmed_at
    }

    /// Returns why the last attempt was not fully successful, if it was not.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Merges an answer. Returns whether the addresses changed, and after how long to look up
    /// again.
    pub(crate) fn fold(&mut self, answer: Answer, now: Moment) -> (bool, Duration) {
        let Answer { source, v4, v6 } = answer;
        let found = |family: &Family| matches!(family, Family::Found { .. });
        if !found(&v4) && !found(&v6) {
            // The last good set stays, whether it was a failure or an empty answer.
            self.error = Some(reason(&v4, &v6));
            return (false, self.back_off());
        }
        let ttl = [&v4, &v6].into_iter().filter_map(ttl).min().unwrap_or(TTL_MAX);
        let failed = [&v4, &v6].into_iter().any(|family| matches!(family, Family::Failed(_)));
        self.error = failed.then(|| reason(&v4, &v6));
        let before: Vec<_> = self.addresses().collect();
        replace(&mut self.v4, v4);
        replace(&mut self.v6, v6);
        let changed = !before.into_iter().eq(self.addresses());
        if changed {
            self.changed_at = Some(now);
        }
        self.source = Some(source);
        self.confirmed_at = Some(now);
        let again = ttl.clamp(TTL_MIN, TTL_MAX);
        if failed {
            return (changed, self.back_off().min(again));
        }
        self.failures = 0;
        (changed, again)
    }

    fn back_off(&mut self) -> Duration {
        let seconds = 1_u64 << self.failures.min(5);
        self.failures = self.failures.saturating_add(1);
        Duration::from_secs(seconds).min(BACKOFF_MAX)
    }
}

fn replace(kept: &mut Vec<IpAddr>, answer: Family) {
    match answer {
        Family::Found { mut addresses, .. } => {
            addresses.sort_unstable();
            addresses.dedup();
            addresses.truncate(ADDRESSES_MAX);
            *kept = addresses;
        }
        Family::None(_) => kept.clear(),
        Family::Failed(_) => {}
    }
}

fn ttl(family: &Family) -> Option<Duration> {
    match family {
        Family::Found { ttl, .. } => Some(*ttl),
        Family::None(_) | Family::Failed(_) => None,
    }
}

fn reason(v4: &Family, v6: &Family) -> String {
    let text = |family: &Family| match family {
        Family::Found { .. } => None,
        Family::None(why) | Family::Failed(why) => Some(why.clone()),
    };
    match (text(v4), text(v6)) {
        (Some(v4), Some(v6)) if v4 == v6 => v4,
        (Some(v4), Some(v6)) => format!("A: {v4}; AAAA: {v6}"),
        (Some(v4), None) => format!("A: {v4}"),
        (None, Some(v6)) => format!("AAAA: {v6}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(addresses: &[&str], ttl_s: u64) -> Family {
        let addresses = addresses.iter().map(|a| a.parse().expect("an address")).collect();
        Family::Found { addresses, ttl: Duration::from_secs(ttl_s) }
    }

    fn none() -> Family {
        Family::None("no records".into())
    }

    fn failed() -> Family {
        Family::Failed("SERVFAIL".into())
    }

    fn dns(v4: Family, v6: Family) -> Answer {
        Answer { source: Source::Dns, v4, v6 }
    }

    /// Merges answers one after the other; checks the set after each, whether it changed, and the
    /// seconds to the next lookup.
    #[test]
    fn folding_table() {
        let a = "10.0.0.1";
        let b = "10.0.0.2";
        let six = "2001:db8::1";
        type Step = (Answer, &'static str, bool, u64);
        let cases: Vec<(&str, Vec<Step>)> = vec![
            (
                "an empty answer keeps the last good set and is retried with growing waits",
                vec![
                    (dns(found(&[b, a, a], 60), none()), "a b", true, 60),
                    (dns(none(), none()), "a b", false, 1),
                    (dns(none(), none()), "a b", false, 2),
                    (dns(none(), none()), "a b", false, 4),
                    (dns(none(), none()), "a b", false, 8),
                    (dns(none(), none()), "a b", false, 16),
                    (dns(none(), none()), "a b", false, 30),
                    (dns(none(), none()), "a b", false, 30),
                    (dns(found(&[b], 60), none()), "b", true, 60),
                    (dns(failed(), failed()), "b", false, 1),
                ],
            ),
            (
                "a family that fails is kept, one that is answered with none is dropped",
                vec![
                    (dns(found(&[a], 60), found(&[six], 300)), "a six", true, 60),
                    (dns(found(&[b], 60), failed()), "b six", true, 1),
                    (dns(failed(), found(&[six], 60)), "b six", false, 2),
                    (dns(found(&[b], 60), none()), "b", true, 60),
                    (dns(none(), found(&[six], 60)), "six", true, 60),
                ],
            ),
            (
                "times to live are bounded on both sides",
                vec![
                    (dns(found(&[a], 0), none()), "a", true, 1),
                    (dns(found(&[a], 1_000_000), none()), "a", false, 3600),
                ],
            ),
            (
                "nothing known and nothing answered stays nothing",
                vec![(dns(none(), failed()), "", false, 1), (dns(failed(), none()), "", false, 2)],
            ),
        ];
        for (name, steps) in cases {
            let mut known = Known::default();
            for (n, (answer, set, changed, next_s)) in steps.into_iter().enumerate() {
                let got = known.fold(answer, Moment::from_millis(n as u64));
                let names = known.addresses().map(|address| match address.to_string().as_str() {
                    "10.0.0.1" => "a",
                    "10.0.0.2" => "b",
                    _ => "six",
                });
                assert_eq!(names.collect::<Vec<_>>().join(" "), set, "{name}, step {n}");
                assert_eq!(got, (changed, Duration::from_secs(next_s)), "{name}, step {n}");
            }
        }
    }

    #[test]
    fn errors_are_reported_and_cleared() {
        let mut known = Known::default();
        known.fold(dns(none(), failed()), Moment::ZERO);
        assert_eq!(known.error(), Some("A: no records; AAAA: SERVFAIL"));
        known.fold(dns(found(&["10.0.0.1"], 5), failed()), Moment::from_millis(1));
        assert_eq!(known.error(), Some("AAAA: SERVFAIL"));
        known.fold(dns(found(&["10.0.0.1"], 5), none()), Moment::from_millis(2));
        assert_eq!(known.error(), None);
        assert_eq!(known.changed_at(), Some(Moment::from_millis(1)));
        assert_eq!(known.confirmed_at(), Some(Moment::from_millis(2)));
    }
}

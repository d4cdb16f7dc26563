//! Since when something cannot be read or followed, and when that is reported. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::event::Event;
use crate::kinds::Source;
use crate::store::Id;

/// What has failed for this long is reported. Shorter failures are those of a restart of the API server.
pub(crate) const REPORT_AFTER: Duration = Duration::from_secs(60);

/// What can fail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The question which kinds there are.
    Kinds,
    /// The Lease. Without it, this instance writes nothing, but it reads everything.
    Lease,
    /// A watch.
    Watch(Source),
    /// The contents of a Secret or ConfigMap.
    Object(Id),
}

/// What is known at present about what has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Failing,
    /// It is read again: the end is not known.
    Pending,
    Succeeded,
    /// It is no longer needed.
    Gone,
}

/// What fails.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    since: BTreeMap<Subject, Moment>,
    reported: BTreeSet<Subject>,
}

impl Failing {
    /// Takes what fails now, and returns what is to be reported. `standing` returns what is known about what failed
    /// before. `connected_since`: since when the API server can be used. `None`: it cannot, which is reported by itself.
    pub(crate) fn observe(
        &mut self,
        failing: impl IntoIterator<Item = (Subject, Arc<str>)>,
        standing: impl Fn(&Subject) -> Standing,
        connected_since: Option<Moment>,
        now: Moment,
    ) -> Vec<Event> {
        let is_open =
            |one: &Subject| matches!(standing(one), Standing::Failing | Standing::Pending);
        self.since.retain(|one, _| is_open(one));
        let over = self.reported.extract_if(.., |one| !is_open(one));
        let over = over.filter(|one| standing(one) == Standing::Succeeded);
        let mut events: Vec<Event> = over.map(|one| one.followed()).collect();
        for (one, error) in failing {
            let since = *self.since.entry(one.clone()).or_insert(now);
            // What fails after an outage has its time.
            let is_late = connected_since
                .is_some_and(|connected| now.since(connected.max(since)) >= REPORT_AFTER);
            if is_late && self.reported.insert(one.clone()) {
                events.push(one.failing(error));
            }
        }
        events
    }

    /// Returns since when something has failed that is read, the Lease excepted: the earliest.
    pub(crate) fn since(&self) -> Option<Moment> {
        let read = self.since.iter().filter(|(one, _)| **one != Subject::Lease);
        read.map(|(_, since)| *since).min()
    }
}

impl Subject {
    fn failing(&self, error: Arc<str>) -> Event {
        match self {
            Subject::Lease => Event::LeaseFailing { error },
            Subject::Kinds | Subject::Watch(_) | Subject::Object(_) => {
                Event::Failing { what: self.to_string(), error }
            }
        }
    }

    fn followed(&self) -> Event {
        match self {
            Subject::Lease => Event::LeaseFollowed,
            Subject::Kinds | Subject::Watch(_) | Subject::Object(_) => {
                Event::Followed { what: self.to_string() }
            }
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Kinds => f.write_str("the kinds of the Gateway API"),
            Subject::Lease => f.write_str("the Lease"),
            Subject::Watch(source) => write!(f, "{source}"),
            Subject::Object((kind, key)) => write!(f, "{} {key}", kind.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway::objects::Key;

    use super::*;
    use crate::kinds::Kind;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn object(name: &str) -> Subject {
        Subject::Object((Kind::Secret, Key::new("n", name)))
    }

    fn shown(events: &[Event]) -> String {
        let shown = events.iter().map(|event| match event {
            Event::Failing { what, .. } => format!("-{what}"),
            Event::Followed { what } => format!("+{what}"),
            other => format!("{other:?}"),
        });
        shown.collect::<Vec<_>>().join(" ").replace("Secret n/", "")
    }

    #[test]
    fn what_fails_for_long_is_reported_once() {
        let mut failing = Failing::default();
        let mut observe = |seconds, what: &[&str], connected: Option<u64>| {
            let all: Vec<Subject> = what.iter().map(|what| object(what)).collect();
            let standing = |one: &Subject| {
                if all.contains(one) { Standing::Failing } else { Standing::Succeeded }
            };
            let named = all.iter().map(|one| (one.clone(), "why".into()));
            let events = failing.observe(named, standing, connected.map(at), at(seconds));
            (shown(&events), failing.since())
        };
        let nothing = String::new;
        assert_eq!(observe(10, &["a"], Some(0)), (nothing(), Some(at(10))));
        assert_eq!(observe(50, &["a", "b"], Some(0)), (nothing(), Some(at(10))));
        assert_eq!(observe(70, &["a", "b"], Some(0)), ("-a".to_owned(), Some(at(10))));
        assert_eq!(observe(71, &["a", "b"], Some(0)), (nothing(), Some(at(10))));
        // One that was never reported ends without a report.
        assert_eq!(observe(72, &["a"], Some(0)), (nothing(), Some(at(10))));
        assert_eq!(observe(80, &[], Some(0)), ("+a".to_owned(), None));
        // It begins again, and an outage is reported by itself.
        assert_eq!(observe(90, &["a"], None), (nothing(), Some(at(90))));
        assert_eq!(observe(200, &["a"], None), (nothing(), Some(at(90))));
        assert_eq!(observe(259, &["a"], Some(200)), (nothing(), Some(at(90))));
        assert_eq!(observe(260, &["a"], Some(200)), ("-a".to_owned(), Some(at(90))));
    }

    #[test]
    fn only_a_success_ends_a_failure() {
        let mut failing = Failing::default();
        let mut observe = |seconds, named: &[&str], a: Standing, b: Standing| {
            let named: Vec<_> = named.iter().map(|name| (object(name), "why".into())).collect();
            let standing = |one: &Subject| if *one == object("a") { a } else { b };
            shown(&failing.observe(named, standing, Some(at(0)), at(seconds)))
        };
        use Standing::{Failing as Fails, Gone, Pending, Succeeded};
        assert_eq!(observe(0, &["a", "b"], Fails, Fails), "");
        assert_eq!(observe(60, &["a", "b"], Fails, Fails), "-a -b");
        // That it is not named is no success, nor that it is read again.
        assert_eq!(observe(61, &["a"], Fails, Fails), "");
        assert_eq!(observe(62, &["b"], Pending, Fails), "");
        assert_eq!(observe(63, &["a", "b"], Fails, Fails), "");
        assert_eq!(observe(64, &[], Succeeded, Gone), "+a");
    }

    #[test]
    fn the_lease_is_not_what_is_read() {
        let mut failing = Failing::default();
        let mut observe = |seconds, standing| {
            let named = (standing == Standing::Failing).then(|| (Subject::Lease, "why".into()));
            failing.observe(named, |_| standing, Some(at(0)), at(seconds))
        };
        observe(0, Standing::Failing);
        let events = observe(60, Standing::Failing);
        assert!(matches!(events[..], [Event::LeaseFailing { .. }]), "{events:?}");
        assert_eq!(observe(61, Standing::Succeeded), [Event::LeaseFollowed]);
        observe(62, Standing::Failing);
        assert_eq!(failing.since(), None);
    }
}

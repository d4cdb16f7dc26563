//! Since when something cannot be read or followed, and when that is reported. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::event::Event;

/// What has failed for this long is reported. Shorter failures are those of a restart of the API server.
pub(crate) const REPORT_AFTER: Duration = Duration::from_secs(60);

/// What fails.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    since: BTreeMap<String, Moment>,
    reported: BTreeSet<String>,
}

impl Failing {
    /// Takes what fails now, and returns what is to be reported. `connected_since`: since when the API server can be used.
    /// `None`: it cannot, which is reported by itself.
    pub(crate) fn observe(
        &mut self,
        failing: &BTreeMap<String, Arc<str>>,
        connected_since: Option<Moment>,
        now: Moment,
    ) -> Vec<Event> {
        self.since.retain(|what, _| failing.contains_key(what));
        let mut events = Vec::new();
        let is_over = |what: &String| !failing.contains_key(what);
        events.extend(self.reported.extract_if(.., is_over).map(|what| Event::Followed { what }));
        for (what, error) in failing {
            let since = *self.since.entry(what.clone()).or_insert(now);
            // What fails after an outage has its time.
            let is_late = connected_since
                .is_some_and(|connected| now.since(connected.max(since)) >= REPORT_AFTER);
            if is_late && self.reported.insert(what.clone()) {
                events.push(Event::Failing { what: what.clone(), error: Arc::clone(error) });
            }
        }
        events
    }

    /// Returns since when something has failed: the earliest.
    pub(crate) fn since(&self) -> Option<Moment> {
        self.since.values().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn what_fails_for_long_is_reported_once() {
        let mut failing = Failing::default();
        let mut observe = |seconds, what: &[&str], connected: Option<u64>| {
            let what = what.iter().map(|what| ((*what).to_owned(), "why".into())).collect();
            let events = failing.observe(&what, connected.map(at), at(seconds));
            let shown = events.iter().map(|event| match event {
                Event::Failing { what, .. } => format!("-{what}"),
                Event::Followed { what } => format!("+{what}"),
                other => format!("{other:?}"),
            });
            (shown.collect::<Vec<_>>().join(" "), failing.since())
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
}

//! Which instance writes: the holder of a Lease (`coordination.k8s.io/v1`). Pure: time is an argument.
//!
//! ```text
//! follower ── the Lease is absent, released, or unchanged for its duration ──> writes it ──> leader
//! leader ── another holds the Lease, or no renewal has succeeded for 10 s ──> follower
//! ```
//!
//! A follower measures by its own clock for how long it has seen the Lease unchanged, and ignores the times within it: the
//! clocks of other machines may differ. A leader counts from the start of its last successful renewal and stops after
//! 10 s, 5 s before another instance can take over.

use std::sync::Arc;
use std::time::Duration;

use model::Moment;
use serde_json::{Value, json};

/// How long a Lease is valid without a renewal.
const DURATION: Duration = Duration::from_secs(15);
/// How long a leader leads without a successful renewal.
const RENEW_MAX: Duration = Duration::from_secs(10);
/// How often the Lease is renewed, or read by followers.
pub(crate) const RETRY_EVERY: Duration = Duration::from_secs(2);
/// No Lease is believed to be valid for longer than this.
const DURATION_MAX: Duration = Duration::from_secs(60);

/// A Lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The instance. Empty: none.
    pub(crate) holder: String,
    pub(crate) duration: Duration,
    /// How often the holder has changed.
    pub(crate) transitions: i64,
    /// The time that the holder wrote, as text: not compared with a clock.
    pub(crate) acquired: String,
    /// The version of the object.
    pub(crate) version: String,
}

impl Record {
    /// Reads a Lease.
    pub(crate) fn read(lease: &Value) -> Record {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &lease["spec"];
        let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or(DURATION.as_secs());
        Record {
            holder: text(&spec["holderIdentity"]),
            duration: Duration::from_secs(seconds).min(DURATION_MAX),
            transitions: spec["leaseTransitions"].as_i64().unwrap_or(0),
            acquired: text(&spec["acquireTime"]),
            version: text(&lease["metadata"]["resourceVersion"]),
        }
    }
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Read the Lease.
    Read,
    /// Create the Lease.
    Create,
    /// Replace this version of the Lease.
    Replace(Record),
}

/// The state of one instance.
#[derive(Debug)]
pub(crate) struct Election {
    identity: Arc<str>,
    /// What was seen last, and when it was first seen. `None` within: there is no Lease. `None`: unknown.
    seen: Option<(Seen, Moment)>,
    /// The start of the last successful renewal.
    renewed: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Absent,
    Lease(Record),
}

impl Election {
    pub(crate) fn new(identity: Arc<str>) -> Election {
        Election { identity, seen: None, renewed: None }
    }

    /// Returns whether this instance may write.
    pub(crate) fn is_leading(&self, now: Moment) -> bool {
        self.renewed.is_some_and(|renewed| now.since(renewed) < RENEW_MAX)
    }

    /// Takes what the API server says. `None`: there is no Lease.
    pub(crate) fn read(&mut self, found: Option<Record>, now: Moment) {
        let is_own = found.as_ref().is_some_and(|record| *record.holder == *self.identity);
        if !is_own {
            self.renewed = None;
        }
        let found = found.map_or(Seen::Absent, Seen::Lease);
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != found) {
            self.seen = Some((found, now));
        }
    }

    /// Notes that a write that began at `began` has succeeded.
    pub(crate) fn written(&mut self, record: Record, began: Moment) {
        let is_own = *record.holder == *self.identity;
        self.renewed = is_own.then_some(began);
        self.seen = Some((Seen::Lease(record), began));
    }

    /// Notes that a write has failed because the Lease is another: it must be read.
    pub(crate) fn conflicted(&mut self) {
        self.seen = None;
    }

    /// Decides. A follower reads the Lease before each decision.
    pub(crate) fn step(&self, now: Moment) -> Step {
        match &self.seen {
            None => Step::Read,
            Some((Seen::Absent, _)) => Step::Create,
            Some((Seen::Lease(record), since)) => {
                let is_own = *record.holder == *self.identity;
                let has_ended = now.since(*since) >= record.duration.max(Duration::from_secs(1));
                if is_own || record.holder.is_empty() || has_ended {
                    Step::Replace(record.clone())
                } else {
                    Step::Read
                }
            }
        }
    }

    /// Returns the Lease to be written, `now` as `metav1.MicroTime`. `before`: the version that it replaces.
    pub(crate) fn lease(
        &self,
        name: &str,
        namespace: &str,
        before: Option<&Record>,
        now: &str,
    ) -> Value {
        let is_own = before.is_some_and(|before| *before.holder == *self.identity);
        let acquired = before.filter(|_| is_own).map_or(now, |before| before.acquired.as_str());
        let transitions = match before {
            Some(before) if is_own => before.transitions,
            Some(before) => before.transitions.saturating_add(1),
            None => 0,
        };
        let mut metadata = json!({"name": name, "namespace": namespace});
        if let Some(before) = before {
            metadata["resourceVersion"] = before.version.as_str().into();
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": &*self.identity,
                "leaseDurationSeconds": DURATION.as_secs(),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": transitions,
            }
        })
    }

    /// Returns the Lease that another instance can take at once, if this one holds it.
    pub(crate) fn released(&self, name: &str, namespace: &str, now: &str) -> Option<Value> {
        let (Seen::Lease(record), _) = self.seen.as_ref()? else { return None };
        if *record.holder != *self.identity {
            return None;
        }
        let mut lease = self.lease(name, namespace, Some(record), now);
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        Some(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn record(holder: &str, version: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            duration: DURATION,
            transitions: 4,
            acquired: "then".to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn an_absent_or_released_lease_is_taken_at_once() {
        let mut election = Election::new("a".into());
        assert_eq!(election.step(at(0)), Step::Read);
        election.read(None, at(0));
        assert_eq!(election.step(at(0)), Step::Create);
        election.read(Some(record("", "1")), at(1));
        assert_eq!(election.step(at(1)), Step::Replace(record("", "1")));
        assert!(!election.is_leading(at(1)));
        election.written(record("a", "2"), at(1));
        assert!(election.is_leading(at(1)));
        assert_eq!(election.step(at(3)), Step::Replace(record("a", "2")));
    }

    #[test]
    fn a_lease_of_another_is_taken_when_it_does_not_change_for_its_duration() {
        let mut election = Election::new("a".into());
        for second in 0..100 {
            election.read(Some(record("b", &(second / 10).to_string())), at(second));
            assert_eq!(election.step(at(second)), Step::Read, "{second}");
        }
        for second in 100..105 {
            election.read(Some(record("b", "9")), at(second));
            assert_eq!(election.step(at(second)), Step::Read, "{second}");
        }
        election.read(Some(record("b", "9")), at(105));
        assert_eq!(election.step(at(105)), Step::Replace(record("b", "9")));
        // Another was faster.
        election.conflicted();
        assert_eq!(election.step(at(105)), Step::Read);
        election.read(Some(record("c", "10")), at(105));
        assert_eq!(election.step(at(119)), Step::Read);
        assert!(!election.is_leading(at(105)));
    }

    #[test]
    fn a_leader_stops_before_others_can_take_over() {
        let mut election = Election::new("a".into());
        election.written(record("a", "1"), at(10));
        assert!(election.is_leading(at(19)));
        assert!(!election.is_leading(at(20)));
        // It still holds the Lease, and renews it when the API server answers again.
        election.read(Some(record("a", "1")), at(30));
        assert!(!election.is_leading(at(30)));
        assert_eq!(election.step(at(30)), Step::Replace(record("a", "1")));
        election.written(record("a", "2"), at(31));
        election.read(Some(record("b", "3")), at(32));
        assert!(!election.is_leading(at(32)));
    }

    #[test]
    fn a_restored_lease_leads_to_one_leader() {
        // The data of the API server were restored: the Lease names an instance that no longer leads.
        let mut election = Election::new("a".into());
        election.written(record("a", "90"), at(0));
        election.read(Some(record("b", "5")), at(1));
        assert!(!election.is_leading(at(1)));
        assert_eq!(election.step(at(15)), Step::Read);
        assert_eq!(election.step(at(16)), Step::Replace(record("b", "5")));
    }

    #[test]
    fn leases_have_the_fields_of_the_api() {
        let election = Election::new("a".into());
        let lease = election.lease("weir", "n", None, "now");
        assert_eq!(lease["spec"]["leaseTransitions"], 0);
        assert_eq!(lease["metadata"], json!({"name": "weir", "namespace": "n"}));
        let lease = election.lease("weir", "n", Some(&record("b", "7")), "now");
        assert_eq!(lease["metadata"]["resourceVersion"], "7");
        assert_eq!(
            lease["spec"],
            json!({
                "holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "now",
                "renewTime": "now", "leaseTransitions": 5
            })
        );
        let lease = election.lease("weir", "n", Some(&record("a", "7")), "now");
        assert_eq!(lease["spec"]["leaseTransitions"], 4);
        assert_eq!(lease["spec"]["acquireTime"], "then");
        assert_eq!(Record::read(&lease), Record { version: "7".to_owned(), ..record("a", "7") });
    }

    #[test]
    fn only_the_holder_releases() {
        let mut election = Election::new("a".into());
        assert_eq!(election.released("weir", "n", "now"), None);
        election.read(Some(record("b", "1")), at(0));
        assert_eq!(election.released("weir", "n", "now"), None);
        election.written(record("a", "2"), at(1));
        let lease = election.released("weir", "n", "now").unwrap();
        assert_eq!(lease["spec"]["holderIdentity"], "");
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 1);
        assert_eq!(lease["metadata"]["resourceVersion"], "2");
    }

    #[test]
    fn any_lease_is_read() {
        for lease in
            [json!(null), json!({"spec": 1}), json!({"spec": {"leaseDurationSeconds": -1}})]
        {
            assert_eq!(Record::read(&lease).duration, DURATION, "{lease}");
        }
        let endless = json!({"spec": {"leaseDurationSeconds": u64::MAX}});
        assert_eq!(Record::read(&endless).duration, DURATION_MAX);
    }
}

//! Whether the Gateway of a Service has gone for good. Pure: time is an argument.
//!
//! Deleting a Service gives up an address that may be in DNS, so it needs strong evidence. A Gateway that cannot be
//! read, a class that is missing, and a CRD that is not installed are no evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gateway::ir::ingress::is_implied;
use gateway::objects::Key;
use model::Moment;

use crate::kinds::Kind;
use crate::store::Store;

/// What is known about the Gateway of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It exists, or it may exist.
    Kept,
    /// Its class names another controller.
    Foreign,
    /// The complete list of Gateways is without it.
    Absent,
    /// It was absent or may be, but Gateways cannot be listed at present.
    Unknown,
}

/// Returns what is known about a Gateway, or about the IngressClass that implies one. `names`: those of Weir in GatewayClasses
/// and in IngressClasses. `is_listed`: all Gateways of its namespace, or all IngressClasses, are known at present.
pub(crate) fn standing(
    store: &Store,
    names: (&str, &str),
    gateway: &Key,
    is_listed: bool,
) -> Standing {
    let (controller_name, ingress_controller_name) = names;
    let without = |kind: Kind| {
        let is_unreadable = store.unreadable.contains_key(&(kind, gateway.clone()));
        match (is_unreadable, is_listed) {
            (true, _) => Standing::Kept,
            (false, true) => Standing::Absent,
            (false, false) => Standing::Unknown,
        }
    };
    if is_implied(gateway) {
        return match store.objects.ingress_classes.get(gateway) {
            Some(class) if *class.spec.controller != *ingress_controller_name => Standing::Foreign,
            Some(_) => Standing::Kept,
            None => without(Kind::IngressClass),
        };
    }
    let Some(found) = store.objects.gateways.get(gateway) else { return without(Kind::Gateway) };
    let class = Key::new("", found.spec.gateway_class_name.clone());
    match store.objects.classes.get(&class) {
        Some(class) if *class.spec.controller_name != *controller_name => Standing::Foreign,
        Some(_) | None => Standing::Kept,
    }
}

/// For how long Gateways are known to have been absent.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    absent: BTreeMap<Key, Absence>,
    due: Option<Moment>,
}

/// See [`Absences`]. Time in which Gateways cannot be listed does not count, and takes nothing away: a watch that breaks
/// off every minute must not keep a Service for ever.
#[derive(Clone, Copy, Debug, Default)]
struct Absence {
    /// For how long it was known to be absent before `since`.
    before: Duration,
    /// Since when it has been known to be absent. `None`: Gateways cannot be listed.
    since: Option<Moment>,
}

impl Absences {
    /// For this long a Gateway must be known to be absent.
    const GONE_AFTER: Duration = Duration::from_secs(60);
    /// For this long it must be so without interruption: the data of an API server that was away may be older.
    const CONFIRMED_AFTER: Duration = Duration::from_secs(10);

    /// Takes what is known about the Gateways of all Services now. Returns those whose Services are to be deleted.
    pub(crate) fn observe(
        &mut self,
        gateways: impl IntoIterator<Item = (Key, Standing)>,
        now: Moment,
    ) -> BTreeSet<Key> {
        let known = std::mem::take(&mut self.absent);
        self.due = None;
        let mut gone = BTreeSet::new();
        for (gateway, standing) in gateways {
            let known = known.get(&gateway).copied();
            match standing {
                Standing::Kept => {}
                Standing::Foreign => {
                    gone.insert(gateway);
                }
                Standing::Unknown => {
                    if let Some(known) = known {
                        self.absent.insert(gateway, known.paused(now));
                    }
                }
                Standing::Absent => {
                    let Absence { before, since } = known.unwrap_or_default();
                    let since = since.unwrap_or(now);
                    let wait = Self::GONE_AFTER.saturating_sub(before).max(Self::CONFIRMED_AFTER);
                    let end = since + wait;
                    if end <= now {
                        gone.insert(gateway.clone());
                    } else {
                        self.due = Some(self.due.map_or(end, |due| due.min(end)));
                    }
                    self.absent.insert(gateway, Absence { before, since: Some(since) });
                }
            }
        }
        gone
    }

    /// Returns when the next Gateway may be gone.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.due
    }
}

impl Absence {
    fn paused(self, now: Moment) -> Absence {
        let known = self.since.map_or(Duration::ZERO, |since| now.since(since));
        Absence { before: self.before.saturating_add(known), since: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::item;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn key(name: &str) -> Key {
        Key::new("n", name)
    }

    #[test]
    fn only_what_is_known_for_certain_counts() {
        let mut store = Store::default();
        let mut put = |kind, object| store.apply(kind, item::read(kind, object).unwrap());
        for (name, class) in [("ours", "ours"), ("theirs", "theirs"), ("unknown", "missing")] {
            put(
                Kind::Gateway,
                json!({"metadata": {"namespace": "n", "name": name}, "spec": {"gatewayClassName": class}}),
            );
        }
        put(Kind::Gateway, json!({"metadata": {"namespace": "n", "name": "damaged"}, "spec": 1}));
        for (name, controller) in [("ours", "a/b"), ("theirs", "c/d")] {
            put(
                Kind::GatewayClass,
                json!({"metadata": {"name": name}, "spec": {"controllerName": controller}}),
            );
        }
        for (name, is_listed, expected) in [
            ("ours", true, Standing::Kept),
            ("theirs", true, Standing::Foreign),
            ("unknown", true, Standing::Kept),
            ("damaged", true, Standing::Kept),
            ("gone", true, Standing::Absent),
            ("gone", false, Standing::Unknown),
            ("damaged", false, Standing::Kept),
        ] {
            assert_eq!(standing(&store, ("a/b", "a/c"), &key(name), is_listed), expected, "{name}");
        }
        let mut put = |spec: Value| {
            let class = json!({"metadata": {"name": "i"}, "spec": spec});
            store.apply(Kind::IngressClass, item::read(Kind::IngressClass, class).unwrap());
            standing(&store, ("a/b", "a/c"), &Key::new("", "i"), true)
        };
        assert_eq!(put(json!({"controller": "a/c"})), Standing::Kept);
        assert_eq!(put(json!(1)), Standing::Kept);
        assert_eq!(put(json!({"controller": "a/d"})), Standing::Foreign);
        store.delete(Kind::IngressClass, &Key::new("", "i"));
        assert_eq!(standing(&store, ("", ""), &Key::new("", "i"), true), Standing::Absent);
    }

    #[test]
    fn a_gateway_is_gone_after_a_minute_without_it() {
        let mut absences = Absences::default();
        let mut observe = |seconds, standing| {
            let gone = absences.observe([(key("g"), standing)], at(seconds));
            (!gone.is_empty(), absences.due())
        };
        assert_eq!(observe(0, Standing::Absent), (false, Some(at(60))));
        assert_eq!(observe(59, Standing::Absent), (false, Some(at(60))));
        // It was there, or the list was not known.
        assert_eq!(observe(60, Standing::Kept), (false, None));
        assert_eq!(observe(61, Standing::Absent), (false, Some(at(121))));
        assert_eq!(observe(121, Standing::Absent), (true, None));
        assert_eq!(observe(130, Standing::Absent), (true, None));
        assert_eq!(observe(131, Standing::Foreign), (true, None));
    }

    #[test]
    fn watches_that_break_off_keep_no_service_for_ever() {
        let mut absences = Absences::default();
        let mut observe = |seconds, standing| {
            let gone = absences.observe([(key("g"), standing)], at(seconds));
            (!gone.is_empty(), absences.due())
        };
        // Nothing is known about one that was never known to be absent.
        assert_eq!(observe(0, Standing::Unknown), (false, None));
        // Each watch lasts 25 seconds; then there is a gap of 5.
        for start in [100, 130] {
            observe(start, Standing::Absent);
            assert_eq!(observe(start + 25, Standing::Unknown), (false, None));
            assert_eq!(observe(start + 27, Standing::Unknown), (false, None));
        }
        // 50 seconds are known.
        assert_eq!(observe(160, Standing::Absent), (false, Some(at(170))));
        assert_eq!(observe(169, Standing::Unknown), (false, None));
        // After a gap, it must be absent for a while again, however long it was absent before.
        assert_eq!(observe(500, Standing::Absent), (false, Some(at(510))));
        assert_eq!(observe(510, Standing::Absent), (true, None));
        // It exists: all begins again.
        observe(511, Standing::Kept);
        assert_eq!(observe(512, Standing::Absent), (false, Some(at(572))));
    }

    #[test]
    fn a_service_that_no_longer_exists_is_forgotten() {
        let mut absences = Absences::default();
        absences.observe([(key("g"), Standing::Absent)], at(0));
        assert!(absences.observe([], at(60)).is_empty());
        assert_eq!(absences.due(), None);
        absences.observe([(key("g"), Standing::Absent)], at(61));
        assert_eq!(absences.due(), Some(at(121)));
    }
}

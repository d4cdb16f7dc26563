//! Whether the Gateway of a Service has gone for good. Pure: time is an argument.
//!
//! Deleting a Service gives up an address that may be in DNS, so it needs strong evidence. A Gateway that cannot be
//! read, a class that is missing, and a CRD that is not installed are no evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
}

/// Returns what is known about a Gateway. `is_listed`: all Gateways of its namespace are known at present.
pub(crate) fn standing(
    store: &Store,
    controller_name: &str,
    gateway: &Key,
    is_listed: bool,
) -> Standing {
    let Some(found) = store.objects.gateways.get(gateway) else {
        let is_unreadable = store.unreadable.contains_key(&(Kind::Gateway, gateway.clone()));
        return if is_listed && !is_unreadable { Standing::Absent } else { Standing::Kept };
    };
    let class = Key::new("", found.spec.gateway_class_name.clone());
    match store.objects.classes.get(&class) {
        Some(class) if *class.spec.controller_name != *controller_name => Standing::Foreign,
        Some(_) | None => Standing::Kept,
    }
}

/// Since when Gateways have been absent.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    since: BTreeMap<Key, Moment>,
    due: Option<Moment>,
}

impl Absences {
    /// For this long a Gateway must be absent without interruption.
    const GONE_AFTER: Duration = Duration::from_secs(60);

    /// Takes what is known about the Gateways of all Services now. Returns those whose Services are to be deleted.
    pub(crate) fn observe(
        &mut self,
        gateways: impl IntoIterator<Item = (Key, Standing)>,
        now: Moment,
    ) -> BTreeSet<Key> {
        let before = std::mem::take(&mut self.since);
        self.due = None;
        let mut gone = BTreeSet::new();
        for (gateway, standing) in gateways {
            match standing {
                Standing::Kept => {}
                Standing::Foreign => {
                    gone.insert(gateway);
                }
                Standing::Absent => {
                    let since = before.get(&gateway).copied().unwrap_or(now);
                    let end = since + Self::GONE_AFTER;
                    if end <= now {
                        gone.insert(gateway.clone());
                    } else {
                        self.due = Some(self.due.map_or(end, |due| due.min(end)));
                    }
                    self.since.insert(gateway, since);
                }
            }
        }
        gone
    }

    /// Returns when the next Gateway may be gone.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// Begins again: Gateways could not be listed, or another instance decides.
    pub(crate) fn clear(&mut self) {
        self.since.clear();
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            ("gone", false, Standing::Kept),
        ] {
            assert_eq!(standing(&store, "a/b", &key(name), is_listed), expected, "{name}");
        }
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
    fn time_begins_again_after_a_failure() {
        let mut absences = Absences::default();
        assert!(absences.observe([(key("g"), Standing::Absent)], at(0)).is_empty());
        absences.clear();
        assert!(absences.observe([(key("g"), Standing::Absent)], at(60)).is_empty());
        assert_eq!(absences.due(), Some(at(120)));
        // A Service that no longer exists is forgotten.
        assert!(absences.observe([], at(120)).is_empty());
        assert_eq!(absences.due(), None);
    }
}

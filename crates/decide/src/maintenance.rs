//! Maintenance at run time: the routes and services that an operator has put into maintenance, beside
//! those that the file names.
//!
//! It is kept by name, so that a reload changes nothing while the name stays.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use model::{Maintained, Maintenance, Snapshot};

/// The maintenance that operators have switched on.
#[derive(Debug, Default)]
pub struct Switched {
    /// Whether there is any; most of the time there is none, and requests look no further.
    any: AtomicBool,
    rows: ArcSwap<Rows>,
    /// Locked while the rows change.
    change: Mutex<()>,
}

/// No more than there are services and routes: see [`Switched::retain`].
#[derive(Clone, Debug, Default)]
struct Rows {
    services: HashMap<Arc<str>, Maintenance>,
    routes: HashMap<Arc<str>, Maintenance>,
}

impl Rows {
    fn of(&self, kind: Maintained) -> &HashMap<Arc<str>, Maintenance> {
        match kind {
            Maintained::Service => &self.services,
            Maintained::Route => &self.routes,
        }
    }
}

impl Switched {
    /// Returns the maintenance in force: an operator's, that of the file (`in_file`), or both; the
    /// operator's `Retry-After` goes first. Fast path, with nothing switched on: one relaxed load.
    pub fn in_force(
        &self,
        kind: Maintained,
        name: &str,
        in_file: Option<Maintenance>,
    ) -> Option<Maintenance> {
        match (self.by_operator(kind, name), in_file) {
            (Some(operator), Some(file)) => {
                Some(Maintenance { retry_after: operator.retry_after.or(file.retry_after) })
            }
            (operator, file) => operator.or(file),
        }
    }

    /// Returns the maintenance that an operator has switched on for this service or route.
    pub fn by_operator(&self, kind: Maintained, name: &str) -> Option<Maintenance> {
        if !self.any.load(Relaxed) {
            return None;
        }
        self.rows.load().of(kind).get(name).copied()
    }

    /// Switches maintenance on, or off with `None`. The caller knows that the name exists.
    pub fn set(&self, kind: Maintained, name: &str, to: Option<Maintenance>) {
        self.update(|rows| {
            let rows = match kind {
                Maintained::Service => &mut rows.services,
                Maintained::Route => &mut rows.routes,
            };
            match to {
                Some(maintenance) => _ = rows.insert(Arc::from(name), maintenance),
                None => _ = rows.remove(name),
            }
        });
    }

    /// Returns everything that operators have switched on, in order of kind and name.
    pub fn rows(&self) -> Vec<(Maintained, Arc<str>, Maintenance)> {
        let rows = self.rows.load();
        let mut all: Vec<_> = Maintained::ALL
            .iter()
            .flat_map(|&kind| rows.of(kind).iter().map(move |(name, on)| (kind, name.clone(), *on)))
            .collect();
        all.sort_by(|one, other| (one.0.as_str(), &one.1).cmp(&(other.0.as_str(), &other.1)));
        all
    }

    /// Forgets what is no longer in the configuration.
    pub(crate) fn retain(&self, snapshot: &Snapshot) {
        if !self.any.load(Relaxed) {
            return;
        }
        self.update(|rows| {
            let is_service = |name: &str| snapshot.services.iter().any(|one| *one.name == *name);
            let is_route = |name: &str| snapshot.routes.iter().any(|one| *one.name == *name);
            rows.services.retain(|name, _| is_service(name));
            rows.routes.retain(|name, _| is_route(name));
        });
    }

    fn update(&self, change: impl FnOnce(&mut Rows)) {
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Rows::clone(&self.rows.load());
        change(&mut rows);
        let any = !rows.services.is_empty() || !rows.routes.is_empty();
        self.rows.store(Arc::new(rows));
        // A worker that sees this later sees the change later, as with any other setting.
        self.any.store(any, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn after(seconds: u64) -> Maintenance {
        Maintenance { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn the_file_or_an_operator_is_enough_and_the_operator_says_when_to_come_back() {
        let switched = Switched::default();
        let of = |in_file| switched.in_force(Maintained::Service, "app", in_file);
        assert_eq!(of(None), None);
        assert_eq!(of(Some(after(5))), Some(after(5)));
        switched.set(Maintained::Service, "app", Some(Maintenance::default()));
        assert_eq!(of(None), Some(Maintenance::default()));
        assert_eq!(of(Some(after(5))), Some(after(5)));
        switched.set(Maintained::Service, "app", Some(after(9)));
        assert_eq!(of(Some(after(5))), Some(after(9)));
        // A route of the same name is another thing.
        assert_eq!(switched.in_force(Maintained::Route, "app", None), None);
        switched.set(Maintained::Service, "app", None);
        assert_eq!((of(None), of(Some(after(5)))), (None, Some(after(5))));
        assert_eq!(switched.rows(), []);
    }

    #[test]
    fn what_leaves_the_configuration_is_forgotten() {
        let switched = Switched::default();
        switched.set(Maintained::Route, "b", Some(after(1)));
        switched.set(Maintained::Route, "a", Some(after(2)));
        switched.set(Maintained::Service, "c", Some(after(3)));
        let names: Vec<_> = switched.rows().into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"].map(Arc::from));
        switched.retain(&Snapshot::empty());
        assert_eq!(switched.rows(), []);
        assert!(!switched.any.load(Relaxed));
    }
}

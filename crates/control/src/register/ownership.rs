//! Decides when to read an entry at the agent, and what to do if another process has replaced it.
//!
//! Two processes that registered the same entry again and again would change the catalogue all the time: a process
//! replaces another's entry only once a minute.

use std::time::Duration;

use discovery::consul::register::Owner;
use model::{Moment, Registration};

/// How often the entry is read, and the shortest time between two registrations that replace another process's.
const EVERY: Duration = Duration::from_mins(1);

/// What to do after the entry was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Report the state.
    Report,
    /// Register the entry again.
    Register,
    /// The entry is another process's: send nothing about it.
    Leave,
}

/// Whose entry the agent has, as far as is known.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    /// `None`: it must be read before the next report.
    read_at: Option<Moment>,
    registered_at: Option<Moment>,
    /// Another process has it now.
    is_lost: bool,
    /// What to tell people, until the entry is found to be this process's.
    conflict: Option<String>,
}

impl Ownership {
    /// Returns whether the entry must be read before the next report.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.read_at.is_none_or(|at| now.since(at) >= EVERY)
    }

    /// Has the entry read before the next report.
    pub(super) fn doubt(&mut self) {
        self.read_at = None;
    }

    /// Notes that this process has registered the entry.
    pub(super) fn on_registered(&mut self, now: Moment) {
        (self.read_at, self.registered_at) = (Some(now), Some(now));
        self.is_lost = false;
    }

    /// Notes that the agent did not say whose entry it has.
    pub(super) fn on_unreadable(&mut self, now: Moment) {
        self.read_at = Some(now);
    }

    /// Notes whose entry the agent has. `may_register`: this process is ready.
    pub(super) fn on_read(
        &mut self,
        owner: Owner,
        entry: &Registration,
        may_register: bool,
        now: Moment,
    ) -> Next {
        self.read_at = Some(now);
        let Owner::Other(address) = owner else {
            (self.is_lost, self.conflict) = (false, None);
            return Next::Report;
        };
        let id = &entry.id;
        self.conflict = Some(format!(
            "another process has registered {id} ({address}); give each its own `id` in `register`"
        ));
        // Until a registration is accepted: one that fails is not repeated before the next reading.
        self.is_lost = true;
        let is_time = self.registered_at.is_none_or(|at| now.since(at) >= EVERY);
        if may_register && is_time { Next::Register } else { Next::Leave }
    }

    /// Returns whether another process has the entry.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns what to tell people, if another process has had the entry since it was read last.
    pub(super) fn conflict(&self) -> Option<&str> {
        self.conflict.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    fn entry() -> Registration {
        Registration {
            id: "weir-edge-80".into(),
            service: "edge".into(),
            tags: Vec::new(),
            address: None,
            port: 80,
        }
    }

    fn other() -> Owner {
        Owner::Other("10.0.0.9:80".to_owned())
    }

    #[test]
    fn an_entry_is_read_once_a_minute_and_in_doubt() {
        let mut ownership = Ownership::default();
        ownership.on_registered(at(100));
        assert!(!ownership.is_due(at(159)) && ownership.is_due(at(160)));
        assert_eq!(ownership.on_read(Owner::Own, &entry(), true, at(160)), Next::Report);
        assert!(!ownership.is_due(at(170)));
        ownership.doubt();
        assert!(ownership.is_due(at(170)));
    }

    #[test]
    fn an_entry_of_another_process_is_replaced_once_a_minute_at_most() {
        let mut ownership = Ownership::default();
        ownership.on_registered(at(100));
        assert_eq!(ownership.on_read(other(), &entry(), true, at(130)), Next::Leave);
        assert!(ownership.is_lost() && !ownership.is_due(at(180)));
        let conflict = "another process has registered weir-edge-80 (10.0.0.9:80); give each its own `id` in `register`";
        assert_eq!(ownership.conflict(), Some(conflict));
        assert_eq!(ownership.on_read(other(), &entry(), true, at(190)), Next::Register);
        ownership.on_registered(at(190));
        assert!(!ownership.is_lost());
        assert_eq!(ownership.conflict(), Some(conflict), "until the entry was read again");
        assert_eq!(ownership.on_read(Owner::Own, &entry(), true, at(250)), Next::Report);
        assert_eq!(ownership.conflict(), None);
    }

    #[test]
    fn a_process_that_stops_leaves_the_entry_of_another() {
        let mut ownership = Ownership::default();
        ownership.on_registered(at(0));
        assert_eq!(ownership.on_read(other(), &entry(), false, at(1_000)), Next::Leave);
    }
}

//! Settings that a process cannot change after its start.

use model::{Admin, Snapshot};

use crate::sockets;

/// These settings, as the process was started with them.
pub(crate) struct FixedSettings {
    workers: usize,
    run_as: Option<(String, Option<String>)>,
    admin: Option<Admin>,
}

impl FixedSettings {
    /// Returns those of a configuration.
    pub(crate) fn of(snapshot: &Snapshot) -> FixedSettings {
        FixedSettings {
            workers: sockets::workers(snapshot),
            run_as: snapshot.run_as.clone(),
            admin: snapshot.admin.clone(),
        }
    }

    /// Returns those in `snapshot` that differ, and thus apply only in a new process.
    pub(crate) fn waiting(&self, snapshot: &Snapshot) -> Vec<String> {
        let FixedSettings { workers, run_as, admin } = FixedSettings::of(snapshot);
        let mut waiting = Vec::new();
        if workers != self.workers {
            waiting.push(format!("workers: {} → {workers}", self.workers));
        }
        if run_as != self.run_as {
            waiting.push("user and group".to_owned());
        }
        if admin != self.admin {
            waiting.push("admin".to_owned());
        }
        waiting
    }
}

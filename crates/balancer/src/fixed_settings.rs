//! Settings that a process cannot change after its start.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::{Admin, Snapshot};

use crate::sockets;

/// These settings, as the process was started with them.
pub(crate) struct FixedSettings {
    workers: usize,
    run_as: Option<(String, Option<String>)>,
    admin: Option<Admin>,
    metrics: Option<(SocketAddr, Option<PathBuf>, bool)>,
}

impl FixedSettings {
    /// Returns those of a configuration.
    pub(crate) fn of(snapshot: &Snapshot) -> FixedSettings {
        FixedSettings {
            workers: sockets::workers(snapshot),
            run_as: snapshot.run_as.clone(),
            admin: snapshot.admin.clone(),
            metrics: snapshot.metrics.listener.as_ref().map(|listener| {
                (listener.address, listener.token_file.clone(), listener.tls.is_some())
            }),
        }
    }

    /// Returns those in `snapshot` that differ, and thus apply only in a new process.
    pub(crate) fn waiting(&self, snapshot: &Snapshot) -> Vec<String> {
        let FixedSettings { workers, run_as, admin, metrics } = FixedSettings::of(snapshot);
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
        if metrics != self.metrics {
            waiting.push("metrics.address, metrics.token_file and whether it uses TLS".to_owned());
        }
        waiting
    }
}

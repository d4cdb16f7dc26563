//! Settings that a process cannot change after its start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use model::{Admin, Fleet, Kubernetes, Snapshot};

use crate::sockets;

/// These settings, as the process was started with them.
pub(crate) struct FixedSettings {
    workers: usize,
    run_as: Option<(String, Option<String>)>,
    admin: Option<Admin>,
    metrics: Option<(SocketAddr, Option<PathBuf>, bool)>,
    /// The listeners for KEDA and for external metrics: where, and whether with TLS.
    autoscalers: [Option<(SocketAddr, bool)>; 2],
    fleet: Option<FleetIdentity>,
    kubernetes: Option<Arc<Kubernetes>>,
}

/// What a member of a fleet is to the others: `address`, `advertise`, `name` and `host` of `[fleet]`, and `zone`.
type FleetIdentity = (SocketAddr, SocketAddr, Option<Arc<str>>, Option<Arc<str>>, Option<Arc<str>>);

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
            autoscalers: [&snapshot.keda, &snapshot.external_metrics].map(|listener| {
                listener.as_ref().map(|listener| (listener.address, listener.tls.is_some()))
            }),
            fleet: snapshot.fleet.as_deref().map(|fleet| {
                let Fleet { address, advertise, name, host, .. } = fleet;
                (*address, *advertise, name.clone(), host.clone(), snapshot.zone.clone())
            }),
            kubernetes: snapshot.kubernetes.clone(),
        }
    }

    /// Returns those in `snapshot` that differ, and thus apply only in a new process.
    pub(crate) fn waiting(&self, snapshot: &Snapshot) -> Vec<String> {
        let FixedSettings { workers, run_as, admin, metrics, autoscalers, fleet, kubernetes } =
            FixedSettings::of(snapshot);
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
        let [keda, external_metrics] = autoscalers;
        let [keda_before, external_metrics_before] = self.autoscalers;
        if keda != keda_before {
            waiting.push("keda.address, and whether it uses TLS".to_owned());
        }
        if external_metrics != external_metrics_before {
            waiting.push("kubernetes.external_metrics.address".to_owned());
        }
        if fleet != self.fleet {
            let what = "fleet.address, fleet.advertise, fleet.name, fleet.host, the zone in the fleet, and whether there is [fleet]";
            waiting.push(what.to_owned());
        }
        if kubernetes != self.kubernetes {
            waiting.push("kubernetes".to_owned());
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_in_a_fleet_waits_for_a_new_process_and_the_rest_does_not() {
        let with = |fleet: &str| {
            let text = format!(
                "listener = [{{ address = \"0.0.0.0:8080\" }}]\nroute = [{{ deny = 404 }}]\n{fleet}"
            );
            match config::check(&text, "test.toml", &()) {
                Ok(checked) => checked.snapshot,
                Err(report) => panic!("{}", report.render(false)),
            }
        };
        let key = |of: &str| format!("{of} key of at least thirty-two bytes");
        let member = |name: &str, keys: &str, more: &str| {
            let head = "[fleet]\naddress = \"10.0.0.5:7946\"\n";
            with(&format!("{head}name = \"{name}\"\nkeys = [\"{keys}\"]\n{more}"))
        };
        let (one, old, new) = (member("a", &key("old"), "members = []"), key("old"), key("new"));
        let started = FixedSettings::of(&one);
        let more = "members = [\"10.0.0.6:7946\"]\nprobers = 3";
        assert!(started.waiting(&member("a", &new, more)).is_empty());
        let what = "fleet.address, fleet.advertise, fleet.name, fleet.host, the zone in the fleet, and whether there is [fleet]";
        assert_eq!(started.waiting(&member("b", &old, "members = []")), [what]);
        assert_eq!(started.waiting(&with("")), [what]);
    }
}

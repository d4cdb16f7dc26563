//! The rules on traffic: every second, on what the history has of the last seconds.

mod clients;
mod deploys;
mod facts;
mod spans;
mod watched;

use std::sync::Arc;

use admin_api::status::Kubernetes;
use decide::Published;
use diagnose::facts::{Facts, Known};
use diagnose::rules::diagnose_traffic;
use history::History;

use crate::findings::{Area, Findings};
use clients::Clients;
use deploys::Deploys;
use watched::Watched;

/// What the rules need beside the history, from one second to the next.
pub(crate) struct TrafficRules {
    registry: Arc<decide::Registry>,
    findings: Findings,
    counters: Arc<observe::Registry>,
    watched: Watched,
    deploys: Deploys,
    clients: Clients,
    control: Arc<control::Status>,
    kubernetes: Option<admin::Source<Kubernetes>>,
}

impl TrafficRules {
    pub(crate) fn new(
        registry: Arc<decide::Registry>,
        counters: Arc<observe::Registry>,
        findings: Findings,
        control: Arc<control::Status>,
        kubernetes: Option<admin::Source<Kubernetes>>,
    ) -> TrafficRules {
        TrafficRules {
            registry,
            findings,
            counters,
            watched: Watched::default(),
            deploys: Deploys::default(),
            clients: Clients::default(),
            control,
            kubernetes,
        }
    }

    /// Examines the traffic, if the doctor runs. `history` is locked only while the facts are taken.
    pub(crate) fn look(&mut self, history: &crate::traffic_history::Shared) {
        let published = self.registry.load_full();
        if published.snapshot.doctor.interval.is_none() {
            return self.findings.set_interval(None);
        }
        self.clients.update(os::clock::now(), &self.counters);
        let traffic = {
            let history = crate::traffic_history::lock(history);
            self.traffic(&history, &published)
        };
        let facts = Facts { traffic, ..Facts::default() };
        self.findings.add(Area::Traffic, diagnose_traffic(&facts));
    }

    fn traffic(
        &mut self,
        history: &History,
        published: &Published,
    ) -> Known<diagnose::facts::Traffic> {
        if history.second() == 0 {
            return Known::unknown("history_memory_max is 0, so there is no history of traffic");
        }
        self.watched.update(history.second(), published);
        self.deploys.update(history, published);
        let (watched, deploys) = (&self.watched, &self.deploys);
        Known::Is(facts::traffic(
            history,
            published,
            watched,
            deploys,
            &self.clients,
            &self.control,
            self.kubernetes.as_ref().map(|state| state()).as_ref(),
        ))
    }
}

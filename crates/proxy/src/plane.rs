//! A configuration as a worker holds it.

use std::cell::OnceCell;
use std::sync::Arc;

use decide::Published;
use model::{AccessLog, ServiceId, TraceSample};
use observe::{ListenerCounters, ServiceCounters, Shard};
use wire::http1::{Known, RequestHead};

use crate::authentication::Verifier;
use crate::explain::{Explanation, MayExplain};
use crate::identity_names::IdentityNames;
use crate::shared::Shared;
use crate::tcp_sample::Sampling;
use crate::tls::InUse;

/// A configuration as a worker holds it: with this worker's own counters beside the services.
pub(crate) struct Plane {
    pub(crate) published: Arc<Published>,
    /// By service, looked up with the first exchange.
    services: Box<[OnceCell<Arc<ServiceCounters>>]>,
    pub(crate) listeners: Vec<Arc<ListenerCounters>>,
    /// Whether there is an access log.
    pub(crate) logs: bool,
    /// Which exchanges are sampled.
    pub(crate) sampling: Sampling,
    may_explain: Option<MayExplain>,
    /// TLS towards clients and servers.
    pub(crate) tls: InUse,
    /// What authenticates requests, by [`model::AuthenticationId`].
    pub(crate) verifiers: Vec<Arc<Verifier>>,
    /// The fields that tell servers who sent a request, which are not taken from clients.
    pub(crate) identity_names: IdentityNames,
}

impl Plane {
    pub(crate) fn new(published: Arc<Published>, shard: &Shard, shared: &Shared) -> Plane {
        let snapshot = &published.snapshot;
        let (generation, listeners) = (published.generation, snapshot.listeners.iter());
        Plane {
            services: snapshot.services.iter().map(|_| OnceCell::new()).collect(),
            listeners: listeners.map(|l| shard.listener_of(generation, &l.name)).collect(),
            logs: snapshot.log.access != AccessLog::Off,
            sampling: Sampling::new(&snapshot.log),
            may_explain: shared.may_explain(),
            tls: shared.tls.of(snapshot),
            verifiers: shared.authentications.of(snapshot),
            identity_names: IdentityNames::of(snapshot),
            published,
        }
    }

    /// Returns which exchanges become traces; `None`: none.
    pub(crate) fn traces(&self) -> Option<&TraceSample> {
        self.published.snapshot.otlp.as_ref()?.traces.as_ref()
    }

    /// Returns this worker's counters of a service; `shard` is the worker's.
    pub(crate) fn service_counters(&self, id: ServiceId, shard: &Shard) -> &Arc<ServiceCounters> {
        self.services[id.0 as usize].get_or_init(|| {
            let name = &self.published.snapshot.service(id).name;
            shard.service_of(self.published.generation, name)
        })
    }

    /// Starts the decision record of a request with this ID, if it is sampled or presents the
    /// token; also returns whether it presents it.
    pub(crate) fn explanation(
        &self,
        id: u128,
        request: Option<&RequestHead>,
    ) -> (Option<Box<Explanation>>, bool) {
        if !self.logs {
            return (None, false);
        }
        let asks = || {
            let presented = request?.known(Known::WeirExplain)?;
            self.may_explain.as_ref().filter(|may_explain| may_explain(presented))
        };
        let is_asked = asks().is_some();
        let is_recorded = is_asked || self.sampling.records_decisions(id);
        (is_recorded.then(Box::default), is_asked)
    }
}

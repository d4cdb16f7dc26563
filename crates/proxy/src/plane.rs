//! A configuration as a worker holds it.

use std::sync::Arc;

use decide::Published;
use model::{AccessLog, LogFormat};
use observe::{ListenerCounters, ServiceCounters, Shard};
use wire::http1::{Known, RequestHead};

use crate::explain::{Explanation, MayExplain};
use crate::shared::Shared;
use crate::tcp_sample::Sampling;
use crate::tls::InUse;

/// A configuration as a worker holds it: with this worker's own counters beside the services.
pub(crate) struct Plane {
    pub(crate) published: Arc<Published>,
    pub(crate) services: Vec<Arc<ServiceCounters>>,
    pub(crate) listeners: Vec<Arc<ListenerCounters>>,
    pub(crate) access_format: Option<LogFormat>,
    /// Which exchanges are sampled.
    pub(crate) sampling: Sampling,
    may_explain: Option<MayExplain>,
    /// TLS towards clients and servers.
    pub(crate) tls: InUse,
}

impl Plane {
    pub(crate) fn new(published: Arc<Published>, shard: &Shard, shared: &Shared) -> Plane {
        let snapshot = &published.snapshot;
        let (generation, services) = (published.generation, snapshot.services.iter());
        let listeners = snapshot.listeners.iter();
        let access_format = (snapshot.log.access != AccessLog::Off).then_some(snapshot.log.format);
        Plane {
            services: services.map(|s| shard.service_of(generation, &s.name)).collect(),
            listeners: listeners.map(|l| shard.listener_of(generation, &l.name)).collect(),
            access_format,
            sampling: Sampling::new(&snapshot.log),
            may_explain: shared.may_explain(),
            tls: shared.tls.of(snapshot),
            published,
        }
    }

    /// Starts the decision record of a request with this ID, if it is sampled or presents the
    /// token.
    pub(crate) fn explanation(
        &self,
        id: u128,
        request: Option<&RequestHead>,
    ) -> Option<Box<Explanation>> {
        self.access_format?;
        let asks = || {
            let presented = request?.known(Known::WeirExplain)?;
            self.may_explain.as_ref().filter(|may_explain| may_explain(presented))
        };
        let is_recorded = self.sampling.records_decisions(id) || asks().is_some();
        is_recorded.then(Box::default)
    }
}

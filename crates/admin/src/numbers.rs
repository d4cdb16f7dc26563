//! How many servers services should have, for the listeners of autoscalers: read once a second for all clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admin_api::services::WantedServers;
use autoscaler::{KubernetesPort, Number, Scaled};
use decide::LiveService;
use model::ServerSource;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::Exposed;

/// How often the numbers are read.
const EVERY: Duration = Duration::from_secs(1);

/// The services with `scaling`.
pub(crate) type Numbers = Arc<Vec<Scaled>>;

/// Reads the numbers into a channel until it is dropped.
pub(crate) async fn follow(exposed: Exposed, numbers: watch::Sender<Numbers>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !numbers.is_closed() {
        ticks.tick().await;
        let now = read(&exposed);
        numbers.send_if_modified(|before| {
            let is_changed = **before != now;
            if is_changed {
                *before = Arc::new(now);
            }
            is_changed
        });
    }
}

/// Reads the numbers.
pub(crate) fn read(exposed: &Exposed) -> Vec<Scaled> {
    let wanted = exposed.sources.wanted_servers.as_ref().map(|all| all()).unwrap_or_default();
    let published = exposed.registry.load_full();
    let scaled = published.services.iter().filter(|service| service.spec().scaling.is_some());
    scaled.map(|service| one(service, &wanted)).collect()
}

fn one(service: &LiveService, wanted: &HashMap<Arc<str>, WantedServers>) -> Scaled {
    let name = service.name();
    let spec = service.spec();
    let port = match spec.discover.as_deref().map(|discover| &discover.source) {
        Some(ServerSource::Kubernetes { namespace, service, port: _ }) => {
            KubernetesPort::of(name, namespace, service)
        }
        _ => None,
    };
    let number = match wanted.get(name).map(|wanted| wanted.number) {
        Some(Some(number)) => Number::Known(number),
        Some(None) => Number::Unlimited,
        None => Number::Unmeasured,
    };
    Scaled { name: Arc::clone(name), port, number }
}

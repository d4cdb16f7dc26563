//! Time-driven readmission of servers: the end of an ejection, and the steps of a slow start.

use std::sync::Arc;
use std::time::Duration;

use decide::{Endpoint, LiveService};
use model::{Health, Moment};

/// How often [`tick`] is called: an ejection ends at most this late, and a slow start grows in
/// steps of this length.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// Readmits servers whose ejection is over, and refreshes services whose shares have grown
/// meanwhile.
pub(crate) fn tick(services: &[Arc<LiveService>], now: Moment) {
    for service in services {
        let endpoints = service.endpoints();
        let mut look_again = endpoints.refresh_due.is_some_and(|due| due <= now);
        for endpoint in &endpoints.all {
            look_again |= readmit(service, endpoint, now);
        }
        if look_again && let Some(tier) = service.refresh(now) {
            crate::log_tier(&tier);
        }
    }
}

fn readmit(service: &LiveService, endpoint: &Endpoint, now: Moment) -> bool {
    let over = endpoint.state.ejected_until().is_some_and(|until| until <= now);
    if !over || !endpoint.state.readmit(now) {
        return false;
    }
    let (service, server) = (service.name(), &endpoint.row.name);
    let (address, to) = (endpoint.row.address, endpoint.state.health());
    let to = if to == Health::Down { "down" } else { "ready" };
    tracing::info!(%service, %server, %address, from = "ejected", to, why = "passive",
        evidence = "its time is over", "server is no longer ejected");
    true
}

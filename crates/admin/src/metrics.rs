//! `/metrics`: what workers counted, and what simply is so at this moment. Names and formats are
//! `observe`'s; here the moment's values are gathered.

use decide::{EndpointView, Published, ServiceView};
use model::{Administrative, Health, Moment};
use observe::exposition::{Format, Gauges, ListenerGauges, ServerGauges, ServiceGauges, write};

use crate::{Options, process};

/// Everything, in `format`.
pub(crate) fn exposition(
    options: &Options,
    published: &Published,
    format: Format,
    now: Moment,
) -> String {
    let views: Vec<ServiceView> =
        published.services.iter().map(|service| service.view(now)).collect();
    let gauges = Gauges {
        version: options.version,
        generation: published.generation,
        workers: options.workers as u64,
        process: process::gauges(),
        listeners: published.snapshot.listeners.iter().map(listener).collect(),
        services: views.iter().map(service).collect(),
        servers: views.iter().flat_map(servers).collect(),
        probes: (options.probes)(),
    };
    let mut text = String::new();
    write(&options.counters.totals(), &gauges, format, &mut text);
    text
}

fn listener(listener: &model::Listener) -> ListenerGauges<'_> {
    ListenerGauges { name: &listener.name, connections_max: u64::from(listener.connections_max) }
}

fn service(service: &ServiceView) -> ServiceGauges<'_> {
    ServiceGauges {
        name: &service.name,
        queue_length: u64::from(service.queue_length),
        queue_length_max: u64::from(service.queue_length_max),
    }
}

fn servers(service: &ServiceView) -> impl Iterator<Item = ServerGauges<'_>> {
    service.endpoints.iter().map(|endpoint| server(&service.name, endpoint))
}

fn server<'a>(service: &'a str, endpoint: &'a EndpointView) -> ServerGauges<'a> {
    ServerGauges {
        service,
        name: &endpoint.name,
        address: endpoint.address,
        zone: endpoint.zone.as_deref().unwrap_or_default(),
        up: endpoint.health != Health::Down,
        ejected: endpoint.ejected_for.is_some(),
        ready: ready(endpoint),
        in_flight: endpoint.in_flight,
        in_flight_max: endpoint.in_flight_max,
        weight: endpoint.weight,
        requests: endpoint.requests,
        failures: endpoint.failures,
        idle_connections: 0,
    }
}

/// Whether it could take work, as `model::ServerState::is_ready` says it; whether it gets any is
/// a matter of its zone too.
fn ready(endpoint: &EndpointView) -> bool {
    endpoint.health != Health::Down
        && endpoint.ejected_for.is_none()
        && endpoint.administrative == Administrative::Ready
}

//! What is counted, in the order of the history's columns (`history::Kind`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use control::Probed;
use decide::{Endpoint, LiveService, Published};
use history::{History, Key, Mean, Reading};
use model::{Address, Cause, Ending, ServerState};
use observe::registry::ExchangeTotals;
use observe::{ListenerTotals, ServiceTotals, Totals};

/// Adds the readings of the second that has begun.
pub(super) fn add(
    history: &mut History,
    published: &Published,
    totals: &Totals,
    probed: &BTreeMap<Address, Probed>,
) {
    add_process(history, totals);
    for (name, listener) in &totals.listeners {
        add_listener(history, name, listener);
    }
    for service in &published.services {
        let (endpoints, has_check) = (service.endpoints(), service.spec().check.is_some());
        if let Some(totals) = totals.services.get(service.name()) {
            add_service(history, service, &endpoints.all, totals);
        }
        for endpoint in &endpoints.all {
            // Another service's check is not this one's.
            let probed = probed.get(&endpoint.row.address).filter(|_| has_check);
            let probed = probed.copied().unwrap_or_default();
            add_server(history, service.name(), endpoint, probed);
        }
    }
}

fn add_process(history: &mut History, totals: &Totals) {
    let Some((cpu, resident_bytes)) = admin::process::cpu_and_resident_bytes() else { return };
    let open = totals.listeners.values().map(ListenerTotals::connections_open).sum();
    let reading = Reading {
        counts: &[u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX)],
        levels: &[resident_bytes, open],
        ..Reading::default()
    };
    history.add(Key::Process, &reading);
}

/// Returns the number of all exchanges, and of those that failed, were refused, and failed because of
/// the client.
fn endings(exchanges: &ExchangeTotals) -> [u64; 4] {
    [
        exchanges.sum(),
        exchanges.of_ending(Ending::Failed),
        exchanges.of_ending(Ending::Refused),
        exchanges.of_ending(Ending::ClientFault),
    ]
}

fn causes(exchanges: &ExchangeTotals) -> Vec<u64> {
    Cause::ALL.iter().map(|&cause| exchanges.of_cause(cause)).collect()
}

fn add_listener(history: &mut History, name: &Arc<str>, listener: &ListenerTotals) {
    let [requests, failed, refused, client_faults] = endings(&listener.exchanges);
    let reading = Reading {
        counts: &[
            requests,
            failed,
            refused,
            client_faults,
            listener.connections_accepted,
            listener.accept_pauses,
            listener.tls_handshakes,
        ],
        levels: &[listener.connections_open()],
        causes: &causes(&listener.exchanges),
        ..Reading::default()
    };
    history.add(Key::Listener(Arc::clone(name)), &reading);
}

fn add_service(
    history: &mut History,
    service: &LiveService,
    endpoints: &[Arc<Endpoint>],
    totals: &ServiceTotals,
) {
    let [requests, failed, refused, client_faults] = endings(&totals.exchanges);
    let in_flight = endpoints.iter().map(|one| u64::from(one.slots.in_flight())).sum();
    let ready = endpoints.iter().filter(|one| one.is_ready()).count() as u64;
    let reading = Reading {
        counts: &[
            requests,
            failed,
            refused,
            client_faults,
            totals.exchanges.of_class(4),
            totals.exchanges.of_class(5),
            totals.attempts,
            totals.retries,
            totals.queued,
            totals.request_body_bytes,
            totals.response_body_bytes,
            totals.connections_opened,
        ],
        levels: &[in_flight, service.queue_length().into(), ready, endpoints.len() as u64],
        means: &[
            Mean::of(&totals.queue),
            Mean::of(&totals.connect),
            Mean::of(&totals.client_round_trip),
        ],
        durations: &[totals.total.clone(), totals.first_byte.clone()],
        causes: &causes(&totals.exchanges),
        ..Reading::default()
    };
    history.add(Key::Service(Arc::clone(service.name())), &reading);
}

fn add_server(history: &mut History, service: &Arc<str>, endpoint: &Endpoint, probed: Probed) {
    let state: &ServerState = &endpoint.state;
    let (connects, connect_us) = state.latency.connect.count_and_sum_us();
    let path = state.tcp.totals();
    let round_trip_us = u64::try_from(path.round_trip_sum.as_micros()).unwrap_or(u64::MAX);
    let failed_by = state.failed_by.counted();
    let mut causes = vec![0; if failed_by.is_empty() { 0 } else { Cause::ALL.len() }];
    for (cause, count) in &failed_by {
        causes[*cause as usize] = *count;
    }
    let answered_5xx = state.answered_5xx.load(Relaxed);
    let reading = Reading {
        counts: &[state.requests.load(Relaxed), causes.iter().sum::<u64>() + answered_5xx],
        further_counts: [
            answered_5xx,
            state.bound.load(Relaxed),
            probed.ended.saturating_sub(probed.failed),
            probed.failed,
        ],
        levels: &[endpoint.slots.in_flight().into()],
        means: &[
            Mean { count: connects, sum_us: connect_us },
            Mean { count: path.samples(), sum_us: round_trip_us },
        ],
        durations: &[state.latency.first_byte.totals()],
        causes: &causes,
    };
    history.add(Key::Server(Arc::clone(service), endpoint.row.address), &reading);
}

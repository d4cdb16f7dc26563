//! The services, with what they did in the last seconds.

use std::collections::HashMap;

use admin_api::services::Service;
use admin_api::traffic::{Ended, ServiceTraffic, ServiceWindow};
use diagnose::finding::Severity;

use super::{ms, of, rate, share, short, text};
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Sort, Width};
use crate::top::troubles::Trouble;

pub(super) fn listing(picture: &Picture, troubles: &[Trouble]) -> Listing {
    let columns = vec![
        Column::text("SERVICE", Width::Grow(12, 40)).sorts(Sort::Name),
        Column::number("REQ/S", 7).sorts(Sort::Rate),
        Column::number("P50 ms", 6),
        Column::number("P90 ms", 6).from(120),
        Column::number("P99 ms", 6).sorts(Sort::Latency),
        Column::number("FAILED", 7).sorts(Sort::Failed),
        Column::number("REFUSED", 7).from(100),
        Column::number("RETRIED", 7).from(130),
        Column::text("SERVERS", Width::Fixed(11)).from(110),
        Column::number("WANTED", 6).from(150),
        Column::number("QUEUED", 6).from(140),
        Column::text("IN FLIGHT", Width::Fixed(14)).sorts(Sort::InFlight),
        Column::text("LAST 60 S", Width::Rest(10, 60)),
    ];
    let traffic = picture.traffic.known().into_iter().flat_map(|traffic| &traffic.services);
    let traffic: HashMap<&str, &ServiceTraffic> =
        traffic.map(|traffic| (traffic.name.as_str(), traffic)).collect();
    // The worst comes first.
    let mut worst: HashMap<&str, Severity> = HashMap::new();
    for trouble in troubles {
        if let Some(service) = &trouble.service {
            worst.entry(service).or_insert(trouble.severity);
        }
    }
    let row = |service: &Service| {
        let window = traffic.get(&*service.name).and_then(|traffic| traffic.windows.first());
        row(picture, service, window, worst.get(&*service.name).copied())
    };
    let rows = picture.services.iter().map(row).collect();
    Listing::new(columns, rows, "No service is configured.")
}

fn row(
    picture: &Picture,
    service: &Service,
    window: Option<&ServiceWindow>,
    worst: Option<Severity>,
) -> Row {
    let known = window.is_some();
    let window = window.copied().unwrap_or_default();
    let ServiceWindow { ended, total, .. } = window;
    let Ended { seconds, requests, failed, refused, .. } = ended;
    // An address that several services share counts in each of them.
    let in_flight = service.servers.iter().map(|server| u64::from(server.in_flight)).sum();
    let limit: Option<u64> =
        service.servers.iter().map(|server| server.in_flight_max.map(u64::from)).sum();
    let all = service.servers.len() + service.unresolved.len();
    // Without a history there are no figures, which is not the same as none.
    let figure = |cell: Cell| if known { cell } else { text("") };
    let queued = u64::from(service.queue.length);
    let name = if picture.maintenance(&service.name).is_some() {
        format!("{} (maintenance)", service.name)
    } else {
        service.name.clone()
    };
    let cells = vec![
        text(name),
        figure(text(rate(requests, seconds))),
        text(ms(total.p50_ms)),
        text(ms(total.p90_ms)),
        text(ms(total.p99_ms)),
        figure(share(failed, requests)),
        figure(share(refused, requests)),
        figure(text(crate::render::traffic::share(window.retries, requests))),
        text(of(service.eligible as u64, Some(all as u64), 3)),
        text(
            service
                .wanted
                .as_ref()
                .and_then(|it| it.number)
                .map_or(String::new(), |n| n.to_string()),
        ),
        if queued > 0 { Cell::Trouble(short(queued)) } else { text("0") },
        text(of(in_flight, limit.filter(|_| !service.servers.is_empty()), 5)),
        Cell::Spark(service.name.clone()),
    ];
    let rank = Rank {
        trouble: worst.map_or(0, |severity| severity as u64 + 1),
        rate: requests as f64 / seconds.max(1) as f64,
        p99: total.p99_ms.unwrap_or(0.0),
        failed: failed as f64 / requests.max(1) as f64,
        in_flight,
    };
    Row { id: Id::Service(service.name.clone()), is_trouble: worst.is_some(), cells, rank }
}

//! The servers of a service, or of all services.

use std::collections::HashMap;

use admin_api::services::{Server, Service, UnresolvedServer};
use admin_api::traffic::ServerWindow;

use super::{ms, of, rate, share, text};
use crate::top::condition::{Condition, condition};
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Sort, Width};

pub(super) fn listing(picture: &Picture, of: Option<&str>) -> Listing {
    let is_any = |service: &&Service| of.is_none_or(|of| service.name == of);
    let services: Vec<&Service> = picture.services.iter().filter(is_any).collect();
    let shown = Shown { is_named: of.is_none(), prefix: zone_prefix(&picture.services) };
    let rows = services.iter().flat_map(|service| rows(picture, service, &shown)).collect();
    let empty = "No server is known.";
    Listing::new(columns(of), rows, empty)
}

/// With the service's name in every row, or as the heading.
fn columns(of: Option<&str>) -> Vec<Column> {
    let head = of.map_or_else(|| "SERVER".to_owned(), str::to_owned);
    let mut columns = vec![Column::text(head, Width::Grow(15, 40)).sorts(Sort::Name)];
    if of.is_none() {
        columns.push(Column::text("SERVICE", Width::Grow(10, 30)));
    }
    columns.extend([
        // Without what all zones begin with, or in full.
        Column::text("ZONE", Width::Fixed(5)).from(if of.is_none() { 100 } else { 80 }).below(120),
        Column::text("ZONE", Width::Grow(5, 14)).from(120),
        Column::text("STATE", Width::Fixed(8)),
        Column::number("REQ/S", 6).sorts(Sort::Rate),
        Column::number("P50 ms", 6),
        Column::number("P99 ms", 6).sorts(Sort::Latency),
        Column::number("FAILED", 7).sorts(Sort::Failed).from(100),
        Column::number("WEIGHT", 6).from(120),
        Column::number("CONNECT ms", 10).from(140),
        Column::number("RTT ms", 6).from(140),
        Column::text("IN FLIGHT", Width::Fixed(12)).sorts(Sort::InFlight),
        Column::text("", Width::Rest(5, 24)),
    ]);
    columns
}

/// What all rows have in common.
struct Shown<'a> {
    /// The service has a cell.
    is_named: bool,
    /// What the names of all zones begin with.
    prefix: &'a str,
}

/// Returns what the names of all zones begin with, up to a hyphen or dot; empty if there is only one zone.
fn zone_prefix(services: &[Service]) -> &str {
    let zones = services.iter().flat_map(|service| &service.servers);
    let mut zones = zones.filter_map(|server| server.zone.as_deref());
    let Some(first) = zones.next() else { return "" };
    let mut prefix = first;
    for zone in zones {
        let same = prefix.chars().zip(zone.chars()).take_while(|(a, b)| a == b);
        prefix = &prefix[..same.map(|(char, _)| char.len_utf8()).sum()];
    }
    let end = if prefix == first { None } else { prefix.rfind(['-', '.', '/']) };
    end.map_or("", |end| &prefix[..=end])
}

fn rows(picture: &Picture, service: &Service, shown: &Shown<'_>) -> Vec<Row> {
    let traffic = picture.traffic_of(&service.name);
    let servers = traffic.into_iter().flat_map(|traffic| &traffic.servers);
    let known: HashMap<&str, &ServerWindow> =
        servers.filter_map(|server| Some((&*server.address, server.windows.first()?))).collect();
    let resolved = service.servers.iter().map(|server| {
        let condition = condition(server, picture.finding_about(&service.name, &server.address));
        row(service, server, known.get(&*server.address).copied(), condition, shown)
    });
    let unresolved = service.unresolved.iter().map(|server| unresolved_row(service, server, shown));
    resolved.chain(unresolved).collect()
}

fn row(
    service: &Service,
    server: &Server,
    window: Option<&ServerWindow>,
    Condition { word, trouble }: Condition,
    &Shown { is_named, prefix }: &Shown<'_>,
) -> Row {
    let zone = server.zone.as_deref().unwrap_or_default();
    let known = window.is_some();
    let ServerWindow {
        seconds, requests, failed, first_byte, connect_mean_ms, round_trip_ms, ..
    } = window.copied().unwrap_or_default();
    let figure = |cell: Cell| if known { cell } else { text("") };
    let in_flight = u64::from(server.in_flight);
    let weight = if server.weight == server.weight_configured {
        text(server.weight.to_string())
    } else {
        // Not as in the file.
        text(format!("{}*", server.weight))
    };
    let mut cells = vec![text(server.address.clone())];
    if is_named {
        cells.push(text(service.name.clone()));
    }
    cells.extend([
        text(zone.strip_prefix(prefix).unwrap_or(zone)),
        text(zone),
        if trouble > 0 { Cell::Trouble(word.to_owned()) } else { text(word) },
        figure(text(rate(requests, seconds))),
        text(ms(first_byte.p50_ms)),
        text(ms(first_byte.p99_ms)),
        figure(share(failed, requests)),
        weight,
        text(ms(connect_mean_ms)),
        text(ms(round_trip_ms)),
        text(of(in_flight, server.in_flight_max.map(u64::from), 4)),
        Cell::Bar { part: server.in_flight, of: server.in_flight_max },
    ]);
    let rank = Rank {
        trouble: u64::from(trouble),
        rate: requests as f64 / seconds.max(1) as f64,
        p99: first_byte.p99_ms.unwrap_or(0.0),
        failed: failed as f64 / requests.max(1) as f64,
        in_flight,
    };
    let (service, address) = (service.name.clone(), server.address.clone());
    // A full server is busy, which is no fault.
    Row { id: Id::Server { service, address }, is_trouble: trouble > 1, cells, rank }
}

/// A server whose name has no address.
fn unresolved_row(
    service: &Service,
    server: &UnresolvedServer,
    &Shown { is_named, prefix }: &Shown<'_>,
) -> Row {
    let mut cells = vec![text(server.name.clone())];
    if is_named {
        cells.push(text(service.name.clone()));
    }
    let zone = server.zone.as_deref().unwrap_or_default();
    cells.extend([text(zone.strip_prefix(prefix).unwrap_or(zone)), text(zone)]);
    cells.push(Cell::Trouble("no addr.".to_owned()));
    let (service, address) = (service.name.clone(), server.name.clone());
    let rank = Rank { trouble: 3, ..Rank::default() };
    Row { id: Id::Server { service, address }, is_trouble: true, cells, rank }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_shown_without_what_all_begin_with() {
        let prefix = |zones: &[&str]| {
            let server =
                |zone: &&str| Server { zone: Some((*zone).to_owned()), ..Server::default() };
            let servers = zones.iter().map(server).collect();
            zone_prefix(&[Service { servers, ..Service::default() }]).to_owned()
        };
        assert_eq!(prefix(&["eu-west-1a", "eu-west-1b", "eu-west-1a"]), "eu-west-");
        assert_eq!(prefix(&["eu-west-1a", "us-east-1a"]), "");
        assert_eq!(prefix(&["a", "a"]), "");
        assert_eq!(prefix(&["zone-é", "zone-ê"]), "zone-");
        assert_eq!(prefix(&[]), "");
    }
}

//! The clients of the requests in flight.

use std::net::SocketAddr;

use diagnose::kinds::grouped;
use diagnose::words::list;

use super::{age, empty, left_out, short, text};
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Width};

/// Services of a client that are named.
const NAMED_MAX: usize = 3;

/// Those with the most requests first.
pub(super) fn listing(picture: &Picture) -> Listing {
    let columns = vec![
        Column::text("CLIENT", Width::Fixed(20)).below(100),
        Column::text("CLIENT", Width::Fixed(39)).from(100),
        Column::number("IN FLIGHT", 9),
        Column::number("OLDEST", 8),
        Column::number("WAITING", 7),
        Column::text(format!("SERVICES{}", left_out(picture)), Width::Prose(30, 80)),
    ];
    let requests = picture.requests.known().into_iter().flat_map(|requests| &requests.requests);
    let mut clients = grouped(requests.map(|request| (client(&request.client), request)));
    // Stable: among equals, the one with the oldest request first.
    clients.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.len()));
    let rows = clients.into_iter().map(|(client, requests)| {
        let oldest = requests.iter().map(|request| request.age_ms).fold(0.0, f64::max);
        let queued = requests.iter().filter(|request| request.stage.as_str() == "queue").count();
        let services = grouped(requests.iter().map(|request| (request.service.clone(), ())));
        let named: Vec<String> = services
            .into_iter()
            .map(|(service, requests)| {
                format!("{} {}", service.unwrap_or_else(|| "none".to_owned()), requests.len())
            })
            .collect();
        let cells = vec![
            text(client.clone()),
            text(client.clone()),
            text(short(requests.len() as u64)),
            text(age(oldest)),
            if queued > 0 { Cell::Trouble(short(queued as u64)) } else { text("0") },
            text(list(&named, NAMED_MAX)),
        ];
        Row { id: Id::Client(client), is_trouble: false, cells, rank: Rank::default() }
    });
    Listing::new(columns, rows.collect(), empty(&picture.requests, "No request is in flight."))
}

/// Returns the address of a client without its port.
pub(super) fn client(address: &str) -> String {
    match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().to_string(),
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_without_its_port() {
        let clients = ["192.0.2.1:40000", "[2001:db8::1]:443", "unix"].map(client);
        assert_eq!(clients, ["192.0.2.1", "2001:db8::1", "unix"]);
    }
}

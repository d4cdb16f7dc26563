//! Requests in flight, the oldest first.

use admin_api::requests::Request;

use super::clients::client;
use super::{age, empty, left_out, text};
use crate::render::status::asked_for;
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Width};

/// A request that has been in flight for this long is marked.
const OLD_MS: f64 = 1_000.0;

/// The requests of one client, or all.
pub(super) fn listing(picture: &Picture, of: Option<&str>) -> Listing {
    let columns = vec![
        Column::number("AGE", 8),
        Column::text("STAGE", Width::Fixed(8)),
        // Fixed, since there are other requests every second.
        Column::text("SERVICE", Width::Fixed(10)).below(100),
        Column::text("SERVICE", Width::Fixed(16)).from(100),
        Column::text("SERVER", Width::Fixed(18)).below(100),
        Column::text("SERVER", Width::Fixed(22)).from(100),
        Column::number("TRIES", 5).from(100),
        Column::text("CLIENT", Width::Fixed(22)).from(110),
        Column::text(format!("REQUEST{}", left_out(picture)), Width::Prose(10, 200)),
    ];
    let requests = picture.requests.known().into_iter().flat_map(|requests| &requests.requests);
    let is_its = |request: &&Request| of.is_none_or(|of| client(&request.client) == of);
    let rows = requests.filter(is_its).map(row).collect();
    Listing::new(columns, rows, empty(&picture.requests, "No request is in flight."))
}

fn row(request: &Request) -> Row {
    // A tunnel may last for hours.
    let is_old = request.age_ms >= OLD_MS && request.stage.as_str() != "tunnel";
    let age = age(request.age_ms);
    let service = request.service.clone().unwrap_or_default();
    let server = request.server.clone().unwrap_or_default();
    let cells = vec![
        if is_old { Cell::Trouble(age) } else { text(age) },
        text(request.stage.as_str()),
        text(service.clone()),
        text(service.clone()),
        text(server.clone()),
        text(server),
        text(request.attempts.to_string()),
        text(request.client.clone()),
        text(asked_for(request)),
    ];
    let id = Id::Request {
        // Without an id, a client with its port has one request at a time, except in HTTP/2.
        id: request.request_id.clone().unwrap_or_else(|| request.client.clone()),
        service,
        server: request.server.clone(),
    };
    Row { id, is_trouble: false, cells, rank: Rank::default() }
}

//! The health checks: what is probed, and with what result.

use diagnose::words::{list, number, thousands};

use super::{empty, ms, share, text};
use crate::top::picture::Picture;
use crate::top::table::{Column, Id, Listing, Rank, Row, Width};

/// Services of a probe that are named.
const NAMED_MAX: usize = 3;

pub(super) fn listing(picture: &Picture) -> Listing {
    let columns = vec![
        Column::text("ENDPOINT", Width::Grow(15, 40)),
        Column::number("PROBES/S", 8),
        Column::number("ENDED", 9),
        Column::number("FAILED", 7),
        Column::number("LAST ms", 7),
        Column::text("PROBES", Width::Prose(20, 120)),
    ];
    let endpoints = picture.checks.known().into_iter().flat_map(|plan| &plan.endpoints);
    let rows = endpoints.map(|endpoint| {
        let results = endpoint.results;
        let probes: Vec<String> = endpoint
            .probes
            .iter()
            .map(|probe| format!("{} for {}", probe.what, list(&probe.services, NAMED_MAX)))
            .collect();
        let cells = vec![
            text(endpoint.endpoint.clone()),
            text(number(endpoint.probes_per_s)),
            text(results.map_or_else(String::new, |results| thousands(results.ended))),
            results.map_or_else(|| text(""), |results| share(results.failed, results.ended)),
            text(ms(results.and_then(|results| results.last_ms))),
            text(probes.join("; ")),
        ];
        let id = Id::Probes(endpoint.endpoint.clone());
        Row { id, is_trouble: false, cells, rank: Rank::default() }
    });
    let empty = empty(&picture.checks, "No health check is configured.");
    Listing::new(columns, rows.collect(), empty)
}

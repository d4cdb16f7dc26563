//! The tables of the views, one file each: from a picture to rows.

mod causes;
mod checks;
mod clients;
mod findings;
mod requests;
mod servers;
mod services;

use std::borrow::Cow;

use admin_api::requests::Requests;
use diagnose::words::{plural, thousands};

use super::judgement::Judgement;
use super::picture::{Part, Picture};
use super::table::{Cell, Listing};
use super::view::Place;
use crate::render::traffic::{elapsed, time};

/// Returns the table of a place; a page has none.
pub(crate) fn listing(picture: &Picture, judgement: &Judgement, place: &Place) -> Listing {
    match place {
        Place::Services => services::listing(picture, &judgement.troubles),
        Place::Servers(service) => servers::listing(picture, service.as_deref()),
        Place::Clients => clients::listing(picture),
        Place::Causes => causes::listing(picture),
        Place::Requests(client) => requests::listing(picture, client.as_deref()),
        Place::Findings => findings::listing(picture, judgement),
        Place::Checks => checks::listing(picture),
        Place::Page(_) => Listing::default(),
    }
}

/// Returns what an empty table says: nothing was found only if there was an answer.
fn empty<T>(part: &Part<T>, nothing: &'static str) -> Cow<'static, str> {
    part.missing().map_or(nothing.into(), |why| format!("Not known: {why}.").into())
}

/// Returns which requests are listed, if there are too many, and whether a worker did not answer.
fn left_out(picture: &Picture) -> String {
    let Some(Requests { in_flight, workers_silent, requests, .. }) = picture.requests.known()
    else {
        return String::new();
    };
    let mut notes = Vec::new();
    if requests.len() < *in_flight {
        let (listed, all) = (thousands(requests.len() as u64), thousands(*in_flight as u64));
        notes.push(format!("oldest {listed} of {all}"));
    }
    if *workers_silent > 0 {
        notes.push(format!("without {}", plural(*workers_silent as u64, "busy worker")));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// How long something has lasted: a duration with two or three digits, or two units.
fn age(ms: f64) -> String {
    if ms < 100_000.0 { time(Some(ms)) } else { elapsed((ms / 1e3) as u64) }
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// A share of failures, as trouble if there are any.
fn share(part: u64, all: u64) -> Cell {
    let text = crate::render::traffic::share(part, all);
    if part == 0 { Cell::Text(text) } else { Cell::Trouble(text) }
}

/// A rate that fits into seven cells.
fn rate(count: u64, seconds: u64) -> String {
    match count / seconds.max(1) {
        0..100_000 => crate::render::traffic::rate(count, seconds),
        rate => short(rate),
    }
}

/// A count that fits into seven cells.
fn short(count: u64) -> String {
    match count {
        0..100_000 => thousands(count),
        100_000..10_000_000 => format!("{} k", thousands(count / 1_000)),
        10_000_000..10_000_000_000 => format!("{} M", thousands(count / 1_000_000)),
        _ => ">9999 M".to_owned(),
    }
}

/// Milliseconds without their unit, which the heading has.
fn ms(ms: Option<f64>) -> String {
    match ms {
        None => String::new(),
        Some(ms) if ms < 1.0 => format!("{ms:.2}"),
        Some(ms) if ms < 10.0 => format!("{ms:.1}"),
        Some(ms) => short(ms.round() as u64),
    }
}

/// `  5 of 64 `: both figures keep their places.
fn of(part: u64, all: Option<u64>, digits: usize) -> String {
    match all {
        Some(all) => format!("{part:>digits$} of {all:<digits$}"),
        None => format!("{part:>digits$}{:1$}", "", digits + 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_into_their_columns() {
        let counts = [0, 99_999, 100_000, 9_999_999, 10_000_000, u64::MAX].map(short);
        assert_eq!(counts, ["0", "99,999", "100 k", "9,999 k", "10 M", ">9999 M"]);
        assert_eq!(rate(u64::MAX, 1), ">9999 M");
        let ages = [12.3, 9_999.0, 12_345.0, 3_600e3, 86_400e3].map(age);
        assert_eq!(ages, ["12 ms", "9,999 ms", "12.3 s", "1h 0m", "1d 0h"]);
        let times = [None, Some(0.126), Some(4.12), Some(1_508.4), Some(123_456.0)].map(ms);
        assert_eq!(times, ["", "0.13", "4.1", "1,508", "123 k"]);
        assert_eq!(
            (of(5, Some(64), 4), of(5, None, 4)),
            ("   5 of 64  ".into(), "   5        ".into())
        );
    }
}

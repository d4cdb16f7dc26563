//! Merges rows of one address, which a service has once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use model::{ListedLimits, ServerTarget};

use crate::{Answer, Readiness, Row};

/// Adds one row for each address to an answer without rows.
pub(crate) fn merge(rows: Vec<Row>, limits: ListedLimits, answer: &mut Answer) {
    match limits {
        ListedLimits::Each => each_server(rows, answer),
        ListedLimits::Added => added(rows, answer),
    }
}

/// Rows of a list without health: the first of an address counts.
#[derive(Default)]
pub(crate) struct Distinct {
    places: HashMap<ServerTarget, usize>,
}

impl Distinct {
    /// Adds a row to `answer`, which has the rows of earlier calls only. An equal server is one server.
    ///
    /// # Errors
    /// The address has been added with different values.
    pub(crate) fn add(&mut self, row: Row, answer: &mut Answer) -> Result<(), String> {
        match self.places.entry(row.server.target.clone()) {
            Entry::Vacant(place) => {
                place.insert(answer.rows.len());
                answer.rows.push(row);
                Ok(())
            }
            Entry::Occupied(place) if answer.rows[*place.get()].server == row.server => Ok(()),
            Entry::Occupied(place) => {
                let why = "listed more than once with different values; the first counts";
                Err(format!("{}: {why}", place.key()))
            }
        }
    }
}

/// Adds one row for each address: the first ready one, or the first.
fn each_server(rows: Vec<Row>, answer: &mut Answer) {
    let mut places: HashMap<ServerTarget, usize> = HashMap::new();
    for row in rows {
        let Some(&place) = places.get(&row.server.target) else {
            places.insert(row.server.target.clone(), answer.rows.len());
            answer.rows.push(row);
            continue;
        };
        let kept = &mut answer.rows[place];
        let other = if row.readiness == Readiness::Ready && kept.readiness != Readiness::Ready {
            std::mem::replace(kept, row)
        } else {
            row
        };
        let why =
            format!("{} is the address of {}, which counts", other.server.target, kept.object);
        answer.refuse(&other.object, &why);
    }
}

/// The workers of one address.
struct Workers {
    /// The first that is ready, or the first.
    row: Row,
    limit_of_ready: u64,
    limit_of_all: u64,
}

/// Adds one row for each address, with the sum of the limits.
fn added(rows: Vec<Row>, answer: &mut Answer) {
    let mut places: HashMap<ServerTarget, usize> = HashMap::new();
    let mut servers: Vec<Workers> = Vec::new();
    for row in rows {
        let limit = u64::from(row.server.in_flight_max.unwrap_or(1));
        let is_ready = row.readiness == Readiness::Ready;
        let of_ready = if is_ready { limit } else { 0 };
        let Some(&place) = places.get(&row.server.target) else {
            places.insert(row.server.target.clone(), servers.len());
            servers.push(Workers { row, limit_of_ready: of_ready, limit_of_all: limit });
            continue;
        };
        let workers = &mut servers[place];
        // At most ROWS_MAX limits of 32 bits.
        workers.limit_of_ready += of_ready;
        workers.limit_of_all += limit;
        if is_ready && workers.row.readiness != Readiness::Ready {
            workers.row = row;
        }
    }
    answer.rows = servers
        .into_iter()
        .map(|Workers { mut row, limit_of_ready, limit_of_all }| {
            let is_ready = row.readiness == Readiness::Ready;
            let limit = if is_ready { limit_of_ready } else { limit_of_all };
            row.server.in_flight_max = Some(u32::try_from(limit).unwrap_or(u32::MAX));
            row
        })
        .collect();
}

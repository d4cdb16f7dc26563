//! Nomad's own service discovery (Nomad 1.3): the registrations of a service, the answer of
//! `GET /v1/service/:name` (<https://developer.hashicorp.com/nomad/api-docs/services#read-service>).
//!
//! The list has no health: Nomad removes the registrations of allocations that have stopped. Every registration
//! is ready. It has no metadata either, so values come from tags: `weir.zone=…`, `weir.weight=…`,
//! `weir.in_flight_max=…`, `weir.backup=…` and `weir.version=…`. Each must be valid; otherwise the registration
//! is refused.

use std::sync::Arc;

use config::{ServerTexts, listed_server};
use model::ListedLimits;
use serde::Deserialize;

use crate::address::joined;
use crate::merged::merge;
use crate::row::{check_count, object_name, reason};
use crate::stated::{Key, tagged};
use crate::{Answer, Readiness, Row};

/// How many characters of an allocation's ID name it, as in Nomad's own output.
const ALLOCATION_CHARS: usize = 8;

/// What is read from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `Each`: an address is one server. If it is listed again, the first registration counts, and the others
    /// are refused. `Added`: the registrations of an address are workers of one server, whose limit is the sum
    /// of theirs: 1 for a worker without a limit. Its other values are those of the first.
    pub limits: ListedLimits,
    /// Replaces the port of each registration.
    pub port: Option<u16>,
    /// Leaves out the registrations that do not have this tag.
    pub tag: Option<Arc<str>>,
}

/// Reads the registrations of a service.
///
/// A row's object is `JOB/ALLOCATION`, with the first 8 characters of the allocation's ID: what Nomad's
/// commands show and accept. Services of one allocation with several ports share it; their addresses differ.
/// Without a job or an allocation, it is the registration's ID.
///
/// # Errors
/// The answer is not of this format, or has more than [`ROWS_MAX`](crate::ROWS_MAX) registrations. One line,
/// bounded and escaped.
pub fn registrations(bytes: &[u8], reading: &Reading) -> Result<Answer, String> {
    let registrations: Vec<Registration> =
        serde_json::from_slice(bytes).map_err(|error| reason(&error.to_string()))?;
    check_count(registrations.len())?;
    let mut answer = Answer::default();
    let mut rows = Vec::with_capacity(registrations.len());
    for registration in registrations.iter().filter(|one| one.has_tag(reading.tag.as_deref())) {
        match registration.row(reading.port) {
            Ok(row) => rows.push(row),
            Err(why) => answer.refuse(&registration.object(), &why),
        }
    }
    merge(rows, reading.limits, &mut answer);
    Ok(answer)
}

#[derive(Deserialize)]
struct Registration {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "JobID", default)]
    job: String,
    #[serde(rename = "AllocID", default)]
    allocation: String,
    #[serde(rename = "Tags")]
    tags: Option<Vec<String>>,
    #[serde(rename = "Address", default)]
    address: String,
    #[serde(rename = "Port", default)]
    port: i64,
}

impl Registration {
    fn tags(&self) -> &[String] {
        self.tags.as_deref().unwrap_or_default()
    }

    fn has_tag(&self, wanted: Option<&str>) -> bool {
        wanted.is_none_or(|wanted| self.tags().iter().any(|tag| tag == wanted))
    }

    fn object(&self) -> String {
        if self.job.is_empty() || self.allocation.is_empty() {
            return object_name(&self.id);
        }
        let end = self.allocation.char_indices().nth(ALLOCATION_CHARS).map(|(at, _)| at);
        let allocation = end.and_then(|end| self.allocation.get(..end));
        object_name(&format!("{}/{}", self.job, allocation.unwrap_or(&self.allocation)))
    }

    fn row(&self, port: Option<u16>) -> Result<Row, String> {
        if self.address.is_empty() {
            return Err("the registration has no address".to_owned());
        }
        let value = |key| tagged(self.tags(), key);
        let server = listed_server(&ServerTexts {
            address: &joined(&self.address, self.port, port)?,
            zone: value(Key::Zone),
            weight: value(Key::Weight),
            backup: value(Key::Backup),
            in_flight_max: value(Key::InFlightMax),
            version: value(Key::Version),
        })?;
        Ok(Row { server, readiness: Readiness::Ready, object: self.object().into() })
    }
}

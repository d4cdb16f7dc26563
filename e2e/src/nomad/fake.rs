//! A Nomad inside the test: it answers `GET /v1/service/NAME` with the registrations that the test sets, and it fails
//! on demand.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::polling::{Api, LongPolling, Query};

/// A running one. It ends when it is dropped.
pub type FakeNomad = LongPolling<NomadApi>;

/// Nomad's `/v1/service/NAME`.
pub enum NomadApi {}

/// A registration of a service by an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The job.
    pub job: String,
    /// The allocation's ID.
    pub alloc: String,
    /// Its address.
    pub address: String,
    /// Its port; 0 if it has none.
    pub port: u16,
    /// Its tags.
    pub tags: Vec<String>,
}

impl Registration {
    /// One of the job `web`, by the allocation with this number, without tags.
    pub fn new(number: u32, address: SocketAddr) -> Registration {
        Registration {
            job: "web".to_owned(),
            alloc: format!("{number:08x}-0000-4000-8000-000000000000"),
            address: address.ip().to_string(),
            port: address.port(),
            tags: Vec::new(),
        }
    }

    /// The same, with one more tag.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Registration {
        self.tags.push(tag.to_owned());
        self
    }
}

impl Api for NomadApi {
    type Row = Registration;
    const NAME: &'static str = "Nomad";
    const PREFIX: &'static str = "/v1/service/";

    fn entry(row: &Registration, query: &Query, index: u64) -> Option<Value> {
        let (service, alloc) = (&query.service, &row.alloc);
        Some(json!({
            "ID": format!("_nomad-task-{alloc}-group-web-{service}-{}", row.port),
            "ServiceName": service, "Namespace": "default", "Datacenter": "dc1",
            "NodeID": "00000000-0000-4000-8000-000000000000", "JobID": row.job, "AllocID": alloc,
            "Tags": row.tags, "Address": row.address, "Port": row.port,
            "CreateIndex": 1, "ModifyIndex": index,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::get;

    #[test]
    fn the_index_and_the_rows_are_those_of_nomad() {
        let fake = FakeNomad::start((std::net::Ipv4Addr::LOCALHOST, 0).into());
        fake.set("web", &[Registration::new(7, "10.0.0.1:80".parse().unwrap()).tag("v2")]);
        let answer = get(fake.address(), "/v1/service/web?index=1").unwrap();
        assert_eq!(answer.field("x-nomad-index"), Some("2"));
        let row = &answer.json()[0];
        assert_eq!((&row["Address"], &row["Tags"][0]), (&"10.0.0.1".into(), &"v2".into()));
    }
}

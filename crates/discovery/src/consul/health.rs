//! The instances of a service with their checks: the answer of `GET /v1/health/service/:name`, without
//! `passing`, so that it has the instances that are not ready, too.
//!
//! The address is the service's, or the node's if that is empty. Where other values come from, in the order in
//! which they count:
//!
//! | value | place |
//! |---|---|
//! | zone | `weir-zone` of the service's metadata, the tag `weir.zone=…`, `weir-zone` of the node's metadata; then the zone of the service's locality and of the node's (Consul 1.17); then `zone` and `availability_zone` of the service's metadata and of the node's |
//! | weight | `weir-weight` of the service's metadata, the tag `weir.weight=…`; then the service's weight for its state, at most 1000 |
//! | `in_flight_max` | `weir-in-flight-max`, the tag `weir.in_flight_max=…` |
//! | backup | `weir-backup`, the tag `weir.backup=…` |
//! | version | `weir-version`, the tag `weir.version=…` |
//!
//! A value of a name that begins with `weir` must be valid; otherwise the instance is refused. A zone from
//! another place is ignored if it is not valid.
//!
//! An instance is in maintenance if Consul's check for that (of the node or the service) is critical, and
//! critical if any other check is. A warning is ready, as in Consul's DNS.

use std::collections::HashMap;

use config::{ServerTexts, listed_server};
use model::ListedLimits;
use serde::Deserialize;

use crate::address::joined;
use crate::merged::merge;
use crate::row::{check_count, object_name, reason};
use crate::stated::{Candidate, Key, chosen, tagged};
use crate::{Answer, Readiness, Row};

/// The check of a node in maintenance.
const NODE_MAINTENANCE: &str = "_node_maintenance";

/// The beginning of the check of a service in maintenance, before its ID.
const SERVICE_MAINTENANCE: &str = "_service_maintenance:";

/// The maximum weight. Consul's may be larger.
const WEIGHT_MAX: i64 = 1_000;

/// Which questions the answer is for, and what is read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `Each`: an address is one instance. If it is listed again, the first ready instance counts, or the first
    /// one if none is ready; the others are refused. `Added`: the instances of an address are workers of one
    /// server, whose limit is the sum of theirs: 1 for a worker without a limit. Only ready ones count. If none
    /// is ready, all count, and the server has the readiness of the first. Its other values are those of the
    /// first that counts.
    pub limits: ListedLimits,
    /// Replaces the port of each instance.
    pub port: Option<u16>,
}

/// Reads the instances of a service, from an answer that was not restricted to those that pass their checks.
///
/// # Errors
/// The answer is not of this format, or has more than [`ROWS_MAX`](crate::ROWS_MAX) instances. One line,
/// bounded and escaped.
pub fn instances(bytes: &[u8], reading: Reading) -> Result<Answer, String> {
    let instances: Vec<Instance> =
        serde_json::from_slice(bytes).map_err(|error| reason(&error.to_string()))?;
    check_count(instances.len())?;
    let mut answer = Answer::default();
    let mut rows = Vec::with_capacity(instances.len());
    for instance in &instances {
        match instance.row(reading.port) {
            Ok(row) => rows.push(row),
            Err(why) => answer.refuse(&instance.object(), &why),
        }
    }
    merge(rows, reading.limits, &mut answer);
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Instance {
    node: Node,
    service: Service,
    checks: Option<Vec<Check>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    #[serde(rename = "Node")]
    name: String,
    address: String,
    meta: Option<Meta>,
    locality: Option<Locality>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Service {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    port: i64,
    tags: Option<Vec<String>>,
    meta: Option<Meta>,
    weights: Option<Weights>,
    locality: Option<Locality>,
}

type Meta = HashMap<String, String>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Weights {
    passing: Option<i64>,
    warning: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Locality {
    zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Check {
    #[serde(rename = "CheckID", default)]
    id: String,
    status: String,
}

impl Check {
    fn is_critical(&self) -> bool {
        self.status == "critical"
    }

    fn is_maintenance(&self) -> bool {
        self.id == NODE_MAINTENANCE || self.id.starts_with(SERVICE_MAINTENANCE)
    }
}

impl Instance {
    /// Returns its name in Consul; IDs of services are unique on a node.
    fn object(&self) -> String {
        object_name(&format!("{}/{}", self.node.name, self.service.id))
    }

    fn row(&self, port: Option<u16>) -> Result<Row, String> {
        let weight = self
            .own("weir-weight", Key::Weight)
            .map(ToOwned::to_owned)
            .or_else(|| self.consul_weight());
        let server = listed_server(&ServerTexts {
            address: &self.address(port)?,
            zone: self.zone(),
            weight: weight.as_deref(),
            backup: self.own("weir-backup", Key::Backup),
            in_flight_max: self.own("weir-in-flight-max", Key::InFlightMax),
            version: self.own("weir-version", Key::Version),
        })?;
        Ok(Row { server, readiness: self.readiness(), object: self.object().into() })
    }

    fn address(&self, port: Option<u16>) -> Result<String, String> {
        let host = match self.service.address.as_str() {
            "" => self.node.address.as_str(),
            host => host,
        };
        if host.is_empty() {
            return Err("neither the service nor the node has an address".to_owned());
        }
        joined(host, self.service.port, port)
    }

    /// Returns the value that is stated for Weir, in the service's metadata or by a tag.
    fn own(&self, name: &str, key: Key) -> Option<&str> {
        let tags = self.service.tags.as_deref().unwrap_or_default();
        metadata(self.service.meta.as_ref(), name).or_else(|| tagged(tags, key))
    }

    fn zone(&self) -> Option<&str> {
        let (service, node) = (&self.service, &self.node);
        let localities = [&service.locality, &node.locality].into_iter().flatten();
        let of_localities = localities.filter_map(|locality| locality.zone.as_deref());
        let of_metadata = [&service.meta, &node.meta].into_iter().flat_map(|meta| {
            let of = |key| metadata(meta.as_ref(), key);
            [of("zone"), of("availability_zone")].into_iter().flatten()
        });
        let own = self
            .own("weir-zone", Key::Zone)
            .or_else(|| metadata(node.meta.as_ref(), "weir-zone"))
            .map(Candidate::own);
        let generic = of_localities.chain(of_metadata).map(Candidate::generic);
        chosen(Key::Zone, own.into_iter().chain(generic))
    }

    /// Returns the weight that Consul's DNS would state, within Weir's bounds.
    fn consul_weight(&self) -> Option<String> {
        let weights = self.service.weights.as_ref()?;
        let has_warning = self.checks().iter().any(|check| check.status == "warning");
        let is_warning = has_warning && self.readiness() == Readiness::Ready;
        let weight = if is_warning { weights.warning } else { weights.passing };
        weight.map(|weight| weight.clamp(0, WEIGHT_MAX).to_string())
    }

    fn readiness(&self) -> Readiness {
        let mut critical = self.checks().iter().filter(|check| check.is_critical());
        match critical.next() {
            None => Readiness::Ready,
            Some(first) if first.is_maintenance() || critical.any(Check::is_maintenance) => {
                Readiness::Maintenance
            }
            Some(_) => Readiness::Critical,
        }
    }

    fn checks(&self) -> &[Check] {
        self.checks.as_deref().unwrap_or_default()
    }
}

fn metadata<'a>(meta: Option<&'a Meta>, key: &str) -> Option<&'a str> {
    meta?.get(key).map(String::as_str)
}

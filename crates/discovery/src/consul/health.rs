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
use std::net::Ipv6Addr;

use config::{ServerTexts, listed_server};
use model::{ListedLimits, ServerTarget};
use serde::Deserialize;

use crate::row::{check_count, object_name, reason};
use crate::stated::{Candidate, Key, chosen};
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
    match reading.limits {
        ListedLimits::Each => each_server(rows, &mut answer),
        ListedLimits::Added => added(rows, &mut answer),
    }
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
            .own("weir-weight", "weir.weight=")
            .map(ToOwned::to_owned)
            .or_else(|| self.consul_weight());
        let server = listed_server(&ServerTexts {
            address: &self.address(port)?,
            zone: self.zone(),
            weight: weight.as_deref(),
            backup: self.own("weir-backup", "weir.backup="),
            in_flight_max: self.own("weir-in-flight-max", "weir.in_flight_max="),
            version: self.own("weir-version", "weir.version="),
        })?;
        Ok(Row { server, readiness: self.readiness(), object: self.object().into() })
    }

    fn address(&self, port: Option<u16>) -> Result<String, String> {
        let port = match port.map_or(self.service.port, i64::from) {
            0 => return Err("the service has no port; `port` can name one".to_owned()),
            port => port,
        };
        let host = match self.service.address.as_str() {
            "" => self.node.address.as_str(),
            host => host,
        };
        if host.is_empty() {
            return Err("neither the service nor the node has an address".to_owned());
        }
        Ok(match host.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]:{port}"),
            Err(_) => format!("{host}:{port}"),
        })
    }

    /// Returns the value that is stated for Weir, in the service's metadata or by a tag.
    fn own(&self, key: &str, tag: &str) -> Option<&str> {
        let mut tags = self.service.tags.iter().flatten();
        metadata(self.service.meta.as_ref(), key)
            .or_else(|| tags.find_map(|text| text.strip_prefix(tag)))
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
            .own("weir-zone", "weir.zone=")
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

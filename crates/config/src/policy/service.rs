//! Reads the spec of a `ServicePolicy`, and sets what it states in a service.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{Affinity, Balance, HttpVersion, Service};
use serde_json::{Map, Value};

use super::tables::{NAME, Tables, too_long};
use super::{Mistake, Reference, at, keys, not_built, snapshot};
use crate::schema::SERVICE;

/// What a `ServicePolicy` states for a service.
#[derive(Clone, Debug)]
pub struct ServiceTerms {
    /// Keys of the configuration.
    stated: Vec<&'static str>,
    /// A service that states them.
    service: Arc<Service>,
}

impl PartialEq for ServiceTerms {
    fn eq(&self, other: &ServiceTerms) -> bool {
        self.stated == other.stated
            && (Arc::ptr_eq(&self.service, &other.service) || self.service == other.service)
    }
}

/// Sets one key of a service as another service has it.
type SetKey = fn(&mut Service, &Service);

/// How each key that a `ServicePolicy` may state is set.
const SET_KEYS: &[(&str, SetKey)] = &[
    ("balance", |to, from| {
        // Without `hash`, a service that already hashes keeps its key.
        if !matches!((&to.balance, &from.balance), (Balance::Hash(_), Balance::Hash(_))) {
            to.balance = from.balance.clone();
        }
    }),
    // With `balance`, without which it is a mistake.
    ("hash", |to, from| to.balance = from.balance.clone()),
    ("in_flight_max", |to, from| to.in_flight_max = from.in_flight_max),
    ("queue", |to, from| to.queue = from.queue),
    ("when_full", |to, from| to.when_full = from.when_full),
    ("when_all_down", |to, from| to.when_all_down = from.when_all_down),
    ("check", |to, from| to.check.clone_from(&from.check)),
    ("passive", |to, from| to.passive.clone_from(&from.passive)),
    ("zones", |to, from| to.zones = from.zones),
    ("affinity", |to, from| {
        let key_file = to.affinity.take().and_then(|affinity| affinity.key_file);
        to.affinity = from.affinity.clone().map(|affinity| Affinity { key_file, ..affinity });
    }),
    ("slow_start", |to, from| to.slow_start = from.slow_start),
    ("timeouts", |to, from| to.timeouts = from.timeouts),
    ("retries", |to, from| to.retries = from.retries.clone()),
    ("scaling", |to, from| to.scaling.clone_from(&from.scaling)),
    ("idle_connections_max", |to, from| to.idle_connections_max = from.idle_connections_max),
    ("send_proxy", |to, from| {
        if to.http != HttpVersion::Http2 {
            to.send_proxy = from.send_proxy;
        }
    }),
    ("version_field", |to, from| to.version_field.clone_from(&from.version_field)),
    ("maintenance", |to, from| to.maintenance.clone_from(&from.maintenance)),
];

impl ServiceTerms {
    /// Reads the `spec` of a `ServicePolicy`, without `targetRefs` and `podLimits`.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(spec: &Map<String, Value>) -> Result<ServiceTerms, Vec<Mistake>> {
        if let Some(mistake) = too_long(spec) {
            return Err(vec![mistake]);
        }
        let mut tables = Tables::default();
        let _ = writeln!(tables.text, "[service.{NAME}]");
        let spec = with_grpc_version(spec);
        tables.lines(&SERVICE, &spec, "spec");
        tables.text.push_str("server = [{ address = \"192.0.2.1:80\" }]\n");
        // A BackendTLSPolicy may state it.
        if at(&spec, &["check", "tls"]).is_some() {
            tables.text.push_str("tls = { verify = false }\n");
        }
        let _ = writeln!(tables.text, "[[route]]\nservice = \"{NAME}\"");
        let no_material = |_: Reference<'_>| Err("policies name no files".to_owned());
        let snapshot = snapshot(tables, &no_material)?;
        let named = snapshot.services.into_iter().find(|service| &*service.name == NAME);
        let Some(service) = named else { return Err(vec![not_built()]) };
        let is_stated =
            |key: &&keys::PolicyKey| spec.get(&key.name).is_some_and(|it| !it.is_null());
        let permitted: Vec<_> = keys::permitted(&SERVICE).collect();
        let stated = permitted.iter().filter(is_stated).map(|known| known.key.name).collect();
        Ok(ServiceTerms { stated, service })
    }

    /// Sets what it states in `service`, each key as a whole, and leaves everything else as it is. An affinity keeps the
    /// key file that `service` has. A PROXY header is not set for servers with HTTP/2: see [`ServiceTerms::misfit`].
    pub fn set(&self, service: &mut Service) {
        for (_, set) in SET_KEYS.iter().filter(|(key, _)| self.stated.contains(key)) {
            set(service, &self.service);
        }
    }

    /// Returns the mistake that `service` cannot have what the policy states.
    pub fn misfit(&self, service: &Service) -> Option<Mistake> {
        let states_proxy = self.service.send_proxy.is_some();
        (states_proxy && service.http == HttpVersion::Http2).then(|| Mistake {
            path: "spec.sendProxy".to_owned(),
            problem: "a PROXY header names one client for a whole connection, and one of HTTP/2 carries the requests of many; leave sendProxy out, or change appProtocol of the Service".to_owned(),
        })
    }

    /// Returns the concurrency limit of each server that it states.
    pub fn in_flight_max(&self) -> Option<u32> {
        self.service.in_flight_max
    }
}

/// Returns a spec whose check by gRPC states its version of HTTP, whatever that of the service is.
fn with_grpc_version(spec: &Map<String, Value>) -> Map<String, Value> {
    let mut spec = spec.clone();
    let is_grpc = at(&spec, &["check", "kind"]).and_then(Value::as_str) == Some("grpc");
    if is_grpc
        && at(&spec, &["check", "http"]).is_none()
        && let Some(Value::Object(check)) = spec.get_mut("check")
    {
        check.insert("http".to_owned(), HttpVersion::Http2.as_str().into());
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_may_be_stated_can_be_set() {
        let mut permitted: Vec<_> = keys::permitted(&SERVICE).map(|known| known.key.name).collect();
        let mut set: Vec<_> = SET_KEYS.iter().map(|(key, _)| *key).collect();
        permitted.sort_unstable();
        set.sort_unstable();
        assert_eq!(permitted, set);
    }
}

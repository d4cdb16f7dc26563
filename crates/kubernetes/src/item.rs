//! Objects of the API server → Weir's types. Pure. Objects come from users of the cluster: one that cannot be read is
//! reported and treated as absent.

use std::sync::Arc;

use gateway::objects::Key;
use gateway::objects::core::{ConfigMap, EndpointSlice, Namespace, Secret, Service};
use gateway::objects::gateway::{Address, Gateway, GatewayClass, GatewayStatus, ListenerSet};
use gateway::objects::ingress::{Ingress, IngressClass};
use gateway::objects::policy::{BackendTlsPolicy, ReferenceGrant, RoutePolicy, ServicePolicy};
use gateway::objects::route::{ConnectionRoute, GrpcRoute, HttpRoute};
use gateway::pods::{self, LIMIT_ANNOTATION};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::expose::service::{self, OwnService};
use crate::kinds::Kind;
use crate::text::one_line;

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    /// What a write needs to know.
    pub(crate) facts: Facts,
    /// The object, or why it cannot be read.
    pub(crate) object: Result<Object, Arc<str>>,
}

/// What a write of the status needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The version of the object.
    pub(crate) version: Box<str>,
    pub(crate) generation: i64,
    /// The status as JSON. Kept as text, which needs a fraction of the memory. Empty: none.
    pub(crate) status: Box<str>,
}

/// An object that could be read, without its status.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Class(Arc<GatewayClass>),
    Gateway(Arc<Gateway>, Vec<Address>),
    ListenerSet(Arc<ListenerSet>),
    Http(Arc<HttpRoute>),
    Grpc(Arc<GrpcRoute>),
    Connection(Arc<ConnectionRoute>),
    Grant(Arc<ReferenceGrant>),
    Policy(Arc<BackendTlsPolicy>),
    ServicePolicy(Arc<ServicePolicy>),
    RoutePolicy(Arc<RoutePolicy>),
    Ingress(Arc<Ingress>),
    IngressClass(Arc<IngressClass>),
    Namespace(Arc<Namespace>),
    Service(Arc<Service>),
    Slice(Arc<EndpointSlice>),
    /// The metadata of a Secret or a ConfigMap: only its version is kept.
    Metadata,
    /// The concurrency limit that a Pod states, if it does.
    Pod(Option<u32>),
    /// A Service that Weir made. `None`: it is none.
    OwnService(Option<Box<OwnService>>),
}

/// Reads an object. `None`: it has no name.
pub(crate) fn read(kind: Kind, mut object: Value) -> Option<Item> {
    let metadata = &object["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    if key.name.is_empty() {
        return None;
    }
    let mut facts = Facts {
        version: text("resourceVersion").into(),
        generation: metadata["generation"].as_i64().unwrap_or(0),
        status: Box::default(),
    };
    strip(&mut object);
    let status = match object.as_object_mut() {
        Some(fields) if kind != Kind::OwnService => fields.remove("status").unwrap_or_default(),
        _ => Value::Null,
    };
    if kind.has_status() && !status.is_null() {
        facts.status = status.to_string().into();
    }
    let object = typed(kind, object, &status);
    let object = object.map_err(|error| one_line(&error.to_string()).into());
    Some(Item { key, facts, object })
}

fn typed(kind: Kind, object: Value, status: &Value) -> Result<Object, serde_json::Error> {
    fn from<T: DeserializeOwned>(object: Value) -> Result<Arc<T>, serde_json::Error> {
        serde_json::from_value(object).map(Arc::new)
    }
    Ok(match kind {
        Kind::GatewayClass => Object::Class(from(object)?),
        Kind::Gateway => {
            let status = <GatewayStatus as serde::Deserialize>::deserialize(status);
            Object::Gateway(from(object)?, status.map(|one| one.addresses).unwrap_or_default())
        }
        Kind::ListenerSet => Object::ListenerSet(from(object)?),
        Kind::HttpRoute => Object::Http(from(object)?),
        Kind::GrpcRoute => Object::Grpc(from(object)?),
        Kind::TlsRoute | Kind::TcpRoute => Object::Connection(from(object)?),
        Kind::ReferenceGrant => Object::Grant(from(object)?),
        Kind::BackendTlsPolicy => Object::Policy(from(object)?),
        Kind::ServicePolicy => Object::ServicePolicy(from(object)?),
        Kind::RoutePolicy => Object::RoutePolicy(from(object)?),
        Kind::Ingress => Object::Ingress(from(object)?),
        Kind::IngressClass => Object::IngressClass(from(object)?),
        Kind::Namespace => Object::Namespace(from(object)?),
        Kind::Service => Object::Service(from(object)?),
        Kind::EndpointSlice => Object::Slice(from(object)?),
        Kind::Secret | Kind::ConfigMap => Object::Metadata,
        Kind::Pod => Object::Pod(pod_limit(&object)?),
        Kind::OwnService => Object::OwnService(service::read(&object).map(Box::new)),
    })
}

/// Returns the concurrency limit that a Pod states. A Pod with a value that cannot be read is one that cannot be read: that
/// is reported, and it counts as one without a limit.
fn pod_limit(object: &Value) -> Result<Option<u32>, serde_json::Error> {
    let Some(text) = object["metadata"]["annotations"][LIMIT_ANNOTATION].as_str() else {
        return Ok(None);
    };
    let why = || format!("the annotation {LIMIT_ANNOTATION} is {text:?}, not a number from 1");
    pods::limit(text).map(Some).ok_or_else(|| serde::de::Error::custom(why()))
}

/// Removes what is large and of no use: who wrote which field, and the object once more.
fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// An object that is read when something refers to it.
#[derive(Clone, Debug)]
pub(crate) enum Contents {
    Secret(Arc<Secret>),
    ConfigMap(Arc<ConfigMap>),
}

/// Reads an object with its contents, and keeps what Weir uses. `kind` is one that is fetched.
pub(crate) fn contents(kind: Kind, mut object: Value) -> Result<Contents, Arc<str>> {
    fn from<T: DeserializeOwned>(object: Value) -> Result<T, Arc<str>> {
        serde_json::from_value(object).map_err(|error| one_line(&error.to_string()).into())
    }
    strip(&mut object);
    if kind == Kind::Secret {
        let mut secret: Secret = from(object)?;
        // Names of users can be the keys of a Secret for passwords.
        if secret.data.contains_key("tls.crt") {
            secret.data.retain(|name, _| matches!(name.as_str(), "tls.crt" | "tls.key" | "ca.crt"));
        }
        return Ok(Contents::Secret(Arc::new(secret)));
    }
    let mut map: ConfigMap = from(object)?;
    map.data.retain(|name, _| matches!(name.as_str(), "ca.crt" | "jwks.json"));
    Ok(Contents::ConfigMap(Arc::new(map)))
}

/// Returns what stands for a Secret whose contents are unknown. `why` is the rest of a sentence that begins with it.
pub(crate) fn unread_secret(why: &str) -> Secret {
    Secret { unknown: Some(why.into()), ..Secret::default() }
}

/// See [`unread_secret`].
pub(crate) fn unread_config_map(why: &str) -> ConfigMap {
    ConfigMap { unknown: Some(why.into()), ..ConfigMap::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_object_is_survived() {
        for kind in Kind::ALL {
            assert!(read(kind, json!(null)).is_none());
            assert!(read(kind, json!({"metadata": {"name": 1}})).is_none());
            let item = read(kind, json!({"metadata": {"name": "a"}, "spec": 1, "status": 1}));
            let item = item.unwrap();
            assert_eq!(&*item.key.name, "a");
            assert_eq!(&*item.facts.status, if kind.has_status() { "1" } else { "" });
            let item = read(kind, json!({"metadata": {"namespace": "n", "name": "a"}})).unwrap();
            assert!(item.object.is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn a_reason_is_one_line_without_the_contents_of_secrets() {
        let object = json!({"metadata": {"name": "a"}, "data": {"tls.key": ["geheim"]}});
        let error = contents(Kind::Secret, object).unwrap_err();
        assert!(!error.contains("geheim") && error.contains("sequence"), "{error}");
    }

    #[test]
    fn only_what_weir_uses_is_kept() {
        let object = json!({
            "metadata": {"name": "a", "resourceVersion": "7", "generation": 3},
            "data": {"tls.key": "a", "tls.crt": "b", "other": "c"}
        });
        let item = read(Kind::Secret, object.clone()).unwrap();
        assert!(matches!(item.object, Ok(Object::Metadata)));
        assert_eq!((&*item.facts.version, item.facts.generation), ("7", 3));
        let Ok(Contents::Secret(secret)) = contents(Kind::Secret, object) else {
            panic!("no Secret")
        };
        assert_eq!(secret.data.len(), 2);
        let map = json!({"metadata": {"name": "a"}, "data": {"ca.crt": "x", "other": "y"}});
        let Ok(Contents::ConfigMap(map)) = contents(Kind::ConfigMap, map) else {
            panic!("no ConfigMap")
        };
        assert_eq!(map.data.len(), 1);
        assert!(contents(Kind::ConfigMap, json!({"data": {"ca.crt": 1}})).is_err());
    }

    #[test]
    fn copies_of_the_object_are_dropped() {
        let object = json!({"metadata": {
            "name": "a", "managedFields": [{"manager": "kubectl"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "own": "x"}
        }});
        let Ok(Object::Gateway(gateway, _)) = read(Kind::Gateway, object).unwrap().object else {
            panic!("no Gateway")
        };
        assert_eq!(gateway.metadata.annotations.keys().collect::<Vec<_>>(), ["own"]);
    }

    #[test]
    fn the_status_is_no_part_of_the_object() {
        let route = |status: Value| {
            let object = json!({"metadata": {"namespace": "n", "name": "a"}, "status": status});
            read(Kind::HttpRoute, object).unwrap()
        };
        let (before, after) =
            (route(json!(null)), route(json!({"parents": [{"controllerName": "x"}]})));
        let (Ok(Object::Http(before_route)), Ok(Object::Http(after_route))) =
            (&before.object, &after.object)
        else {
            panic!("no routes")
        };
        assert_eq!(before_route, after_route);
        assert_ne!(before.facts, after.facts);
    }
}

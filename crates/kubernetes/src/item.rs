//! Objects of the API server → Weir's types. Pure. Objects come from users of the cluster: one that cannot be read is
//! reported and treated as absent.

use std::sync::Arc;

use gateway::objects::core::{ConfigMap, EndpointSlice, Namespace, Secret, Service};
use gateway::objects::gateway::{Address, Gateway, GatewayClass, GatewayStatus, ListenerSet};
use gateway::objects::ingress::{Ingress, IngressClass};
use gateway::objects::policy::{BackendTlsPolicy, ReferenceGrant, RoutePolicy, ServicePolicy};
use gateway::objects::route::{ConnectionRoute, GrpcRoute, HttpRoute};
use gateway::objects::{Key, Meta};
use gateway::pods::{self, LIMIT_ANNOTATION};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

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
    /// What stands for a RoutePolicy that cannot be read: without it, its targets would lose their authentication.
    pub(crate) substitute: Option<Arc<RoutePolicy>>,
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

/// A page of a list. The objects stay text: one that cannot be read must not affect the others.
#[derive(Deserialize)]
pub(crate) struct Page {
    /// Of the list.
    #[serde(default)]
    pub(crate) metadata: Value,
    #[serde(deserialize_with = "list_or_null")]
    pub(crate) items: Vec<Box<RawValue>>,
}

fn list_or_null<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    Option::deserialize(list).map(Option::unwrap_or_default)
}

/// An event of a watch. See [`Page`].
#[derive(Deserialize)]
pub(crate) struct Change {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) object: Option<Box<RawValue>>,
}

/// What is read of an object that cannot be read as a whole. Everything else is skipped, however deep it is.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) metadata: Meta,
    pub(crate) version: Box<str>,
    /// Empty: none.
    status: Box<str>,
}

impl Outline {
    /// Reads the outline of an object.
    pub(crate) fn read(object: &str) -> Option<Outline> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
            #[serde(borrow)]
            status: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            #[serde(default)]
            resource_version: Box<str>,
        }
        let parts: Parts<'_> = serde_json::from_str(object).ok()?;
        let version: Version = serde_json::from_str(parts.metadata.get()).ok()?;
        let status = parts.status.and_then(|status| parse(status.get()).ok());
        Some(Outline {
            metadata: serde_json::from_str(parts.metadata.get()).ok()?,
            version: version.resource_version,
            status: status.map(|status| status.to_string().into()).unwrap_or_default(),
        })
    }
}

/// Parses an object.
fn parse(object: &str) -> Result<Value, Arc<str>> {
    // serde_json would parse a string beside such a key as JSON, from the first level again.
    const PRIVATE: &str = "$serde_json::private::";
    if object.contains(PRIVATE) {
        return Err(format!("it has a key that begins with {PRIVATE}").into());
    }
    serde_json::from_str(object).map_err(|error| {
        // The place would make each version of the object fail for another reason, and the reason becomes part of a status.
        let error = error.to_string();
        one_line(error.split_once(" at line ").map_or(&error, |(what, _)| what)).into()
    })
}

/// Reads an object from its text. `None`: it has no name.
pub(crate) fn read_text(kind: Kind, object: &str) -> Option<Item> {
    let mut item = match parse(object) {
        Ok(object) => read(kind, object)?,
        Err(error) => outlined(kind, object, error)?,
    };
    if let (Kind::RoutePolicy, Err(error)) = (kind, &item.object) {
        item.substitute = substitute(object, error).map(Arc::new);
    }
    Some(item)
}

fn outlined(kind: Kind, object: &str, error: Arc<str>) -> Option<Item> {
    let Outline { metadata, version, status } = Outline::read(object)?;
    let status = if kind.has_status() { status } else { Box::default() };
    let facts = Facts { version, generation: metadata.generation, status };
    let key = metadata.key();
    let is_named = !key.name.is_empty();
    is_named.then_some(Item { key, facts, object: Err(error), substitute: None })
}

/// Returns a RoutePolicy with the targets of one that cannot be read, as far as they can be.
fn substitute(object: &str, error: &Arc<str>) -> Option<RoutePolicy> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        target_refs: Vec<Box<RawValue>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Policy {
        spec: Spec,
    }
    let Outline { metadata, .. } = Outline::read(object)?;
    let Policy { spec } = serde_json::from_str(object).unwrap_or_default();
    let targets = spec.target_refs.iter().filter_map(|one| serde_json::from_str(one.get()).ok());
    Some(RoutePolicy::unreadable(metadata, targets.collect(), &**error))
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
    Some(Item { key, facts, object, substitute: None })
}

fn typed(kind: Kind, object: Value, status: &Value) -> Result<Object, serde_json::Error> {
    fn from<T: DeserializeOwned>(object: Value) -> Result<Arc<T>, serde_json::Error> {
        serde_json::from_value(object).map(Arc::new)
    }
    Ok(match kind {
        Kind::GatewayClass => Object::Class(from(object)?),
        Kind::Gateway => {
            let status = <GatewayStatus as Deserialize>::deserialize(status);
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
    fn an_object_that_is_too_deep_has_a_key_and_a_version() {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let deep = format!(
            r#"{{"metadata": {{"namespace": "n", "name": "a", "resourceVersion": "7",
                "generation": 3, "managedFields": {open}{close}}},
                "spec": {{"a": {open}{close}}}, "status": {{"b": [1]}}}}"#
        );
        let item = read_text(Kind::RoutePolicy, &deep).unwrap();
        assert_eq!(item.key, Key::new("n", "a"));
        let facts = Facts { version: "7".into(), generation: 3, status: r#"{"b":[1]}"#.into() };
        assert_eq!(item.facts, facts);
        assert!(item.object.unwrap_err().contains("recursion"));
        let page: Page = serde_json::from_str(&format!(r#"{{"items": [{deep}, {{}}]}}"#)).unwrap();
        assert_eq!(page.items.len(), 2);
        for nothing in ["", "1", "{}", r#"{"metadata": 1}"#, r#"{"metadata": {"name": 1}}"#, &open]
        {
            assert!(read_text(Kind::RoutePolicy, nothing).is_none(), "{nothing}");
        }
        for list in [r#"{"items": null}"#, r#"{"items": [], "metadata": null}"#] {
            assert!(serde_json::from_str::<Page>(list).unwrap().items.is_empty());
        }
        for other in ["null", "{}", r#"{"items": {}}"#, r#"{"metadata": {}}"#] {
            assert!(serde_json::from_str::<Page>(other).is_err(), "{other}");
        }
    }

    #[test]
    fn text_within_an_object_is_not_parsed() {
        let object = json!({
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {"$serde_json::private::RawValue": "[[1]]"}
        });
        let item = read_text(Kind::RoutePolicy, &object.to_string()).unwrap();
        assert!(item.object.unwrap_err().contains("key"));
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

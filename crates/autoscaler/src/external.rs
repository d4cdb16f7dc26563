//! The external metrics API of Kubernetes (`external.metrics.k8s.io/v1beta1`): paths and queries of requests, and the
//! objects in answers.

use serde_json::{Value, json};

use crate::access::{User, Wish};
use crate::selector::Selector;
use crate::service::{GROUP, METRIC, Number, Scaled, VERSION};

const GROUP_VERSION: &str = "external.metrics.k8s.io/v1beta1";
/// Maximum number of items in an answer.
const ITEMS_MAX: usize = 1_000;
/// Maximum length of a path. Paths of the API are shorter.
pub const PATH_MAX_BYTES: usize = 512;
/// The media type of the discovery of several groups at once.
pub const DISCOVERY_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Whether the process works. Needs no authentication.
    Health,
    /// What there is.
    Discovery(Discovery),
    /// The values of a metric.
    Metric {
        /// In this namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// Something that there is not.
    Nothing,
}

/// What of the discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// All groups.
    Groups,
    /// The group.
    Group,
    /// The resources of its version.
    Resources,
}

/// Reads the path of a request.
pub fn asked(path: &str) -> Asked<'_> {
    match path {
        "/healthz" | "/livez" | "/readyz" => return Asked::Health,
        "/apis" | "/apis/" => return Asked::Discovery(Discovery::Groups),
        _ => {}
    }
    let Some(rest) = path.strip_prefix("/apis/").and_then(|rest| rest.strip_prefix(GROUP)) else {
        return Asked::Nothing;
    };
    match rest {
        "" | "/" => return Asked::Discovery(Discovery::Group),
        "/v1beta1" | "/v1beta1/" => return Asked::Discovery(Discovery::Resources),
        _ => {}
    }
    let metric = rest.strip_prefix("/v1beta1/namespaces/").and_then(|rest| rest.split_once('/'));
    match metric {
        Some((namespace, name)) if is_label(namespace) && is_metric(name) => {
            Asked::Metric { namespace, name }
        }
        _ => Asked::Nothing,
    }
}

/// Returns whether a text is the name of a namespace (RFC 1123).
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_inner)
}

fn is_metric(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(is_inner)
}

impl Asked<'_> {
    /// Returns what the client must be allowed. `None`: nothing.
    pub fn wish(&self, path: &str) -> Option<Wish> {
        match self {
            Asked::Health => None,
            Asked::Metric { namespace, name } => {
                let (namespace, name) = ((*namespace).to_owned(), (*name).to_owned());
                Some(Wish::Metric { namespace, name })
            }
            // Also of what is not there: who may not ask does not learn it.
            Asked::Discovery(_) | Asked::Nothing => Some(Wish::Path(path.to_owned())),
        }
    }
}

/// Returns an answer of the discovery. `is_aggregated`: the client accepts [`DISCOVERY_TYPE`].
pub fn discovery(of: Discovery, is_aggregated: bool) -> Value {
    let version = json!({ "groupVersion": GROUP_VERSION, "version": VERSION });
    let group = json!({ "name": GROUP, "versions": [&version], "preferredVersion": version });
    match of {
        Discovery::Groups if is_aggregated => json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [{
                "metadata": { "name": GROUP, "creationTimestamp": null },
                "versions": [{
                    "version": VERSION,
                    "freshness": "Current",
                    "resources": [{
                        "resource": METRIC,
                        "responseKind": {
                            "group": GROUP, "version": VERSION, "kind": "ExternalMetricValueList",
                        },
                        "scope": "Namespaced",
                        "singularResource": "",
                        "verbs": ["get"],
                    }],
                }],
            }],
        }),
        Discovery::Groups => {
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] })
        }
        Discovery::Group => {
            let mut group = group;
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            group
        }
        Discovery::Resources => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": GROUP_VERSION,
            "resources": [{
                "name": METRIC,
                "singularName": "",
                "namespaced": true,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }],
        }),
    }
}

/// Returns the values of a metric: one for each service that is selected and seen in the namespace. None if one of them
/// has no number: a HorizontalPodAutoscaler adds the values, and would take a part for the whole. `time` is now, as RFC
/// 3339 has it.
///
/// # Errors
/// There is no such metric, or the selector has a mistake or selects too many services: a status.
pub fn values(
    (namespace, name): (&str, &str),
    selector: Option<&str>,
    services: &[Scaled],
    time: &str,
) -> Result<Value, (u16, Value)> {
    if name != METRIC {
        let message = format!("there is no metric {name}; the only one is {METRIC}");
        return Err((404, status(404, &message)));
    }
    let selector = Selector::parse(selector.unwrap_or_default())
        .map_err(|wrong| (400, status(400, &format!("labelSelector: {wrong}"))))?;
    let selected = services.iter().filter(|one| one.is_in(namespace) && selector.selects(one));
    let selected: Vec<_> = selected.collect();
    if selected.len() > ITEMS_MAX {
        let message = format!("more than {ITEMS_MAX} services match; select fewer services");
        return Err((400, status(400, &message)));
    }
    let numbered = selected.into_iter().map(|one| match one.number {
        Number::Known(number) => Some((one, number)),
        Number::Unmeasured | Number::Unlimited => None,
    });
    let numbered = numbered.collect::<Option<Vec<_>>>().unwrap_or_default();
    let items = numbered.into_iter().map(|(one, number)| {
        let labels = one.labels().into_iter().map(|(key, value)| (key.to_owned(), json!(value)));
        json!({
            "metricName": METRIC,
            "metricLabels": Value::Object(labels.collect()),
            "timestamp": time,
            "value": number.to_string(),
        })
    });
    Ok(json!({
        "kind": "ExternalMetricValueList",
        "apiVersion": GROUP_VERSION,
        "metadata": {},
        "items": items.collect::<Value>(),
    }))
}

/// Returns why a user may not read something, as Kubernetes words it.
pub fn forbidden(user: &User, wish: &Wish, why: &str) -> String {
    let name = &user.name;
    let what = match wish {
        Wish::Metric { namespace, name: metric } => format!(
            "{metric}.{GROUP} is forbidden: User {name:?} cannot list resource {metric:?} in API group {GROUP:?} \
             in the namespace {namespace:?}"
        ),
        Wish::Path(path) => format!("forbidden: User {name:?} cannot get path {path:?}"),
    };
    if why.is_empty() { what } else { format!("{what}: {why}") }
}

/// Returns a status of Kubernetes for a failure.
pub fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        _ => "Unknown",
    };
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::testing::scaled;

    #[test]
    fn paths_are_those_of_an_aggregated_api() {
        let metric = |namespace, name| Asked::Metric { namespace, name };
        let long =
            format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/{}", "b".repeat(254));
        for (path, expected) in [
            ("/livez", Asked::Health),
            ("/apis", Asked::Discovery(Discovery::Groups)),
            ("/apis/external.metrics.k8s.io", Asked::Discovery(Discovery::Group)),
            ("/apis/external.metrics.k8s.io/v1beta1", Asked::Discovery(Discovery::Resources)),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/m", metric("shop", "m")),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/m/x", Asked::Nothing),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces//m", Asked::Nothing),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/", Asked::Nothing),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop", Asked::Nothing),
            ("/apis/external.metrics.k8s.io/v1beta1/namespaces/%2e/m", Asked::Nothing),
            ("/apis/external.metrics.k8s.iox", Asked::Nothing),
            ("/", Asked::Nothing),
            (&long, Asked::Nothing),
        ] {
            assert_eq!(asked(path), expected, "{path}");
        }
        assert_eq!(Asked::Health.wish("/livez"), None);
        assert_eq!(Asked::Nothing.wish("/x"), Some(Wish::Path("/x".to_owned())));
    }

    #[test]
    fn values_are_those_that_a_namespace_sees() {
        let services = [
            scaled("listings", Number::Known(13)),
            scaled("new", Number::Unmeasured),
            scaled("shop/web:80", Number::Known(2)),
            scaled("other/web:80", Number::Known(3)),
        ];
        let names = |namespace: &str, selector: &str| -> Vec<String> {
            let list = values((namespace, METRIC), Some(selector), &services, "now").unwrap();
            let shown =
                |item: &Value| format!("{} {}", item["metricLabels"]["service"], item["value"]);
            list["items"].as_array().unwrap().iter().map(shown).collect()
        };
        assert_eq!(names("shop", "service=web"), ["\"web\" \"2\""]);
        assert_eq!(names("other", "service=web"), ["\"web\" \"3\""]);
        assert_eq!(names("third", "service=listings"), ["\"listings\" \"13\""]);
        assert_eq!(names("third", ""), [""; 0], "one has no number");
        assert_eq!(names("third", "service!=new"), ["\"listings\" \"13\""]);
        assert_eq!(names("shop", "service=new"), [""; 0]);
        let list = values(("shop", METRIC), Some("port=80"), &services, "2026-11-30T00:00:00Z");
        let expected = json!({
            "kind": "ExternalMetricValueList",
            "apiVersion": "external.metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": [{
                "metricName": "weir_service_wanted_servers",
                "metricLabels": { "namespace": "shop", "port": "80", "service": "web" },
                "timestamp": "2026-11-30T00:00:00Z",
                "value": "2",
            }],
        });
        assert_eq!(list, Ok(expected));
        let code = |name: &str, selector: &str| {
            values(("shop", name), Some(selector), &services, "now").unwrap_err().0
        };
        assert_eq!(code("other", ""), 404);
        assert_eq!(code(METRIC, "a b"), 400);
        let many: Vec<_> =
            (0..=ITEMS_MAX).map(|one| scaled(&format!("s{one}"), Number::Known(1))).collect();
        let (code, status) = values(("shop", METRIC), None, &many, "now").unwrap_err();
        assert_eq!(code, 400, "{status}");
        let list = values(("shop", METRIC), None, &many[1..], "now").unwrap();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(ITEMS_MAX));
    }

    #[test]
    fn the_discovery_has_the_metric() {
        let list = discovery(Discovery::Resources, false);
        assert_eq!(list["resources"][0]["name"], METRIC);
        let groups = discovery(Discovery::Groups, true);
        assert_eq!(groups["items"][0]["versions"][0]["resources"][0]["resource"], METRIC);
        assert_eq!(discovery(Discovery::Groups, false)["groups"][0]["name"], GROUP);
        assert_eq!(discovery(Discovery::Group, false)["kind"], "APIGroup");
    }
}

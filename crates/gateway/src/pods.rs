//! The servers of a Service: the Pods in its EndpointSlices, never its cluster IP.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::objects::Key;
use crate::objects::core::{Endpoint, EndpointSlice};

/// A port of a Service: the Service, and the name of the port in it; `None`: it has none.
pub type ServicePortKey = (Key, Option<Arc<str>>);

/// The Pods of the Services' ports that are in use.
pub type PodSets = BTreeMap<ServicePortKey, Arc<[Pod]>>;

/// A Pod, as a server of a Service's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its address.
    pub address: SocketAddr,
    /// Its name; that of the EndpointSlice if the endpoint is no Pod.
    pub name: Arc<str>,
    /// Its UID, if it is a Pod: an address that returns with another one is another Pod.
    pub uid: Option<Arc<str>>,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// Whether it receives new requests.
    pub takes_requests: bool,
    /// The concurrency limit that it states, if it may.
    pub in_flight_max: Option<u32>,
    /// Whether it is used only when too few others are ready: the hints name other zones for it.
    pub is_backup: bool,
}

/// The annotation by which a Pod states its concurrency limit.
pub const LIMIT_ANNOTATION: &str = "weir.dev/in-flight-max";

/// Reads the value of [`LIMIT_ANNOTATION`].
pub fn limit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|limit| *limit > 0)
}

/// An endpoint before it is known what the others are.
struct Found<'a> {
    endpoint: &'a Endpoint,
    slice: &'a EndpointSlice,
}

impl Found<'_> {
    /// Absent means ready (the API's rule).
    fn is_ready(&self) -> bool {
        self.endpoint.conditions.ready.unwrap_or(true)
    }

    fn is_draining(&self) -> bool {
        let state = &self.endpoint.conditions;
        state.terminating == Some(true) && state.serving.unwrap_or(true)
    }

    fn is_hinted(&self, zone: &str) -> bool {
        let hints = self.endpoint.hints.iter().flat_map(|hints| &hints.for_zones);
        hints.into_iter().any(|hint| *hint.name == *zone)
    }

    fn has_hints(&self) -> bool {
        self.endpoint.hints.as_ref().is_some_and(|hints| !hints.for_zones.is_empty())
    }

    fn uid(&self) -> Option<&Arc<str>> {
        let pod = self.endpoint.target_ref.as_ref().filter(|target| target.kind == "Pod");
        pod.map(|pod| &pod.uid).filter(|uid| !uid.is_empty())
    }
}

/// Returns the Pods that serve a port of a Service, by address. `port` is the port's name in the Service, and `zone`
/// that of this balancer.
///
/// - A Pod that is ready receives requests. One that is ending but still serves receives them if no Pod is ready;
///   otherwise its requests end in peace. Others are left out.
/// - Of a Pod with addresses of both families, the IPv4 address is used: it is one server.
/// - If each Pod that receives requests has hints, and one of them is for `zone`, those for other zones are backups.
pub fn pods<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
    port: Option<&str>,
    zone: Option<&str>,
) -> Vec<Pod> {
    let mut found: BTreeMap<SocketAddr, Found<'a>> = BTreeMap::new();
    // The API server checks the names in slices of type FQDN as names only: some of them read like addresses.
    for slice in slices.into_iter().filter(|slice| slice.address_type != "FQDN") {
        let is_port = |name: Option<&str>| name.unwrap_or_default() == port.unwrap_or_default();
        let mut ports = slice.ports.iter().filter(|one| is_port(one.name.as_deref()));
        let number = ports.find_map(|one| one.port).and_then(|port| u16::try_from(port).ok());
        let Some(number) = number.filter(|port| *port != 0) else { continue };
        for endpoint in &slice.endpoints {
            let first = endpoint.addresses.first().and_then(|text| text.parse().ok());
            let Some(ip) = first.filter(|ip| !is_special(*ip)) else { continue };
            let one = Found { endpoint, slice };
            if !one.is_ready() && !one.is_draining() {
                continue;
            }
            // While an endpoint moves from one slice to another, it is in both.
            let address = SocketAddr::new(ip, number);
            if found.get(&address).is_none_or(|known| !known.is_ready()) {
                found.insert(address, one);
            }
        }
    }
    let with_ipv4: HashSet<Arc<str>> = found
        .iter()
        .filter(|(address, _)| address.is_ipv4())
        .filter_map(|(_, one)| one.uid().cloned())
        .collect();
    found.retain(|address, one| {
        address.is_ipv4() || one.uid().is_none_or(|uid| !with_ipv4.contains(uid))
    });
    let is_any_ready = found.values().any(Found::is_ready);
    let takes_requests = |one: &Found<'_>| one.is_ready() || !is_any_ready;
    let taking = || found.values().filter(|one| takes_requests(one));
    let zone = zone
        .filter(|zone| taking().all(Found::has_hints) && taking().any(|one| one.is_hinted(zone)));
    let pods = found.iter().map(|(address, one)| Pod {
        address: *address,
        name: Arc::clone(match &one.endpoint.target_ref {
            Some(target) => &target.name,
            None => &one.slice.metadata.name,
        }),
        uid: one.uid().cloned(),
        zone: one.endpoint.zone.clone(),
        takes_requests: takes_requests(one),
        in_flight_max: None,
        is_backup: zone.is_some_and(|zone| !one.is_hinted(zone)),
    });
    pods.collect()
}

/// Returns whether an address is not one of a Pod, but perhaps of this machine. The API server allows none of these.
fn is_special(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    };
    is_link_local || ip.is_loopback() || ip.is_unspecified() || ip.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(text: &str) -> EndpointSlice {
        serde_json::from_str(text).unwrap()
    }

    /// One character a Pod: its last address byte is its number; upper case takes requests, `*` marks backups.
    fn shown(pods: &[Pod]) -> String {
        let one = |pod: &Pod| {
            let mark = if pod.is_backup { "*" } else { "" };
            let state = if pod.takes_requests { "" } else { "-" };
            format!("{}{mark}{state}", pod.address)
        };
        pods.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_ready_serves_and_what_ends_is_used_last() {
        let state = |conditions: [&str; 3]| {
            let endpoints: Vec<String> = conditions
                .iter()
                .enumerate()
                .map(|(at, text)| {
                    format!(r#"{{"addresses": ["10.0.0.{at}"], "conditions": {{{text}}}}}"#)
                })
                .collect();
            slice(&format!(
                r#"{{"addressType": "IPv4", "endpoints": [{}], "ports": [{{"name": "http", "port": 80}}]}}"#,
                endpoints.join(",")
            ))
        };
        let ending = r#""ready": false, "serving": true, "terminating": true"#;
        let dead = r#""ready": false, "serving": false, "terminating": true"#;
        let unready = r#""ready": false"#;
        for (conditions, expected) in [
            (["", "", ""], "10.0.0.0:80 10.0.0.1:80 10.0.0.2:80"),
            ([r#""ready": true"#, unready, r#""ready": null"#], "10.0.0.0:80 10.0.0.2:80"),
            (["", ending, dead], "10.0.0.0:80 10.0.0.1:80-"),
            ([unready, ending, dead], "10.0.0.1:80"),
            ([unready, unready, dead], ""),
        ] {
            assert_eq!(shown(&pods([&state(conditions)], Some("http"), None)), expected);
        }
        assert_eq!(pods([&state(["", "", ""])], Some("metrics"), None), []);
        assert_eq!(pods([&state(["", "", ""])], None, None), []);
    }

    #[test]
    fn empty_lists_and_ports_out_of_range_are_read() {
        for text in [
            r#"{"addressType": "IPv4", "endpoints": null, "ports": null}"#,
            r#"{"endpoints": [{"addresses": null}], "ports": [{"port": 80}]}"#,
            r#"{"endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 70000}]}"#,
            r#"{"endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": -1}]}"#,
            r#"{"endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 0}]}"#,
        ] {
            assert_eq!(pods([&slice(text)], None, None), [], "{text}");
        }
    }

    #[test]
    fn limits_are_numbers_from_1() {
        for (text, expected) in
            [("8", Some(8)), ("0", None), ("-1", None), ("8.0", None), ("", None), ("many", None)]
        {
            assert_eq!(limit(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_no_pods() {
        for (kind, address, count) in [
            ("IPv4", "10.0.0.1", 1),
            ("IPv6", "fd00::1", 1),
            ("FQDN", "10.0.0.1", 0),
            ("IPv4", "127.0.0.1", 0),
            ("IPv4", "169.254.169.254", 0),
            ("IPv4", "0.0.0.0", 0),
            ("IPv4", "224.0.0.1", 0),
            ("IPv6", "::1", 0),
            ("IPv6", "::ffff:127.0.0.1", 0),
            ("IPv6", "fe80::1", 0),
        ] {
            let text = format!(
                r#"{{"addressType": "{kind}", "ports": [{{"port": 80}}], "endpoints": [{{"addresses": ["{address}"]}}]}}"#
            );
            assert_eq!(pods([&slice(&text)], None, None).len(), count, "{kind} {address}");
        }
    }

    #[test]
    fn slices_are_merged_and_a_pod_with_two_families_is_one_server() {
        let one = slice(
            r#"{"metadata": {"name": "web-1"}, "ports": [{"port": 80}], "endpoints": [
                {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "a", "uid": "1"}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": true, "terminating": true}},
                {"addresses": ["web.example"]}, {"addresses": []}]}"#,
        );
        let other = slice(
            r#"{"metadata": {"name": "web-2"}, "ports": [{"name": "", "port": 80}], "endpoints": [
                {"addresses": ["10.0.0.2"]}]}"#,
        );
        let second_family = slice(
            r#"{"metadata": {"name": "web-3"}, "ports": [{"port": 80}], "endpoints": [
                {"addresses": ["fd00::1"], "targetRef": {"kind": "Pod", "name": "a", "uid": "1"}},
                {"addresses": ["fd00::9"], "targetRef": {"kind": "Pod", "name": "b", "uid": "9"}}]}"#,
        );
        let found = pods([&one, &other, &second_family], None, None);
        assert_eq!(shown(&found), "10.0.0.1:80 10.0.0.2:80 [fd00::9]:80");
        assert_eq!(found.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["a", "web-2", "b"]);
    }

    #[test]
    fn hints_are_followed_only_if_all_have_them_and_one_is_for_this_zone() {
        let hinted = |zones: [Option<&str>; 3]| {
            let endpoints: Vec<String> = zones
                .iter()
                .enumerate()
                .map(|(at, zone)| {
                    let hints = zone.map_or_else(String::new, |zone| {
                        format!(r#", "hints": {{"forZones": [{{"name": "{zone}"}}]}}"#)
                    });
                    format!(r#"{{"addresses": ["10.0.0.{at}"], "zone": "z"{hints}}}"#)
                })
                .collect();
            slice(&format!(
                r#"{{"endpoints": [{}], "ports": [{{"port": 1}}]}}"#,
                endpoints.join(",")
            ))
        };
        let all = "10.0.0.0:1 10.0.0.1:1 10.0.0.2:1";
        for (zones, own, expected) in [
            ([Some("a"), Some("b"), Some("a")], Some("a"), "10.0.0.0:1 10.0.0.1:1* 10.0.0.2:1"),
            ([Some("a"), Some("b"), None], Some("a"), all),
            ([Some("a"), Some("b"), Some("a")], Some("c"), all),
            ([Some("a"), Some("b"), Some("a")], None, all),
        ] {
            assert_eq!(shown(&pods([&hinted(zones)], None, own)), expected, "{zones:?} {own:?}");
        }
    }
}

//! The kinds of objects that Weir watches: names, versions and paths of the API. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gateway::ir::RouteKind;
use gateway::objects::ingress::NETWORKING_GROUP;
use gateway::objects::{GATEWAY_GROUP, WEIR_GROUP};
use model::Moment;

/// The groups of the kinds that are defined by CRDs.
pub(crate) const CRD_GROUPS: [&str; 2] = [GATEWAY_GROUP, WEIR_GROUP];

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    GatewayClass,
    Gateway,
    ListenerSet,
    HttpRoute,
    GrpcRoute,
    TlsRoute,
    TcpRoute,
    ReferenceGrant,
    BackendTlsPolicy,
    ServicePolicy,
    RoutePolicy,
    Ingress,
    IngressClass,
    Namespace,
    Service,
    EndpointSlice,
    /// See [`Kind::is_fetched`].
    Secret,
    /// See [`Kind::is_fetched`].
    ConfigMap,
    /// Pods of namespaces in which they may state limits. Only those that do are kept.
    Pod,
    /// The Services that Weir makes for Gateways.
    OwnService,
}

impl Kind {
    pub(crate) const ALL: [Kind; 20] = [
        Kind::GatewayClass,
        Kind::Gateway,
        Kind::ListenerSet,
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::TlsRoute,
        Kind::TcpRoute,
        Kind::ReferenceGrant,
        Kind::BackendTlsPolicy,
        Kind::ServicePolicy,
        Kind::RoutePolicy,
        Kind::Ingress,
        Kind::IngressClass,
        Kind::Namespace,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::Pod,
        Kind::OwnService,
    ];

    /// Returns the kind's name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::GatewayClass => "GatewayClass",
            Kind::Gateway => "Gateway",
            Kind::ListenerSet => "ListenerSet",
            Kind::HttpRoute => "HTTPRoute",
            Kind::GrpcRoute => "GRPCRoute",
            Kind::TlsRoute => "TLSRoute",
            Kind::TcpRoute => "TCPRoute",
            Kind::ReferenceGrant => "ReferenceGrant",
            Kind::BackendTlsPolicy => "BackendTLSPolicy",
            Kind::ServicePolicy => "ServicePolicy",
            Kind::RoutePolicy => "RoutePolicy",
            Kind::Ingress => "Ingress",
            Kind::IngressClass => "IngressClass",
            Kind::Namespace => "Namespace",
            Kind::Service | Kind::OwnService => "Service",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Secret => "Secret",
            Kind::ConfigMap => "ConfigMap",
            Kind::Pod => "Pod",
        }
    }

    /// Returns the name that paths of the API have.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Kind::GatewayClass => "gatewayclasses",
            Kind::Gateway => "gateways",
            Kind::ListenerSet => "listenersets",
            Kind::HttpRoute => "httproutes",
            Kind::GrpcRoute => "grpcroutes",
            Kind::TlsRoute => "tlsroutes",
            Kind::TcpRoute => "tcproutes",
            Kind::ReferenceGrant => "referencegrants",
            Kind::BackendTlsPolicy => "backendtlspolicies",
            Kind::ServicePolicy => "servicepolicies",
            Kind::RoutePolicy => "routepolicies",
            Kind::Ingress => "ingresses",
            Kind::IngressClass => "ingressclasses",
            Kind::Namespace => "namespaces",
            Kind::Service | Kind::OwnService => "services",
            Kind::EndpointSlice => "endpointslices",
            Kind::Secret => "secrets",
            Kind::ConfigMap => "configmaps",
            Kind::Pod => "pods",
        }
    }

    /// Returns the kind's API group.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Kind::EndpointSlice => "discovery.k8s.io",
            Kind::Ingress | Kind::IngressClass => NETWORKING_GROUP,
            Kind::Namespace
            | Kind::Service
            | Kind::OwnService
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::Pod => "",
            Kind::GatewayClass
            | Kind::Gateway
            | Kind::ListenerSet
            | Kind::HttpRoute
            | Kind::GrpcRoute
            | Kind::TlsRoute
            | Kind::TcpRoute
            | Kind::ReferenceGrant
            | Kind::BackendTlsPolicy => GATEWAY_GROUP,
            Kind::ServicePolicy | Kind::RoutePolicy => WEIR_GROUP,
        }
    }

    /// Returns the kinds that are defined by CRDs, which may be absent: those of the Gateway API, and Weir's own.
    pub(crate) fn of_crds() -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| kind.is_of_crd())
    }

    /// Returns whether the kind is defined by a CRD.
    pub(crate) fn is_of_crd(self) -> bool {
        CRD_GROUPS.contains(&self.group())
    }

    /// Returns the versions that Weir understands, the preferred one first.
    pub(crate) fn versions(self) -> &'static [&'static str] {
        match self {
            Kind::GatewayClass | Kind::Gateway | Kind::HttpRoute | Kind::ReferenceGrant => {
                &["v1", "v1beta1"]
            }
            Kind::TlsRoute => &["v1", "v1alpha3", "v1alpha2"],
            Kind::TcpRoute => &["v1", "v1alpha2"],
            Kind::BackendTlsPolicy => &["v1", "v1alpha3"],
            Kind::ServicePolicy | Kind::RoutePolicy => &["v1alpha1"],
            Kind::ListenerSet
            | Kind::GrpcRoute
            | Kind::Ingress
            | Kind::IngressClass
            | Kind::Namespace
            | Kind::Service
            | Kind::OwnService
            | Kind::EndpointSlice
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::Pod => &["v1"],
        }
    }

    /// Returns whether Weir can serve nothing without this kind: the CRDs are not installed.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Kind::GatewayClass | Kind::Gateway | Kind::HttpRoute)
    }

    /// Returns whether Weir works without this kind if it may not read it.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Kind::Ingress | Kind::IngressClass | Kind::Pod)
    }

    /// Returns whether the start waits for the kind. Pods only lower limits, and which are watched is up to users of the
    /// cluster.
    pub(crate) fn is_awaited(self) -> bool {
        self != Kind::Pod
    }

    /// Returns whether objects of the kind are in namespaces.
    pub(crate) fn is_namespaced(self) -> bool {
        !matches!(self, Kind::GatewayClass | Kind::IngressClass | Kind::Namespace)
    }

    /// Returns whether only the metadata of objects are asked for.
    pub(crate) fn is_metadata_only(self) -> bool {
        matches!(self, Kind::Namespace | Kind::Pod) || self.is_fetched()
    }

    /// Returns whether the contents of those objects that are referred to are read one by one: objects of the kind can be
    /// large or secret, and most of a cluster's have nothing to do with Weir.
    pub(crate) fn is_fetched(self) -> bool {
        matches!(self, Kind::Secret | Kind::ConfigMap)
    }

    /// Returns whether Weir writes the status of the kind.
    pub(crate) fn has_status(self) -> bool {
        self == Kind::Ingress || self.is_of_crd() && self != Kind::ReferenceGrant
    }

    /// Returns the kind of a route of the Gateway API.
    pub(crate) fn of_route(kind: RouteKind) -> Option<Kind> {
        match kind {
            RouteKind::Http => Some(Kind::HttpRoute),
            RouteKind::Grpc => Some(Kind::GrpcRoute),
            RouteKind::Tls => Some(Kind::TlsRoute),
            RouteKind::Tcp => Some(Kind::TcpRoute),
            RouteKind::Ingress => None,
        }
    }

    /// Returns the kind of route that it is.
    pub(crate) fn route(self) -> Option<RouteKind> {
        match self {
            Kind::HttpRoute => Some(RouteKind::Http),
            Kind::GrpcRoute => Some(RouteKind::Grpc),
            Kind::TlsRoute => Some(RouteKind::Tls),
            Kind::TcpRoute => Some(RouteKind::Tcp),
            _ => None,
        }
    }

    /// Returns the path of the kind's objects: of one namespace, or of all.
    pub(crate) fn path(self, version: &str, namespace: Option<&str>) -> String {
        let root = match self.group() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let plural = self.plural();
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// What one watch asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Source {
    /// The kind.
    pub(crate) kind: Kind,
    /// One namespace. `None`: all.
    pub(crate) namespace: Option<Arc<str>>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.plural())?;
        match &self.namespace {
            Some(namespace) => write!(f, " of namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// The kinds that the API server has, and their versions.
pub(crate) type Versions = BTreeMap<Kind, &'static str>;

/// Returns the version of each kind of a group. `found` has the resources of each version that the API server serves.
pub(crate) fn versions(group: &str, found: &BTreeMap<String, BTreeSet<String>>) -> Versions {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.group() == group);
    let versions = kinds.filter_map(|kind| {
        let has = |version: &&&str| {
            found.get(**version).is_some_and(|plurals| plurals.contains(kind.plural()))
        };
        kind.versions().iter().find(has).map(|version| (kind, *version))
    });
    versions.collect()
}

/// Decides from repeated answers which kinds there are.
///
/// An API server that starts offers CRDs one after the other, and one of several may be behind the others. So at the
/// start, an answer without some kinds must be repeated. Later, a kind is gone only if all answers of
/// [`Discovered::GONE_AFTER`] are without it and its own list does not exist either.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    /// The kinds that there are.
    pub(crate) versions: Versions,
    /// Whether the kinds at the start are known.
    pub(crate) is_settled: bool,
    /// The last answer, and since when it has been the same.
    last: Option<(Versions, Moment)>,
    /// Since when the answers have been without a kind that is in `versions`.
    missing: BTreeMap<Kind, Moment>,
}

impl Discovered {
    /// For this long all answers must be without a kind.
    const GONE_AFTER: Duration = Duration::from_secs(60);
    /// For this long the answers at the start must be the same, if they are without some kinds.
    const SETTLED_AFTER: Duration = Duration::from_secs(2);

    /// Takes an answer. `has_no_list` returns whether the API server answers the kind's own list with 404.
    pub(crate) fn answer(
        &mut self,
        answer: Versions,
        now: Moment,
        has_no_list: impl Fn(Kind) -> bool,
    ) {
        let has_required =
            Kind::of_crds().all(|kind| !kind.is_required() || answer.contains_key(&kind));
        let has_all = Kind::of_crds().all(|kind| answer.contains_key(&kind));
        let since = match self.last.take() {
            Some((last, since)) if last == answer => since,
            Some(_) | None => now,
        };
        let is_repeated = now.since(since) >= Self::SETTLED_AFTER;
        self.is_settled |= has_required && (has_all || is_repeated);
        for kind in Kind::of_crds() {
            match answer.get(&kind) {
                Some(version) => {
                    self.missing.remove(&kind);
                    self.versions.insert(kind, version);
                }
                None if self.versions.contains_key(&kind) => {
                    let since = *self.missing.entry(kind).or_insert(now);
                    if now.since(since) >= Self::GONE_AFTER && has_no_list(kind) {
                        self.missing.remove(&kind);
                        self.versions.remove(&kind);
                    }
                }
                None => {}
            }
        }
        self.last = Some((answer, since));
    }

    /// Notes that there was no answer: what is missing is no longer missing in all answers.
    pub(crate) fn failed(&mut self) {
        self.missing.clear();
    }

    /// Returns the kinds of CRDs that the API server does not have.
    pub(crate) fn absent(&self) -> impl Iterator<Item = Kind> {
        Kind::of_crds().filter(|kind| !self.versions.contains_key(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Versions {
        Kind::of_crds().map(|kind| (kind, "v1")).collect()
    }

    fn without(kinds: &[Kind]) -> Versions {
        let mut versions = all();
        versions.retain(|kind, _| !kinds.contains(kind));
        versions
    }

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(Kind::Secret.path("v1", None), "/api/v1/secrets");
        assert_eq!(
            Kind::HttpRoute.path("v1", Some("a")),
            "/apis/gateway.networking.k8s.io/v1/namespaces/a/httproutes"
        );
        assert_eq!(
            Kind::EndpointSlice.path("v1", None),
            "/apis/discovery.k8s.io/v1/endpointslices"
        );
    }

    #[test]
    fn the_preferred_version_that_is_served_is_used() {
        let plurals = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found: BTreeMap<String, BTreeSet<String>> = [
            ("v1".to_owned(), plurals(&["gateways", "gateways/status", "httproutes"])),
            ("v1beta1".to_owned(), plurals(&["gateways", "referencegrants"])),
            ("v1alpha2".to_owned(), plurals(&["tlsroutes", "grpcroutes"])),
        ]
        .into();
        let expected = [
            (Kind::Gateway, "v1"),
            (Kind::HttpRoute, "v1"),
            (Kind::TlsRoute, "v1alpha2"),
            (Kind::ReferenceGrant, "v1beta1"),
        ];
        assert_eq!(versions(GATEWAY_GROUP, &found), expected.into());
        let found = [("v1alpha1".to_owned(), plurals(&["routepolicies"]))].into();
        assert_eq!(versions(WEIR_GROUP, &found), [(Kind::RoutePolicy, "v1alpha1")].into());
        assert_eq!(versions(GATEWAY_GROUP, &found), [].into());
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn missing_kinds_at_the_start_are_confirmed() {
        let mut discovered = Discovered::default();
        for second in 0..10 {
            discovered.answer(Versions::new(), at(second), |_| true);
        }
        assert!(!discovered.is_settled, "the required kinds are missing");
        discovered.answer(without(&[Kind::TcpRoute, Kind::TlsRoute]), at(10), |_| true);
        assert!(!discovered.is_settled);
        discovered.answer(without(&[Kind::TcpRoute]), at(12), |_| true);
        assert!(!discovered.is_settled, "another answer");
        discovered.answer(without(&[Kind::TcpRoute]), at(13), |_| true);
        assert!(!discovered.is_settled, "too early");
        discovered.answer(without(&[Kind::TcpRoute]), at(14), |_| true);
        assert!(discovered.is_settled);
        assert_eq!(discovered.absent().collect::<Vec<_>>(), [Kind::TcpRoute]);
        let mut discovered = Discovered::default();
        discovered.answer(all(), at(0), |_| false);
        assert!(discovered.is_settled);
    }

    #[test]
    fn a_kind_is_gone_only_if_it_stays_away_and_has_no_list() {
        let mut discovered = Discovered::default();
        let gone = || without(&[Kind::TcpRoute]);
        discovered.answer(all(), at(0), |_| false);
        for second in [10, 30, 50, 69] {
            discovered.answer(Versions::new(), at(second), |_| true);
            assert_eq!(discovered.versions, all(), "{second}");
        }
        // It was there once in the meantime.
        discovered.answer(all(), at(69), |_| true);
        for second in [70, 90, 110, 129] {
            discovered.answer(gone(), at(second), |_| true);
            assert_eq!(discovered.versions, all(), "{second}");
        }
        discovered.answer(gone(), at(130), |_| false);
        assert_eq!(discovered.versions, all(), "its objects can be listed");
        discovered.answer(gone(), at(150), |kind| kind == Kind::TcpRoute);
        assert_eq!(discovered.versions, gone());
        discovered.answer(all(), at(170), |_| false);
        assert_eq!(discovered.versions, all());
    }

    #[test]
    fn a_kind_is_not_gone_if_the_server_was_away() {
        let mut discovered = Discovered::default();
        discovered.answer(all(), at(0), |_| false);
        discovered.answer(Versions::new(), at(20), |_| true);
        discovered.failed();
        discovered.answer(Versions::new(), at(90), |_| true);
        assert_eq!(discovered.versions, all());
        discovered.answer(Versions::new(), at(150), |_| true);
        assert!(discovered.versions.is_empty());
    }
}

//! The connection to Kubernetes: its settings from the configuration, and its events in the log.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use admin::Source;
use admin::external_metrics::{Ask, Delegate};
use config::SYSTEM_AUTHORITIES;
use gateway::pods::PodSets;
use gateway::resolve::{Checks, INGRESS_CONTROLLER};
use gateway::served::{InForce, Served};
use gateway::{ir, parts};
use kubernetes::{Event, Exposure, Handle, Health, Settings};
use model::{GATEWAY_CONTROLLER, GatewayExposure, Kubernetes, Material, Moment, Snapshot};
use tokio::sync::watch;

/// The namespace of a Pod, as its service account has it.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The features of the Gateway API that Weir supports, as a GatewayClass lists them. `GatewayInfrastructure` is not among
/// them: the labels and annotations are copied to a Service in Weir's namespace, and the feature wants one in that of
/// the Gateway.
const FEATURES: &[&str] = &[
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayBackendClientCertificate",
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "GatewayStaticAddresses",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
];

/// Those whose fields only the CRDs of the experimental channel have.
const EXPERIMENTAL_FEATURES: &[&str] =
    &["HTTPRouteRetry", "HTTPRouteRetryBackendTimeout", "HTTPRouteRetryConnectionError"];

/// The connection to Kubernetes. It has a thread of its own.
pub(crate) struct Cluster {
    handle: Handle,
    in_force: watch::Sender<Arc<InForce>>,
}

impl Cluster {
    /// Connects to Kubernetes if the configuration says so.
    ///
    /// # Errors
    /// The settings cannot work, or the system cannot create a thread.
    pub(crate) fn start(snapshot: &Snapshot) -> Result<Option<Cluster>, String> {
        let Some(kubernetes) = snapshot.kubernetes.as_deref() else { return Ok(None) };
        let (in_force, seen) = watch::channel(Arc::default());
        let settings = settings(kubernetes, snapshot);
        let handle = kubernetes::start(settings, seen, Box::new(|event| log(&event)))
            .map_err(|error| format!("kubernetes: {error}"))?;
        Ok(Some(Cluster { handle, in_force }))
    }

    /// Returns what Gateways serve.
    pub(crate) fn served(&self) -> watch::Receiver<Arc<Served>> {
        self.handle.served.clone()
    }

    /// Returns the Pods of Services.
    pub(crate) fn pods(&self) -> watch::Receiver<Arc<PodSets>> {
        self.handle.pods.clone()
    }

    /// Returns what describes the connection, for the API, metrics and findings.
    pub(crate) fn status(&self) -> Source<admin_api::status::Kubernetes> {
        let health = self.handle.health.clone();
        Arc::new(move || {
            // The sender is dropped when the thread ends.
            let is_running = health.has_changed().is_ok();
            let health = Arc::clone(&health.borrow());
            describe(&health, is_running, os::clock::now())
        })
    }

    /// Returns what authenticates and authorizes clients of the external metrics API, if it is served.
    pub(crate) fn delegate(&self) -> Option<Delegate> {
        let reviews = self.handle.reviews.clone()?;
        let front_proxy = reviews.front_proxy.clone();
        let ask: Ask = Arc::new(move |review| {
            let reviews = reviews.clone();
            Box::pin(async move { reviews.ask(review).await })
        });
        Some(Delegate { ask, front_proxy })
    }

    /// Reports what is in force of what Gateways serve.
    pub(crate) fn in_force(&self, in_force: InForce) {
        self.in_force.send_replace(Arc::new(in_force));
    }

    /// Gives up the Lease, so that another instance writes, and goes on reading.
    pub(crate) fn leave(&mut self) {
        self.handle.leave();
    }

    /// Gives up the Lease and ends the thread.
    pub(crate) fn stop(self) {
        self.handle.stop();
    }
}

/// Describes the connection. Pure.
fn describe(health: &Health, is_running: bool, now: Moment) -> admin_api::status::Kubernetes {
    let reasons = |all: &BTreeMap<String, Arc<str>>| {
        all.iter().map(|(what, why)| (what.clone(), why.to_string())).collect()
    };
    let millis = |since: Moment| admin_api::rounded(now.since(since).as_secs_f64() * 1e3);
    admin_api::status::Kubernetes {
        running: is_running,
        connected: health.is_connected,
        disconnected_for_ms: (!health.is_connected).then(|| millis(health.since)),
        error: health.last_error.as_deref().map(str::to_owned),
        awaited: health.awaited.iter().cloned().collect(),
        not_followed_for_ms: health.not_followed_since.map(millis),
        leading: health.is_leading,
        writes_waiting: health.writes_waiting,
        failing: reasons(&health.failing),
        forbidden: health.forbidden.iter().cloned().collect(),
        absent: health.absent.iter().map(|kind| (*kind).to_owned()).collect(),
        unreadable: reasons(&health.unreadable),
    }
}

fn log(event: &Event) {
    if event.is_warning() {
        tracing::warn!("{event}");
    } else {
        tracing::info!("{event}");
    }
}

fn settings(kubernetes: &Kubernetes, snapshot: &Snapshot) -> Settings {
    let Kubernetes { kubeconfig, controller, namespaces, namespace, external_names, exposure } =
        kubernetes;
    let exposure = match exposure {
        GatewayExposure::Services { pods, port_first, port_last } => Exposure::Services {
            selector: pods.iter().cloned().collect::<BTreeMap<_, _>>(),
            port_first: *port_first,
            port_last: *port_last,
            // Clients of both families.
            listen: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        },
        GatewayExposure::Addresses(addresses) => Exposure::Pool { addresses: addresses.clone() },
    };
    Settings {
        kubeconfig: kubeconfig.clone(),
        controller_name: Arc::clone(controller),
        // Another installation in the cluster has another name, in both.
        ingress_controller_name: if **controller == *GATEWAY_CONTROLLER {
            INGRESS_CONTROLLER.into()
        } else {
            Arc::clone(controller)
        },
        namespaces: (!namespaces.is_empty()).then(|| namespaces.clone()),
        // In a Pod, the host's name is the Pod's.
        identity: os::process::host_name().trim().into(),
        namespace: namespace.clone().unwrap_or_else(own_namespace),
        lease: lease(controller),
        zone: snapshot.zone.clone(),
        exposure,
        features: FEATURES.to_vec(),
        experimental_features: EXPERIMENTAL_FEATURES.to_vec(),
        allow_external_names: *external_names,
        has_reviews: snapshot.external_metrics.is_some(),
        checks: Checks { certificate, authorities, system },
    }
}

/// Checks a certificate as listeners use it.
fn certificate(of: &ir::Certificate) -> Result<(), String> {
    let checked = tls::certificate(&parts::certificate(of)).map(|_| ());
    checked.map_err(|mistake| format!("cannot be used: {mistake}"))
}

/// Checks authorities as listeners and services use them.
fn authorities(of: &ir::Authorities) -> Result<(), String> {
    let checked = tls::authorities(&parts::authorities(std::slice::from_ref(of))).map(|_| ());
    checked.map_err(|mistake| format!("cannot be used: {mistake}"))
}

/// Returns the authorities that this system trusts.
fn system() -> Option<Material> {
    SYSTEM_AUTHORITIES.iter().find_map(|path| {
        let bytes = std::fs::read(path).ok()?.into();
        Some(Material { path: path.into(), bytes })
    })
}

fn own_namespace() -> Arc<str> {
    let of_pod = std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
    match of_pod.trim() {
        "" => "default".into(),
        name => name.into(),
    }
}

/// Returns the name of the Lease: one for each controller.
fn lease(controller: &str) -> Arc<str> {
    let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name: String = controller
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if is_kept(c) { c } else { '-' })
        .take(200)
        .collect();
    format!("weir-{}", name.trim_matches('-')).into()
}

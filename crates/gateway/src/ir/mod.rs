//! The intermediate representation: what Weir serves for the accepted Gateways and for Ingresses, independent of Weir's
//! configuration.

pub mod app_protocol;
pub mod backend;
pub mod extras;
pub mod filter;
pub mod headers;
pub mod ingress;
pub mod request;
pub mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;
use model::{HostPattern, ObjectAge};

use crate::objects::Key;
pub use crate::objects::core::{Authorities, Certificate};
use crate::objects::gateway::Address;
use backend::{Backend, ServicePort, Target};
use request::RequestRule;

/// An accepted Gateway, or what an IngressClass implies: the same for all its Ingresses together.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// The Gateway.
    pub key: Key,
    /// Its GatewayClass or IngressClass.
    pub class: Arc<str>,
    /// The addresses that its `spec` requests. Empty: any address.
    pub addresses: Vec<Address>,
    /// The valid listeners of each port, in order of precedence.
    pub ports: BTreeMap<u16, Vec<Listener>>,
    /// The certificate that Weir presents to servers with TLS.
    pub client_certificate: Option<Certificate>,
    /// The ports of Services that its routes forward to.
    pub services: ServicePorts,
}

/// Ports of Services, by Service and port. Copies share what they have in common.
pub type ServicePorts = OrdMap<(Key, u16), Arc<ServicePort>>;

impl Gateway {
    /// Returns whether both serve the same. Faster than `==` if they share routes.
    pub fn is_same(&self, other: &Gateway) -> bool {
        let Gateway { key, class, addresses, ports, client_certificate, services } = self;
        (key, class, addresses) == (&other.key, &other.class, &other.addresses)
            && *client_certificate == other.client_certificate
            && ports.len() == other.ports.len()
            && ports.iter().zip(&other.ports).all(|((port, ours), (other, theirs))| {
                port == other
                    && ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(a, b)| a.is_same(b))
            })
            && (services.ptr_eq(&other.services) || *services == other.services)
    }
}

/// Identifies a listener of a Gateway. Displayed as `namespace/gateway:listener`, or as
/// `namespace/gateway:namespace/set:listener` for a listener of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId {
    /// The Gateway that serves it.
    pub gateway: Key,
    /// The ListenerSet that defines it. `None`: the Gateway defines it.
    pub set: Option<Key>,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.set {
            Some(set) => write!(f, "{}:{set}:{}", self.gateway, self.name),
            None => write!(f, "{}:{}", self.gateway, self.name),
        }
    }
}

/// A valid listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Identifies it.
    pub id: ListenerId,
    /// Its protocol.
    pub protocol: Protocol,
    /// The host (or server name) that it accepts. `None`: any.
    pub host: Option<HostPattern>,
    /// The certificates that it presents.
    pub certificates: Vec<Certificate>,
    /// How it verifies certificates of clients. `None`: it requests none.
    pub client_validation: Option<ClientValidation>,
    /// The accepted routes, oldest first. A TCP listener serves only the first.
    pub routes: Arc<Vec<Arc<AttachedRoute>>>,
}

impl Listener {
    fn is_same(&self, other: &Listener) -> bool {
        let Listener { id, protocol, host, certificates, client_validation, routes } = self;
        (id, protocol, host) == (&other.id, &other.protocol, &other.host)
            && *certificates == other.certificates
            && *client_validation == other.client_validation
            && (Arc::ptr_eq(routes, &other.routes)
                || routes.len() == other.routes.len()
                    && routes.iter().zip(&*other.routes).all(|(a, b)| Arc::ptr_eq(a, b) || a == b))
    }
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
    /// TLS, decrypted here and forwarded as bytes.
    TlsTerminate,
    /// TLS, forwarded without decrypting it.
    TlsPassthrough,
    /// TCP.
    Tcp,
}

impl Protocol {
    /// Returns the name that the API has for it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Https => "HTTPS",
            Protocol::TlsTerminate | Protocol::TlsPassthrough => "TLS",
            Protocol::Tcp => "TCP",
        }
    }

    /// Returns whether the listener decrypts TLS.
    pub fn terminates_tls(self) -> bool {
        match self {
            Protocol::Https | Protocol::TlsTerminate => true,
            Protocol::Http | Protocol::TlsPassthrough | Protocol::Tcp => false,
        }
    }
}

/// How certificates of clients are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientValidation {
    /// The authorities that issue them.
    pub authorities: Vec<Authorities>,
    /// Which clients are accepted.
    pub mode: ClientMode,
}

/// Which clients are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMode {
    /// Those with a valid certificate.
    AllowValidOnly,
    /// All, even without a valid certificate.
    AllowInsecureFallback,
}

/// A route at a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachedRoute {
    /// The route, shared by all listeners that it is attached to.
    pub route: Arc<Route>,
    /// The hosts (or server names) that it serves at this listener; `None` among them: any.
    pub hosts: Vec<Option<HostPattern>>,
}

/// A kind of route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteKind {
    /// `HTTPRoute`.
    Http,
    /// `GRPCRoute`.
    Grpc,
    /// `TLSRoute`.
    Tls,
    /// `TCPRoute`.
    Tcp,
    /// `Ingress`. One becomes several routes, because its hosts have different rules.
    Ingress,
}

impl RouteKind {
    /// Returns the kind's name in the API.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::Http => "HTTPRoute",
            RouteKind::Grpc => "GRPCRoute",
            RouteKind::Tls => "TLSRoute",
            RouteKind::Tcp => "TCPRoute",
            RouteKind::Ingress => "Ingress",
        }
    }
}

/// Identifies a route.
pub type RouteId = (RouteKind, Key);

/// A route, without what depends on its listeners.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its kind.
    pub kind: RouteKind,
    /// The object.
    pub key: Key,
    /// Of two routes with equal matches, that with the lesser number wins. 0, except for Ingresses.
    pub rank: u32,
    /// Then the older one wins.
    pub age: Arc<ObjectAge>,
    /// Its valid rules.
    pub rules: Rules,
}

impl Route {
    /// Returns what the routes of a listener are ordered by: the older one first.
    pub fn order(&self) -> (u32, &ObjectAge, RouteKind) {
        (self.rank, &self.age, self.kind)
    }

    /// Returns its rules for requests.
    pub fn requests(&self) -> &[RequestRule] {
        match &self.rules {
            Rules::Requests(rules) => rules,
            Rules::Connections(_) => &[],
        }
    }

    /// Returns the ports of Services that it forwards to, or that are asked about its requests.
    pub fn ports(&self) -> impl Iterator<Item = &Arc<ServicePort>> {
        self.forwarded().chain(self.asked())
    }

    /// Returns the ports of Services that are asked about its requests.
    pub fn asked(&self) -> impl Iterator<Item = &Arc<ServicePort>> {
        let asked = self.requests().iter().filter_map(|rule| rule.extras.as_ref()?.asked());
        asked.filter_map(Target::service)
    }

    /// Returns the ports of Services that it forwards to, those included that receive copies.
    pub fn forwarded(&self) -> impl Iterator<Item = &Arc<ServicePort>> {
        let requests = self.requests();
        let connections = match &self.rules {
            Rules::Requests(_) => &[][..],
            Rules::Connections(rules) => rules,
        };
        let backends = requests.iter().flat_map(|rule| &rule.backends);
        let backends = backends.chain(connections.iter().flat_map(|rule| &rule.backends));
        let mirrors = requests.iter().flat_map(|rule| &rule.filters.mirrors);
        let targets = backends.map(|one| &one.target).chain(mirrors.map(|one| &one.target));
        targets.filter_map(Target::service)
    }
}

/// The rules of a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Rules {
    /// Of an HTTPRoute, a GRPCRoute or an Ingress.
    Requests(Vec<RequestRule>),
    /// Of a TLSRoute, a TCPRoute or an Ingress with TLS passthrough.
    Connections(Vec<ConnectionRule>),
}

/// A rule of a TLSRoute or TCPRoute.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionRule {
    /// Its position in the object.
    pub index: usize,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Where connections go. Empty: they are closed.
    pub backends: Vec<Backend>,
}

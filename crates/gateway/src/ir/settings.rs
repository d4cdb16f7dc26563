//! What an Ingress states for the Services that it forwards to. Annotations of ingress-nginx state it.

use std::sync::Arc;
use std::time::Duration;

use model::{Affinity, Balance, RouteRetries};

use super::Certificate;
use super::app_protocol::AppProtocol;
use crate::objects::Key;

/// How requests to a port of a Service are sent and balanced. `None`: as the Service or the configuration's defaults state.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSettings {
    /// The Ingress that states it. Its requests to one port of a Service all have the same settings, canaries excepted.
    pub ingress: Key,
    /// Whether it is for the requests of a canary.
    pub is_canary: bool,
    /// The application protocol.
    pub protocol: Option<AppProtocol>,
    /// The balancing algorithm.
    pub balance: Option<Balance>,
    /// Session affinity.
    pub affinity: Option<Affinity>,
    /// How long a connection may take to be established.
    pub connect: Option<Duration>,
    /// How long the head of a response may take.
    pub response: Option<Duration>,
    /// The longest pause in a body.
    pub idle: Option<Duration>,
    /// The longest pause in a tunnel, such as a WebSocket.
    pub tunnel: Option<Duration>,
    /// When requests are retried.
    pub retries: RouteRetries,
    /// Connections use TLS. A BackendTLSPolicy for the Service precedes it.
    pub tls: Option<UpstreamTls>,
}

/// How connections to Pods use TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The server name that is sent, and verified if certificates are. `None`: the address.
    pub name: Option<Arc<str>>,
    /// The authorities, as PEM, with the Secret that has them. `None`: certificates are not verified.
    pub authorities: Option<(Key, Arc<[u8]>)>,
    /// The certificate that is presented.
    pub certificate: Option<Certificate>,
}

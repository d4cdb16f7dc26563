//! The protocol of a listener, and the kinds of routes that it supports.

use crate::ir::{Protocol, RouteKind};
use crate::objects::GATEWAY_GROUP;
use crate::objects::gateway::{Listener, RouteGroupKind};
use crate::resolve::status::Problem;

/// Returns the protocol of a listener.
///
/// # Errors
///
/// Why the listener is not accepted.
pub fn protocol(spec: &Listener) -> Result<Protocol, Problem> {
    let mode = spec.tls.as_ref().and_then(|tls| tls.mode.as_deref()).unwrap_or("Terminate");
    let unsupported = || {
        let protocol = &spec.protocol;
        let message = format!("tls.mode {mode} is not supported for the protocol {protocol}.");
        Problem::new("UnsupportedValue", message)
    };
    match (&*spec.protocol, mode) {
        ("HTTP", _) => Ok(Protocol::Http),
        ("HTTPS", "Terminate") => Ok(Protocol::Https),
        ("TLS", "Terminate") => Ok(Protocol::TlsTerminate),
        ("TLS", "Passthrough") => Ok(Protocol::TlsPassthrough),
        ("TCP", _) => Ok(Protocol::Tcp),
        ("HTTPS" | "TLS", _) => Err(unsupported()),
        (other, _) => Err(Problem::new(
            "UnsupportedProtocol",
            format!("Weir does not support the protocol {other}. Use HTTP, HTTPS, TLS or TCP."),
        )),
    }
}

/// Returns the kinds of routes that fit a protocol.
fn fitting(protocol: Protocol) -> &'static [RouteKind] {
    match protocol {
        Protocol::Http | Protocol::Https => &[RouteKind::Http, RouteKind::Grpc],
        Protocol::TlsTerminate | Protocol::TlsPassthrough => &[RouteKind::Tls],
        Protocol::Tcp => &[RouteKind::Tcp],
    }
}

/// Returns the supported kinds among the allowed ones, and a problem if others are allowed, too.
pub fn supported(
    protocol: Protocol,
    allowed: &[RouteGroupKind],
) -> (Vec<RouteKind>, Option<Problem>) {
    if allowed.is_empty() {
        return (fitting(protocol).to_vec(), None);
    }
    let mut kinds = Vec::new();
    let mut wrong = Vec::new();
    for one in allowed {
        let group = one.group.as_deref().unwrap_or(GATEWAY_GROUP);
        let mut fitting = fitting(protocol).iter();
        match fitting.find(|kind| group == GATEWAY_GROUP && kind.name() == one.kind) {
            Some(kind) if kinds.contains(kind) => {}
            Some(kind) => kinds.push(*kind),
            None => wrong.push(one.kind.as_str()),
        }
    }
    let problem = (!wrong.is_empty()).then(|| {
        let fitting: Vec<&str> = fitting(protocol).iter().map(|kind| kind.name()).collect();
        Problem::new(
            "InvalidRouteKinds",
            format!(
                "allowedRoutes.kinds has {}, which a listener with the protocol {} does not \
                 support. Allow {}.",
                wrong.join(", "),
                protocol.name(),
                fitting.join(" or ")
            ),
        )
    });
    (kinds, problem)
}

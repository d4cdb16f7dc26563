//! Names and attributes of an access line by OpenTelemetry's semantic conventions for HTTP (stable), TLS,
//! network and RPC. What they have no name for begins with `weir.`; durations there are in seconds.

use crate::attributes::Attributes;
use crate::line::{Line, Tcp};
use crate::peer::{is_address, split};

/// The methods that the convention knows: those of RFC 9110, and PATCH. All others are `_OTHER`, so that a
/// client cannot create names of spans without bound.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// Returns how names of spans begin: the method, or `HTTP` for an unknown one; `TCP`.
pub(crate) fn method_name<'l>(line: &'l Line<'_>) -> &'l str {
    let method = line.method.as_str();
    match (line.is_tcp(), METHODS.contains(&method)) {
        (true, _) => "TCP",
        (false, true) => method,
        (false, false) => "HTTP",
    }
}

/// Returns the name of a line's server span: the method and the route, or else the service; of a TCP
/// connection, the listener.
pub(crate) fn server_name(line: &Line<'_>) -> String {
    let route = match (line.is_tcp(), line.route.as_str(), line.service.as_str()) {
        (true, _, _) => line.listener.as_str(),
        (false, "", service) => service,
        (false, route, _) => route,
    };
    format!("{} {route}", method_name(line)).trim_end().to_owned()
}

/// Returns a line's attributes, for its server span and for its log record.
pub(crate) fn attributes(line: &Line<'_>) -> Attributes {
    let mut out = Attributes::default();
    if !line.is_tcp() {
        add_http(line, &mut out);
    }
    add_network(line, &mut out);
    out.text("error.type", &error_type(line));
    add_weir(line, &mut out);
    add_durations(line, &mut out);
    out.share("weir.sample_rate", line.sample_rate);
    if let Some(tcp) = &line.tcp {
        add_tcp(tcp, &mut out);
    }
    out
}

fn add_http(line: &Line<'_>, out: &mut Attributes) {
    add_method(line, out);
    out.text("url.path", line.path.as_str());
    out.text("url.scheme", if line.tls.is_some() { "https" } else { "http" });
    out.whole("http.response.status_code", line.status);
    out.whole("http.request.body.size", line.request_bytes);
    out.whole("http.response.body.size", line.response_bytes);
    out.whole("rpc.grpc.status_code", line.grpc_status);
    if let Some((name, version)) = line.protocol.as_str().split_once('/') {
        out.text("network.protocol.name", &name.to_ascii_lowercase());
        out.text("network.protocol.version", version);
    }
}

/// Adds the method of a request.
pub(crate) fn add_method(line: &Line<'_>, out: &mut Attributes) {
    let method = line.method.as_str();
    if METHODS.contains(&method) {
        out.text("http.request.method", method);
    } else if !method.is_empty() {
        out.text("http.request.method", "_OTHER");
        out.text("http.request.method_original", method);
    }
}

fn add_network(line: &Line<'_>, out: &mut Attributes) {
    add_address(line.host.as_str(), "server", out);
    add_address(line.client.as_str(), "client", out);
    // Without a proxy in between, the client is the other end of the connection.
    let peer = if line.peer.as_str().is_empty() { &line.client } else { &line.peer };
    add_address(peer.as_str(), "network.peer", out);
    if line.is_tcp() {
        out.text("network.transport", "tcp");
        out.whole("weir.tcp.client.bytes", line.request_bytes);
        out.whole("weir.tcp.server.bytes", line.response_bytes);
    }
    if let Some(tls) = &line.tls {
        // The convention has the number alone: 1.3 of TLSv1.3.
        out.text("tls.protocol.version", tls.version.as_str().trim_start_matches("TLSv"));
        out.text("tls.cipher", tls.cipher.as_str());
    }
    out.text("enduser.id", line.user.as_str());
}

/// Adds `<of>.address` and `<of>.port`.
fn add_address(address: &str, of: &str, out: &mut Attributes) {
    let (host, port) = split(address);
    out.text(&format!("{of}.address"), host);
    out.whole(&format!("{of}.port"), port);
}

/// Adds the address of the server of an attempt, as the peer too if it is one and not a name.
pub(crate) fn add_server(server: &str, out: &mut Attributes) {
    add_address(server, "server", out);
    if is_address(server) {
        add_address(server, "network.peer", out);
    }
}

/// Returns the cause of an exchange that failed, or its status if a server sent that; else nothing. A client's error
/// is no error of the server span.
fn error_type(line: &Line<'_>) -> String {
    match (line.failed(), line.cause.as_str(), line.status) {
        (false, _, _) => String::new(),
        (true, "completed" | "", Some(status)) => status.to_string(),
        (true, cause, _) => cause.to_owned(),
    }
}

fn add_weir(line: &Line<'_>, out: &mut Attributes) {
    for (key, value) in [
        ("weir.listener", &line.listener),
        ("weir.route", &line.route),
        ("weir.service", &line.service),
        ("weir.server", &line.server),
        ("weir.zone", &line.zone),
        ("weir.cause", &line.cause),
    ] {
        out.text(key, value.as_str());
    }
    out.text("weir.fault", line.fault().as_str());
    out.text("weir.detail", line.detail.as_str());
    out.text("weir.request_id", line.request_id.as_str());
    out.whole("weir.attempts", line.attempts);
    out.text("weir.not_retried", line.not_retried.as_str());
    // Without an attempt there is no connection.
    if let Some(reused) = line.reused.filter(|_| line.attempts != Some(0)) {
        out.truth("weir.connection.reused", reused);
    }
    out.text("weir.decision", line.decision.map_or("", serde_json::value::RawValue::get));
    if let Some(trace) = &line.trace {
        out.text("weir.exported_for", trace.why.as_str());
    }
}

fn add_durations(line: &Line<'_>, out: &mut Attributes) {
    out.seconds("weir.auth.duration", line.auth_ms);
    out.seconds("weir.queue.duration", line.queue_ms);
    out.seconds("weir.connect.duration", line.connect_ms);
    out.seconds("weir.first_byte.duration", line.first_byte_ms);
}

fn add_tcp(tcp: &Tcp, out: &mut Attributes) {
    out.seconds("weir.tcp.client.rtt", tcp.client_rtt_ms);
    out.whole("weir.tcp.client.retransmits", tcp.client_retransmits);
    out.seconds("weir.tcp.server.rtt", tcp.server_rtt_ms);
    out.whole("weir.tcp.server.retransmits", tcp.server_retransmits);
}

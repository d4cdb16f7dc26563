//! Reads `[kubernetes]`.

use std::net::IpAddr;
use std::sync::Arc;

use model::{GATEWAY_CONTROLLER, GatewayExposure, Kubernetes};

use super::table::{Table, is_empty_list};
use super::{RawAutoscaler, autoscaler, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};

/// The label that Weir's manifests give its Pods.
const POD_LABEL: (&str, &str) = ("app.kubernetes.io/name", "weir");

/// Returns the settings, and the listener for external metrics.
pub(super) fn read(mut table: Table<'_>) -> (Kubernetes, Option<RawAutoscaler>) {
    let kubeconfig = table.text("kubeconfig", paths::absolute).map(|at| at.value);
    let controller = table.text("controller", controller).map(|at| at.value);
    let namespaces = table.texts("namespaces", namespace).unwrap_or_default();
    if is_empty_list(table.peek("namespaces")) {
        let span = table.span_of("namespaces");
        table.problems.report(
            Diagnostic::error("no namespace is read", span, "an empty list")
                .help("leave `namespaces` out to read all"),
        );
    }
    let own = table.text("namespace", namespace).map(|at| at.value);
    let external_names = table.boolean("external_names");
    let exposure = exposure(&mut table);
    let external_metrics = table.table("external_metrics").and_then(autoscaler::external_metrics);
    table.finish();
    let kubernetes = Kubernetes {
        kubeconfig,
        controller: controller.unwrap_or_else(|| GATEWAY_CONTROLLER.into()),
        namespaces: namespaces.into_iter().map(|at| at.value).collect(),
        namespace: own,
        external_names,
        exposure,
    };
    (kubernetes, external_metrics)
}

fn exposure(table: &mut Table<'_>) -> GatewayExposure {
    let addresses = table.texts("addresses", |text| {
        text.parse::<IpAddr>().map_err(|_| Wrong::new("not an IP address"))
    });
    let pods = table.map("pods", label, label_value);
    let pods = pods.into_iter().map(|(name, value)| (name.value, value.value)).collect::<Vec<_>>();
    let (first, last) =
        (table.integer_if::<u16>("port_first"), table.integer_if::<u16>("port_last"));
    if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
        for key in ["pods", "port_first", "port_last"] {
            if let Some(span) = table.key_span(key) {
                table.problems.report(
                    Diagnostic::warning(
                        format!("`{key}` has no effect beside `addresses`"),
                        span,
                        "for Services of Gateways",
                    )
                    .help(format!("remove `{key}`")),
                );
            }
        }
        return GatewayExposure::Addresses(addresses.into_iter().map(|at| at.value).collect());
    }
    let value = |at: &Option<At<u16>>, usual| at.as_ref().map_or(usual, |at| at.value);
    let port_first = value(&first, defaults::GATEWAY_PORT_FIRST);
    let port_last = value(&last, defaults::GATEWAY_PORT_LAST);
    if let Some(at) = last.or(first).filter(|_| port_last < port_first) {
        table.problems.report(
            Diagnostic::error("no port for Gateways", at.span, "`port_last` is below `port_first`")
                .help("write port_first = 10_000 and port_last = 10_999, for instance"),
        );
    }
    let usual = || vec![(POD_LABEL.0.to_owned(), POD_LABEL.1.to_owned())];
    let pods = if pods.is_empty() { usual() } else { pods };
    GatewayExposure::Services { pods, port_first, port_last }
}

fn controller(text: &str) -> Result<Arc<str>, Wrong> {
    // The Gateway API's definition of a controllerName.
    let (domain, path) = text.split_once('/').unwrap_or_default();
    if domain.is_empty() || path.is_empty() || text.len() > 253 || !text.bytes().all(is_plain) {
        return Err(Wrong::new("not the name of a controller").help("write \"example.com/weir\""));
    }
    Ok(text.into())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte)
}

/// Parses the name of a namespace: a label of the DNS (RFC 1123).
fn namespace(text: &str) -> Result<Arc<str>, Wrong> {
    if is_dns_label(text) {
        return Ok(text.into());
    }
    Err(Wrong::new("not the name of a namespace")
        .help("it has up to 63 lower-case letters, digits and hyphens"))
}

fn is_dns_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Parses the key of a label: a name of up to 63 characters, perhaps after a domain and a slash.
fn label(text: &str) -> Result<String, Wrong> {
    let (domain, name) = text.split_once('/').map_or((None, text), |(a, b)| (Some(a), b));
    let is_domain =
        domain.is_none_or(|domain| domain.len() <= 253 && domain.split('.').all(is_dns_label));
    if is_domain && !name.is_empty() && is_label_text(name) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("not the key of a label").help("write \"app.kubernetes.io/name\", for instance"))
}

fn label_value(text: &str) -> Result<String, Wrong> {
    if is_label_text(text) { Ok(text.to_owned()) } else { Err(Wrong::new("not a label's value")) }
}

/// Returns whether a text is empty, or what the name or the value of a label may be.
fn is_label_text(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || text.len() <= 63
            && text.bytes().all(is_inner)
            && text.starts_with(is_end)
            && text.ends_with(is_end)
}

/// A reference to a Service's port.
#[derive(Debug)]
pub(crate) struct RawServicePort {
    pub(crate) namespace: Arc<str>,
    pub(crate) service: Arc<str>,
    /// The port's name; `None`: it has none.
    pub(crate) port: Option<Arc<str>>,
}

/// Parses the reference to a Service's port: `namespace/service`, or `namespace/service:port`.
pub(super) fn service_port(text: &str) -> Result<RawServicePort, Wrong> {
    let wrong = || {
        Wrong::new("not a Service in Kubernetes").help(
            "write \"NAMESPACE/SERVICE\", or \"NAMESPACE/SERVICE:PORT\" with the name of its port",
        )
    };
    let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
    let (service, port) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
    let all = [Some(namespace), Some(service), port];
    if !all.into_iter().flatten().all(is_dns_label) {
        return Err(wrong());
    }
    if let Some(port) = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(Wrong::new(format!("{port} is a number")).help(
            "write the name that the port has in the Service, or leave it out if it has none",
        ));
    }
    let (namespace, service) = (namespace.into(), service.into());
    Ok(RawServicePort { namespace, service, port: port.map(Into::into) })
}

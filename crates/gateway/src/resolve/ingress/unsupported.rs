//! Annotations that have no effect, and what to do instead. None is ignored silently.

use super::annotations::{Annotations, is_protective};
use crate::resolve::status::Problem;

/// At most this many names are listed in one message.
const NAMES_MAX: usize = 12;

/// What to do instead of some of them.
const ADVICE: &[(&str, &str)] = &[
    (
        "configuration-snippet",
        "Weir has no configuration of nginx. State what it does with other annotations.",
    ),
    (
        "server-snippet",
        "Weir has no configuration of nginx. State what it does with other annotations.",
    ),
    ("stream-snippet", "Weir has no configuration of nginx. Use a TCPRoute or a TLSRoute."),
    (
        "modsecurity-snippet",
        "Weir has no web application firewall. Put one in front of the backends.",
    ),
    (
        "enable-modsecurity",
        "Weir has no web application firewall. Put one in front of the backends.",
    ),
    (
        "enable-owasp-core-rules",
        "Weir has no web application firewall. Put one in front of the backends.",
    ),
    (
        "proxy-body-size",
        "The limit is that of Weir's listeners, body_max in [defaults.listener] of the configuration file.",
    ),
    ("client-body-buffer-size", "Weir forwards bodies while it reads them."),
    (
        "limit-connections",
        "Use limit-rps, or limit the connections of all clients in the configuration file.",
    ),
    ("limit-rate", "Weir does not limit bandwidth."),
    ("limit-rate-after", "Weir does not limit bandwidth."),
    ("limit-whitelist", "The limits are for all clients."),
    ("custom-http-errors", "Weir forwards the error responses of backends as they are."),
    (
        "default-backend",
        "Without ready Pods, requests receive the status 503. Use spec.defaultBackend for requests that no rule matches.",
    ),
    ("enable-access-log", "The access log of the configuration file covers all requests."),
    ("service-upstream", "Weir sends requests to the Pods of a Service."),
    ("mirror-request-body", "Bodies are copied, too."),
    ("mirror-host", "Copies have the host of the request."),
    ("satisfy", "All conditions must be met."),
    ("affinity-canary-behavior", "The canary's weight is applied to each request."),
    ("session-cookie-domain", "The cookie is for the host that sets it."),
    ("session-cookie-change-on-failure", "The cookie changes when its server fails."),
    ("session-cookie-conditional-samesite-none", "The cookie has SameSite=Lax."),
    ("upstream-hash-by-subset", "The key chooses one server."),
    ("proxy-redirect-from", "Let the backends send the right Location."),
    ("proxy-redirect-to", "Let the backends send the right Location."),
    ("proxy-cookie-domain", "Let the backends set the right cookies."),
    ("proxy-cookie-path", "Let the backends set the right cookies."),
    ("custom-headers", "Use an HTTPRoute with the filter ResponseHeaderModifier."),
    (
        "ssl-ciphers",
        "The cipher suites are those of [defaults.listener] in the configuration file.",
    ),
    (
        "ssl-prefer-server-ciphers",
        "The cipher suites are those of [defaults.listener] in the configuration file.",
    ),
    ("enable-global-auth", "There is no global authentication."),
];

/// Annotations of ingress-nginx whose meaning fits what Weir does anyway, if they have one of these values.
const FITTING: &[(&str, &[&str])] = &[
    ("enable-access-log", &["true"]),
    ("enable-rewrite-log", &["false"]),
    ("enable-modsecurity", &["false"]),
    ("enable-owasp-core-rules", &["false"]),
    ("enable-opentelemetry", &["false"]),
    ("enable-global-auth", &["false"]),
    ("service-upstream", &["false"]),
    ("mirror-request-body", &["on"]),
    ("satisfy", &["all"]),
    ("proxy-buffering", &["off"]),
    ("proxy-request-buffering", &["off"]),
    ("proxy-http-version", &["1.1"]),
    ("http2-push-preload", &["false"]),
    ("session-cookie-change-on-failure", &["true"]),
    ("session-cookie-conditional-samesite-none", &["false"]),
    ("upstream-hash-by-subset", &["false"]),
    ("auth-tls-verify-client", &["off"]),
    ("auth-proxy-set-headers", &[]),
];

/// Records all annotations that have not been read.
pub fn report(annotations: &mut Annotations<'_>) {
    let mut others = Vec::new();
    for (name, value) in annotations.take_unread() {
        let fitting = FITTING.iter().find(|(known, _)| *known == name);
        if fitting.is_some_and(|(_, values)| values.contains(&value)) {
            continue;
        }
        if name.starts_with("auth-tls-") {
            let why = "is not supported, because a port has one setting for certificates of \
                       clients. Use a Gateway of its own with tls.frontend";
            annotations.unsupported(name, why);
        } else if is_protective(name) {
            annotations.unsupported(name, "is not supported");
        } else if let Some((_, advice)) = ADVICE.iter().find(|(known, _)| *known == name) {
            annotations.note(name, advice);
        } else {
            others.push(name);
        }
    }
    if others.is_empty() {
        return;
    }
    let shown: Vec<String> = others
        .iter()
        .take(NAMES_MAX)
        .map(|name| name.chars().take(60).flat_map(char::escape_debug).collect())
        .collect();
    let more = others.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "Weir does not know these annotations of ingress-nginx, which have no effect: {}{more}. \
         Remove them.",
        shown.join(", ")
    );
    annotations.add(Problem::new("UnknownAnnotation", message));
}

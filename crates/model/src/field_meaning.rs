//! Names of fields that have a meaning of their own, and so cannot be chosen for another use.

/// Returns a field's name in lower case and as a server sees it that reads some characters, most often `_`, as `-`.
pub fn hyphened_field(name: &str) -> String {
    name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// Returns whether a field has a meaning in requests or responses, such that it cannot carry sessions.
pub fn has_field_meaning(name: &str) -> bool {
    const OF_RESPONSES: [&str; 25] = [
        "age",
        "alt-svc",
        "allow",
        "cdn-cache-control",
        "clear-site-data",
        "critical-ch",
        "etag",
        "expires",
        "last-modified",
        "link",
        "location",
        "nel",
        "origin-agent-cluster",
        "permissions-policy",
        "referrer-policy",
        "refresh",
        "report-to",
        "reporting-endpoints",
        "retry-after",
        "server-timing",
        "strict-transport-security",
        "timing-allow-origin",
        "vary",
        "warning",
        "www-authenticate",
    ];
    /// Also those with which authentication servers name the sender.
    const PREFIXES: [&str; 3] = ["cross-origin-", "x-forwarded", "x-frame-options"];
    let hyphened = hyphened_field(name);
    has_request_field_meaning(name)
        || OF_RESPONSES.contains(&&*hyphened)
        || PREFIXES.iter().any(|prefix| hyphened.starts_with(prefix))
}

/// Returns whether a field, by its name in lower case, already tells servers something about the
/// request's origin, or has a meaning between client and server.
pub fn has_request_field_meaning(name: &str) -> bool {
    const RESERVED: [&str; 35] = [
        "authorization",
        "cache-control",
        "cf-connecting-ip",
        "client-cert",
        "client-cert-chain",
        "cookie",
        "date",
        "dnt",
        "early-data",
        "forwarded",
        "from",
        "http2-settings",
        "max-forwards",
        "origin",
        "pragma",
        "prefer",
        "priority",
        "range",
        "referer",
        "server",
        "set-cookie",
        "traceparent",
        "tracestate",
        "true-client-ip",
        "upgrade-insecure-requests",
        "user-agent",
        "via",
        "x-client-ip",
        "x-client-subject",
        "x-http-method-override",
        "x-original-url",
        "x-real-ip",
        "x-request-id",
        "x-requested-with",
        "x-rewrite-url",
    ];
    /// Of negotiation, representations, conditional requests, CORS, user agents, gRPC, and Weir.
    const PREFIXES: [&str; 10] = [
        "accept",
        "access-control-",
        "content-",
        "grpc-",
        "if-",
        "proxy-",
        "sec-",
        "weir-",
        "x-accel-",
        "x-forwarded",
    ];
    /// Of the sender, as authentication servers such as oauth2-proxy name them.
    const OF_SENDER: [&str; 4] = [
        "x-forwarded-email",
        "x-forwarded-groups",
        "x-forwarded-preferred-username",
        "x-forwarded-user",
    ];
    let name = hyphened_field(name);
    let is_reserved =
        RESERVED.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_reserved && !OF_SENDER.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_meaning() {
        for (name, in_requests, at_all) in [
            ("shop-session", false, false),
            ("x-user", false, false),
            ("Set_Cookie", true, true),
            ("date", true, true),
            ("traceparent", true, true),
            ("access-control-max-age", true, true),
            ("Location", false, true),
            ("www_authenticate", false, true),
            ("x-forwarded-user", false, true),
        ] {
            assert_eq!(has_request_field_meaning(name), in_requests, "{name}");
            assert_eq!(has_field_meaning(name), at_all, "{name}");
        }
    }
}

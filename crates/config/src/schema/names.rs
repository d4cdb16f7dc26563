//! Recognises key names of other programs, and keys in the wrong table.

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::keys::TOP;
use super::spec::{Kind, TableSpec};
use crate::diagnostic::{Diagnostic, Span, nearest, quote};

/// Keys under the names of other balancers, or plausible guesses.
const KEY_ALIASES: &[(&str, &[&str])] = &[
    ("address", &["bind", "listen", "addr", "url", "ip", "endpoint", "target"]),
    ("backlog", &["listen_backlog"]),
    ("access", &["file", "access_log", "path", "output"]),
    ("fields", &["members", "keys", "json_format", "columns"]),
    ("redact_query", &["redact", "mask", "hide", "redact_parameters"]),
    ("sample", &["sampling", "sample_rate", "rate"]),
    ("syslog", &["address", "target", "server", "collector"]),
    ("app_name", &["tag", "ident", "appname", "program"]),
    ("balance", &["algorithm", "lb_policy", "load_balancing", "lb_algorithm", "policy"]),
    ("body_max", &["client_max_body_size", "max_body_size", "body_size_max"]),
    ("check", &["health_check", "healthcheck", "health", "httpchk", "health_checks", "checks"]),
    ("connections_max", &["maxconn", "max_connections", "worker_connections"]),
    ("deny", &["return", "block", "status"]),
    (
        "drain_delay",
        &["grace_delay", "shutdown_delay", "pre_stop", "lameduck", "request_accept_grace_timeout"],
    ),
    ("drain_max", &["grace", "grace_period", "shutdown_timeout", "hard_stop_after", "drain"]),
    ("eject", &["eject_time", "base_ejection_time", "fail_timeout"]),
    (
        "error_page",
        &["errorfile", "errorfiles", "http_error", "error_pages", "errors", "custom_errors"],
    ),
    ("expect", &["expected", "status", "expected_status", "codes", "match"]),
    ("cause", &["causes", "reason"]),
    ("status", &["code", "codes", "statuses", "status_code"]),
    ("failures", &["max_fails", "consecutive_5xx"]),
    ("fall", &["unhealthy_threshold", "failures", "fails"]),
    ("forward_fields", &["forwardfor", "forwarded", "x_forwarded"]),
    ("kind", &["type", "check_type"]),
    ("head_max", &["large_client_header_buffers", "header_max", "max_header_size"]),
    ("header", &["headers"]),
    ("host", &["hosts", "hostname", "domain", "server_name", "hostnames"]),
    ("idle_connections_max", &["keepalive", "pool_size", "pool_max_conn"]),
    (
        "in_flight_max",
        &[
            "maxconn",
            "max_conns",
            "max_connections",
            "max_requests",
            "concurrency",
            "limit",
            "connections_max",
        ],
    ),
    ("interval", &["inter", "period", "every"]),
    ("path", &["path_prefix", "prefix", "uri", "url", "location", "paths"]),
    ("path_exact", &["exact_path", "exact"]),
    ("queue", &["maxqueue", "queue_max"]),
    ("compress", &["compression", "gzip", "encode", "compressor"]),
    ("codings", &["algo", "algorithms", "encodings", "encoding"]),
    ("types", &["type", "gzip_types", "mime_types", "content_types"]),
    ("length_min", &["minsize", "gzip_min_length", "min_length", "size_min"]),
    ("cors", &["cross_origin", "cors_policy", "cors_filter", "allow_origin"]),
    (
        "origins",
        &[
            "allow_origins",
            "allow_origin",
            "allowed_origins",
            "access_control_allow_origin_list",
            "allow_origin_string_match",
            "origin",
        ],
    ),
    ("methods", &["allow_methods", "allowed_methods", "access_control_allow_methods", "method"]),
    ("expose", &["expose_headers", "exposed_headers", "access_control_expose_headers"]),
    ("credentials", &["allow_credentials", "access_control_allow_credentials"]),
    ("max_age", &["access_control_max_age", "maxage", "ttl"]),
    ("mirror", &["mirrors", "shadow", "mirroring", "request_mirror"]),
    ("rate_limit", &["ratelimit", "limit_req", "rate"]),
    ("request_header", &["request_headers", "request_fields", "headers_request"]),
    ("response_header", &["response_headers", "response_fields", "add_header"]),
    ("request_buffers_max", &["client_body_buffer_size", "http_buffer_request"]),
    ("rise", &["healthy_threshold", "passes"]),
    ("server", &["servers", "backend", "backends", "upstreams", "endpoints", "members", "nodes"]),
    (
        "service",
        &[
            "backend",
            "upstream",
            "cluster",
            "to",
            "services",
            "default_backend",
            "servers",
            "backends",
            "upstreams",
            "use_backend",
            "pool",
        ],
    ),
    (
        "listener",
        &["frontend", "listen", "listeners", "entrypoint", "entrypoints", "bind", "server"],
    ),
    ("route", &["routes", "rule", "rules", "location", "routers"]),
    ("slow_start", &["slowstart"]),
    ("timeouts", &["timeout"]),
    ("wait_max", &["timeout", "wait", "max_wait"]),
    ("length_max", &["size", "length", "max", "max_length"]),
    ("weight", &["weights", "share"]),
    ("when_all_down", &["all_down", "panic", "panic_threshold"]),
    ("workers", &["threads", "nbthread", "worker_processes", "nbproc", "concurrency"]),
    ("tls", &["ssl", "https"]),
    ("certificates", &["certificate", "cert", "certs", "crt", "ssl_certificate", "pem"]),
    ("chain", &["cert", "crt", "certificate", "fullchain", "ssl_certificate", "cert_file"]),
    ("key", &["private_key", "ssl_certificate_key", "key_file"]),
    ("ocsp", &["ocsp_staple", "stapling", "ssl_stapling_file"]),
    ("version_min", &["min_version", "ssl_min_ver", "ssl_protocols", "version", "versions"]),
    (
        "client_certificates",
        &["client_auth", "mtls", "verify_client", "ssl_verify_client", "client_ca", "verify", "ca"],
    ),
    ("ca", &["ca_file", "cafile", "roots", "trusted_ca", "ssl_client_certificate"]),
    ("name", &["sni", "server_name"]),
    ("verify", &["insecure", "insecure_skip_verify", "proxy_ssl_verify"]),
    ("certificate", &["client_certificate", "cert", "crt"]),
    ("server_names", &["sni", "names", "ssl_preread"]),
    ("http2", &["h2", "alpn"]),
    ("proxy_protocol", &["accept_proxy", "proxy"]),
    ("socket", &["unix", "unix_socket", "permissions"]),
    ("mode", &["socket_mode", "permissions", "chmod", "umask"]),
    ("http", &["http_version", "proto", "protocol", "alpn", "h2", "http2"]),
    ("send_proxy", &["proxy_protocol", "send_proxy_v2"]),
    ("grpc_service", &["service_name", "grpc_service_name", "service"]),
    ("zone", &["locality", "az", "availability_zone", "region", "zones"]),
    ("trusted", &["trusted_proxies", "set_real_ip_from", "trust", "trusted_networks"]),
    ("client_address", &["real_ip", "client_ip", "real_ip_header", "forwardfor"]),
    ("hops", &["xff_num_trusted_hops", "trusted_hops", "depth", "num_trusted_hops"]),
    ("redirect", &["redirect_to", "return"]),
    ("respond", &["direct_response", "static_response", "response", "answer", "static"]),
    (
        "headers",
        &[
            "header",
            "fields",
            "response_headers",
            "add_header",
            "allow_headers",
            "allowed_headers",
            "access_control_allow_headers",
        ],
    ),
    ("content_type", &["type", "media_type", "mime_type", "default_type"]),
    ("file", &["body_file", "path", "filename", "template"]),
    ("body", &["text", "content", "string", "inline_string"]),
    ("retries", &["retry"]),
    (
        "affinity",
        &["sticky", "sticky_session", "session_affinity", "session_persistence", "persistence"],
    ),
    ("lifetime_max", &["max_age", "maxlife", "absolute_timeout", "expires", "ttl"]),
    ("idle_max", &["maxidle", "idle_timeout"]),
    ("otlp", &["opentelemetry", "otel", "telemetry", "tracing", "otlp_exporter"]),
    ("endpoint", &["url", "collector", "otel_exporter_otlp_endpoint", "grpc_service"]),
    ("service_name", &["service.name", "otel_service_name"]),
    (
        "acme",
        &[
            "certificates_resolvers",
            "certificatesresolvers",
            "cert_resolver",
            "certresolver",
            "lets_encrypt",
            "letsencrypt",
            "domains",
            "automatic_https",
            "auto_https",
            "certbot",
        ],
    ),
    ("directory", &["ca_server", "caserver", "acme_ca", "directory_url", "server", "uri"]),
    ("contacts", &["email", "contact", "emails", "mail"]),
    ("terms_agreed", &["agree_tos", "terms_of_service_agreed", "accept_tos", "tos"]),
    ("external_account", &["eab", "acme_eab", "external_account_binding"]),
    ("key_id", &["kid"]),
    ("hmac_key_file", &["hmac", "mac_key", "hmac_encoded", "hmac_key"]),
    (
        "challenge",
        &["challenges", "http_challenge", "httpchallenge", "tls_challenge", "tlschallenge"],
    ),
    ("state_directory", &["storage", "storage_path", "state_path", "data_dir"]),
    ("renewal", &["renew", "renewal_window_ratio", "certificates_duration"]),
    ("advertise", &["advertise_addr", "advertise_address", "advertised_address"]),
    ("members", &["join", "start_join", "retry_join", "seeds", "peers"]),
    ("keys", &["key", "secret", "secrets", "encrypt", "encrypt_key", "keyring", "key_file"]),
    ("maintenance", &["maintenance_mode", "down", "disabled"]),
    ("max", &["attempts", "num_retries", "count", "retry_count"]),
    ("status", &["retry_on", "on", "codes", "statuses", "retriable_status_codes", "next_upstream"]),
    ("backoff", &["interval", "base_interval", "initial_interval", "retry_back_off", "delay"]),
];

/// A key of Weir's own that was renamed; the old name is still read.
#[derive(Debug)]
pub(crate) struct Renamed {
    /// The path of its table, as in [`TableSpec::path`].
    pub(crate) table: &'static str,
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    /// The first version that will not read the old name.
    pub(crate) until: &'static str,
}

/// Every key that was renamed and whose old name is still read.
pub(crate) const RENAMED: &[Renamed] =
    &[Renamed { table: "service.NAME.retries", old: "attempts_max", new: "max", until: "0.2" }];

impl Renamed {
    /// Returns the entry for the key formerly called `old` in `table`.
    pub(crate) fn from_old(table: &TableSpec, old: &str) -> Option<&'static Renamed> {
        RENAMED.iter().find(|renamed| renamed.table == table.path && renamed.old == old)
    }

    /// Returns the entry for the key now called `new` in `table`.
    pub(crate) fn to_new(table: &TableSpec, new: &str) -> Option<&'static Renamed> {
        RENAMED.iter().find(|renamed| renamed.table == table.path && renamed.new == new)
    }

    /// Returns the key prefixed with the last part of its table's path: `retries.max`.
    fn dotted(&self, key: &str) -> String {
        match self.table.rsplit('.').next() {
            Some(table) if !table.is_empty() => format!("{table}.{key}"),
            _ => key.to_owned(),
        }
    }

    /// Returns the diagnostic for a file that has the old name at `old`: a warning, or an error if
    /// the new name is also present, at `new`.
    pub(crate) fn diagnostic(&self, old: Span, new: Option<Span>) -> Diagnostic {
        let (was, is) = (self.dotted(self.old), self.dotted(self.new));
        match new {
            Some(new) => Diagnostic::error(
                format!("`{was}` and `{is}` are the same key"),
                old,
                "the old name",
            )
            .other(new, "the new name")
            .help(format!("leave `{}` out", self.old)),
            None => Diagnostic::warning(
                format!("`{was}` is now `{is}`; the old name is read until {}", self.until),
                old,
                "the old name",
            )
            .help(format!("write `{}`", self.new)),
        }
    }
}

/// Words under the names of other balancers.
const WORD_ALIASES: &[(&str, &[&str])] = &[
    ("round-robin", &["roundrobin", "round_robin", "rr", "static-rr", "wrr"]),
    (
        "least-connections",
        &[
            "leastconn",
            "least_conn",
            "least-conn",
            "least_request",
            "least-requests",
            "least-outstanding-requests",
        ],
    ),
    ("peak-ewma", &["ewma", "least_time", "latency"]),
    ("random", &["p2c", "power-of-two", "power-of-two-choices"]),
    (
        "hash",
        &[
            "source",
            "ip_hash",
            "ip-hash",
            "ring_hash",
            "maglev",
            "consistent",
            "uri",
            "consistent-hash",
        ],
    ),
    ("balancer", &["local", "instance", "own"]),
    ("fleet", &["cluster", "global", "shared"]),
    ("try-all", &["all", "panic", "try_all"]),
    ("refuse", &["503", "fail", "reject"]),
    ("stdout", &["-", "console", "on"]),
    ("off", &["none", "no", "false", "disabled"]),
    ("text", &["plain", "human", "logfmt"]),
    ("combined", &["clf", "common", "ncsa", "apache", "nginx"]),
    ("haproxy", &["httplog", "tcplog", "option httplog"]),
    ("http", &["http1", "http/1.1", "https", "h1"]),
    ("tcp", &["stream", "l4"]),
    ("grpc", &["grpcs", "grpc-health", "h2-grpc"]),
    ("1.1", &["http/1.1", "http1", "h1", "1"]),
    ("2", &["http/2", "http2", "h2", "h2c", "2.0"]),
    ("v1", &["1", "send-proxy"]),
    ("v2", &["2", "send-proxy-v2", "proxy-v2"]),
    ("http-01", &["http", "http01", "httpchallenge"]),
    ("tls-alpn-01", &["tls", "alpn", "tls-alpn", "tlschallenge", "tls-sni-01"]),
    ("1.2", &["tlsv1.2", "tls1.2", "tls12"]),
    ("1.3", &["tlsv1.3", "tls1.3", "tls13"]),
];

/// Returns the word of `words` that another balancer calls `text`.
pub(crate) fn alias_of_word(text: &str, words: &[&'static str]) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    words.iter().copied().find(|word| {
        WORD_ALIASES.iter().any(|(of, aliases)| of == word && aliases.contains(&text.as_str()))
    })
}

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'t> {
    pub(crate) spec: &'static TableSpec,
    /// The name in the file for the NAME of its heading.
    pub(crate) name: Option<&'t str>,
}

impl Place<'_> {
    /// Returns its heading, as in the file: `[service.app]`.
    pub(crate) fn heading(self) -> String {
        match self.name {
            Some(name) => self.spec.heading.replace("NAME", &as_key(name)),
            None => self.spec.heading.to_owned(),
        }
    }
}

/// Returns `name` as a dotted TOML key: in quotes unless it is a bare key.
fn as_key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { quote(name) }
}

/// Returns the diagnostic for an unknown key, and the key that was probably meant.
pub(crate) fn unknown_key(
    place: Place<'_>,
    key: &Spanned<DeString<'_>>,
    value: &DeValue<'_>,
) -> (Diagnostic, Option<&'static str>) {
    let spec = place.spec;
    let word: &str = key.get_ref();
    let title = format!("unknown key {} in {}", quote(word), place.heading());
    let diagnostic = Diagnostic::error(title, key.span(), "");
    let plain = word.to_ascii_lowercase().replace('-', "_");
    let alias = KEY_ALIASES
        .iter()
        .find(|(of, aliases)| spec.key(of).is_some() && aliases.contains(&plain.as_str()));
    if let Some((of, _)) = alias {
        let help = match as_header(spec, of, value) {
            Some(heading) => format!("here this is called `{of}`: write {heading}"),
            None => format!("here this is called `{of}`"),
        };
        return (diagnostic.help(help), Some(of));
    }
    if let Some(near) = nearest(word, spec.keys.iter().map(|key| key.name)) {
        let help = match as_header(spec, near, value) {
            Some(heading) => format!("did you mean {heading}?"),
            None => format!("did you mean `{near}`?"),
        };
        return (diagnostic.help(help), Some(near));
    }
    if let (Some(name), "name", true) = (place.name, word, spec.is_named()) {
        return (diagnostic.help(named_by_heading(place, name, value)), None);
    }
    if plain == "port" && spec.key("address").is_some() {
        return (diagnostic.help("the port is part of `address`, as in \"10.0.1.5:8080\""), None);
    }
    let owners: Vec<_> = TOP
        .tables()
        .into_iter()
        .filter(|table| table.key(word).is_some())
        .map(|table| table.heading)
        .collect();
    if owners.is_empty()
        && let Some(of) = near_alias(spec, &plain)
    {
        return (diagnostic.help(format!("did you mean `{of}`?")), Some(of));
    }
    let help = match owners.as_slice() {
        [] | [_, _, _, ..] => format!("known keys: {}", spec.names()),
        owners => format!("`{word}` is a key of {}", owners.join(" and of ")),
    };
    (diagnostic.help(help), None)
}

/// Returns the key of which `plain` is a misspelt alias.
fn near_alias(spec: &TableSpec, plain: &str) -> Option<&'static str> {
    let own = || KEY_ALIASES.iter().filter(|(of, _)| spec.key(of).is_some());
    let alias = nearest(plain, own().flat_map(|(_, aliases)| aliases.iter().copied()))?;
    own().find(|(_, aliases)| aliases.contains(&alias)).map(|(of, _)| *of)
}

/// A table with its name in the heading needs no key for it.
fn named_by_heading(place: Place<'_>, name: &str, value: &DeValue<'_>) -> String {
    let says = format!("{} is named {}: leave `name` out", place.heading(), quote(name));
    match value {
        DeValue::String(other) if **other != *name => {
            let heading = Place { name: Some(other), ..place }.heading();
            format!("{says}, or write {heading}")
        }
        _ => says,
    }
}

/// Returns how to write a key that contains tables, if the mistake was in a heading.
fn as_header(spec: &TableSpec, key: &str, value: &DeValue<'_>) -> Option<&'static str> {
    match (spec.key(key)?.kind, value) {
        (Kind::Tables(below) | Kind::NamedTables(below), DeValue::Table(_) | DeValue::Array(_))
            if below.heading.starts_with('[') =>
        {
            Some(below.heading)
        }
        _ => None,
    }
}

/// Reports a single table where a list of tables is expected.
pub(crate) fn single_table(spec: &TableSpec, key: &str, span: Span) -> Diagnostic {
    let title = format!("there may be several of `{key}`, so each is an element of a list");
    let heading = match spec.heading.strip_prefix('[') {
        Some(_) => spec.heading.to_owned(),
        None => format!("{key} = [{{ … }}]"),
    };
    Diagnostic::error(title, span, "one table").help(format!("write {heading}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_renamed_key_leads_from_an_unknown_name_to_a_known_one() {
        for renamed in RENAMED {
            let table = TOP.tables().into_iter().find(|table| table.path == renamed.table);
            let table = table.unwrap_or_else(|| panic!("no table {}", renamed.table));
            assert!(table.key(renamed.new).is_some(), "{renamed:?}");
            assert!(table.key(renamed.old).is_none(), "{renamed:?}");
        }
    }

    #[test]
    fn the_version_that_drops_an_old_name_is_not_there_yet() {
        let parts = |version: &str| -> Vec<u32> {
            version.split('.').map(|part| part.parse().expect("a number")).collect()
        };
        for renamed in RENAMED {
            let now = parts(env!("CARGO_PKG_VERSION"));
            assert!(parts(renamed.until) > now, "{renamed:?}: take it off the list");
        }
    }
}

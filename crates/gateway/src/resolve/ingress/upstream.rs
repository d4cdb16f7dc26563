//! How requests to the backends of an Ingress are balanced, and how connections to them are made.

use std::sync::Arc;
use std::time::Duration;

use model::{Affinity, Balance, HashKey, HashOn, Retries, RouteRetries, StatusSet};

use super::access::local_key;
use super::annotations::{Annotations, shown};
use crate::ir::app_protocol::AppProtocol;
use crate::ir::backend::ServicePort;
use crate::ir::settings::{ServiceSettings, UpstreamTls};
use crate::objects::{Key, Meta};
use crate::resolve::cluster::Cluster;
use crate::resolve::decode;
use crate::resolve::pem;
use crate::resolve::route::syntax;

/// How uneven the load may become with a hash: the default of the configuration.
const LOAD_FACTOR: f64 = 1.25;
/// The cookie of affinity, unless it is named.
const COOKIE: &str = "INGRESSCOOKIE";

/// Settings for all backends of an Ingress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upstream {
    settings: Option<ServiceSettings>,
    /// Whether certificates are verified against the name of the Service.
    names_service: bool,
}

impl Upstream {
    /// Returns a port of a Service with these settings, for the requests of a canary.
    pub fn canary_port(&self, port: &ServicePort) -> ServicePort {
        let mut port = self.port(port, Some("canary"));
        if let Some(settings) = &mut port.settings {
            Arc::make_mut(settings).is_canary = true;
        }
        port
    }

    /// Returns a port of a Service with these settings. `cookie` is added to the name of the affinity's cookie: the
    /// cookie of one Service says nothing to another one.
    pub fn port(&self, port: &ServicePort, cookie: Option<&str>) -> ServicePort {
        let mut port = port.clone();
        let Some(settings) = &self.settings else { return port };
        let mut settings = settings.clone();
        if let (Some(affinity), Some(suffix)) = (&mut settings.affinity, cookie) {
            affinity.cookie.push('-');
            affinity.cookie.push_str(suffix);
        }
        if let Some(tls) = settings.tls.as_mut().filter(|_| self.names_service) {
            let Key { namespace, name } = &port.service;
            tls.name = Some(format!("{name}.{namespace}.svc").into());
        }
        port.settings = Some(Arc::new(settings));
        port
    }
}

/// Reads the settings. If connections cannot be made as they are stated, the rules of the Ingress are refused.
pub fn read(annotations: &mut Annotations<'_>, metadata: &Meta, cluster: &Cluster<'_>) -> Upstream {
    let mut settings = ServiceSettings {
        balance: balance(annotations),
        affinity: affinity(annotations),
        connect: annotations.seconds("proxy-connect-timeout"),
        retries: retries(annotations),
        ..nothing(metadata.key())
    };
    timeouts(annotations, &mut settings);
    let stated = annotations.text("backend-protocol").map(str::to_ascii_uppercase);
    let (protocol, has_tls) = match stated.as_deref() {
        None => (None, false),
        Some("HTTP") => (Some(AppProtocol::Http), false),
        Some("HTTPS") => (Some(AppProtocol::Https), true),
        Some("GRPC") => (Some(AppProtocol::Grpc), false),
        Some("GRPCS") => (Some(AppProtocol::Grpc), true),
        Some(other) => {
            let why = format!("is {}. Use HTTP, HTTPS, GRPC or GRPCS", shown(other));
            annotations.refuse("backend-protocol", &why);
            (None, false)
        }
    };
    let mut names_service = false;
    match tls(annotations, metadata, cluster) {
        Ok((tls, names)) if has_tls => (settings.tls, names_service) = (Some(tls), names),
        Ok(_) => {}
        Err((name, why)) if has_tls => annotations.refuse(name, &why),
        Err((name, why)) => annotations.invalid(name, &why),
    }
    settings.protocol = protocol;
    let is_default = settings == nothing(settings.ingress.clone());
    Upstream { settings: (!is_default).then_some(settings), names_service }
}

fn nothing(ingress: Key) -> ServiceSettings {
    ServiceSettings {
        ingress,
        is_canary: false,
        protocol: None,
        balance: None,
        affinity: None,
        connect: None,
        response: None,
        idle: None,
        tunnel: None,
        retries: RouteRetries::OF_SERVICE,
        tls: None,
    }
}

fn balance(annotations: &mut Annotations<'_>) -> Option<Balance> {
    let stated = annotations.text("load-balance").and_then(|text| match text {
        "round_robin" => Some(Balance::RoundRobin),
        "ewma" => Some(Balance::PeakEwma),
        "least_conn" => Some(Balance::LeastConnections),
        "ip_hash" => Some(hash(HashOn::Client)),
        other => {
            let why = format!("is {}. Use round_robin or ewma", shown(other));
            annotations.unsupported("load-balance", &why);
            None
        }
    });
    let hashed = annotations.text("upstream-hash-by").and_then(|text| {
        let on = hash_on(text);
        if on.is_none() {
            let why = format!(
                "is {}. Use one of $remote_addr, $request_uri, $http_NAME, $cookie_NAME and $arg_NAME",
                shown(text)
            );
            annotations.unsupported("upstream-hash-by", &why);
        }
        on.map(hash)
    });
    hashed.or(stated)
}

fn hash(on: HashOn) -> Balance {
    Balance::Hash(HashKey { on, load_factor: LOAD_FACTOR })
}

/// Returns what a variable of nginx is.
fn hash_on(text: &str) -> Option<HashOn> {
    let name = text.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let word = |name: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (!name.is_empty() && name.len() <= 100 && name.bytes().all(is_word))
            .then(|| name.to_owned())
    };
    match name {
        "remote_addr" | "binary_remote_addr" | "the_real_ip" => Some(HashOn::Client),
        "request_uri" | "uri" => Some(HashOn::Path),
        "host" | "http_host" => Some(HashOn::Field("host".to_owned())),
        other => {
            if let Some(name) = other.strip_prefix("http_") {
                let name = word(name)?;
                return Some(HashOn::Field(name.replace('_', "-").to_ascii_lowercase()));
            }
            if let Some(name) = other.strip_prefix("cookie_") {
                return word(name).map(HashOn::Cookie);
            }
            other.strip_prefix("arg_").and_then(word).map(HashOn::Parameter)
        }
    }
}

fn affinity(annotations: &mut Annotations<'_>) -> Option<Affinity> {
    let kind = annotations.text("affinity");
    let mode = annotations.text("affinity-mode");
    let name = annotations.text("session-cookie-name");
    let expires = annotations.number("session-cookie-expires", 0..=u32::MAX);
    let max_age = annotations.number("session-cookie-max-age", 0..=u32::MAX).or(expires);
    let path = annotations.text("session-cookie-path");
    let same_site = annotations.text("session-cookie-samesite");
    let secure = annotations.flag("session-cookie-secure");
    match kind {
        None => return None,
        Some("cookie") => {}
        Some(other) => {
            annotations.unsupported("affinity", &format!("is {}. Use cookie", shown(other)));
            return None;
        }
    }
    if mode.is_some_and(|mode| mode != "balanced" && mode != "persistent") {
        annotations.unsupported("affinity-mode", "is neither balanced nor persistent");
    }
    // What Weir's cookie has.
    if path.is_some_and(|path| path != "/") {
        annotations.note("session-cookie-path", "The cookie is for the path /.");
    }
    if same_site.is_some_and(|text| !text.eq_ignore_ascii_case("lax")) {
        annotations.note("session-cookie-samesite", "The cookie has SameSite=Lax.");
    }
    if secure == Some(false) {
        let advice = "The cookie has Secure if the client used HTTPS.";
        annotations.note("session-cookie-secure", advice);
    }
    let cookie = match name {
        Some(name) if syntax::is_token(name) && name.len() <= 100 => name.to_owned(),
        Some(name) => {
            let why = format!("is {}, which is not the name of a cookie", shown(name));
            annotations.remark("session-cookie-name", &format!("{why}; the name is {COOKIE}"));
            COOKIE.to_owned()
        }
        None => COOKIE.to_owned(),
    };
    let max_age = max_age.filter(|seconds| *seconds > 0);
    let max_age = max_age.map(|seconds| Duration::from_secs(u64::from(seconds)));
    Some(Affinity { cookie, max_age, key_file: None })
}

/// Between two reads or writes in nginx: for the first byte of a response, in bodies and in tunnels.
fn timeouts(annotations: &mut Annotations<'_>, settings: &mut ServiceSettings) {
    let read = annotations.seconds("proxy-read-timeout");
    let send = annotations.seconds("proxy-send-timeout");
    settings.response = read;
    settings.idle = read.max(send);
    settings.tunnel = read.max(send);
}

/// When nginx passes a request to the next server.
fn retries(annotations: &mut Annotations<'_>) -> RouteRetries {
    let when = annotations.text("proxy-next-upstream");
    let tries = annotations.number("proxy-next-upstream-tries", 0..=1000);
    if let Some(seconds) = annotations.number("proxy-next-upstream-timeout", 0..=u32::MAX)
        && seconds > 0
    {
        annotations.note("proxy-next-upstream-timeout", "Use proxy-next-upstream-tries.");
    }
    let mut retries = RouteRetries::OF_SERVICE;
    let words: Vec<&str> = when.into_iter().flat_map(str::split_whitespace).collect();
    if words.contains(&"off") {
        return RouteRetries { attempts_max: Some(0), ..retries };
    }
    let status = |word: &&str| {
        let status: u16 = word.strip_prefix("http_")?.parse().ok()?;
        (400..=599).contains(&status).then_some(status)
    };
    // Without a response, or an unreadable one, idempotent requests are retried anyway.
    let is_known = |word: &&str| matches!(*word, "error" | "timeout" | "invalid_header");
    if let Some(other) = words.iter().find(|word| !is_known(word) && status(word).is_none()) {
        let why = format!(
            "has {}. Use error, timeout, invalid_header, http_503 or another status of an error, \
             or off; only requests that are idempotent, or that no server has seen, are retried",
            shown(other)
        );
        annotations.remark("proxy-next-upstream", &why);
    }
    let statuses: StatusSet =
        words.iter().filter_map(status).map(|status| (status, status)).collect();
    retries.statuses = when.map(|_| statuses);
    retries.attempts_max = match tries {
        None => None,
        Some(0) => {
            annotations.note("proxy-next-upstream-tries", "0 (no limit) is not supported.");
            None
        }
        Some(tries) => Some((tries - 1).min(Retries::ATTEMPTS_MAX)),
    };
    retries
}

/// Reads how certificates of Pods are verified. The second part of the result is whether they must have the name of the
/// Service. An error is an annotation and what is wrong with it.
fn tls(
    annotations: &mut Annotations<'_>,
    metadata: &Meta,
    cluster: &Cluster<'_>,
) -> Result<(UpstreamTls, bool), (&'static str, String)> {
    if annotations.text("proxy-ssl-server-name").is_some_and(|text| text != "on") {
        annotations.note("proxy-ssl-server-name", "Weir always sends the server name.");
    }
    let verify = annotations.text("proxy-ssl-verify");
    let name = annotations.text("proxy-ssl-name");
    let secret = annotations.text("proxy-ssl-secret");
    let verifies = match verify {
        None | Some("off") => false,
        Some("on") => true,
        Some(other) => {
            return Err(("proxy-ssl-verify", format!("is {}, not on or off", shown(other))));
        }
    };
    let name = name.map(|name| syntax::exact_host("The name", &name.to_ascii_lowercase()));
    let name: Option<Arc<str>> = match name.transpose() {
        Ok(name) => name.map(Into::into),
        Err(problem) => return Err(("proxy-ssl-name", format!("is invalid: {}", problem.message))),
    };
    let Some(secret) = secret else {
        if verifies {
            return Err(("proxy-ssl-verify", "needs proxy-ssl-secret with ca.crt".to_owned()));
        }
        return Ok((UpstreamTls { name, authorities: None, certificate: None }, false));
    };
    let read = local_key(secret, metadata)
        .ok_or_else(|| "is not one of this namespace".to_owned())
        .and_then(|key| of_secret(cluster, &key, verifies));
    match read {
        Ok(read) => {
            let names_service = verifies && name.is_none();
            Ok((UpstreamTls { name, ..read }, names_service))
        }
        Err(why) => {
            Err(("proxy-ssl-secret", format!("names Secret {}, which {why}", shown(secret))))
        }
    }
}

fn of_secret(cluster: &Cluster<'_>, key: &Key, verifies: bool) -> Result<UpstreamTls, String> {
    let secret = cluster.secret(key)?;
    let has_certificate = secret.data.contains_key("tls.crt");
    let certificate = if has_certificate { cluster.certificate(key) } else { None };
    let certificate = certificate.cloned().transpose()?;
    let mut authorities = None;
    if verifies {
        let pem = decode::value(secret, "ca.crt")?;
        pem::certificates(&pem).map_err(|why| format!("is invalid: ca.crt {why}"))?;
        let checked = crate::ir::Authorities { source: key.clone(), pem: Arc::clone(&pem) };
        (cluster.settings.checks.authorities)(&checked)?;
        authorities = Some((key.clone(), pem));
    }
    Ok(UpstreamTls { name: None, authorities, certificate })
}

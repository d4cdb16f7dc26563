//! Who may send requests: networks, passwords, an authentication server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::policy::{IDENTITY_FIELDS_HELP, is_identity_field};
use identity::{CostBounds, Users};
use model::{
    AuthenticationScheme, Condition, ConditionOn, ForwardRules, IdentityField, IdentityValue,
    Material, Networks, ServiceId, Test,
};

use super::annotations::{Annotations, list, shown};
use super::backends::{Backends, Located};
use crate::ir::backend::Target;
use crate::ir::extras::{Authentication, Owner};
use crate::objects::{Key, Meta};
use crate::resolve::cluster::Cluster;
use crate::resolve::decode;
use crate::resolve::route::syntax;

/// How long an authentication server may take: the default of `forward`.
const ASK_MAX: Duration = Duration::from_secs(5);
/// At most this many networks of a list.
const NETWORKS_MAX: usize = 1000;

/// Reads the networks of clients that are allowed or refused, as conditions that must all be met.
pub fn clients(annotations: &mut Annotations<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let condition = |networks, negated| Condition {
        on: ConditionOn::Client,
        test: Test::Among(Arc::new(networks)),
        negated,
    };
    // The second name is the older one; ingress-nginx prefers the first.
    let old = networks(annotations, "whitelist-source-range");
    let allowed = networks(annotations, "allowlist-source-range").or(old);
    conditions.extend(allowed.map(|networks| condition(networks, false)));
    let denied = networks(annotations, "denylist-source-range");
    conditions.extend(denied.map(|networks| condition(networks, true)));
    conditions
}

fn networks(annotations: &mut Annotations<'_>, name: &str) -> Option<Networks> {
    let text = annotations.text(name)?;
    let parts: Vec<&str> = list(text).collect();
    if parts.is_empty() || parts.len() > NETWORKS_MAX {
        let count = parts.len();
        annotations
            .invalid(name, &format!("has {count} networks; from 1 to {NETWORKS_MAX} are allowed"));
        return None;
    }
    let read = |part: &&str| match part.parse::<std::net::IpAddr>() {
        Ok(ip) => Ok(ipnet::IpNet::from(ip)),
        Err(_) => part.parse::<ipnet::IpNet>(),
    };
    if let Some(wrong) = parts.iter().find(|part| read(part).is_err()) {
        let why = format!("has {}, which is not a network like 10.0.0.0/8", shown(wrong));
        annotations.invalid(name, &why);
        return None;
    }
    Some(parts.iter().filter_map(|part| read(part).ok()).collect())
}

/// Reads how requests prove who sends them.
pub fn authentication(
    annotations: &mut Annotations<'_>,
    metadata: &Meta,
    cluster: &Cluster<'_>,
    backends: &mut Backends<'_>,
) -> Option<Authentication> {
    let realm = realm(annotations);
    let password = password(annotations, metadata, cluster);
    let server = server(annotations, backends);
    let (scheme, identity_fields, asked) = match (password, server) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            annotations.unsupported("auth-url", "cannot be combined with auth-type. Use one");
            return None;
        }
        (Some(users), None) => (AuthenticationScheme::Basic { users }, Vec::new(), None),
        (None, Some(Server { rules, fields, target })) => {
            (AuthenticationScheme::Forward(Box::new(rules)), fields, Some(target))
        }
    };
    let rules = model::Authentication {
        name: Arc::default(),
        realm,
        scheme,
        identity_fields,
        forwards_credentials: true,
    };
    Some(Authentication { owner: Owner::Ingress(metadata.key()), rules, asked })
}

fn realm(annotations: &mut Annotations<'_>) -> String {
    let text = annotations.text("auth-realm").unwrap_or("Authentication Required");
    let is_plain = text.len() <= 200 && !text.contains(|c: char| c.is_control() || c == '"');
    if !is_plain {
        annotations.invalid("auth-realm", "is longer than 200 bytes, or has quotes or line breaks");
    }
    text.to_owned()
}

fn password(
    annotations: &mut Annotations<'_>,
    metadata: &Meta,
    cluster: &Cluster<'_>,
) -> Option<Material> {
    let kind = annotations.text("auth-type");
    let secret = annotations.text("auth-secret");
    let form = annotations.text("auth-secret-type").unwrap_or("auth-file");
    let Some(kind) = kind else {
        if secret.is_some() {
            annotations.invalid("auth-secret", "is there without auth-type. Add auth-type: basic");
        }
        return None;
    };
    if kind != "basic" {
        annotations.unsupported("auth-type", &format!("is {}. Use basic", shown(kind)));
        return None;
    }
    let Some(name) = secret else {
        annotations.invalid("auth-type", "needs auth-secret, the name of a Secret");
        return None;
    };
    let Some(key) = local_key(name, metadata) else {
        let why = format!("names {}, which is not a Secret of this namespace", shown(name));
        annotations.unsupported("auth-secret", &why);
        return None;
    };
    match users(cluster, &key, form) {
        Ok(bytes) => {
            let path = PathBuf::from(format!("Secret {key}"));
            Some(Material { path, bytes })
        }
        Err(why) => {
            annotations.invalid("auth-secret", &format!("names Secret {key}, which {why}"));
            None
        }
    }
}

/// Returns the key of an object that an annotation names as `NAME` or `NAMESPACE/NAME`, if that is a name in the namespace
/// of the Ingress: users of a namespace must not use the Secrets of another one.
pub fn local_key(name: &str, metadata: &Meta) -> Option<Key> {
    let home = &metadata.namespace;
    let name = match name.split_once('/') {
        None => name,
        Some((namespace, name)) if namespace == &**home => name,
        Some(_) => return None,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    (name.len() <= 253 && name.bytes().all(is_plain)).then(|| Key::new(Arc::clone(home), name))
}

/// Returns the users in a Secret as an htpasswd file has them.
fn users(cluster: &Cluster<'_>, key: &Key, form: &str) -> Result<Arc<[u8]>, String> {
    let secret = cluster.secret(key)?;
    let users: Arc<[u8]> = match form {
        "auth-file" => decode::value(secret, "auth")?,
        "auth-map" => {
            let mut lines = Vec::new();
            for (user, hash) in &secret.data {
                let hash =
                    STANDARD.decode(hash).map_err(|_| format!("has {user} not in base64"))?;
                if hash.contains(&b'\n') || user.contains(':') {
                    return Err(format!("has {}, which is not a user and a hash", shown(user)));
                }
                lines.extend_from_slice(user.as_bytes());
                lines.push(b':');
                lines.extend_from_slice(&hash);
                lines.push(b'\n');
            }
            lines.into()
        }
        other => {
            return Err(format!("is to be read as {}; use auth-file or auth-map", shown(other)));
        }
    };
    match Users::parse_within(&users, &CostBounds::TENANT) {
        Ok(_) => Ok(users),
        Err(mistakes) => {
            let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
            Err(format!("has users that cannot be read: {first}"))
        }
    }
}

/// A server that is asked about each request.
struct Server {
    rules: ForwardRules,
    /// What the backend receives from it.
    fields: Vec<IdentityField>,
    target: Target,
}

fn server(annotations: &mut Annotations<'_>, backends: &mut Backends<'_>) -> Option<Server> {
    let fields = annotations.text("auth-response-headers");
    let method = annotations.text("auth-method");
    if annotations.has("auth-signin") {
        annotations.text("auth-signin");
        let advice = "The response of the authentication server becomes the client's, so let that \
                      server redirect to the page where users sign in.";
        annotations.note("auth-signin", advice);
    }
    for name in [
        "auth-signin-redirect-param",
        "auth-cache-key",
        "auth-cache-duration",
        "auth-keepalive",
        "auth-keepalive-requests",
        "auth-keepalive-timeout",
        "auth-keepalive-share-vars",
        "auth-always-set-cookie",
    ] {
        if annotations.text(name).is_some() {
            annotations.note(name, "The authentication server is asked about each request.");
        }
    }
    let Some(url) = annotations.text("auth-url") else {
        if fields.is_some() || method.is_some() {
            annotations.invalid("auth-response-headers", "and auth-method need auth-url");
        }
        return None;
    };
    if method.is_some_and(|method| !method.eq_ignore_ascii_case("GET")) {
        annotations.unsupported("auth-method", "is not GET, with which Weir asks");
        return None;
    }
    let fields = identity_fields(annotations, fields)?;
    match backends.of_url(url).and_then(|located| asked(located, fields)) {
        Ok(server) => Some(server),
        Err(why) => {
            annotations.unsupported("auth-url", &format!("({}) {why}", shown(url)));
            None
        }
    }
}

fn asked(located: Located, fields: Vec<String>) -> Result<Server, String> {
    let Located { port, host, rest } = located;
    let path = if rest.is_empty() { "/".to_owned() } else { rest };
    let (before, query) = path.split_once('?').unwrap_or((&path, ""));
    let is_query =
        query.bytes().all(|byte| byte.is_ascii_graphic() && !b"#$\"<>\\^`{|}".contains(&byte));
    if syntax::path("The path", before).is_err() || before.contains('$') || !is_query {
        return Err("has a path or query with characters that are not allowed in URLs, or with \
                    variables"
            .to_owned());
    }
    let target = Target::Service(Arc::new(port));
    let rules = ForwardRules {
        service: ServiceId(0),
        host: Some(host),
        path,
        timeout: ASK_MAX,
        request_fields: None,
        response_fields: Vec::new(),
    };
    let field = |name| IdentityField { name, value: IdentityValue::Response };
    Ok(Server { rules, fields: fields.into_iter().map(field).collect(), target })
}

/// Reads the fields that the backend receives from the authentication server.
///
/// Only those of [`is_identity_field`].
fn identity_fields(annotations: &mut Annotations<'_>, text: Option<&str>) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    for name in text.into_iter().flat_map(list) {
        let lower = name.to_ascii_lowercase();
        let is_known = is_identity_field(&lower);
        if !is_known || !syntax::is_token(&lower) || lower.contains('_') || fields.len() >= 32 {
            let why = format!("has {}; {IDENTITY_FIELDS_HELP}", shown(name));
            annotations.unsupported("auth-response-headers", &why);
            return None;
        }
        if !fields.contains(&lower) {
            fields.push(lower);
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::ingress::annotations::PREFIX;

    #[test]
    fn networks_are_read_or_the_ingress_is_refused() {
        for (text, count, is_refused) in [
            ("10.0.0.0/8, 2001:db8::/32,192.0.2.1", 1, false),
            ("0.0.0.0/0", 1, false),
            ("", 0, false),
            (",", 0, true),
            ("10.0.0.0/33", 0, true),
            ("example.com", 0, true),
            ("10.0.0.0/8\r\n", 1, false),
            ("10.0.0.0/8;", 0, true),
        ] {
            let pair = (format!("{PREFIX}whitelist-source-range"), text.to_owned());
            let metadata = Meta { annotations: [pair].into(), ..Meta::default() };
            let mut annotations = Annotations::new(&metadata);
            assert_eq!(clients(&mut annotations).len(), count, "{text}");
            assert_eq!(annotations.is_refused(), is_refused, "{text}");
        }
    }
}

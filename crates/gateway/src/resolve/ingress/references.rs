//! The Secrets that Ingresses refer to.

use std::sync::Arc;

use super::access::local_key;
use super::annotations::PREFIX;
use super::rules::HOSTS_MAX;
use crate::objects::Key;
use crate::objects::ingress::Ingress;

/// The annotations that name Secrets of the same namespace.
const ANNOTATIONS: [&str; 2] = ["auth-secret", "proxy-ssl-secret"];

/// Returns the Secrets that an Ingress refers to, whatever its class.
pub fn secrets(ingress: &Ingress) -> impl Iterator<Item = Key> {
    let metadata = &ingress.metadata;
    let of_tls = ingress.spec.tls.iter().take(HOSTS_MAX);
    let of_tls = of_tls.filter_map(|tls| tls.secret_name.as_ref());
    let of_tls = of_tls.map(|name| Key::new(Arc::clone(&metadata.namespace), Arc::clone(name)));
    let named = ANNOTATIONS.iter().filter_map(|name| {
        let value = metadata.annotations.get(&format!("{PREFIX}{name}"))?;
        local_key(value.trim(), metadata)
    });
    of_tls.chain(named)
}

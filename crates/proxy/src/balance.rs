//! What binds a request to its server: the hash key, and the affinity cookie of its response.

use std::net::IpAddr;

use decide::{Slot, placement};
use model::Service;
use wire::http1::RequestHead;

use crate::authentication::Identity;

/// Returns the key by which `hash` places this request, if the service hashes and the request has
/// one. A field that tells servers who sent the request has the value that they receive.
pub(crate) fn key<'a>(
    service: &Service,
    request: &'a RequestHead,
    identity: Option<&'a Identity>,
    client: IpAddr,
) -> Option<u64> {
    let verified = |name: &str| identity.and_then(|identity| identity.field(name));
    placement::key(service, request, verified, Some(client))
}

/// Returns the cookie to set on a response from `slot`'s server, unless the client has it already;
/// with `Secure` if the client used HTTPS.
pub(crate) fn set_affinity(
    service: &Service,
    asked: Option<u64>,
    slot: &Slot,
    https: bool,
) -> Option<String> {
    let affinity = service.affinity.as_ref()?;
    let token = slot.endpoint().affinity_token;
    if asked == Some(token) {
        return None;
    }
    let name = &affinity.cookie;
    let max_age = affinity.max_age.map(|age| format!("; Max-Age={}", age.as_secs()));
    let max_age = max_age.unwrap_or_default();
    let secure = if https { "; Secure" } else { "" };
    Some(format!("{name}={token:016x}; Path=/; HttpOnly; SameSite=Lax{secure}{max_age}"))
}

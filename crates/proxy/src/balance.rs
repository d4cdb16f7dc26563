//! The parts of a request that determine its server: the hash key and the affinity cookie.

use std::net::IpAddr;

use decide::{Slot, hash_key, hash_parameter, hash_path};
use model::{Balance, HashOn, Service};
use wire::http1::RequestHead;

use crate::authentication::Identity;

/// Returns the key by which `hash` places this request, if the service hashes and the request has
/// one. A field that tells servers who sent the request has the value that they receive.
pub(crate) fn key(
    service: &Service,
    request: &RequestHead,
    identity: Option<&Identity>,
    client: IpAddr,
) -> Option<u64> {
    let Balance::Hash(hash) = &service.balance else {
        return None;
    };
    match &hash.on {
        HashOn::Client => client_key(service, client),
        HashOn::Field(name) => {
            let verified = identity.and_then(|identity| identity.field(name)).map(str::as_bytes);
            verified.or_else(|| request.field(name)).map(hash_key)
        }
        HashOn::Cookie(name) => request.cookie(name).map(hash_key),
        HashOn::Path => Some(hash_path(request.path())),
        HashOn::Parameter(name) => hash_parameter(request.query()?, name),
    }
}

/// Returns the hash key of a connection that carries no request.
pub(crate) fn client_key(service: &Service, client: IpAddr) -> Option<u64> {
    if !matches!(&service.balance, Balance::Hash(hash) if hash.on == HashOn::Client) {
        return None;
    }
    Some(match client.to_canonical() {
        IpAddr::V4(ip) => hash_key(&ip.octets()),
        IpAddr::V6(ip) => hash_key(&ip.octets()),
    })
}

/// Returns the server that the request's affinity cookie names, if it has a well-formed one.
pub(crate) fn affinity(service: &Service, request: &RequestHead) -> Option<u64> {
    let cookie = request.cookie(&service.affinity.as_ref()?.cookie)?;
    if cookie.len() != 16 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(cookie).ok()?, 16).ok()
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

//! The parts of a request that determine its server: the hash key and the affinity cookie.

use std::net::IpAddr;

use model::{Balance, HashOn, Service};
use wire::http1::RequestHead;

use crate::token::{hash_key, hash_parameter, hash_path};

/// Returns the key by which `hash` places this request, if the service hashes and the request has
/// one. `verified` returns the value that servers receive for a field that tells them who sent the
/// request, in place of the request's own. `client` is `None` if it is not known.
pub fn key<'a>(
    service: &Service,
    request: &'a RequestHead,
    verified: impl Fn(&str) -> Option<&'a str>,
    client: Option<IpAddr>,
) -> Option<u64> {
    let Balance::Hash(hash) = &service.balance else {
        return None;
    };
    match &hash.on {
        HashOn::Client => client_key(service, client?),
        HashOn::Field(name) => {
            verified(name).map(str::as_bytes).or_else(|| request.field(name)).map(hash_key)
        }
        HashOn::Cookie(name) => request.cookie(name).map(hash_key),
        HashOn::Path => Some(hash_path(request.path())),
        HashOn::Parameter(name) => hash_parameter(request.query()?, name),
    }
}

/// Returns the hash key of a connection that carries no request.
pub fn client_key(service: &Service, client: IpAddr) -> Option<u64> {
    if !matches!(&service.balance, Balance::Hash(hash) if hash.on == HashOn::Client) {
        return None;
    }
    Some(match client.to_canonical() {
        IpAddr::V4(ip) => hash_key(&ip.octets()),
        IpAddr::V6(ip) => hash_key(&ip.octets()),
    })
}

/// Returns the server that the request's affinity cookie names, if it has a well-formed one.
pub fn affinity(service: &Service, request: &RequestHead) -> Option<u64> {
    let cookie = request.cookie(&service.affinity.as_ref()?.cookie)?;
    if cookie.len() != 16 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(cookie).ok()?, 16).ok()
}

//! Sockets that the service manager passed (socket activation): which listener each is for.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use model::{Address, Snapshot};
use os::socket_activation::Passed;

use super::{Handed, HandedGroup};

/// The name of the socket of the admin API.
const ADMIN: &str = "admin";

/// Assigns each socket to the listener or admin API with its address. Several for one listener are
/// those of several workers (`ReusePort=yes`).
///
/// # Errors
/// A line for each socket that the configuration has no use for: clients could connect, and would never be answered.
pub(crate) fn activated(snapshot: &Snapshot, passed: Vec<Passed>) -> Result<Handed, Vec<String>> {
    let mut handed = Handed::default();
    let mut errors = Vec::new();
    for Passed { name, listener } in passed {
        let address = match listener.local_addr() {
            Ok(address) => address,
            Err(error) => {
                errors.push(format!("socket {name:?} of the service manager: {error}"));
                continue;
            }
        };
        if snapshot.admin.as_ref().is_some_and(|admin| admin.address == Address::Ip(address)) {
            if handed.admin.is_some() {
                errors.push(format!("the service manager passed two sockets on {address}, the address of the admin API"));
            }
            handed.admin = Some((address.to_string(), OwnedFd::from(listener)));
            continue;
        }
        match listener_for(snapshot, &name, address) {
            Ok(found) => {
                let known = handed.groups.iter_mut().find(|group| group.name == found.name);
                match known {
                    Some(group) => group.sockets.push(listener),
                    None => handed.groups.push(HandedGroup {
                        name: found.name.clone(),
                        address: found.address,
                        sockets: vec![listener],
                        file: None,
                    }),
                }
            }
            Err(line) => errors.push(line),
        }
    }
    if errors.is_empty() { Ok(handed) } else { Err(errors) }
}

fn listener_for<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    address: SocketAddr,
) -> Result<&'a model::Listener, String> {
    let with_address = |one: &&model::Listener| one.address == Address::Ip(address);
    if let Some(found) = snapshot.listeners.iter().find(with_address) {
        return Ok(found);
    }
    let admin = snapshot.admin.as_ref().filter(|_| name == ADMIN).map(|admin| admin.address);
    let named = snapshot.listeners.iter().find(|listener| *listener.name == *name);
    let configured = admin.or(named.map(|listener| listener.address));
    let but = configured
        .map(|configured| format!("; {name:?} has the address {configured} in the configuration"));
    Err(format!(
        "the service manager passed the socket {name:?} on {address}, but no listener has this address{}",
        but.unwrap_or_default()
    ))
}

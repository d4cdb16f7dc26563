//! An order: what state a server is to have at all members.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{Address, Administrative, Moment, mix};

/// The longest name of a service, in bytes.
pub const SERVICE_BYTES_MAX: usize = 128;
/// The longest name of a member, in bytes.
pub(crate) const MEMBER_BYTES_MAX: usize = 64;

/// A server of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey {
    /// The service's name: 1 to [`SERVICE_BYTES_MAX`] bytes without control characters.
    pub service: Arc<str>,
    /// Its address, the same at all members ([`is_server_of_fleet`]).
    pub address: SocketAddr,
}

/// The state that servers are to have at all members of the fleet: what an operator wants, of which an [`Order`] for
/// each server is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOrder {
    /// The service's name.
    pub service: Arc<str>,
    /// The servers' addresses. Each is the same server for all members.
    pub addresses: Vec<SocketAddr>,
    /// The state.
    pub state: Administrative,
}

/// Which order about a server is valid: the greater one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Greater than the counters of all orders that its maker knew.
    pub counter: u64,
    /// The start of the process that made it: decides between orders that were made at the same time.
    pub start: [u8; 16],
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The state.
    pub state: Administrative,
    /// Which order about this server it is.
    pub version: Version,
    /// The name of the member that made it: 1 to 64 bytes without control characters.
    pub member: Arc<str>,
    /// How old it was at the moment beside it: each process has a clock of its own.
    pub age: (Duration, Moment),
}

impl Order {
    /// Returns how long ago it was made.
    pub fn age(&self, now: Moment) -> Duration {
        let (age, at) = self.age;
        age.saturating_add(now.since(at))
    }
}

/// Returns whether an address means the same server for all members: not one on loopback, for instance.
pub fn is_server_of_fleet(address: SocketAddr) -> bool {
    let is_plain = match address {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(v6) => v6.scope_id() == 0 && v6.flowinfo() == 0,
    };
    is_plain && !Address::Ip(address).is_of_one_machine()
}

/// Returns whether a text from the network may be a name of so many bytes at most: it is shown in logs.
pub(crate) fn is_name(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl ServerKey {
    /// Returns whether an order may be about it.
    pub fn is_valid(&self) -> bool {
        is_name(&self.service, SERVICE_BYTES_MAX) && is_server_of_fleet(self.address)
    }

    /// Returns a number that names it in messages.
    pub(crate) fn hash(&self) -> u64 {
        let hash = hash_bytes(1, self.service.as_bytes());
        let hash = match self.address {
            SocketAddr::V4(v4) => hash_bytes(hash, &v4.ip().octets()),
            SocketAddr::V6(v6) => hash_bytes(hash, &v6.ip().octets()),
        };
        mix(hash ^ u64::from(self.address.port()))
    }
}

impl Version {
    pub(crate) fn hash(&self) -> u64 {
        hash_bytes(mix(self.counter), &self.start)
    }
}

/// Returns a hash of bytes, whose length counts.
fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let start = mix(seed ^ bytes.len() as u64);
    bytes.chunks(8).fold(start, |hash, chunk| {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        mix(hash ^ word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_machine_are_refused() {
        for (address, is_shared) in [
            ("10.0.0.1:80", true),
            ("[2001:db8::1]:80", true),
            ("127.0.0.1:80", false),
            ("169.254.0.1:80", false),
            ("[::1]:80", false),
            ("[fe80::1]:80", false),
            ("[2001:db8::1%3]:80", false),
        ] {
            assert_eq!(is_server_of_fleet(address.parse().unwrap()), is_shared, "{address}");
        }
    }

    #[test]
    fn the_hash_depends_on_each_part() {
        let key = |service: &str, address: &str| {
            ServerKey { service: service.into(), address: address.parse().unwrap() }.hash()
        };
        let all = [
            key("a", "10.0.0.1:80"),
            key("b", "10.0.0.1:80"),
            key("a", "10.0.0.2:80"),
            key("a", "10.0.0.1:81"),
            key("a", "[::ffff:10.0.0.1]:80"),
            key("aaaaaaaaa", "10.0.0.1:80"),
            key("aaaaaaaab", "10.0.0.1:80"),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
        let version = |counter, byte| Version { counter, start: [byte; 16] }.hash();
        assert_ne!(version(1, 1), version(1, 2));
        assert_ne!(version(1, 1), version(2, 1));
    }
}

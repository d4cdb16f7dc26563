//! Numbers for the parts of requests by which rate limits count.
//!
//! Hashed under a secret key, so that no client can compute a value that shares another client's allowance. The
//! key is random for each process, or, for limits of a fleet, the same on all members.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use model::mix;

use crate::token::siphash;

/// What a part is hashed under.
#[derive(Clone, Copy)]
pub struct PartKey([u8; 16]);

impl PartKey {
    /// Returns a key of these secret bytes.
    pub fn new(bytes: [u8; 16]) -> PartKey {
        PartKey(bytes)
    }

    /// Returns a random key.
    pub(super) fn random() -> PartKey {
        let random = RandomState::new();
        let bytes = (u128::from(random.hash_one(0)) << 64) | u128::from(random.hash_one(1));
        PartKey(bytes.to_le_bytes())
    }

    /// Returns the number of a client's address: of an IPv6 client its /64; an IPv4-mapped IPv6 address counts
    /// as IPv4.
    pub fn of_client(&self, client: IpAddr) -> u64 {
        match client.to_canonical() {
            IpAddr::V4(address) => siphash(&self.0, &address.octets()),
            IpAddr::V6(address) => siphash(&self.0, &address.octets()[..8]),
        }
    }

    /// Returns the number of a value; requests without it share one.
    pub fn of_value(&self, value: Option<&[u8]>) -> u64 {
        value.map_or_else(|| self.of_list([]), |value| siphash(&self.0, value))
    }

    /// Returns the number of a list of values.
    pub fn of_list<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let start = siphash(&self.0, b"list") ^ 1;
        values.into_iter().fold(start, |list, value| mix(list ^ siphash(&self.0, value)))
    }

    /// Returns the number of the values of a part of a request: one for each value, one for none, and one
    /// for several, since which of those a server would read is unknown.
    pub fn of_values<'a>(&self, mut values: impl Iterator<Item = &'a [u8]>) -> u64 {
        match (values.next(), values.next()) {
            (one, None) => self.of_value(one),
            (_, Some(_)) => siphash(&self.0, b"several") ^ 2,
        }
    }
}

/// Without the key.
impl std::fmt::Debug for PartKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PartKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_is_its_network_and_several_values_are_one() {
        let key = PartKey::random();
        let by_client = |address: &str| key.of_client(address.parse().unwrap());
        assert_eq!(by_client("2001:db8::1"), by_client("2001:db8::ffff:1:2:3"));
        assert_ne!(by_client("2001:db8::1"), by_client("2001:db8:0:1::1"));
        assert_eq!(by_client("192.0.2.1"), by_client("::ffff:192.0.2.1"));
        assert_ne!(by_client("192.0.2.1"), by_client("192.0.2.2"));
        let by_values = |values: &[&'static [u8]]| key.of_values(values.iter().copied());
        assert_eq!(by_values(&[b"a"]), by_values(&[b"a"]));
        assert_ne!(by_values(&[b"a"]), by_values(&[b"b"]));
        assert_ne!(by_values(&[]), by_values(&[b""]));
        assert_eq!(by_values(&[b"a", b"b"]), by_values(&[b"c", b"a"]));
        assert_ne!(by_values(&[b"a", b"b"]), by_values(&[b"a"]));
        assert_ne!(by_values(&[b"a", b"b"]), by_values(&[]));
        let by_list = |values: &[&'static [u8]]| key.of_list(values.iter().copied());
        assert_ne!(by_list(&[b"a", b"b"]), by_list(&[b"b", b"a"]));
        assert_ne!(by_list(&[b"a", b"b"]), by_list(&[b"ab"]));
        assert_ne!(by_list(&[b"a"]), by_values(&[b"a"]));
    }

    #[test]
    fn balancers_with_one_key_agree_and_others_do_not() {
        let (one, same) = (PartKey::new([7; 16]), PartKey::new([7; 16]));
        let client = "192.0.2.1".parse().unwrap();
        assert_eq!(one.of_client(client), same.of_client(client));
        assert_ne!(one.of_client(client), PartKey::new([8; 16]).of_client(client));
        assert_ne!(PartKey::random().of_client(client), PartKey::random().of_client(client));
    }
}

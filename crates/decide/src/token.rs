//! Hashes that must be the same in every process and every version: what a server is called in an
//! affinity cookie, and where a key lands under `hash`.
//!
//! Not for tables that a client could flood with colliding keys, and no secret: who knows a token
//! can find the address by trying all.

use std::net::{IpAddr, SocketAddr};

/// What an affinity cookie calls the server at `address`. The same in every process, so that
/// several balancers before the same servers understand one another's cookies.
pub fn affinity_token(address: SocketAddr) -> u64 {
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => (4, u128::from(u32::from(ip))),
        IpAddr::V6(ip) => (6, u128::from(ip)),
    };
    let low = mix(ip as u64 ^ (u64::from(address.port()) << 48) ^ family);
    mix(low ^ (ip >> 64) as u64)
}

/// The hash of the part of a request that a service's `hash` is taken of.
pub fn hash_key(part: &[u8]) -> u64 {
    // FNV-1a, then one round of mixing, since its high bits alone are weak for short input.
    let fnv = part.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

/// Spreads every bit of `x` over all bits of the result; one to one (the finalizer of `SplitMix64`,
/// Steele, Lea and Flood 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_are_stable_across_versions() {
        // These stand in people's cookies: a change here breaks affinity at an upgrade.
        let v4 = affinity_token("10.0.1.5:8080".parse().unwrap());
        let v6 = affinity_token("[::1]:8080".parse().unwrap());
        assert_eq!((v4, v6), (0x5956_7fee_85fc_2648, 0xd3df_8334_23a6_de3b));
        assert_eq!(hash_key(b"alice"), 0x1a04_6f57_3e1e_5475);
    }

    #[test]
    fn neighbouring_addresses_differ() {
        let mut seen = HashSet::new();
        for host in 0..=255u8 {
            for port in 8000..8016u16 {
                assert!(seen.insert(affinity_token(SocketAddr::from(([10, 0, 0, host], port)))));
            }
        }
    }
}

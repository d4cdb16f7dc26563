//! Hashes that must be the same in every process and every version: the token of a server in an
//! affinity cookie, and the position of a key under `hash`.
//!
//! Not for tables that a client could flood with colliding keys. Only [`affinity_token`] hides its
//! input.

use std::net::IpAddr;

use model::{Address, AffinityKey, hash_bytes};

pub(crate) use model::mix;

use crate::query;

/// Returns the token of the server at `address` for affinity cookies: `SipHash-2-4` (Aumasson and
/// Bernstein 2012) of the address under a secret key, so that a client cannot derive the address
/// from the token. Balancers with the same key understand each other's cookies.
pub fn affinity_token(key: &AffinityKey, address: Address) -> u64 {
    let address = match address {
        Address::Ip(address) => address,
        Address::Unix(path) => return siphash(key.bytes(), path.as_str().as_bytes()),
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut message = [0; 18];
    message[..16].copy_from_slice(&ip.octets());
    message[16..].copy_from_slice(&address.port().to_be_bytes());
    siphash(key.bytes(), &message)
}

/// `SipHash-2-4`: a keyed hash whose key cannot be derived from its results.
pub(crate) fn siphash(key: &[u8; 16], message: &[u8]) -> u64 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let absorb = |v: &mut [u64; 4], block: u64| {
        v[3] ^= block;
        (0..2).for_each(|_| sip_round(v));
        v[0] ^= block;
    };
    let mut blocks = message.chunks_exact(8);
    for block in &mut blocks {
        absorb(&mut v, word(block));
    }
    // The last block ends with the message's length.
    absorb(&mut v, word(blocks.remainder()) | ((message.len() as u64) << 56));
    v[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// Returns the token by which `hash` places the server at `address`, the same in every process. It can be inverted;
/// sessions of routes contain it in encrypted form. Cookies of the previous release contain it too, and are
/// accepted for one more release.
pub fn server_token(address: Address) -> u64 {
    let address = match address {
        Address::Ip(address) => address,
        Address::Unix(path) => return hash_key(path.as_str().as_bytes()),
    };
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => (4, u128::from(u32::from(ip))),
        IpAddr::V6(ip) => (6, u128::from(ip)),
    };
    let low = mix(ip as u64 ^ (u64::from(address.port()) << 48) ^ family);
    mix(low ^ (ip >> 64) as u64)
}

/// Returns the hash of the part of a request that a service's `hash` names.
pub fn hash_key(part: &[u8]) -> u64 {
    hash_bytes(part.iter().copied())
}

/// Returns the hash of a path as sent, without its query. Paths that differ only in their
/// percent-encoding have the same hash ([`model::path::canonical_bytes`]).
pub fn hash_path(path: &str) -> u64 {
    hash_bytes(model::path::canonical_bytes(path))
}

/// Returns the hash of the decoded value of the first parameter called `name`; `None` if the query
/// has none.
pub fn hash_parameter(query: &str, name: &str) -> Option<u64> {
    query::first_value(query, name).map(hash_bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn equal_paths_and_parameters_have_equal_hashes() {
        assert_eq!(hash_path("/a%20b/c"), hash_path("/%61%20b/%63"));
        assert_eq!(hash_path("/%e2%82%ac"), hash_path("/%E2%82%AC"));
        assert_eq!(hash_path("/alice"), hash_key(b"/alice"));
        // An encoded slash separates nothing, so this is another path.
        assert_ne!(hash_path("/a/b"), hash_path("/a%2Fb"));
        assert_ne!(hash_path("/a"), hash_path("/A"));

        assert_eq!(hash_parameter("x=1&id=alice", "id"), Some(hash_key(b"alice")));
        assert_eq!(hash_parameter("%69d=%61lice&id=bob", "id"), Some(hash_key(b"alice")));
        assert_eq!(hash_parameter("id=a+b", "id"), hash_parameter("id=a%20b", "id"));
        assert_eq!(hash_parameter("id", "id"), Some(hash_key(b"")));
        assert_eq!(hash_parameter("ID=alice&xid=alice", "id"), None);
        assert_eq!(hash_parameter("", "id"), None);
    }

    #[test]
    fn tokens_are_stable_across_versions() {
        // Cookies of the previous release, and the positions of keys under `hash`.
        let v4 = server_token("10.0.1.5:8080".parse().unwrap());
        let v6 = server_token("[::1]:8080".parse().unwrap());
        assert_eq!((v4, v6), (0x5956_7fee_85fc_2648, 0xd3df_8334_23a6_de3b));
        assert_eq!(hash_key(b"alice"), 0x1a04_6f57_3e1e_5475);
    }

    #[test]
    fn the_keyed_hash_is_siphash_2_4() {
        // From the reference implementation's vectors: key 00 01 …, message 00 01 ….
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let message: Vec<u8> = (0..15).collect();
        for (length, expected) in [
            (0, 0x726f_db47_dd0e_0e31),
            (1, 0x74f8_39c5_93dc_67fd),
            (7, 0xab02_00f5_8b01_d137),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ] {
            assert_eq!(siphash(&key, &message[..length]), expected, "{length} bytes");
        }
    }

    #[test]
    fn a_token_depends_on_the_key_the_address_and_the_port() {
        let [one, other] = [1, 2].map(|byte| AffinityKey::new([byte; 16]));
        let address = |text: &str| text.parse::<Address>().unwrap();
        let token = affinity_token(&one, address("10.0.1.5:8080"));
        assert_eq!(token, affinity_token(&one, address("10.0.1.5:8080")));
        assert_ne!(token, affinity_token(&other, address("10.0.1.5:8080")));
        assert_ne!(token, affinity_token(&one, address("10.0.1.6:8080")));
        assert_ne!(token, affinity_token(&one, address("10.0.1.5:8081")));
        assert_ne!(token, server_token(address("10.0.1.5:8080")));
        let of_socket = affinity_token(&one, address("unix:/run/a.sock"));
        assert_eq!(of_socket, affinity_token(&one, address("unix:/run/a.sock")));
        assert_ne!(of_socket, affinity_token(&one, address("unix:/run/b.sock")));
        assert_ne!(of_socket, server_token(address("unix:/run/a.sock")));
    }

    #[test]
    fn neighbouring_addresses_differ() {
        let mut seen = HashSet::new();
        for host in 0..=255u8 {
            for port in 8000..8016u16 {
                assert!(
                    seen.insert(server_token(SocketAddr::from(([10, 0, 0, host], port)).into()))
                );
            }
        }
    }
}

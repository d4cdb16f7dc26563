//! A set of networks, with a membership test whose cost hardly depends on their number.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use ipnet::IpNet;

/// A set of networks. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) counts as the IPv4 address.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// As they were given.
    listed: Vec<IpNet>,
    /// The first and last address of each run of covered addresses: disjoint, in ascending order.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Networks {
    /// Returns whether a network covers `ip`: a binary search.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => covers(&self.v4, ip.to_bits()),
            IpAddr::V6(ip) => covers(&self.v6, ip.to_bits()),
        }
    }

    /// Returns the networks in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &IpNet> {
        self.listed.iter()
    }

    /// Returns whether it covers no address.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Networks {
        let listed: Vec<_> = networks.into_iter().collect();
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in &listed {
            match network {
                IpNet::V4(net) => v4.push((net.network().to_bits(), net.broadcast().to_bits())),
                IpNet::V6(net) => match mapped(net) {
                    Some(run) => v4.push(run),
                    None => v6.push((net.network().to_bits(), net.broadcast().to_bits())),
                },
            }
        }
        Networks { listed, v4: merged(v4), v6: merged(v6) }
    }
}

/// Sets are equal if they were given the same list.
impl PartialEq for Networks {
    fn eq(&self, other: &Networks) -> bool {
        self.listed == other.listed
    }
}

impl Eq for Networks {}

impl Hash for Networks {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.listed.hash(state);
    }
}

impl PartialOrd for Networks {
    fn partial_cmp(&self, other: &Networks) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Networks {
    fn cmp(&self, other: &Networks) -> Ordering {
        self.listed.cmp(&other.listed)
    }
}

/// Returns the IPv4 addresses of a network of IPv4-mapped addresses (`::ffff:0:0/96` or smaller).
fn mapped(net: &ipnet::Ipv6Net) -> Option<(u32, u32)> {
    let (first, last) = (net.network().to_ipv4_mapped()?, net.broadcast().to_ipv4_mapped()?);
    Some((first.to_bits(), last.to_bits()))
}

/// Sorts runs, and joins those that overlap.
fn merged<N: Ord + Copy>(mut runs: Vec<(N, N)>) -> Vec<(N, N)> {
    runs.sort_unstable();
    let mut joined: Vec<(N, N)> = Vec::with_capacity(runs.len());
    for (first, last) in runs {
        match joined.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

fn covers<N: Ord + Copy>(runs: &[(N, N)], address: N) -> bool {
    let after = runs.partition_point(|(first, _)| *first <= address);
    after.checked_sub(1).is_some_and(|at| address <= runs[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Networks {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_set_covers_what_one_of_its_networks_covers() {
        let set = set(&["10.0.0.0/8", "10.1.0.0/16", "192.0.2.7/32", "2001:db8::/32", "::1/128"]);
        for (ip, is_in) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("9.255.255.255", false),
            ("11.0.0.0", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:10.2.3.4", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::1", true),
            ("::2", false),
        ] {
            assert_eq!(set.contains(ip.parse().unwrap()), is_in, "{ip}");
        }
        assert!(!Networks::default().contains("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn everything_and_mapped_networks() {
        let all = set(&["0.0.0.0/0", "::/0"]);
        for ip in ["0.0.0.0", "255.255.255.255", "::", "ffff::"] {
            assert!(all.contains(ip.parse().unwrap()), "{ip}");
        }
        let mapped = set(&["::ffff:10.0.0.0/104"]);
        assert!(mapped.contains("10.9.9.9".parse().unwrap()));
        assert!(mapped.contains("::ffff:10.9.9.9".parse().unwrap()));
        assert!(!mapped.contains("11.0.0.1".parse().unwrap()));
    }

    /// Against the definition, for random networks that often overlap; the seed is fixed.
    #[test]
    fn many_networks_agree_with_asking_each() {
        let mut state = 7_u32;
        let mut random = move || {
            // xorshift32
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        let networks: Vec<IpNet> = (0..5_000)
            .map(|_| {
                let length = 12 + (random() % 21) as u8;
                ipnet::Ipv4Net::new(random().into(), length).unwrap().trunc().into()
            })
            .collect();
        let set: Networks = networks.iter().copied().collect();
        for _ in 0..2_000 {
            let ip = IpAddr::V4(random().into());
            assert_eq!(set.contains(ip), networks.iter().any(|net| net.contains(&ip)), "{ip}");
        }
    }
}

//! A set of networks, with a membership test whose cost hardly depends on their number.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use ipnet::IpNet;

/// A set of networks. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) counts as the IPv4 address.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// As they were given, without those of files.
    listed: Vec<IpNet>,
    /// The names of the files that list further ones.
    files: Vec<Box<str>>,
    /// The first and last address of each run of covered addresses, in ascending order. Runs neither
    /// overlap nor touch, so equal sets have equal runs.
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

    /// Returns the networks that `file` lists. Only their addresses are kept: lists are long.
    pub fn of_file(file: &str, networks: &[IpNet]) -> Networks {
        let all: Networks = networks.iter().copied().collect();
        Networks { listed: Vec::new(), files: vec![file.into()], ..all }
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(&self, other: &Networks) -> Networks {
        Networks {
            listed: [&*self.listed, &*other.listed].concat(),
            files: [&*self.files, &*other.files].concat(),
            v4: merged([&*self.v4, &*other.v4].concat(), next_v4),
            v6: merged([&*self.v6, &*other.v6].concat(), next_v6),
        }
    }

    /// Returns the networks in the order in which they were given, without those of files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &IpNet> {
        self.listed.iter()
    }

    /// Returns whether it covers no address.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
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
        let (v4, v6) = (merged(v4, next_v4), merged(v6, next_v6));
        Networks { listed, files: Vec::new(), v4, v6 }
    }
}

/// Writes the first networks and the names of files: `10.0.0.0/8 192.0.2.1/32 and those in office.txt`.
impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 3;
        let shown = self.listed.iter().take(SHOWN_MAX).map(ToString::to_string);
        let rest = self.listed.len().saturating_sub(SHOWN_MAX);
        let rest = (rest > 0).then(|| format!("and {rest} more"));
        let words: Vec<_> = shown.chain(rest).collect();
        let networks = (!words.is_empty()).then(|| words.join(" "));
        let files = (!self.files.is_empty()).then(|| format!("those in {}", self.files.join(" ")));
        match (networks, files) {
            (Some(networks), Some(files)) => write!(f, "{networks} and {files}"),
            (Some(words), None) | (None, Some(words)) => f.write_str(&words),
            (None, None) => f.write_str("no network"),
        }
    }
}

fn next_v4(address: u32) -> Option<u32> {
    address.checked_add(1)
}

fn next_v6(address: u128) -> Option<u128> {
    address.checked_add(1)
}

/// Sets are equal if they cover the same addresses, however they are written.
impl PartialEq for Networks {
    fn eq(&self, other: &Networks) -> bool {
        (&self.v4, &self.v6) == (&other.v4, &other.v6)
    }
}

impl Eq for Networks {}

impl Hash for Networks {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.v4.hash(state);
        self.v6.hash(state);
    }
}

impl PartialOrd for Networks {
    fn partial_cmp(&self, other: &Networks) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Networks {
    fn cmp(&self, other: &Networks) -> Ordering {
        (&self.v4, &self.v6).cmp(&(&other.v4, &other.v6))
    }
}

/// Returns the IPv4 addresses of a network of IPv4-mapped addresses (`::ffff:0:0/96` or smaller).
fn mapped(net: &ipnet::Ipv6Net) -> Option<(u32, u32)> {
    let (first, last) = (net.network().to_ipv4_mapped()?, net.broadcast().to_ipv4_mapped()?);
    Some((first.to_bits(), last.to_bits()))
}

/// Sorts runs, and joins those that overlap or touch. `next` returns the address after another, if
/// there is one.
fn merged<N: Ord + Copy>(mut runs: Vec<(N, N)>, next: impl Fn(N) -> Option<N>) -> Vec<(N, N)> {
    runs.sort_unstable();
    let mut joined: Vec<(N, N)> = Vec::with_capacity(runs.len());
    for (first, last) in runs {
        match joined.last_mut() {
            Some(before) if next(before.1).is_none_or(|next| first <= next) => {
                before.1 = before.1.max(last);
            }
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

    #[test]
    fn sets_that_cover_the_same_addresses_are_equal() {
        let all = ["0.0.0.0/0", "::/0"];
        for (one, other) in [
            (&["10.0.0.0/8"][..], &["10.128.0.0/9", "10.0.0.0/9"][..]),
            (&["10.0.0.0/8", "10.1.0.0/16"], &["10.0.0.0/8"]),
            (&["192.0.2.0/32", "192.0.2.1/32"], &["192.0.2.0/31"]),
            (&["::ffff:10.0.0.0/104"], &["10.0.0.0/8"]),
            (&all, &["::/1", "8000::/1", "0.0.0.0/1", "128.0.0.0/1", "255.255.255.255/32"]),
        ] {
            assert_eq!(set(one), set(other));
            assert_eq!(set(one).cmp(&set(other)), Ordering::Equal);
        }
        assert_ne!(set(&["192.0.2.0/32", "192.0.2.2/32"]), set(&["192.0.2.0/30"]));
        assert_ne!(set(&all[..1]), set(&all));
    }

    #[test]
    fn a_union_covers_both_and_names_its_files() {
        let file: Vec<IpNet> = ["192.0.2.128/25", "::1/128"].map(|net| net.parse().unwrap()).into();
        let file = Networks::of_file("office.txt", &file);
        let both = set(&["192.0.2.0/25", "10.0.0.0/8"]).union(&file);
        assert_eq!(both, set(&["10.0.0.0/8", "192.0.2.0/24", "::1/128"]));
        for (set, text) in [
            (&both, "192.0.2.0/25 10.0.0.0/8 and those in office.txt"),
            (&file, "those in office.txt"),
            (
                &set(&["::/4", "1.0.0.0/8", "2.0.0.0/8", "3.0.0.0/8"]),
                "::/4 1.0.0.0/8 2.0.0.0/8 and 1 more",
            ),
            (&Networks::default(), "no network"),
        ] {
            assert_eq!(set.to_string(), text);
        }
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

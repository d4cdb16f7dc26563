//! The hosts that a listener serves, and which of its entries a host belongs to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::HostPattern;

/// Patterns of hosts. A host belongs to the most specific one that covers it: the exact name, the longest
/// wildcard, any host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// As configured, `None` for any host; no pattern twice.
    patterns: Vec<Option<HostPattern>>,
    exact: BTreeMap<String, u32>,
    /// By what follows `*.`.
    wildcards: BTreeMap<String, u32>,
    any: Option<u32>,
}

impl Hosts {
    /// Collects patterns with names in lower case; `None`: any host. Of equal ones the first counts.
    pub fn new(patterns: impl IntoIterator<Item = Option<HostPattern>>) -> Hosts {
        let mut hosts = Hosts::default();
        for pattern in patterns {
            hosts.push(pattern);
        }
        hosts
    }

    /// Adds a pattern with a name in lower case; `None`: any host. Returns whether it is new.
    pub fn push(&mut self, pattern: Option<HostPattern>) -> bool {
        // A configuration's size keeps this far below 2^32.
        let index = self.patterns.len() as u32;
        let first = match &pattern {
            None => *self.any.get_or_insert(index),
            Some(HostPattern::Exact(name)) => *self.exact.entry(name.clone()).or_insert(index),
            Some(HostPattern::Wildcard(suffix)) => {
                *self.wildcards.entry(suffix.clone()).or_insert(index)
            }
        };
        let is_new = first == index;
        if is_new {
            self.patterns.push(pattern);
        }
        is_new
    }

    /// Returns the index of the pattern for any host, if there is one.
    pub fn any(&self) -> Option<u32> {
        self.any
    }

    /// Returns the patterns as a configuration has them: `a.example.com`, `*.example.org`, `*`.
    pub fn iter(&self) -> impl Iterator<Item = String> {
        self.patterns.iter().map(|pattern| match pattern {
            Some(pattern) => pattern.to_string(),
            None => "*".to_owned(),
        })
    }

    /// Returns the index of the pattern that a host belongs to, in any case and with or without a dot at
    /// its end; `None`: to none of them.
    pub fn entry(&self, host: &str) -> Option<u32> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        };
        let wildcard = || {
            let dots = host.match_indices('.').filter(|(at, _)| *at > 0);
            let mut below = dots.map(|(at, _)| &host[at + 1..]);
            below.find_map(|suffix| self.wildcards.get(suffix))
        };
        self.exact.get(&*host).or_else(wildcard).copied().or(self.any)
    }

    /// Returns whether a request for `host` may arrive on a connection whose client asked for
    /// `server_name` in its TLS handshake (SNI): both belong to one pattern. Otherwise certificates and
    /// rules of one pattern would be used to reach another (RFC 9110 section 15.5.20). A connection
    /// without a name belongs where any host does; but clients never name an address (RFC 6066 section 3).
    pub fn agree(&self, server_name: Option<&str>, host: &str) -> bool {
        let entry = self.entry(host);
        let asked = match server_name {
            Some(name) => self.entry(name),
            None if is_address(host) => entry,
            None => self.any,
        };
        entry.is_some() && asked == entry
    }
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Hosts {
        Hosts::new(text.split_whitespace().map(|pattern| match pattern.strip_prefix("*.") {
            _ if pattern == "*" => None,
            Some(suffix) => Some(HostPattern::Wildcard(suffix.to_owned())),
            None => Some(HostPattern::Exact(pattern.to_owned())),
        }))
    }

    #[test]
    fn a_host_belongs_to_the_most_specific_pattern() {
        let all = "*.example.com a.example.com *.a.example.com * *.com";
        for (patterns, host, expected) in [
            (all, "a.example.com", Some(1)),
            (all, "A.Example.Com.", Some(1)),
            (all, "b.example.com", Some(0)),
            (all, "x.y.example.com", Some(0)),
            (all, "x.a.example.com", Some(2)),
            (all, "example.com", Some(4)),
            (all, "example.org", Some(3)),
            (all, "", Some(3)),
            ("a.example *.example", "example", None),
            ("a.example *.example", ".example", None),
            ("a.example", "", None),
            ("a.example", "b.example", None),
        ] {
            assert_eq!(hosts(patterns).entry(host), expected, "{host} of {patterns}");
        }
    }

    #[test]
    fn a_connection_for_one_pattern_carries_no_request_for_another() {
        for (patterns, server_name, host, expected) in [
            ("a.example b.example", Some("a.example"), "a.example", true),
            ("a.example b.example", Some("A.example"), "a.EXAMPLE.", true),
            ("a.example b.example", Some("a.example"), "b.example", false),
            ("a.example b.example", None, "b.example", false),
            ("a.example *.example", Some("a.example"), "b.example", false),
            ("a.example *.example", Some("b.example"), "c.example", true),
            ("a.example *", Some("b.example"), "other", true),
            ("a.example *", None, "other", true),
            ("a.example *", None, "a.example", false),
            ("a.example", Some("b.example"), "c.example", false),
            ("192.0.2.1 *", None, "192.0.2.1", true),
            ("[2001:db8::1]", None, "[2001:db8::1]", true),
            ("192.0.2.1 *", Some("a.example"), "192.0.2.1", false),
            ("a.example", None, "192.0.2.1", false),
        ] {
            let agree = hosts(patterns).agree(server_name, host);
            assert_eq!(agree, expected, "{server_name:?} {host} of {patterns}");
        }
    }
}

//! Finds the client's address in a request that a trusted proxy has forwarded.
//!
//! Clients can write any address into a forwarding field; only what trusted proxies have appended can
//! be believed. So a list is read from the right: each address in a trusted network is a proxy, whose
//! own entry, to the left of it, can be believed. The first address outside is the client, and what
//! stands to the left of it is ignored. Where nothing can be believed, the client is the last trusted
//! proxy, never a guess.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use model::{AddressField, AddressFound, ClientAddress, Networks};
use wire::http1::{Known, RequestHead, forwarded};

/// Returns the client's address in a request from `peer`, which is in one of the `trusted` networks, and
/// how it was found: not always is it the client's ([`AddressFound::is_known`]). The port is 0 where the
/// field has none.
pub fn find(
    peer: SocketAddr,
    trusted: &Networks,
    rule: &ClientAddress,
    request: &RequestHead,
) -> (SocketAddr, AddressFound) {
    match &rule.field {
        AddressField::XForwardedFor => {
            let lines = values(request, Known::XForwardedFor);
            let entries = lines.flat_map(|line| line.rsplit(|&byte| byte == b','));
            let entries = entries.map(<[u8]>::trim_ascii).filter(|entry| !entry.is_empty());
            walk(peer, trusted, rule.hops, entries.map(address))
        }
        AddressField::Forwarded => {
            let lines = values(request, Known::Forwarded);
            let nodes = lines.flat_map(|line| forwarded::nodes(line).into_iter().rev());
            walk(peer, trusted, rule.hops, nodes.map(|node| address(&node?)))
        }
        AddressField::Single(name) => {
            let is_named = |name: &[u8], other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            let mut lines = request.fields().filter(|field| is_named(field.name, name));
            match (lines.next(), lines.next()) {
                (None, _) => (peer, AddressFound::Missing),
                (Some(only), None) if only.value.is_empty() => (peer, AddressFound::Missing),
                (Some(only), None) => match address(only.value) {
                    Some(client) => (client, AddressFound::Found),
                    None => (peer, AddressFound::Invalid),
                },
                // Which of them the proxy wrote is unknown.
                (Some(_), Some(_)) => (peer, AddressFound::Invalid),
            }
        }
    }
}

/// Returns the values of all lines of a field, the last first.
fn values(request: &RequestHead, known: Known) -> impl Iterator<Item = &[u8]> {
    request.fields().rev().filter(move |field| field.known == known).map(|field| field.value)
}

/// Finds the client among `entries`, the last of the list first.
fn walk(
    peer: SocketAddr,
    trusted: &Networks,
    hops: Option<u32>,
    entries: impl Iterator<Item = Option<SocketAddr>>,
) -> (SocketAddr, AddressFound) {
    let mut proxy = peer;
    let mut count = 0;
    for entry in entries {
        let Some(address) = entry else {
            // At a fixed position, the addresses on the way there may be anyone's.
            let last = if hops.is_none() { proxy } else { peer };
            return (last, AddressFound::Invalid);
        };
        count += 1;
        let is_client = match hops {
            Some(hops) => count == hops,
            None => !trusted.contains(address.ip()),
        };
        if is_client {
            return (address, AddressFound::Found);
        }
        proxy = address;
    }
    match hops {
        _ if count == 0 => (peer, AddressFound::Missing),
        // The request has not passed all proxies, so it is not known who wrote these.
        Some(_) => (peer, AddressFound::TooFew),
        None => (proxy, AddressFound::OnlyTrusted),
    }
}

/// Reads an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`. The zone of an IPv6 address (`fe80::1%eth0`, RFC 4007 section 11) has a meaning
/// for the proxy only, and is left out.
fn address(entry: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let text = &*without_zone(text)?;
    let with_port = |text: &str| text.parse::<SocketAddr>().ok();
    let alone = |text: &str| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, 0));
    let found = match text.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(v6) => alone(v6).filter(SocketAddr::is_ipv6),
            None => with_port(text),
        },
        None => alone(text).or_else(|| with_port(text)),
    }?;
    Some(SocketAddr::new(found.ip().to_canonical(), found.port()))
}

/// Removes the zone of an IPv6 address; `None` if it is not a zone.
fn without_zone(text: &str) -> Option<Cow<'_, str>> {
    let Some((address, rest)) = text.split_once('%') else { return Some(Cow::Borrowed(text)) };
    let is_of_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let length = rest.bytes().take_while(|byte| is_of_zone(*byte)).count();
    let (zone, after) = rest.split_at(length);
    let is_v6 = address.trim_start_matches('[').parse::<Ipv6Addr>().is_ok();
    (is_v6 && !zone.is_empty()).then(|| Cow::Owned(format!("{address}{after}")))
}

#[cfg(test)]
mod tests {
    use wire::http1::{HeadLimits, parse_request};

    use super::*;

    fn request(fields: &[&str]) -> RequestHead {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.join("\r\n"));
        let text = text.replace("\r\n\r\n\r\n", "\r\n\r\n");
        let limits = HeadLimits { head_max_bytes: 65_536, target_max_bytes: 100, fields_max: 100 };
        let mut head = RequestHead::default();
        parse_request(text.as_bytes(), &limits, &mut head).unwrap();
        head
    }

    fn found(rule: &ClientAddress, fields: &[&str]) -> (String, &'static str) {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"].map(|net| net.parse().unwrap());
        let peer = "10.0.0.1:1234".parse().unwrap();
        let (client, found) = find(peer, &trusted.into_iter().collect(), rule, &request(fields));
        let client = match client.port() {
            0 => client.ip().to_string(),
            _ => client.to_string(),
        };
        (client, found.as_str())
    }

    fn check(rule: &ClientAddress, cases: &[(&[&str], &str, &str)]) {
        for (fields, client, word) in cases {
            assert_eq!(found(rule, fields), ((*client).to_owned(), *word), "{fields:?}");
        }
    }

    #[test]
    fn the_first_untrusted_address_from_the_right_is_the_client() {
        check(
            &ClientAddress::default(),
            &[
                (&["X-Forwarded-For: 192.0.2.7"], "192.0.2.7", "found"),
                // What the client wrote stands to the left.
                (&["X-Forwarded-For: 127.0.0.1, 1.1.1.1, 192.0.2.7"], "192.0.2.7", "found"),
                (&["X-Forwarded-For: 192.0.2.7, 10.9.9.9"], "192.0.2.7", "found"),
                (&["X-Forwarded-For: 192.0.2.7,10.1.1.1 ,\t10.9.9.9"], "192.0.2.7", "found"),
                // Lines are one list.
                (&["X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 192.0.2.7"], "192.0.2.7", "found"),
                (
                    &["X-Forwarded-For: 192.0.2.7", "X-Forwarded-For: 10.0.0.3"],
                    "192.0.2.7",
                    "found",
                ),
                // Ports, brackets, mapped addresses, empty elements.
                (&["X-Forwarded-For: 192.0.2.7:8080"], "192.0.2.7:8080", "found"),
                (&["X-Forwarded-For: [2001:db9::1]:99, 2001:db8::5"], "[2001:db9::1]:99", "found"),
                (&["X-Forwarded-For: [2001:db9::1]"], "2001:db9::1", "found"),
                (&["X-Forwarded-For: ::ffff:192.0.2.7"], "192.0.2.7", "found"),
                (&["X-Forwarded-For: , 192.0.2.7, ,"], "192.0.2.7", "found"),
                // Zones.
                (&["X-Forwarded-For: fe80::1%eth0"], "fe80::1", "found"),
                (&["X-Forwarded-For: [fe80::1%en0.7]:99"], "[fe80::1]:99", "found"),
                // The last trusted proxy is used, never an entry to the left of an invalid one.
                (&["X-Forwarded-For: 192.0.2.7, oops"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: 192.0.2.7, unknown, 10.0.0.3"], "10.0.0.3", "invalid"),
                (&["X-Forwarded-For: 192.0.2.7:99999"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: [192.0.2.7]"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: 192.0.2.7%eth0"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: fe80::1%"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: fe80::1%a b"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: 192.0.2.7 192.0.2.8"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: 10.0.0.9, 10.0.0.3"], "10.0.0.9", "only_trusted"),
                (&[], "10.0.0.1:1234", "missing"),
                (&["X-Forwarded-For:"], "10.0.0.1:1234", "missing"),
                // No other field counts.
                (&["Forwarded: for=1.1.1.1", "X-Real-IP: 1.1.1.1"], "10.0.0.1:1234", "missing"),
            ],
        );
    }

    #[test]
    fn forwarded_is_read_with_its_parameters() {
        let rule = ClientAddress { field: AddressField::Forwarded, hops: None };
        check(
            &rule,
            &[
                (&["Forwarded: for=192.0.2.7"], "192.0.2.7", "found"),
                (&["Forwarded: for=1.1.1.1, FOR=192.0.2.7;proto=https"], "192.0.2.7", "found"),
                (&["Forwarded: by=10.0.0.2;for=\"192.0.2.7:80\""], "192.0.2.7:80", "found"),
                (&["Forwarded: for=\"[2001:db9::1]\", for=10.1.1.1"], "2001:db9::1", "found"),
                (&["Forwarded: for=1.1.1.1, for=unknown"], "10.0.0.1:1234", "invalid"),
                (&["Forwarded: for=1.1.1.1, for=_hidden"], "10.0.0.1:1234", "invalid"),
                (&["Forwarded: for=1.1.1.1, proto=https"], "10.0.0.1:1234", "invalid"),
                // A quote that the client left open must not hide what the proxy appended.
                (&["Forwarded: for=\"1.1.1.1", "Forwarded: for=192.0.2.7"], "192.0.2.7", "found"),
                (&["Forwarded: for=\"1.1.1.1, for=192.0.2.7"], "10.0.0.1:1234", "invalid"),
                (
                    &["Forwarded: for=1.1.1.1;a=\", for=\"[2001:db9::1]\""],
                    "10.0.0.1:1234",
                    "invalid",
                ),
                (&["Forwarded: for=1.1.1.1;for=1.1.1.2"], "10.0.0.1:1234", "invalid"),
                (&["X-Forwarded-For: 1.1.1.1"], "10.0.0.1:1234", "missing"),
            ],
        );
    }

    #[test]
    fn the_client_can_be_at_a_fixed_position() {
        // A balancer that appends the client's address and then its own.
        let rule = ClientAddress { hops: Some(2), ..ClientAddress::default() };
        check(
            &rule,
            &[
                (&["X-Forwarded-For: 192.0.2.7, 203.0.113.1"], "192.0.2.7", "found"),
                (&["X-Forwarded-For: 1.1.1.1, 192.0.2.7, 203.0.113.1"], "192.0.2.7", "found"),
                (&["X-Forwarded-For: 10.0.0.7, 203.0.113.1"], "10.0.0.7", "found"),
                (&["X-Forwarded-For: 203.0.113.1"], "10.0.0.1:1234", "too_few"),
                (&["X-Forwarded-For: oops, 203.0.113.1"], "10.0.0.1:1234", "invalid"),
                (&[], "10.0.0.1:1234", "missing"),
            ],
        );
    }

    #[test]
    fn a_field_with_one_address_must_have_one() {
        let rule =
            ClientAddress { field: AddressField::Single("CF-Connecting-IP".into()), hops: None };
        check(
            &rule,
            &[
                (&["cf-connecting-ip: 192.0.2.7"], "192.0.2.7", "found"),
                (&["CF-Connecting-IP: 2001:db9::1"], "2001:db9::1", "found"),
                (&["CF-Connecting-IP: 1.1.1.1, 192.0.2.7"], "10.0.0.1:1234", "invalid"),
                (
                    &["CF-Connecting-IP: 1.1.1.1", "CF-Connecting-IP: 192.0.2.7"],
                    "10.0.0.1:1234",
                    "invalid",
                ),
                (&["CF-Connecting-IP:"], "10.0.0.1:1234", "missing"),
                (&["X-Forwarded-For: 1.1.1.1"], "10.0.0.1:1234", "missing"),
            ],
        );
    }
}

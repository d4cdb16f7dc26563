//! Takes addresses apart: a host or an IP address, and a port.

use std::net::{IpAddr, SocketAddr};

/// Returns the host and the port of `host`, `host:port`, an IP address with or without a port (IPv6 in
/// brackets or not), or the path of `unix:PATH`. No port is `None`, and so is port 0, which an access line
/// has if the port is unknown.
pub(crate) fn split(text: &str) -> (&str, Option<u16>) {
    if let Some(path) = text.strip_prefix("unix:") {
        return (path, None);
    }
    if let Some((inner, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (inner, rest.strip_prefix(':').and_then(port));
    }
    match text.rsplit_once(':') {
        // A bare IPv6 address has more than one colon.
        Some((host, digits)) if !host.contains(':') => match digits.parse::<u16>() {
            Ok(_) => (host, port(digits)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    }
}

fn port(digits: &str) -> Option<u16> {
    digits.parse().ok().filter(|port| *port != 0)
}

/// Returns whether `text` is an IP address, with or without a port, or a Unix socket's path: the end of a
/// connection, not a name.
pub(crate) fn is_address(text: &str) -> bool {
    text.starts_with("unix:")
        || text.parse::<SocketAddr>().is_ok()
        || text.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_split() {
        for (text, host, port) in [
            ("example.com", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("example.com:x", "example.com:x", None),
            ("example.com:99999", "example.com:99999", None),
            ("10.0.0.1:0", "10.0.0.1", None),
            ("[2001:db8::1]:443", "2001:db8::1", Some(443)),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("[2001:db8::1]443", "2001:db8::1", None),
            ("2001:db8::1", "2001:db8::1", None),
            ("[broken", "[broken", None),
            ("unix:/run/app:1.sock", "/run/app:1.sock", None),
            ("", "", None),
        ] {
            assert_eq!(split(text), (host, port), "{text}");
        }
    }

    #[test]
    fn names_are_no_addresses() {
        for (text, is) in [
            ("10.0.0.1:80", true),
            ("[::1]:80", true),
            ("::1", true),
            ("unix:/run/a", true),
            ("app.internal:80", false),
            ("", false),
        ] {
            assert_eq!(is_address(text), is, "{text}");
        }
    }
}

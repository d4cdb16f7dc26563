//! Addresses of servers: a host and a port.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Returns an address. `port` replaces the server's own.
///
/// # Errors
/// There is no port.
pub(crate) fn joined(host: &str, own: i64, port: Option<u16>) -> Result<String, String> {
    let port = match port.map_or(own, i64::from) {
        0 => return Err("the service has no port; `port` can name one".to_owned()),
        port => port,
    };
    Ok(match host.parse::<Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    })
}

/// Returns the target with `port` in place of its own port, if it has one. A text that is not a host, or a
/// host and a port, remains as it is, and is refused as an address.
pub(crate) fn with_port(target: &str, port: Option<u16>) -> Cow<'_, str> {
    let Some(port) = port else { return target.into() };
    if target.parse::<Ipv6Addr>().is_ok() {
        // `::1:9100` is an address by itself, but was probably meant as one with a port.
        let (before, last) = target.rsplit_once(':').unwrap_or((target, ""));
        let is_unclear =
            last.len() > 1 && last.parse::<u16>().is_ok() && before.parse::<Ipv6Addr>().is_ok();
        return if is_unclear { target.into() } else { format!("[{target}]:{port}").into() };
    }
    let (host, own) = match target.strip_prefix('[').and_then(|rest| rest.find(']')) {
        // After the bracket, which has been stripped, and the one that was found.
        Some(at) => match target.split_at(at + 2) {
            (host, "") => (host, None),
            (host, rest) => (host, Some(rest.strip_prefix(':').unwrap_or("no port"))),
        },
        None => match target.rsplit_once(':') {
            Some((host, own)) => (host, Some(own)),
            None => (target, None),
        },
    };
    match own {
        Some(own) if own.parse::<u16>().is_err() => target.into(),
        Some(_) | None => format!("{host}:{port}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_port_replaces_that_of_the_target() {
        for (target, wanted) in [
            ("10.0.1.5:9100", "10.0.1.5:80"),
            ("10.0.1.5", "10.0.1.5:80"),
            ("a.internal:9100", "a.internal:80"),
            ("a.internal", "a.internal:80"),
            ("[::1]:9100", "[::1]:80"),
            ("[::1]", "[::1]:80"),
            ("::1", "[::1]:80"),
            ("2001:db8::9100", "[2001:db8::9100]:80"),
            ("1:2:3:4:5:6:7:9100", "[1:2:3:4:5:6:7:9100]:80"),
            // Perhaps with a port, so it is refused.
            ("::1:9100", "::1:9100"),
            // Not hosts: they are refused as they are.
            ("http://a.internal/metrics", "http://a.internal/metrics"),
            ("http://a", "http://a"),
            ("[::1]x", "[::1]x"),
            ("a:", "a:"),
            ("a:b", "a:b"),
            ("[é]:1", "[é]:80"),
            ("", ":80"),
        ] {
            assert_eq!(with_port(target, Some(80)), wanted, "{target}");
            assert_eq!(with_port(target, None), target);
        }
    }
}

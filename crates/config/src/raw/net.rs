//! Parses addresses, networks and host names.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use model::{Address, HostPattern, HostPort, ServerTarget, UNIX_PREFIX, UnixPath};

use crate::diagnostic::Wrong;
use crate::diagnostic::quote;

/// An address to listen on: `0.0.0.0:8080`, `[::1]:8080`, `unix:/run/weir/http.sock`. `example` is
/// the path of a Unix socket for the message.
pub(crate) fn listen_address(text: &str, example: &str) -> Result<Address, Wrong> {
    /// A new socket is created beside the old one under a name that is longer by this.
    const SUFFIX: &str = ".new";
    match unix_path(text, example, UnixPath::BYTES_MAX - SUFFIX.len()) {
        Some(Ok(path)) if path.as_str().ends_with(SUFFIX) => Err(Wrong::new(format!(
            "a name that ends in {SUFFIX} is for the socket that replaces another"
        ))),
        Some(path) => path.map(Address::Unix),
        None => ip_address(text).map(Address::Ip),
    }
}

/// The path of a Unix socket after `unix:`, of at most `bytes_max`; `None` if the text is not meant as
/// one. `example` is a path for the message.
pub(crate) fn unix_path(
    text: &str,
    example: &str,
    bytes_max: usize,
) -> Option<Result<UnixPath, Wrong>> {
    let Some(path) = text.strip_prefix(UNIX_PREFIX) else {
        if !text.starts_with(['/', '.']) {
            return None;
        }
        let help = match UnixPath::new(text) {
            Some(path) => format!("write \"{UNIX_PREFIX}{path}\" for a Unix socket"),
            None => format!("a Unix socket is written \"{UNIX_PREFIX}{example}\""),
        };
        return Some(Err(Wrong::new("a path alone is no address").help(help)));
    };
    let fitting = UnixPath::new(path).filter(|_| path.len() <= bytes_max);
    Some(fitting.ok_or_else(|| {
        if !path.starts_with('/') {
            Wrong::new("the path of a Unix socket begins with a slash")
                .help(format!("write \"{UNIX_PREFIX}{example}\""))
        } else if path.ends_with('/') {
            Wrong::new("the name of the socket is missing")
        } else if path.contains(char::is_control) {
            Wrong::new("the path of a Unix socket has no control characters")
        } else if !UnixPath::is_plain(path) {
            Wrong::new("the path of a Unix socket has no parts that are empty, . or ..")
        } else {
            Wrong::new(format!("longer than the {bytes_max} bytes of a Unix socket"))
        }
    }))
}

/// An IP address and a port to listen on: `0.0.0.0:8080`, `[::1]:8080`.
pub(crate) fn ip_address(text: &str) -> Result<SocketAddr, Wrong> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(canonical(address));
    }
    let port = text.rsplit(':').next().filter(|p| p.parse::<u16>().is_ok());
    let before = text.strip_suffix(port.unwrap_or_default()).unwrap_or(text);
    Err(match (before, port) {
        ("" | ":" | "*:", Some(port)) => Wrong::new("no IP address before the port").help(format!(
            "write \"0.0.0.0:{port}\" for every IPv4 address of this machine, \"[::]:{port}\" for IPv6, or \"127.0.0.1:{port}\" for this machine only"
        )),
        ("localhost:", Some(port)) => Wrong::new("a listener needs an IP address, not a name")
            .help(format!("write \"127.0.0.1:{port}\" or \"[::1]:{port}\"")),
        _ => match (unbracketed_v6(text), text.parse::<IpAddr>()) {
            (Some(address), _) => {
                Wrong::new("an IPv6 address before a port stands in brackets")
                    .help(format!("write \"{address}\""))
            }
            (None, Ok(ip)) => Wrong::new("the port is missing")
                .help(format!("write \"{}\"", SocketAddr::new(ip, 8080))),
            (None, Err(_)) => Wrong::new("not an IP address and a port")
                .help("write it as \"0.0.0.0:8080\" or \"[::]:8080\""),
        },
    })
}

/// Converts an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) to the IPv4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

/// A DNS server: `10.0.0.53`, `127.0.0.1:5353`, `[2001:db8::53]:53`.
pub(crate) fn dns_server(text: &str) -> Result<SocketAddr, Wrong> {
    const DNS_PORT: u16 = 53;
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, DNS_PORT));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(address),
        Ok(_) => Err(Wrong::new("port 0 cannot be connected to")),
        Err(_) => Err(Wrong::new("not an IP address").help(
            "a DNS server is named by its address, as in \"10.0.0.53\" or \"127.0.0.1:5353\"",
        )),
    }
}

/// Parses a server's address: `10.0.1.5:8080`, `[::1]:8080`, `listings.internal:8080`,
/// `unix:/run/app.sock`.
pub(crate) fn server_target(text: &str) -> Result<ServerTarget, Wrong> {
    match unix_path(text, "/run/app.sock", UnixPath::BYTES_MAX) {
        Some(path) => path.map(|path| ServerTarget::Address(Address::Unix(path))),
        None => network_target(text),
    }
}

/// Parses a target on the network: `10.0.0.6:7946`, `[::1]:7946`, `balancers.internal:7946`.
pub(crate) fn network_target(text: &str) -> Result<ServerTarget, Wrong> {
    host_and_port(
        text,
        |address| ServerTarget::Address(address.into()),
        |host, port| ServerTarget::Name { host, port },
    )
}

/// Parses a host on the network and its port: `10.0.1.5:8125`, `[::1]:8125`, `stats.internal:8125`.
pub(crate) fn host_port(text: &str) -> Result<HostPort, Wrong> {
    host_and_port(text, HostPort::from, |host, port| HostPort { host, port })
}

fn host_and_port<T>(
    text: &str,
    of_address: impl FnOnce(SocketAddr) -> T,
    of_name: impl FnOnce(String, u16) -> T,
) -> Result<T, Wrong> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.port() == 0 {
            return Err(Wrong::new("port 0 cannot be connected to"));
        }
        return Ok(of_address(canonical(address)));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.trim_end_matches('/');
        let port = if rest.contains(':') {
            ""
        } else if scheme == "https" {
            ":443"
        } else {
            ":80"
        };
        return Err(Wrong::new("an address, not a URL").help(format!("write \"{rest}{port}\"")));
    }
    if let Some(address) = unbracketed_v6(text) {
        return Err(Wrong::new("an IPv6 address before a port stands in brackets")
            .help(format!("write \"{address}\"")));
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Err(Wrong::new("the port is missing")
            .help(format!("write \"{}\"", SocketAddr::new(ip, 8080))));
    }
    let Some((name, port)) = text.rsplit_once(':') else {
        return Err(match host_name(text) {
            Ok(name) => Wrong::new("the port is missing").help(format!("write \"{name}:8080\"")),
            Err(wrong) => wrong,
        });
    };
    let port = match port.parse::<u16>() {
        Ok(port) if port > 0 => port,
        _ => {
            return Err(Wrong::new(format!("{} is not a port (1 to 65535)", quote(port))));
        }
    };
    Ok(of_name(host_name(name)?, port))
}

/// `::1:8080` is an address by itself; `[::1]:8080` was meant. A last group of one digit is not a
/// plausible port.
fn unbracketed_v6(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':').filter(|(_, port)| port.len() > 1)?;
    let ip = ip.parse::<Ipv6Addr>().ok()?;
    Some(SocketAddr::new(ip.into(), port.parse().ok()?))
}

/// A network or one address: `10.0.0.0/8`, `192.0.2.1`.
pub(crate) fn network(text: &str) -> Result<IpNet, Wrong> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(ip));
    }
    let wrong = || {
        Wrong::new("not a network")
            .help("write it as \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.1\"")
    };
    let net = text.parse::<IpNet>().map_err(|_| wrong())?;
    if net.addr() == net.network() {
        return Ok(net);
    }
    Err(Wrong::new(format!("the address has bits beyond the first {}", net.prefix_len())).help(
        format!(
            "write \"{}\" for the network, or \"{}\" for the one address",
            net.trunc(),
            net.addr()
        ),
    ))
}

/// Parses a host name (RFC 1123 section 2.1, with `_` as used in practice), in lower case.
pub(crate) fn host_name(text: &str) -> Result<String, Wrong> {
    const NAME_BYTES_MAX: usize = 253;
    const LABEL_BYTES_MAX: usize = 63;
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err(Wrong::new("a host name is missing"));
    }
    if let Some(c) =
        name.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
    {
        let wrong = Wrong::new(format!("{} may not stand in a host name", quote(&c.to_string())));
        return Err(match c {
            c if !c.is_ascii() => wrong.help("write an international name in its xn-- form"),
            _ => wrong,
        });
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Wrong::new("longer than 253 characters, so no host has this name"));
    }
    for label in name.split('.') {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return Err(Wrong::new("the part between two dots has 1 to 63 characters"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(Wrong::new(
                "the part between two dots neither begins nor ends with a hyphen",
            ));
        }
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::new("not an IPv4 address, but ends like one"));
    }
    Ok(name.to_ascii_lowercase())
}

/// Parses a host without port: a name or an IP address, as in a URL (IPv6 in brackets).
pub(crate) fn host(text: &str) -> Result<String, Wrong> {
    if let Some(v6) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return match v6.parse::<Ipv6Addr>() {
            Ok(ip) => Ok(format!("[{ip}]")),
            Err(_) => Err(Wrong::new("not an IPv6 address between the brackets")),
        };
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => return Ok(ip.to_string()),
        Ok(IpAddr::V6(ip)) => {
            return Err(Wrong::new("an IPv6 address stands in brackets here")
                .help(format!("write \"[{ip}]\"")));
        }
        Err(_) => {}
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        return Err(Wrong::new("a host, not a URL").help(format!("write {}", quote(host))));
    }
    if let Some((name, port)) = text.rsplit_once(':')
        && port.bytes().all(|b| b.is_ascii_digit())
    {
        return Err(Wrong::new("the port does not belong to the host")
            .help(format!("write {}", quote(name))));
    }
    if let Some((name, path)) = text.split_once('/') {
        return Err(Wrong::new("a path does not belong to the host").help(format!(
            "write host = {} and path = {}",
            quote(name),
            quote(&format!("/{path}"))
        )));
    }
    host_name(text)
}

/// Parses a host to match: exact, or `*.example.com`. `None` for `*`: any.
pub(crate) fn host_pattern(text: &str) -> Result<Option<HostPattern>, Wrong> {
    if text == "*" {
        return Ok(None);
    }
    if let Some(suffix) = text.strip_prefix("*.") {
        return host(suffix).map(HostPattern::Wildcard).map(Some);
    }
    if let Some(suffix) = text.strip_prefix('.') {
        return Err(Wrong::new("a host does not begin with a dot")
            .help(format!("write {} for every host below it", quote(&format!("*.{suffix}")))));
    }
    host(text).map(HostPattern::Exact).map(Some).map_err(|wrong| match wrong.help {
        None if text.contains('*') => {
            wrong.help("a wildcard is the whole first label, as in \"*.example.com\"")
        }
        None if text.contains([' ', ',']) => {
            wrong.help("write several as a list, as in [\"a.example.com\", \"b.example.com\"]")
        }
        _ => wrong,
    })
}

/// Parses a server name for SNI (RFC 6066 section 3), in lower case, optionally with a leading
/// `*.`.
pub(crate) fn server_name(text: &str) -> Result<String, Wrong> {
    if text == "*" {
        return Err(Wrong::new("every name").help("write service = \"NAME\" for all other names"));
    }
    if text.parse::<IpAddr>().is_ok() {
        return Err(Wrong::new("clients ask for names, never for addresses"));
    }
    match host_pattern(text)? {
        Some(HostPattern::Wildcard(suffix)) => Ok(format!("*.{}", host_name(&suffix)?)),
        Some(HostPattern::Exact(_)) | None => host_name(text),
    }
}

/// Parses the value of a Host field: a host, with an optional port.
pub(crate) fn authority(text: &str) -> Result<String, Wrong> {
    if let Some((name, port)) = text.rsplit_once(':')
        && let Ok(port) = port.parse::<u16>()
        && let Ok(host) = host(name)
    {
        return Ok(format!("{host}:{port}"));
    }
    host(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_or_names() {
        let shown = |t: &str| server_target(t).map(|t| t.to_string());
        for (text, read) in [
            ("10.0.1.5:8080", "10.0.1.5:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("Listings.Internal:80", "listings.internal:80"),
            ("localhost:9", "localhost:9"),
            ("my_app:8080", "my_app:8080"),
            ("a.example.com.:8080", "a.example.com:8080"),
        ] {
            assert_eq!(shown(text).as_deref().ok(), Some(read), "{text}");
        }
    }

    #[test]
    fn a_wrong_address_is_answered_with_the_right_one() {
        let help = |wrong: Wrong| wrong.help.unwrap_or(wrong.why);
        for (text, said) in [
            ("10.0.1.5", "write \"10.0.1.5:8080\""),
            ("::1:8080", "write \"[::1]:8080\""),
            ("fe80::1", "write \"[fe80::1]:8080\""),
            ("http://a.example.com/", "write \"a.example.com:80\""),
            ("https://a:1", "write \"a:1\""),
            ("a:99999", "\"99999\" is not a port (1 to 65535)"),
            ("10.0.0.300:80", "not an IPv4 address, but ends like one"),
            ("a b:1", "\" \" may not stand in a host name"),
        ] {
            assert_eq!(server_target(text).map_err(help).unwrap_err(), said, "{text}");
        }
        assert!(help(ip_address("8080").unwrap_err()).starts_with("write \"0.0.0.0:8080\""));
        assert!(help(ip_address(":80").unwrap_err()).starts_with("write \"0.0.0.0:80\""));
        assert_eq!(help(ip_address("127.0.0.1").unwrap_err()), "write \"127.0.0.1:8080\"");
        assert_eq!(
            help(network("10.0.0.1/8").unwrap_err()),
            "write \"10.0.0.0/8\" for the network, or \"10.0.0.1\" for the one address"
        );
        assert_eq!(
            help(host_pattern(".example.com").unwrap_err()),
            "write \"*.example.com\" for every host below it"
        );
        assert!(host_pattern("a.*.com").is_err() && host_pattern("*a.com").is_err());
        assert_eq!(host_pattern("*").unwrap(), None);
    }
}

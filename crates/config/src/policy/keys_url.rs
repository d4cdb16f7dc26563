//! From which URLs policies may have keys fetched. The balancer fetches them, so they must not lead where only the balancer
//! can reach: its host, the cluster, its network. What a public name resolves to is not checked here.

use std::net::IpAddr;

use model::HttpUrl;

const NOT_HTTPS: &str =
    "must begin with https:// in a policy: anyone who can change the response can sign tokens";
const INSIDE: &str = "this may lead into the cluster, or to the host or the network of the balancer; write the full name of a public \
     server, or put the keys into a ConfigMap and name it in `keysConfigMap`";

/// Ends of names that are not public (RFC 6761, RFC 6762, and the names of Services).
const INSIDE_ENDS: &[&str] = &[".svc", ".cluster.local", ".internal", ".local", ".localhost"];

/// Returns why a policy may not have keys fetched from a URL.
pub(super) fn problem(url: &HttpUrl) -> Option<&'static str> {
    if !url.is_https() {
        return Some(NOT_HTTPS);
    }
    (!is_public(url.host())).then_some(INSIDE)
}

fn is_public(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_public_address(address);
    }
    let Some((_, last)) = host.rsplit_once('.') else { return false };
    // Resolvers read `127.1` and `0x7f.0x1` as addresses (inet_aton). No public name ends like this.
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    // `NAME.NAMESPACE.svc.DOMAIN`, whatever the domain of the cluster is.
    let is_service = host.split('.').skip(2).any(|label| label == "svc");
    host.chars().all(is_of_name)
        && !is_number
        && !is_service
        && !INSIDE_ENDS.iter().any(|end| host.ends_with(end))
}

fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            // RFC 6598: shared by providers, and used for Pods.
            let is_shared = first == 100 && (64..128).contains(&second);
            let is_inside = it.is_loopback() || it.is_private() || it.is_link_local() || is_shared;
            !is_inside && first != 0 && first < 224
        }
        // All others are local, or another form of an IPv4 address (RFC 4291, RFC 6052).
        IpAddr::V6(it) => {
            let [first, second, ..] = it.segments();
            // 6to4 and Teredo contain IPv4 addresses.
            let is_tunnel = first == 0x2002 || (first, second) == (0x2001, 0);
            first & 0xe000 == 0x2000 && !is_tunnel
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(url: &str) -> Option<&'static str> {
        problem(&url.parse().unwrap_or_else(|error| panic!("{url}: {error}")))
    }

    #[test]
    fn public_servers_are_asked_by_https() {
        for host in [
            "login.example.com",
            "login.example.com.",
            "Login.Example.com:8443",
            "svc.example.com",
            "internal.example.com",
            "a.1.example",
            "0x7f.example",
            "id.abc",
            "192.0.2.1",
            "192.0.2.1:8443",
            "[2001:db8::1]:8443",
        ] {
            assert_eq!(problem_of(&format!("https://{host}/keys")), None, "{host}");
            assert_eq!(problem_of(&format!("http://{host}/keys")), Some(NOT_HTTPS), "{host}");
        }
    }

    #[test]
    fn hosts_inside_are_not_asked() {
        for host in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.0.1:443",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "127.0.0x1",
            "127.0.0.0x",
            "0177.0.0.01",
            "1.2.3.4.5",
            "0.0.0.0",
            "10.96.0.1",
            "100.64.0.1",
            "169.254.169.254",
            "192.168.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[::ffff:169.254.169.254]",
            "[::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[fe80::1]:443",
            "[fd00::1]",
            "[ff02::1]",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "kubernetes",
            "kubernetes.default.svc",
            "kubernetes.default.svc.",
            "kubernetes.default.svc.Cluster.Local",
            "metadata.google.internal",
            "printer.local",
        ] {
            assert_eq!(problem_of(&format!("https://{host}/keys")), Some(INSIDE), "{host}");
        }
    }
}

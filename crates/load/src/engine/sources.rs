//! Checks before the load starts that this machine has the source addresses.

use std::net::{IpAddr, SocketAddr};

use super::refusal::{Refusal, mistake};

/// Whether connections can come from all of these.
///
/// # Errors
/// The first that is none of this machine's, or of another family than the others.
pub(super) fn check(sources: &[IpAddr]) -> Result<(), Refusal> {
    let Some(first) = sources.first() else { return Ok(()) };
    for source in sources {
        if source.is_ipv4() != first.is_ipv4() {
            return mistake(format!(
                "--source: {first} and {source} are of different families, IPv4 and IPv6; one run has \
                 sources of one"
            ));
        }
        if let Err(error) = os::socket::can_connect_from(*source) {
            return mistake(match error.kind() {
                std::io::ErrorKind::AddrNotAvailable => format!(
                    "--source {source}: no address of this machine; `ip address` lists those that are"
                ),
                _ => format!("--source {source}: no connection can come from it: {error}"),
            });
        }
    }
    Ok(())
}

/// Those of a server's addresses that can be reached from the sources.
///
/// # Errors
/// When there are none.
pub(super) fn reachable(
    name: &str,
    addresses: &[SocketAddr],
    sources: &[IpAddr],
) -> Result<Vec<SocketAddr>, Refusal> {
    let Some(source) = sources.first() else { return Ok(addresses.to_vec()) };
    let is_same = |address: &&SocketAddr| address.is_ipv4() == source.is_ipv4();
    let found: Vec<SocketAddr> = addresses.iter().filter(is_same).copied().collect();
    if found.is_empty() {
        let (theirs, ours) = if source.is_ipv4() { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
        return mistake(format!(
            "--source {source} is {ours}, and {name} has addresses of {theirs} only"
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn only_addresses_of_this_machine_and_of_one_family_are_sources() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&addresses(&["127.0.0.1", "127.7.7.7"])), Ok(()));
        for (sources, wanted) in [
            // RFC 5737: reserved for documentation.
            (&["127.0.0.1", "192.0.2.1"][..], "--source 192.0.2.1: no address of this machine"),
            (&["127.0.0.1", "::1"], "127.0.0.1 and ::1 are of different families"),
        ] {
            let Err(Refusal::Mistake(why)) = check(&addresses(sources)) else { panic!() };
            assert!(why.contains(wanted), "{why}");
        }
    }

    #[test]
    fn a_server_is_reached_by_addresses_of_the_sources_family() {
        let all: Vec<SocketAddr> =
            vec!["[::1]:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap()];
        assert_eq!(reachable("x", &all, &[]), Ok(all.clone()));
        assert_eq!(reachable("x", &all, &addresses(&["127.0.0.2"])), Ok(all[1..].to_vec()));
        let Err(Refusal::Mistake(why)) = reachable("x", &all[..1], &addresses(&["127.0.0.2"]))
        else {
            panic!()
        };
        assert_eq!(why, "--source 127.0.0.2 is IPv4, and x has addresses of IPv6 only");
    }
}

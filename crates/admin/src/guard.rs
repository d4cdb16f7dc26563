//! Who may talk to the API: this machine's own programs, and no web page that a browser here has
//! open.
//!
//! The API listens on loopback only, but a browser on this machine reaches loopback too, on behalf
//! of any page. Two checks keep pages out. A page whose *name* was made to point at 127.0.0.1 (DNS
//! rebinding) still sends its own name in Host, so Host must be a loopback name or address with
//! our port. A page of another origin sends that origin in Origin, so Origin must be absent or
//! ours. There is no CORS, so no page reads an answer either.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// Refuses requests that did not mean this server. `port` is the one it listens on.
pub(crate) async fn refuse_strangers(
    State(port): State<u16>,
    request: Request,
    next: Next,
) -> Response {
    match check(&request, port) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(request: &Request, port: u16) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    // RFC 9112 section 3.2.2: the authority of an absolute-form target stands above Host.
    let authority = request.uri().authority().map(Authority::as_str);
    let foreign = [Some(host), authority].into_iter().flatten().find(|name| !is_ours(name, port));
    if foreign.is_some() || hosts.next().is_some() {
        let message = format!(
            "Host {host:?} is not this server; ask for http://127.0.0.1:{port}/ or \
             http://localhost:{port}/ (names other than loopback are refused, so that no web \
             page can reach this API through DNS rebinding)"
        );
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", message));
    }
    match request.headers().get(ORIGIN) {
        Some(origin) if !is_our_origin(origin, port) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            format!("requests on behalf of a page at {origin:?} are refused"),
        )),
        _ => Ok(()),
    }
}

fn is_our_origin(origin: &HeaderValue, port: u16) -> bool {
    origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|authority| is_ours(authority, port))
}

/// Whether an authority (`host[:port]`) is a loopback name or address with our port.
fn is_ours(authority: &str, port: u16) -> bool {
    let (host, asked_port) = match authority.rsplit_once(':') {
        // The colons of a bracketed IPv6 address without a port are no separator.
        Some((host, asked)) if !asked.ends_with(']') => (host, asked.parse().ok()),
        _ => (authority, Some(80)),
    };
    asked_port == Some(port) && is_loopback(host)
}

fn is_loopback(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse().map(IpAddr::V6),
        None => host.parse().map(IpAddr::V4),
    };
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_addresses_with_our_port_are_ours() {
        for ours in [
            "127.0.0.1:9900",
            "127.8.9.10:9900",
            "localhost:9900",
            "LocalHost:9900",
            "[::1]:9900",
            "[::ffff:127.0.0.1]:9900",
        ] {
            assert!(is_ours(ours, 9900), "{ours}");
        }
        assert!(is_ours("localhost", 80));
        assert!(is_ours("[::1]", 80));
    }

    #[test]
    fn everything_else_is_not() {
        for foreign in [
            "",
            ":9900",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:9901",
            "127.0.0.1:99000",
            "evil.example:9900",
            "localhost.evil.example:9900",
            "127.0.0.1.evil.example:9900",
            "10.0.0.1:9900",
            "0.0.0.0:9900",
            "[::]:9900",
            "::1:9900",
            "[127.0.0.1]:9900",
            "user@localhost:9900",
        ] {
            assert!(!is_ours(foreign, 9900), "{foreign}");
        }
    }

    #[test]
    fn only_our_own_origin_may_ask_on_behalf_of_a_page() {
        let ours = |origin| is_our_origin(&HeaderValue::from_static(origin), 9900);
        assert!(ours("http://127.0.0.1:9900"));
        assert!(!ours("null"));
        assert!(!ours("http://localhost:3000"));
        assert!(!ours("https://evil.example"));
    }
}

//! Access control of the API: programs on this machine and the dashboard may use it, other web pages in a
//! browser on this machine may not. [`crate::access`] asks for the token.
//!
//! The API listens only on this machine, but a browser here can reach loopback on behalf of any page. Two
//! checks keep pages out. A page whose *name* was made to resolve to 127.0.0.1 (DNS rebinding) still
//! sends its own name in Host, so Host must be a loopback name or address with our port. A page of
//! another origin sends that origin in Origin, so Origin must be absent or that of the request itself, and
//! what changes something needs a field that no form can send. There is no CORS, so no other page can read
//! an answer. Browsers reach a Unix socket through a tunnel (`ssh -L`), on a port that only the client
//! knows.

use std::net::IpAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::bounded::Seat;
use crate::problem::Problem;

/// The field that pages send with what changes something. Other origins cannot send it without CORS.
const REQUEST: &str = "weir-request";

/// Refuses requests with a foreign Host or Origin. `port` is the listener's; `None`: a Unix socket.
pub(crate) async fn refuse_strangers(
    State(port): State<Option<u16>>,
    request: Request,
    next: Next,
) -> Response {
    match check(&request, port) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Notes a request for what is public on a listener that requires a token.
pub(crate) async fn note_public(request: Request, next: Next) -> Response {
    if let Some(ConnectInfo(seat)) = request.extensions().get::<ConnectInfo<Seat>>() {
        seat.note_public();
    }
    next.run(request).await
}

/// Marks the connection as allowed and active while the request is in progress, so that it is not
/// evicted.
pub(crate) async fn note_allowed(request: Request, next: Next) -> Response {
    let seat = request.extensions().get::<ConnectInfo<Seat>>();
    let working = seat.map(|ConnectInfo(seat)| seat.request());
    let response = next.run(request).await;
    drop(working);
    response
}

fn check(request: &Request, port: Option<u16>) -> Result<(), Problem> {
    let headers = request.headers();
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    // RFC 9112 section 3.2.2: the authority of an absolute-form target takes precedence over Host.
    let authority = request.uri().authority().map(Authority::as_str);
    let foreign = [Some(host), authority].into_iter().flatten().find(|name| !is_ours(name, port));
    if foreign.is_some() || hosts.next().is_some() {
        return Err(foreign_host(host, port));
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return if is_from_another_site(request) { Err(foreign_site()) } else { Ok(()) };
    };
    if origin.as_bytes().strip_prefix(b"http://") != Some(authority.unwrap_or(host).as_bytes())
        || !is_loopback_authority(host)
    {
        let message = format!("requests on behalf of a page at {origin:?} are refused");
        return Err(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message));
    }
    if !request.method().is_safe() && !headers.contains_key(REQUEST) {
        let message =
            "a page's request to change something needs the field Weir-Request: 1".to_owned();
        return Err(Problem::new(StatusCode::FORBIDDEN, "request_field_missing", message));
    }
    Ok(())
}

fn foreign_host(host: &str, port: Option<u16>) -> Problem {
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let message = format!(
        "Host {host:?} is not this server; ask for http://127.0.0.1{port}/ or http://localhost{port}/ \
         (names other than loopback are refused, so that no web page can reach this API through DNS \
         rebinding)"
    );
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", message)
}

/// Returns whether a page of another origin sends the request, for something other than following a link:
/// for an image, a script or a frame in it, for instance. Browsers state it in Fetch Metadata.
fn is_from_another_site(request: &Request) -> bool {
    let field = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    let site = field("sec-fetch-site");
    let is_link = field("sec-fetch-mode") == Some(b"navigate")
        && field("sec-fetch-dest") == Some(b"document");
    matches!(site, Some(b"cross-site" | b"same-site")) && !is_link
}

fn foreign_site() -> Problem {
    let message = "requests on behalf of a page of another origin are refused".to_owned();
    Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
}

/// Returns whether an authority (`host[:port]`) is a name that may be asked for. On a port: a loopback name or
/// address with that port. On a Unix socket: one with any port, because a tunnel may listen on it, or a name
/// without dots and port, as programs choose: no public name is one.
fn is_ours(authority: &str, port: Option<u16>) -> bool {
    match port {
        Some(port) => {
            let (host, asked) = split(authority);
            asked == Some(port) && is_loopback(host)
        }
        None => is_loopback_authority(authority) || !authority.contains(['.', ':']),
    }
}

fn is_loopback_authority(authority: &str) -> bool {
    let (host, port) = split(authority);
    port.is_some() && is_loopback(host)
}

/// Returns the host of an authority, and its port: 80 if it has none, `None` if it is not a number.
fn split(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        // The colons of a bracketed IPv6 address without a port are not separators.
        Some((host, asked)) if !asked.ends_with(']') => (host, asked.parse().ok()),
        _ => (authority, Some(80)),
    }
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
            assert!(is_ours(ours, Some(9900)), "{ours}");
        }
        assert!(is_ours("localhost", Some(80)));
        assert!(is_ours("[::1]", Some(80)));
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
            assert!(!is_ours(foreign, Some(9900)), "{foreign}");
        }
    }

    #[test]
    fn a_unix_socket_is_also_reached_through_tunnels() {
        for ours in ["weir", "localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", ""] {
            assert!(is_ours(ours, None), "{ours}");
        }
        for foreign in ["evil.example", "evil.example:8080", "weir:8080", "10.0.0.1", "localhost:x"]
        {
            assert!(!is_ours(foreign, None), "{foreign}");
        }
    }

    fn request(method: &str, fields: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri("/api/v1/status");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn only_our_own_page_may_ask() {
        let ask = |method, host, origin, port| {
            let fields = [("host", host), ("origin", origin), ("weir-request", "1")];
            check(&request(method, &fields), port).is_ok()
        };
        assert!(ask("GET", "127.0.0.1:9900", "http://127.0.0.1:9900", Some(9900)));
        assert!(ask("POST", "localhost:9900", "http://localhost:9900", Some(9900)));
        assert!(ask("POST", "localhost:8080", "http://localhost:8080", None));
        for origin in
            ["null", "http://localhost:3000", "https://127.0.0.1:9900", "https://evil.example"]
        {
            assert!(!ask("POST", "127.0.0.1:9900", origin, Some(9900)), "{origin}");
            assert!(!ask("GET", "127.0.0.1:9900", origin, None), "{origin}");
        }
        // A name that only programs may ask for.
        assert!(!ask("GET", "weir", "http://weir", None));
    }

    #[test]
    fn a_page_changes_nothing_without_the_field() {
        let page = [("host", "127.0.0.1:9900"), ("origin", "http://127.0.0.1:9900")];
        assert!(check(&request("GET", &page), Some(9900)).is_ok());
        for method in ["POST", "DELETE", "PUT"] {
            assert!(check(&request(method, &page), Some(9900)).is_err(), "{method}");
            assert!(
                check(&request(method, &page[..1]), Some(9900)).is_ok(),
                "a program's {method}"
            );
        }
    }

    #[test]
    fn other_sites_may_link_to_us_and_nothing_else() {
        let asked = |site, mode, destination| {
            let fields = [
                ("host", "127.0.0.1:9900"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", destination),
            ];
            check(&request("GET", &fields), Some(9900)).is_ok()
        };
        assert!(asked("same-origin", "cors", "empty") && asked("none", "navigate", "document"));
        for site in ["cross-site", "same-site"] {
            assert!(asked(site, "navigate", "document"));
            assert!(!asked(site, "navigate", "iframe") && !asked(site, "no-cors", "image"));
        }
    }
}

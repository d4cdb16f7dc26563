//! Access control of the API: programs on this machine may use it (with the token, if there is one), web
//! pages in a browser on this machine may not.
//!
//! The API listens only on this machine, but a browser here can reach loopback on behalf of any page. Two
//! checks keep pages out. A page whose *name* was made to resolve to 127.0.0.1 (DNS rebinding) still
//! sends its own name in Host, so Host must be a loopback name or address with our port. A page of
//! another origin sends that origin in Origin, so Origin must be absent or ours. There is no CORS, so no
//! page can read an answer. Browsers cannot reach a Unix socket: there any Host is accepted, and no
//! Origin.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::bounded::Seat;
use crate::door::Token;
use crate::problem::Problem;

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

/// Refuses requests without the token.
pub(crate) async fn ask_for_token(
    State(token): State<Option<Arc<Token>>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = token else { return next.run(request).await };
    let mut credentials = request.headers().get_all(AUTHORIZATION).iter();
    let refused = match (credentials.next(), credentials.next()) {
        (Some(only), None) if bearer(only).is_some_and(|presented| token.is(presented)) => {
            return next.run(request).await;
        }
        (None, _) => {
            let message = "a token is needed: Authorization: Bearer TOKEN".to_owned();
            (Problem::new(StatusCode::UNAUTHORIZED, "token_missing", message), "Bearer")
        }
        // RFC 6750 section 3.1.
        _ => {
            let message = "this is not the token".to_owned();
            let challenge = "Bearer error=\"invalid_token\"";
            (Problem::new(StatusCode::UNAUTHORIZED, "token_wrong", message), challenge)
        }
    };
    let (problem, challenge) = refused;
    let mut response = problem.into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
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

/// Returns the bearer token. The scheme is case-insensitive (RFC 9110 section 11.1).
fn bearer(credentials: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = credentials.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

fn check(request: &Request, port: Option<u16>) -> Result<(), Problem> {
    let origin = request.headers().get(ORIGIN);
    let Some(port) = port else {
        return origin.map_or(Ok(()), |origin| Err(foreign_origin(origin)));
    };
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    // RFC 9112 section 3.2.2: the authority of an absolute-form target takes precedence over Host.
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
    match origin {
        Some(origin) if !is_our_origin(origin, port) => Err(foreign_origin(origin)),
        _ => Ok(()),
    }
}

fn foreign_origin(origin: &HeaderValue) -> Problem {
    let message = format!("requests on behalf of a page at {origin:?} are refused");
    Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
}

fn is_our_origin(origin: &HeaderValue, port: u16) -> bool {
    origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|authority| is_ours(authority, port))
}

/// Returns whether an authority (`host[:port]`) is a loopback name or address with our port.
fn is_ours(authority: &str, port: u16) -> bool {
    let (host, asked_port) = match authority.rsplit_once(':') {
        // The colons of a bracketed IPv6 address without a port are not separators.
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
    fn a_bearer_token_is_found_whatever_the_case_of_its_scheme() {
        let found = |text| bearer(&HeaderValue::from_static(text)).map(<[u8]>::to_vec);
        assert_eq!(found("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(found("bearer  abc"), Some(b"abc".to_vec()));
        for other in ["", "Bearer", "abc", "Basic YWJj", "Bearerabc"] {
            assert_eq!(found(other), None, "{other}");
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

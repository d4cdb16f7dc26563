//! Who may use a listener that requires a token: clients that present it, and sessions of the dashboard.

mod sessions;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::door::Token;
use crate::problem::Problem;
use sessions::Sessions;

/// What is required.
pub(crate) struct Access {
    pub(crate) token: Token,
    pub(crate) sessions: Sessions,
}

impl Access {
    /// `None`: no token is required.
    pub(crate) fn new(token: Option<Token>) -> Option<Arc<Access>> {
        token.map(|token| Arc::new(Access { token, sessions: Sessions::default() }))
    }
}

/// The session that a request belongs to, for responses that may outlast it.
#[derive(Clone)]
pub(crate) struct InSession {
    headers: HeaderMap,
    access: Arc<Access>,
}

impl InSession {
    /// Returns whether it has not ended.
    pub(crate) fn lasts(&self) -> bool {
        self.access.sessions.includes(&self.headers, os::clock::now())
    }
}

/// Refuses requests that neither have the token nor belong to a session.
pub(crate) async fn require(
    State(access): State<Option<Arc<Access>>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(access) = access else { return next.run(request).await };
    let mut credentials = request.headers().get_all(AUTHORIZATION).iter();
    let refused = match (credentials.next(), credentials.next()) {
        (Some(only), None) if bearer(only).is_some_and(|presented| access.token.is(presented)) => {
            return next.run(request).await;
        }
        (None, _) if access.sessions.includes(request.headers(), os::clock::now()) => {
            let session =
                InSession { headers: request.headers().clone(), access: Arc::clone(&access) };
            request.extensions_mut().insert(session);
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

/// Returns the bearer token. The scheme is case-insensitive (RFC 9110 section 11.1).
fn bearer(credentials: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = credentials.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_found_whatever_the_case_of_its_scheme() {
        let found = |text| bearer(&HeaderValue::from_static(text)).map(<[u8]>::to_vec);
        assert_eq!(found("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(found("bearer  abc"), Some(b"abc".to_vec()));
        for other in ["", "Bearer", "abc", "Basic YWJj", "Bearerabc"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}

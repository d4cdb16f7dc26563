//! `/ui/`: the dashboard's files, and signing in to it. The files are public: they hold no data. A page
//! gets data from the API like any other client, and signs in with the token if one is required.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Json, Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use dashboard::File;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::api::{unreadable_body, unreadable_path};
use crate::problem::Problem;

/// The page runs its own scripts and reads its own origin, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes below `/ui`.
pub(crate) fn router(access: Option<Arc<Access>>) -> Router {
    Router::new()
        .route("/ui", get(async || Redirect::permanent("/ui/")))
        .route("/ui/", get(async |headers: HeaderMap| file("", &headers)))
        .route("/ui/session", post(sign_in).delete(sign_out))
        .route("/ui/{*path}", get(below))
        .with_state(access)
}

async fn below(path: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Response {
    match path {
        Ok(Path(path)) => file(&path, &headers),
        Err(rejection) => unreadable_path(rejection).into_response(),
    }
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(file) = dashboard::find(path) else {
        let message = format!("no file of the dashboard is at /ui/{path}");
        return Problem::not_found("not_found", message).into_response();
    };
    let fields: [(HeaderName, &'static str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // A browser asks each time whether its copy is current, since an upgrade changes the files.
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, file.tag),
        (header::VARY, "Accept-Encoding"),
    ];
    if has_copy(headers, file) {
        return (StatusCode::NOT_MODIFIED, fields).into_response();
    }
    let type_of = (header::CONTENT_TYPE, file.media_type);
    if takes_gzip(headers) {
        (fields, [type_of, (header::CONTENT_ENCODING, "gzip")], file.gzip).into_response()
    } else {
        (fields, [type_of], file.plain).into_response()
    }
}

/// Returns whether the client has this version (RFC 9110 section 13.1.2).
fn has_copy(headers: &HeaderMap, file: &File) -> bool {
    elements(headers, &header::IF_NONE_MATCH)
        .any(|tag| tag == "*" || opaque(tag) == opaque(file.tag))
}

/// Returns an entity tag without the mark of a weak one, for weak comparison.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Returns whether the client accepts gzip (RFC 9110 section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    elements(headers, &header::ACCEPT_ENCODING).any(|element| {
        let (coding, weight) = element.split_once(';').unwrap_or((element, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        coding.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

/// Returns the elements of a field that is a list.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// What the page sends back with every request, beside the cookie.
#[derive(Serialize)]
struct SignedIn {
    key: String,
}

async fn sign_in(
    State(access): State<Option<Arc<Access>>>,
    headers: HeaderMap,
    body: Result<Json<SignIn>, JsonRejection>,
) -> Result<Response, Problem> {
    let access = access.ok_or_else(no_token)?;
    let wanted = r#"{"token": "…"}"#;
    let Json(SignIn { token }) = body.map_err(|rejection| unreadable_body(&rejection, wanted))?;
    if !access.token.is(token.as_bytes()) {
        let message = "this is not the token".to_owned();
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "token_wrong", message));
    }
    let (cookie, key) = access.sessions.begin(&headers, os::clock::now()).map_err(|error| {
        tracing::error!(%error, "no random numbers for a session of the dashboard");
        crate::api::internal_error()
    })?;
    Ok(([(header::SET_COOKIE, cookie)], Json(SignedIn { key })).into_response())
}

async fn sign_out(
    State(access): State<Option<Arc<Access>>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let access = access.ok_or_else(no_token)?;
    let forget = access.sessions.end(&headers).map(|cookie| (header::SET_COOKIE, cookie));
    Ok((StatusCode::NO_CONTENT, AppendHeaders(forget)).into_response())
}

fn no_token() -> Problem {
    let message = "this admin API requires no token: there is nothing to sign in to".to_owned();
    Problem::not_found("no_token_required", message)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn gzip_is_sent_only_to_those_who_accept_it() {
        let takes = |value| takes_gzip(&with(header::ACCEPT_ENCODING, value));
        for yes in ["gzip", "deflate, GZIP;q=0.5", "br,gzip", "gzip; q=1"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip;q=0.000", "x-gzip2", "gzip;q=x"] {
            assert!(!takes(no), "{no}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_current_copy_is_not_sent_again() {
        let page = dashboard::find("").unwrap();
        let has = |value: &str| has_copy(&with(header::IF_NONE_MATCH, value), page);
        assert!(has(page.tag) && has("*"));
        assert!(has(&format!("\"other\", {}", opaque(page.tag))));
        assert!(!has("\"other\"") && !has(opaque(page.tag).trim_matches('"')));
    }
}

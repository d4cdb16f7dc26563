//! What etcd says when it refuses a request.

use serde::Deserialize;

use crate::row::reason;

/// The maximum number of characters of etcd's text that are shown.
const SAID_CHARS_MAX: usize = 200;

/// What etcd says if a token is missing, is unknown (for instance, to a server that has restarted), or was
/// issued before users or roles changed.
const ABOUT_TOKEN: [&str; 3] =
    ["invalid auth token", "user name is empty", "revision of auth store is old"];

/// Returns why etcd refused a request, and whether it would accept it with a new token. Of an answer whose
/// status is not 200; the text is one line, bounded and escaped. `without_secrets` removes from what etcd says what
/// must not be shown.
pub fn refusal(
    status: u16,
    bytes: &[u8],
    without_secrets: impl FnOnce(&str) -> String,
) -> (String, bool) {
    let lossy = String::from_utf8_lossy(bytes);
    let said = said(bytes).unwrap_or_else(|| lossy.trim().to_owned());
    let shown: String = without_secrets(&said).chars().take(SAID_CHARS_MAX).collect();
    let why = if shown.is_empty() {
        format!("etcd answers {status}")
    } else {
        format!("etcd answers {status}: {shown}")
    };
    (reason(&why), needs_token(&said))
}

/// Returns whether a reason of etcd, such as that of [`Step::Ended`](super::Step::Ended), means that the token
/// is missing or no longer valid: the caller authenticates again.
pub fn needs_token(said: &str) -> bool {
    ABOUT_TOKEN.iter().any(|about| said.contains(about))
}

/// Returns the text of `{"error":"…","code":3,"message":"…"}`. In a newer gateway there is no `error`.
fn said(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refused {
        error: Option<String>,
        message: Option<String>,
    }
    let refused: Refused = serde_json::from_slice(bytes).ok()?;
    refused.error.or(refused.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whether_a_new_token_helps() {
        for (status, body, why, new_token) in [
            (
                400,
                r#"{"error":"etcdserver: user name is empty","code":3,"message":"etcdserver: user name is empty"}"#,
                "etcd answers 400: etcdserver: user name is empty",
                true,
            ),
            (
                401,
                r#"{"error":"etcdserver: invalid auth token","code":16,"message":"etcdserver: invalid auth token"}"#,
                "etcd answers 401: etcdserver: invalid auth token",
                true,
            ),
            (
                400,
                r#"{"code":3,"message":"etcdserver: revision of auth store is old","details":[]}"#,
                "etcd answers 400: etcdserver: revision of auth store is old",
                true,
            ),
            (
                403,
                r#"{"error":"etcdserver: permission denied","code":7}"#,
                "etcd answers 403: etcdserver: permission denied",
                false,
            ),
            (404, "404 page not found\n", "etcd answers 404: 404 page not found", false),
            (502, "", "etcd answers 502", false),
            (500, "\u{1b}[31m", "etcd answers 500: \\x1b[31m", false),
        ] {
            assert_eq!(
                refusal(status, body.as_bytes(), str::to_owned),
                (why.to_owned(), new_token)
            );
        }
        let echo = br#"{"message":"no such user with \u0026\"pass\u003cword"}"#;
        let hidden = refusal(400, echo, |said| said.replace("&\"pass<word", "(secret)"));
        assert_eq!(hidden.0, "etcd answers 400: no such user with (secret)");
        let (why, _) = refusal(500, &b"\xff\n\x1b".repeat(100_000), str::to_owned);
        assert!(why.len() <= 512 && !why.contains(char::is_control), "{why}");
    }
}

//! Sessions of the dashboard: the page exchanges the token once for a cookie and a key, and each request of
//! it proves both. The cookie is out of reach of scripts; but browsers send it to every port of the host
//! name, so that whatever listens on another port receives it as well. The key is bound to the page's
//! origin, port included; but scripts can read it. Neither is sufficient alone.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use model::Moment;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::door::Token;

/// The header field with the key.
const KEY: &str = "weir-session";

/// Time until the token must be entered again.
const LIFETIME: Duration = Duration::from_hours(12);

/// Maximum number of sessions; one more ends the oldest.
const SESSIONS_MAX: usize = 32;

/// The sessions of one listener. The oldest first.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Session>>);

struct Session {
    id: Token,
    key: Token,
    ends: Moment,
}

impl Sessions {
    /// Begins a session for the page that sent a request. Returns the Set-Cookie field, and the key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn begin(
        &self,
        headers: &HeaderMap,
        now: Moment,
    ) -> io::Result<(HeaderValue, String)> {
        let ((id_text, id), (key_text, key)) = (secret()?, secret()?);
        let mut open = self.open();
        if open.len() >= SESSIONS_MAX {
            open.remove(0);
        }
        open.push(Session { id, key, ends: now + LIFETIME });
        Ok((set_cookie(headers, &id_text, LIFETIME), key_text))
    }

    /// Returns whether a request belongs to a session.
    pub(crate) fn includes(&self, headers: &HeaderMap, now: Moment) -> bool {
        let Some(key) = headers.get(KEY) else { return false };
        let mut open = self.open();
        open.retain(|session| session.ends > now);
        let name = cookie_name(headers);
        let mut ids = presented(headers, &name);
        ids.any(|id| open.iter().any(|one| one.id.is(id) && one.key.is(key.as_bytes())))
    }

    /// Ends the session that a request belongs to. Returns the Set-Cookie field that removes its cookie; `None`:
    /// it belongs to none.
    pub(crate) fn end(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let key = headers.get(KEY)?.as_bytes();
        let name = cookie_name(headers);
        let mut open = self.open();
        let before = open.len();
        for id in presented(headers, &name) {
            open.retain(|one| !(one.id.is(id) && one.key.is(key)));
        }
        (open.len() < before).then(|| set_cookie(headers, "", Duration::ZERO))
    }

    fn open(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the cookie's name. It has the port at which the page is, so that balancers behind several ports of one host
/// name, or tunnels to them, do not replace each other's.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(80_u16);
    format!("weir-session-{port}")
}

/// Returns the session identifiers in a request's cookies.
fn presented<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let fields = headers.get_all(header::COOKIE).into_iter();
    let cookies = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
    cookies.filter_map(|cookie| {
        let value = cookie.trim_ascii().strip_prefix(name.as_bytes())?;
        value.strip_prefix(b"=")
    })
}

fn set_cookie(headers: &HeaderMap, value: &str, lifetime: Duration) -> HeaderValue {
    let (name, seconds) = (cookie_name(headers), lifetime.as_secs());
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns 256 random bits, as text and for comparison.
fn secret() -> io::Result<(String, Token)> {
    let mut halves = [[0; 16]; 2];
    let filled = getrandom(halves.as_flattened_mut(), GetRandomFlags::empty())?;
    let [first, second] = halves.map(u128::from_ne_bytes);
    let text = format!("{first:032x}{second:032x}");
    match Token::parse(text.as_bytes()) {
        Some(token) if filled == size_of_val(&halves) => Ok((text, token)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::ZERO;

    /// The header fields of a page's requests: its cookie and key.
    fn fields(cookie: &str, key: &str) -> HeaderMap {
        let field = |text: &str| HeaderValue::from_str(text).unwrap();
        HeaderMap::from_iter([
            (header::HOST, field("localhost:9900")),
            (header::COOKIE, field(cookie)),
            (KEY.parse().unwrap(), field(key)),
        ])
    }

    fn begin(sessions: &Sessions) -> (String, String) {
        let (cookie, key) = sessions.begin(&fields("", ""), NOW).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        (cookie.split(';').next().unwrap().to_owned(), key)
    }

    #[test]
    fn a_request_needs_the_cookie_and_the_key_of_one_session() {
        let sessions = Sessions::default();
        let ((cookie, key), (other_cookie, other_key)) = (begin(&sessions), begin(&sessions));
        let includes = |cookie: &str, key: &str| sessions.includes(&fields(cookie, key), NOW);
        assert!(includes(&cookie, &key) && includes(&other_cookie, &other_key));
        assert!(includes(&format!("a=b; {cookie}; c=d"), &key));
        // An old session's cookie may still be there.
        assert!(includes(&format!("{other_cookie}; {cookie}"), &key));
        assert!(!includes(&cookie, &other_key) && !includes(&cookie, ""));
        assert!(!includes("", &key) && !includes(&cookie.replace("9900", "9901"), &key));
        assert!(!includes("weir-session-9900=", "") && !includes(&cookie[..40], &key));
        assert!(!includes(&format!("x{cookie}"), &key));
        let mut without = fields(&cookie, &key);
        without.remove(KEY);
        assert!(!sessions.includes(&without, NOW));
    }

    #[test]
    fn a_session_ends_by_signing_out_by_time_and_by_too_many_others() {
        let sessions = Sessions::default();
        let (cookie, key) = begin(&sessions);
        let first = fields(&cookie, &key);
        // The cookie alone cannot end it.
        assert_eq!(sessions.end(&fields(&cookie, "x")), None);
        assert!(sessions.includes(&first, NOW));
        let removed = sessions.end(&first).unwrap();
        assert!(removed.to_str().unwrap().starts_with("weir-session-9900=; Path=/; Max-Age=0;"));
        assert!(!sessions.includes(&first, NOW));

        let (cookie, key) = begin(&sessions);
        let second = fields(&cookie, &key);
        assert!(sessions.includes(&second, NOW + Duration::from_secs(12 * 3600 - 1)));
        for _ in 0..SESSIONS_MAX - 1 {
            begin(&sessions);
        }
        assert!(sessions.includes(&second, NOW));
        begin(&sessions);
        assert!(!sessions.includes(&second, NOW));
        let (cookie, key) = begin(&sessions);
        assert!(!sessions.includes(&fields(&cookie, &key), NOW + LIFETIME));
        assert!(sessions.open().is_empty());
    }
}

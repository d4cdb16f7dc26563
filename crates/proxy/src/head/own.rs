//! Fields that Weir adds to all responses of a route.

use std::fmt::Write as _;
use std::time::Duration;

use decide::cors;
use decide::rate::{self, Left};
use model::RateLimit;
use wire::http1::encode;

use super::Bytes;

/// Fields that Weir adds to all responses, its own answers included.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnFields<'a> {
    /// How long the client must use TLS only (HSTS).
    pub(crate) hsts: Option<Duration>,
    /// Whether pages of other origins may read the response, if the route has rules for them.
    pub(crate) cors: Option<cors::Verdict<'a>>,
    /// What is left of the rates that responses announce.
    pub(crate) rates: &'a [(&'a RateLimit, Left)],
    /// Fields of an authentication server that has let the request pass.
    pub(crate) passed: &'a [(String, Vec<u8>)],
}

impl OwnFields<'_> {
    /// Returns whether a field of this name from elsewhere would contradict these.
    pub(crate) fn replace(&self, name: &[u8]) -> bool {
        let is_passed = || {
            // Each cookie has a field of its own.
            let same = |(one, _): &(String, _)| name.eq_ignore_ascii_case(one.as_bytes());
            self.passed.iter().any(same) && !name.eq_ignore_ascii_case(b"set-cookie")
        };
        self.cors.is_some() && cors::is_reserved(name) || !self.passed.is_empty() && is_passed()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(max_age) = self.hsts {
            // RFC 6797 section 6.1.
            let max_age = max_age.as_secs();
            let _ = write!(Bytes(out), "Strict-Transport-Security: max-age={max_age}\r\n");
        }
        if let Some(cors) = &self.cors {
            cors.fields(|name, value| encode::put_field(out, name.as_bytes(), value));
        }
        self.write_rates(out);
        for (name, value) in self.passed {
            encode::put_field(out, name.as_bytes(), value);
        }
    }

    /// Appends `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). The quota of a
    /// token bucket is its size, and the window is the time in which it is filled again.
    fn write_rates(&self, out: &mut Vec<u8>) {
        if self.rates.is_empty() {
            return;
        }
        let seconds = |time: Duration| time.as_millis().div_ceil(1_000);
        let mut before = "RateLimit-Policy: ";
        for (limit, _) in self.rates {
            let (name, window) = (&limit.name, seconds(rate::window(limit)));
            let _ = write!(Bytes(out), "{before}\"{name}\";q={};w={window}", limit.burst);
            before = ", ";
        }
        before = "\r\nRateLimit: ";
        for (limit, Left { requests, full_after }) in self.rates {
            let (name, reset) = (&limit.name, seconds(*full_after));
            let _ = write!(Bytes(out), "{before}\"{name}\";r={requests};t={reset}");
            before = ", ";
        }
        out.extend_from_slice(b"\r\n");
    }
}

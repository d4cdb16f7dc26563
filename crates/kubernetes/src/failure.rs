//! Why a request to the API server failed. Pure.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::text::one_line;

/// A failed request: what it means for the caller, and one line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) line: Arc<str>,
    /// When the server wants the next attempt.
    pub(crate) retry_after: Option<Duration>,
}

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No answer: the API server cannot be reached, or has ended the connection.
    Connection,
    /// The answer did not come in time. The API server may have much to do.
    Timeout,
    /// The answer is not what it should be, such as too long.
    Unusable,
    /// The credentials are not accepted (401). They may have expired.
    Unauthorized,
    /// The ServiceAccount may not do it (403).
    Forbidden,
    /// Something refused the write, such as a quota, a webhook, or a namespace that is being deleted (403 as well).
    Denied,
    /// The object or the kind does not exist (404).
    NotFound,
    /// The object has another version (409).
    Conflict,
    /// The versions since then are no longer known (410): list again.
    Gone,
    /// The request can never succeed (400, 413, 422).
    Invalid,
    /// The API server asks for fewer requests (429).
    Busy,
    /// Anything else, such as 500.
    Other,
}

impl Failure {
    /// Creates a failure without an answer.
    pub(crate) fn connection(line: impl AsRef<str>) -> Failure {
        Failure::new(Cause::Connection, line)
    }

    /// Creates a failure.
    pub(crate) fn new(cause: Cause, line: impl AsRef<str>) -> Failure {
        Failure { cause, line: one_line(line.as_ref()).into(), retry_after: None }
    }

    /// Creates a failure from an error with its sources.
    pub(crate) fn of_error(error: &dyn Error) -> Failure {
        let mut line = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let text = inner.to_string();
            // Many errors repeat what is below them.
            if !line.contains(&text) {
                line = format!("{line}: {text}");
            }
            source = inner.source();
        }
        Failure::connection(line)
    }

    /// Creates a failure from an answer, or from the object of an error in a watch (`metav1.Status`).
    pub(crate) fn of_status(code: u16, status: &Value) -> Failure {
        let stated = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let code = stated.filter(|code| *code >= 400).unwrap_or(code);
        let message = status["message"].as_str().map_or("without a message", str::trim);
        let cause = match code {
            401 => Cause::Unauthorized,
            403 => Cause::Forbidden,
            404 => Cause::NotFound,
            409 => Cause::Conflict,
            410 => Cause::Gone,
            400 | 413 | 422 => Cause::Invalid,
            429 => Cause::Busy,
            _ => Cause::Other,
        };
        let seconds = status["details"]["retryAfterSeconds"].as_u64();
        Failure {
            cause,
            line: one_line(&format!("{code}: {message}")).into(),
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    /// Returns what it means as the failure of a write. Missing permissions and refusals by admission have the same code; the
    /// message of the former is fixed (`responsewriters.ForbiddenStatusError` of the API server).
    pub(crate) fn of_write(mut self) -> Failure {
        if self.cause == Cause::Forbidden && !self.line.contains("forbidden: User \"") {
            self.cause = Cause::Denied;
        }
        self
    }

    /// Returns whether the reason is the state of the API server or of the connection to it, rather than the object that
    /// was asked for. Such a failure is over sooner or later.
    pub(crate) fn is_of_server(&self) -> bool {
        match self.cause {
            Cause::Connection | Cause::Timeout | Cause::Unauthorized | Cause::Busy => true,
            Cause::Unusable
            | Cause::Forbidden
            | Cause::Denied
            | Cause::NotFound
            | Cause::Conflict
            | Cause::Gone
            | Cause::Invalid
            | Cause::Other => false,
        }
    }

    /// Returns whether the API server cannot be used at all, rather than for one request.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self.cause, Cause::Connection | Cause::Unauthorized)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_told_apart_by_their_code() {
        let status =
            json!({"code": 403, "message": "no\nway", "details": {"retryAfterSeconds": 3}});
        let failure = Failure::of_status(200, &status);
        assert_eq!((failure.cause, &*failure.line), (Cause::Forbidden, "403: no way"));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
        for (code, cause, is_outage) in [
            (401, Cause::Unauthorized, true),
            (404, Cause::NotFound, false),
            (409, Cause::Conflict, false),
            (410, Cause::Gone, false),
            (422, Cause::Invalid, false),
            (429, Cause::Busy, false),
            (500, Cause::Other, false),
        ] {
            let failure = Failure::of_status(code, &Value::Null);
            assert_eq!((failure.cause, failure.is_outage()), (cause, is_outage), "{code}");
        }
    }

    #[test]
    fn a_refusal_is_no_missing_permission() {
        for (message, cause) in [
            (
                "events \"a.1\" is forbidden: User \"system:serviceaccount:weir:weir\" cannot patch \
                 resource \"events\" in API group \"\" in the namespace \"n\"",
                Cause::Forbidden,
            ),
            (
                "services \"a\" is forbidden: exceeded quota: q, requested: services=1, used: \
                 services=5, limited: services=5",
                Cause::Denied,
            ),
            (
                "events \"a.1\" is forbidden: unable to create new content in namespace n because \
                 it is being terminated",
                Cause::Denied,
            ),
            (
                "admission webhook \"policy.example\" denied the request: User cannot do this",
                Cause::Denied,
            ),
        ] {
            let failure = Failure::of_status(403, &json!({"message": message}));
            assert_eq!(failure.cause, Cause::Forbidden);
            assert_eq!(failure.of_write().cause, cause, "{message}");
        }
    }

    #[test]
    fn an_error_is_shown_with_its_sources_once() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("cannot connect")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let failure = Failure::of_error(&Outer(std::io::Error::other("refused")));
        assert_eq!(&*failure.line, "cannot connect: refused");
        assert!(failure.is_outage());
        assert!(!Failure::new(Cause::Timeout, "slow").is_outage());
    }
}

//! Why an attempt failed, in words for people and in what the schedule needs to know.

use std::fmt;

use instant_acme::{Error, Problem};

use crate::http::HttpError;
use crate::schedule::Scope;
use crate::store::StateError;
use crate::text::foreign;

/// What the prefix of ACME's error types is (RFC 8555 section 6.7).
const TYPE_PREFIX: &str = "urn:ietf:params:acme:error:";

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failed {
    /// What failed: one line.
    pub(crate) what: String,
    /// The names that could not be validated, each with the reason.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) kind: Kind,
    /// In how many seconds the authority wants to be asked again.
    pub(crate) retry_after_s: Option<i64>,
}

/// Kinds of failure, by what follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The authority cannot be reached or does not work. An order under way is continued later.
    Unavailable,
    /// The nonce was refused, again and again. The order goes on.
    BadNonce,
    /// The authority does not know the account.
    AccountUnknown,
    /// The order took too long. It is continued later.
    Slow,
    /// The authority limits the rate. The order is continued later.
    RateLimited,
    /// The authority refuses, or a name could not be validated: the order is over.
    Refused,
    /// A failure of this machine.
    Local,
}

impl Failed {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Failed {
        Failed { what: what.into(), names: Vec::new(), kind, retry_after_s: None }
    }

    /// Returns the failure of `what` was being done.
    pub(crate) fn of(what: &str, error: &Error) -> Failed {
        let (kind, why) = match error {
            Error::Api(problem) => (kind_of(problem), problem_text(problem)),
            Error::Other(inner) if inner.is::<HttpError>() => {
                (Kind::Unavailable, foreign(&inner.to_string()))
            }
            Error::Json(_) => {
                (Kind::Unavailable, "the response is not that of an ACME server".to_owned())
            }
            Error::Timeout(_) => {
                (Kind::Slow, "the authority did not finish in time; the order goes on".to_owned())
            }
            other => (Kind::Refused, foreign(&other.to_string())),
        };
        Failed::new(kind, format!("{what}: {why}"))
    }

    /// Returns whether an order under way can be continued after it.
    pub(crate) fn leaves_the_order(&self) -> bool {
        !matches!(self.kind, Kind::Refused | Kind::AccountUnknown)
    }

    /// Returns whether another member of the fleet may succeed: it has its own network, account and state directory.
    pub(crate) fn may_succeed_elsewhere(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::AccountUnknown | Kind::Local)
    }

    pub(crate) fn scope(&self) -> Scope {
        match self.kind {
            Kind::Unavailable => Scope::Authority,
            _ => Scope::Certificate,
        }
    }
}

impl From<StateError> for Failed {
    fn from(error: StateError) -> Failed {
        Failed::new(Kind::Local, error.to_string())
    }
}

fn kind_of(problem: &Problem) -> Kind {
    match short_type(problem) {
        Some("badNonce") => Kind::BadNonce,
        Some("accountDoesNotExist") => Kind::AccountUnknown,
        Some("rateLimited") => Kind::RateLimited,
        Some("serverInternal") => Kind::Unavailable,
        _ if problem.status.is_some_and(|status| status >= 500) => Kind::Unavailable,
        _ => Kind::Refused,
    }
}

/// Returns the type without its prefix.
pub(crate) fn short_type(problem: &Problem) -> Option<&str> {
    problem.r#type.as_deref()?.strip_prefix(TYPE_PREFIX)
}

/// Returns what the authority says, as one line.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let detail = problem.detail.as_deref().unwrap_or("no details");
    let kind = short_type(problem).or(problem.r#type.as_deref()).unwrap_or("no type");
    let mut line = format!("{} ({})", foreign(detail), foreign(kind));
    for subproblem in problem.subproblems.iter().take(SUBPROBLEMS_SHOWN_MAX) {
        line.push_str("; ");
        line.push_str(&foreign(&subproblem.to_string()));
    }
    line
}

/// Problems of single names that are shown (RFC 8555 section 6.7.1).
const SUBPROBLEMS_SHOWN_MAX: usize = 4;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (name, why) in &self.names {
            write!(f, "; {name}: {why}")?;
        }
        Ok(())
    }
}

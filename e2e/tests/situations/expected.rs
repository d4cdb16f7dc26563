//! What a situation must lead to: in the access line, in the metric, and for the client.

use std::fmt;

use serde_json::Value;

use super::Seen;

/// What a situation must lead to.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) cause: &'static str,
    /// As logged; `None`: no status was sent.
    status: Option<u16>,
    client: Client,
    detail: &'static str,
    failed: &'static [&'static str],
    not_retried: Option<&'static str>,
    reused: Option<bool>,
    response_bytes: Option<u64>,
    retry_after: bool,
    many: bool,
}

/// What the client must see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// An answer that Weir made, which names the cause.
    Answered,
    /// A whole response that is not about a cause.
    Passed,
    /// A response that visibly breaks off, or none.
    Cut,
    /// It is no longer there.
    Gone,
}

impl Expected {
    fn new(cause: &'static str, status: Option<u16>, client: Client) -> Expected {
        Expected {
            cause,
            status,
            client,
            detail: "",
            failed: &[],
            not_retried: None,
            reused: None,
            response_bytes: None,
            retry_after: false,
            many: false,
        }
    }

    /// Weir answers with this status and says why.
    pub(crate) fn answered(cause: &'static str, status: u16) -> Expected {
        Self::new(cause, Some(status), Client::Answered)
    }

    /// A whole response with this status that says nothing of a cause.
    pub(crate) fn passed(cause: &'static str, status: u16) -> Expected {
        Self::new(cause, Some(status), Client::Passed)
    }

    /// A response with this status begins, and its end is seen to be missing.
    pub(crate) fn cut(cause: &'static str, status: u16) -> Expected {
        Self::new(cause, Some(status), Client::Cut)
    }

    /// The connection ends without any response.
    pub(crate) fn closed(cause: &'static str) -> Expected {
        Self::new(cause, None, Client::Cut)
    }

    /// The client leaves; `status` of what had been sent to it.
    pub(crate) fn gone(cause: &'static str, status: Option<u16>) -> Expected {
        Self::new(cause, status, Client::Gone)
    }

    /// What `detail` must contain.
    pub(crate) fn detail(self, detail: &'static str) -> Expected {
        Expected { detail, ..self }
    }

    /// The causes of attempts that were followed by another.
    pub(crate) fn failed(self, failed: &'static [&'static str]) -> Expected {
        Expected { failed, ..self }
    }

    pub(crate) fn not_retried(self, why: &'static str) -> Expected {
        Expected { not_retried: Some(why), ..self }
    }

    /// Whether the last attempt must have used a kept connection.
    pub(crate) fn reused(self, reused: bool) -> Expected {
        Expected { reused: Some(reused), ..self }
    }

    /// How much of the body the access line must say has been passed on.
    pub(crate) fn response_bytes(self, count: u64) -> Expected {
        Expected { response_bytes: Some(count), ..self }
    }

    /// The answer says when to come again.
    pub(crate) fn retry_after(self) -> Expected {
        Expected { retry_after: true, ..self }
    }

    /// Of many such requests at once, one at least must end so.
    pub(crate) fn one_of_many(self) -> Expected {
        Expected { many: true, ..self }
    }

    pub(crate) fn is_one_of_many(&self) -> bool {
        self.many
    }

    pub(crate) fn causes(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.cause).chain(self.failed.iter().copied())
    }

    pub(crate) fn compare_line(&self, line: &Value, wrong: &mut Vec<String>) {
        let mut compare = |what: &str, expected: Value, seen: &Value| {
            if expected != *seen {
                wrong.push(format!("{what}: expected {expected}, the log has {seen}"));
            }
        };
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        compare("cause", self.cause.into(), &line["cause"]);
        compare("status", self.status.map_or(Value::Null, Value::from), &line["status"]);
        let failed = line["failed_attempts"].as_array().cloned().unwrap_or_default();
        let failed: Value = failed.iter().map(|attempt| attempt["cause"].clone()).collect();
        compare("failed attempts", self.failed.to_vec().into(), &failed);
        compare("not_retried", text(self.not_retried.unwrap_or("")), &line["not_retried"]);
        if let Some(reused) = self.reused {
            compare("reused", reused.into(), &line["reused"]);
        }
        if let Some(count) = self.response_bytes {
            compare("response_bytes", count.into(), &line["response_bytes"]);
        }
        let detail = line["detail"].as_str().unwrap_or_default();
        if !detail.contains(self.detail) {
            wrong.push(format!("detail: expected {:?} in {detail:?}", self.detail));
        }
    }

    pub(crate) fn compare_seen(&self, seen: &Seen, wrong: &mut Vec<String>) {
        match (self.client, seen) {
            (Client::Answered, Seen::Whole(response)) => {
                if Some(response.status) != self.status {
                    wrong.push(format!("the client got a {}", response.status));
                }
                let named = response.field("proxy-status").unwrap_or_default();
                if !named.starts_with(&format!("weir; error={}", self.cause)) {
                    wrong.push(format!("Proxy-Status: {named:?}"));
                }
                let text = response.text();
                let in_body = response.json()["cause"] == self.cause
                    || text.contains(&format!("\ncause: {}\n", self.cause));
                if !in_body {
                    wrong.push(format!("the body does not name the cause: {text:?}"));
                }
                let all = format!("{}{text}", response.head);
                if ["127.", "10.99.", "service"].iter().any(|inner| all.contains(inner)) {
                    wrong.push(format!("the answer tells what is behind it: {all:?}"));
                }
                if self.retry_after && response.field("retry-after").is_none() {
                    wrong.push("no Retry-After".to_owned());
                }
            }
            (Client::Passed, Seen::Whole(response)) => {
                if Some(response.status) != self.status {
                    wrong.push(format!("the client got a {}", response.status));
                }
                if let Some(named) = response.field("proxy-status") {
                    wrong.push(format!("Proxy-Status: {named:?}"));
                }
            }
            (Client::Cut, Seen::Broken(_)) | (Client::Gone, Seen::Left) => {}
            (client, _) => wrong.push(format!("the client should have seen: {client:?}")),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status} {}", self.cause)?,
            None => write!(f, "--- {}", self.cause)?,
        }
        if !self.detail.is_empty() {
            write!(f, ", detail {:?}", self.detail)?;
        }
        if !self.failed.is_empty() {
            write!(f, ", after {}", self.failed.join(", "))?;
        }
        if let Some(why) = self.not_retried {
            write!(f, ", not retried: {why}")?;
        }
        Ok(())
    }
}

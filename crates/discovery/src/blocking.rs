//! The index of blocking queries (long polling) of Consul and Nomad: a query waits until the answer differs from
//! the one with that index, or until its time is over.
//!
//! The rules are those of <https://developer.hashicorp.com/consul/api-docs/features/blocking>. Nomad's queries
//! are the same with another field (<https://developer.hashicorp.com/nomad/api-docs#blocking-queries>):
//!
//! - An index that goes backwards starts over: the next query has no index.
//! - An index of 0 is a bug of the server, and would make every query return at once. It counts as 1, which is
//!   always safe to wait for.
//! - The same index again means that nothing has changed. A new index does not prove that the answer has.
//!
//! No clock: the caller limits the rate of queries (Consul recommends a token bucket with a burst of 2), waits
//! longer after each error, and gives the request a timeout of `wait` and a sixteenth of it, which Consul adds
//! at random, and some time for the network.

use std::time::Duration;

use crate::row::reason;

/// The shortest wait. A shorter one would poll.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The longest wait that Consul and Nomad allow.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// The smallest index that a query can wait for.
const INDEX_MIN: u64 = 1;

/// The state of a loop of blocking queries for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// The field with the index.
    field: &'static str,
    /// Of the last answer; 0: the next query does not wait.
    index: u64,
}

/// What an answer's index says about the answer. The answer itself is valid in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It may differ from the last one.
    Changed,
    /// It is the same as the last one.
    Same,
    /// The index is lower than before, for instance after a snapshot was restored. The answer may differ, and
    /// the next query does not wait.
    WentBack,
}

impl Blocking {
    /// Starts a loop. `field` is the answer's field with the index: `X-Consul-Index` or `X-Nomad-Index`.
    pub fn new(field: &'static str) -> Self {
        Blocking { field, index: 0 }
    }

    /// Returns the name of the field with the index.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns whether the next query waits.
    pub fn waits(&self) -> bool {
        self.index > 0
    }

    /// Returns the index of the last answer; `None` before the first, and after one that went back.
    pub fn index(&self) -> Option<u64> {
        Some(self.index).filter(|index| *index > 0)
    }

    /// Returns the parameters of the next query: nothing if it does not wait, else `index=7&wait=60s`. `wait` is
    /// limited to between 1 second and the 10 minutes that Consul and Nomad allow.
    pub fn query(&self, wait: Duration) -> String {
        let wait = wait.clamp(WAIT_MIN, WAIT_MAX);
        match self.index {
            0 => String::new(),
            index if wait.subsec_millis() == 0 => format!("index={index}&wait={}s", wait.as_secs()),
            index => format!("index={index}&wait={}ms", wait.as_millis()),
        }
    }

    /// Takes in the value of [`Blocking::field`] of a successful answer.
    ///
    /// # Errors
    /// There is no such field, or it is not an index: this is not an answer that can be waited for.
    /// The index remains as it was, so the next query misses nothing if the caller discards this answer.
    pub fn on_index(&mut self, header: Option<&[u8]>) -> Result<Seen, String> {
        let header = header.ok_or_else(|| format!("the answer has no {} field", self.field))?;
        let index = parse(header).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&header[..header.len().min(40)]);
            format!("{} is not a number: \"{}\"", self.field, reason(&shown))
        })?;
        let index = index.max(INDEX_MIN);
        let before = std::mem::replace(&mut self.index, index);
        Ok(match index.cmp(&before) {
            std::cmp::Ordering::Greater => Seen::Changed,
            std::cmp::Ordering::Equal => Seen::Same,
            std::cmp::Ordering::Less => {
                self.reset();
                Seen::WentBack
            }
        })
    }

    /// Starts over: the next query does not wait. For instance, after another agent is asked.
    pub fn reset(&mut self) {
        self.index = 0;
    }
}

/// Digits only.
fn parse(header: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(header.trim_ascii()).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: &str = "X-Nomad-Index";

    const MINUTE: Duration = Duration::from_secs(60);

    /// One answer: its index, what it says, and the next query.
    type Step = (&'static str, Seen, &'static str);

    #[test]
    fn each_rule_of_blocking_queries() {
        let table: [(&str, &[Step]); 6] = [
            (
                "the next query waits for the index of the last answer",
                &[
                    ("7", Seen::Changed, "index=7&wait=60s"),
                    ("9", Seen::Changed, "index=9&wait=60s"),
                ],
            ),
            (
                "the same index again: nothing changed",
                &[("7", Seen::Changed, "index=7&wait=60s"), ("7", Seen::Same, "index=7&wait=60s")],
            ),
            (
                "an index that goes backwards starts over",
                &[
                    ("7", Seen::Changed, "index=7&wait=60s"),
                    ("6", Seen::WentBack, ""),
                    ("6", Seen::Changed, "index=6&wait=60s"),
                ],
            ),
            (
                "an index of 0 is 1, so that the next query waits",
                &[("0", Seen::Changed, "index=1&wait=60s"), ("0", Seen::Same, "index=1&wait=60s")],
            ),
            (
                "an index of 0 after a higher one goes backwards",
                &[
                    ("7", Seen::Changed, "index=7&wait=60s"),
                    ("0", Seen::WentBack, ""),
                    ("0", Seen::Changed, "index=1&wait=60s"),
                ],
            ),
            (
                "the largest index, with the space that a field may have",
                &[(" 18446744073709551615 ", Seen::Changed, "index=18446744073709551615&wait=60s")],
            ),
        ];
        for (rule, steps) in table {
            let mut blocking = Blocking::new(FIELD);
            assert_eq!(blocking.query(MINUTE), "", "{rule}: the first query does not wait");
            for (header, seen, query) in steps {
                assert_eq!(blocking.on_index(Some(header.as_bytes())), Ok(*seen), "{rule}");
                assert_eq!(blocking.query(MINUTE), *query, "{rule}");
            }
            blocking.reset();
            assert_eq!(blocking.query(MINUTE), "", "{rule}: after a reset");
        }
    }

    #[test]
    fn an_answer_without_an_index_changes_nothing() {
        let mut blocking = Blocking::new(FIELD);
        assert!(blocking.on_index(None).is_err());
        assert_eq!(blocking.query(MINUTE), "");
        blocking.on_index(Some(b"7")).unwrap();
        let long = [b'9'; 10_000];
        let bad: [&[u8]; 8] = [b"", b"x", b"-1", b"+8", b"8 9", b"1.5", b"\xff\x1b[31m", &long];
        for header in bad {
            let error = blocking.on_index(Some(header)).unwrap_err();
            assert!(error.contains(FIELD), "{error}");
            assert!(error.len() < 200 && !error.contains(char::is_control), "{error}");
            assert_eq!(blocking.query(MINUTE), "index=7&wait=60s");
        }
        assert!(blocking.on_index(None).is_err());
        assert_eq!(blocking.query(MINUTE), "index=7&wait=60s");
    }

    #[test]
    fn the_wait_has_bounds() {
        for (wait_ms, wanted) in [
            (0, "wait=1s"),
            (1_000, "wait=1s"),
            (1_500, "wait=1500ms"),
            (600_000, "wait=600s"),
            (u64::MAX, "wait=600s"),
        ] {
            let mut blocking = Blocking::new(FIELD);
            blocking.on_index(Some(b"1")).unwrap();
            let query = blocking.query(Duration::from_millis(wait_ms));
            assert_eq!(query, format!("index=1&{wanted}"));
        }
    }
}

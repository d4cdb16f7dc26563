//! How requests ended in the rows of a history: by cause, and those that a server answered with a 5xx. The
//! cause of these is `completed`, so that only the difference shows them.

use std::collections::HashMap;

use admin_api::history::History;
use model::{Cause, Ending};

/// How requests ended.
#[derive(Debug, Default)]
pub(crate) struct Endings<'a> {
    /// Causes that were not among the six most frequent of a row are missing.
    pub(crate) causes: HashMap<&'a str, u64>,
    /// Requests that failed with no known cause: those with a 5xx of a server.
    pub(crate) server_errors: u64,
    /// Requests with rarer causes, some of which may be among `server_errors`.
    rarer: u64,
}

impl<'a> Endings<'a> {
    /// Adds up the rows of `history`.
    pub(crate) fn of(history: &'a History) -> Endings<'a> {
        let rows = history.ended_unix_ms.len();
        let mut endings = Endings::default();
        let mut failed: u64 = 0;
        for series in &history.series {
            let counts = series.columns.get("failed").into_iter().flatten().flatten();
            failed = counts.copied().fold(failed, u64::saturating_add);
            for counted in series.causes.iter().filter(|counted| counted.row < rows) {
                let count = match counted.cause.as_deref() {
                    Some(cause) => endings.causes.entry(cause).or_default(),
                    None => &mut endings.rarer,
                };
                *count = count.saturating_add(counted.count);
            }
        }
        let explained = endings.failures().map(|(_, count)| count);
        endings.server_errors = explained.fold(failed, u64::saturating_sub);
        endings
    }

    /// Returns the causes that are failures, with their counts.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'a str, u64)> {
        self.causes.iter().map(|(name, count)| (*name, *count)).filter(|(name, _)| is_failure(name))
    }

    /// Returns what [`Endings::server_errors`] are.
    pub(crate) fn server_errors_name(&self) -> &'static str {
        if self.rarer == 0 { "5xx of servers" } else { "5xx of servers, or rarer causes" }
    }
}

/// A cause of a newer balancer is not known here, and counts as a failure.
fn is_failure(name: &str) -> bool {
    Cause::from_name(name).is_none_or(|cause| Ending::of(cause, 0) == Ending::Failed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history(rarer: u64) -> History {
        serde_json::from_value(json!({
            "ended_unix_ms": [1_000, 2_000],
            "series": [{ "columns": { "failed": [5, 7] }, "causes": [
                { "row": 0, "cause": "completed", "count": 90 },
                { "row": 1, "cause": "connection_refused", "count": 4 },
                { "row": 1, "cause": "queue_full", "count": 2 },
                { "row": 1, "cause": null, "count": rarer },
                { "row": 2, "cause": "completed", "count": 1_000 },
            ] }],
        }))
        .unwrap()
    }

    #[test]
    fn responses_with_a_5xx_are_what_no_cause_explains() {
        let history = history(0);
        let endings = Endings::of(&history);
        assert_eq!((endings.server_errors, endings.causes["completed"]), (8, 90));
        assert_eq!(endings.failures().collect::<Vec<_>>(), [("connection_refused", 4)]);
        assert_eq!(endings.server_errors_name(), "5xx of servers");
    }

    #[test]
    fn rarer_causes_make_it_less_certain() {
        let history = history(1);
        assert!(Endings::of(&history).server_errors_name().ends_with("or rarer causes"));
        assert_eq!(Endings::of(&History::default()).server_errors, 0);
    }
}

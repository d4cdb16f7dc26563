//! Error pages: configured content in place of the answers that Weir generates for errors.

use std::sync::Arc;

use crate::{Cause, Content, StatusSet};

/// A page for some of the errors that Weir answers itself. It never replaces a server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The errors that it is for.
    pub errors: ErrorSet,
    /// The content, and further fields. It has a media type.
    pub content: Arc<Content>,
}

/// A set of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSet {
    /// The statuses, 400 to 599; `None`: any.
    pub statuses: Option<StatusSet>,
    /// The causes, sorted by name; empty: any.
    pub causes: Vec<Cause>,
}

impl ErrorSet {
    /// Returns whether it contains an answer with this status and cause.
    pub fn contains(&self, status: u16, cause: Cause) -> bool {
        let has_status = self.statuses.as_ref().is_none_or(|set| set.contains(status));
        has_status && (self.causes.is_empty() || self.causes.contains(&cause))
    }

    /// Returns whether it contains everything that `other` contains.
    pub fn covers(&self, other: &ErrorSet) -> bool {
        let statuses = match (&self.statuses, &other.statuses) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own.covers(other),
        };
        let causes = self.causes.is_empty()
            || !other.causes.is_empty() && other.causes.iter().all(|c| self.causes.contains(c));
        statuses && causes
    }
}

impl ErrorPage {
    /// Returns the type and subtype of its content, without parameters.
    pub fn media_type(&self) -> &str {
        let media_type = self.content.media_type.as_deref().unwrap_or_default();
        media_type.split(';').next().unwrap_or_default().trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(statuses: Option<(u16, u16)>, causes: &[Cause]) -> ErrorSet {
        let statuses = statuses.map(|range| StatusSet(vec![range]));
        ErrorSet { statuses, causes: causes.to_vec() }
    }

    #[test]
    fn a_set_contains_errors_that_have_both_its_status_and_its_cause() {
        let (full, refused) = (Cause::QueueFull, Cause::ConnectionRefused);
        let both = errors(Some((500, 599)), &[full]);
        assert!(both.contains(503, full));
        assert!(!both.contains(503, refused) && !both.contains(429, full));
        assert!(errors(Some((502, 502)), &[]).contains(502, refused));
        assert!(errors(None, &[refused]).contains(418, refused));
    }

    #[test]
    fn a_set_covers_what_is_narrower_than_it_or_equal() {
        let (full, refused) = (Cause::QueueFull, Cause::ConnectionRefused);
        let (wide, narrow) = (errors(Some((500, 599)), &[]), errors(Some((503, 503)), &[full]));
        assert!(wide.covers(&narrow) && wide.covers(&wide) && !narrow.covers(&wide));
        assert!(!wide.covers(&errors(None, &[full])));
        assert!(!errors(None, &[full]).covers(&errors(None, &[full, refused])));
        assert!(errors(None, &[full, refused]).covers(&errors(Some((429, 429)), &[full])));
    }
}

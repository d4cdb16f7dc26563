//! Whether changes wait until everything that an outage has interrupted is listed again. Pure: time is an argument.
//!
//! After an outage, each kind is listed at its own time. Meanwhile, what is known is a mix of two states that never
//! existed: a route may refer to a Service that is only in the other state. Requests go on as before the outage until
//! the new state is complete.

use std::collections::BTreeSet;
use std::time::Duration;

use model::Moment;

use crate::failure::{Cause, Failure};
use crate::kinds::Source;

/// Changes wait at most this long: a kind that cannot be listed must not keep the others from being seen.
const HOLD_MAX: Duration = Duration::from_secs(10);

/// What an outage has interrupted.
#[derive(Debug, Default)]
pub(crate) struct Relists {
    /// What could not be followed, and has not been listed since.
    interrupted: BTreeSet<Source>,
    /// When the first of several was listed again.
    since: Option<Moment>,
}

impl Relists {
    /// Notes that a source that was listed before cannot be read.
    pub(crate) fn failed(&mut self, source: &Source, failure: &Failure) {
        let is_outage = match failure.cause {
            Cause::Connection
            | Cause::Timeout
            | Cause::Unauthorized
            | Cause::Forbidden
            | Cause::Busy
            | Cause::Other => true,
            // It fails alone.
            Cause::Unusable
            | Cause::Denied
            | Cause::NotFound
            | Cause::Conflict
            | Cause::Gone
            | Cause::Invalid => false,
        };
        if is_outage {
            self.interrupted.insert(source.clone());
        }
    }

    /// Notes that a source has been listed.
    pub(crate) fn listed(&mut self, source: &Source, now: Moment) {
        let was_interrupted = self.interrupted.remove(source);
        if self.interrupted.is_empty() {
            self.since = None;
        } else if was_interrupted {
            self.since.get_or_insert(now);
        }
    }

    /// Notes that a source is no longer followed.
    pub(crate) fn ended(&mut self, source: &Source) {
        self.interrupted.remove(source);
        if self.interrupted.is_empty() {
            self.since = None;
        }
    }

    /// Returns until when changes wait. What has not been listed by then is no longer waited for.
    pub(crate) fn held_until(&mut self, now: Moment) -> Option<Moment> {
        let end = self.since? + HOLD_MAX;
        if now < end {
            return Some(end);
        }
        *self = Relists::default();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kind;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn source(kind: Kind) -> Source {
        Source { kind, namespace: None }
    }

    fn interrupted(kinds: &[Kind]) -> Relists {
        let mut relists = Relists::default();
        for kind in kinds {
            relists.failed(&source(*kind), &Failure::connection("refused"));
        }
        relists
    }

    #[test]
    fn changes_wait_for_the_last_list_after_an_outage() {
        let mut relists = interrupted(&[Kind::Service, Kind::HttpRoute, Kind::Gateway]);
        assert_eq!(relists.held_until(at(100)), None, "nothing has changed yet");
        relists.listed(&source(Kind::Service), at(100));
        assert_eq!(relists.held_until(at(100)), Some(at(110)));
        relists.listed(&source(Kind::HttpRoute), at(103));
        assert_eq!(relists.held_until(at(103)), Some(at(110)));
        // Its CRD is gone, so that it is not watched any more.
        relists.ended(&source(Kind::Gateway));
        assert_eq!(relists.held_until(at(103)), None);
    }

    #[test]
    fn a_kind_that_still_fails_holds_back_nothing_for_long() {
        let mut relists = interrupted(&[Kind::Service, Kind::HttpRoute]);
        relists.listed(&source(Kind::Service), at(100));
        // The outage goes on in part, and the wait does not begin again.
        relists.failed(&source(Kind::Service), &Failure::connection("refused"));
        relists.listed(&source(Kind::Service), at(108));
        assert_eq!(relists.held_until(at(109)), Some(at(110)));
        assert_eq!(relists.held_until(at(110)), None);
        relists.listed(&source(Kind::Service), at(111));
        assert_eq!(relists.held_until(at(111)), None);
    }

    #[test]
    fn what_fails_alone_holds_back_nothing() {
        let mut relists = interrupted(&[Kind::Service]);
        relists.listed(&source(Kind::Service), at(100));
        assert_eq!(relists.held_until(at(100)), None);
        let mut relists = interrupted(&[Kind::Service]);
        relists.failed(&source(Kind::HttpRoute), &Failure::new(Cause::NotFound, "404"));
        relists.listed(&source(Kind::Service), at(100));
        assert_eq!(relists.held_until(at(100)), None);
    }
}

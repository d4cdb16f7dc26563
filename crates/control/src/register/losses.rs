//! Counts how often an agent has lost an entry shortly after it was registered: then several agents share an
//! address, and each answers for itself.

use std::time::Duration;

use model::Moment;

/// A loss within this time after a registration counts.
const SHORTLY: Duration = Duration::from_mins(10);
/// This many in a row are no accident.
const MANY: u32 = 3;

/// The losses in a row.
#[derive(Debug, Default)]
pub(super) struct Losses {
    count: u32,
}

impl Losses {
    /// Counts a loss of an entry that was registered at `registered`. Returns whether to warn about it: once for
    /// many in a row.
    pub(super) fn on_lost(&mut self, registered: Moment, now: Moment) -> bool {
        let is_short = now.since(registered) < SHORTLY;
        self.count = if is_short { self.count.saturating_add(1) } else { 0 };
        self.count == MANY
    }

    /// Returns whether further registrations are no news.
    pub(super) fn are_many(&self) -> bool {
        self.count >= MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_loss_in_a_row_is_reported_once() {
        let at = |minutes| Moment::ZERO + Duration::from_mins(minutes);
        let mut losses = Losses::default();
        assert!(!losses.on_lost(at(0), at(1)) && !losses.on_lost(at(1), at(2)));
        assert!(!losses.are_many());
        assert!(losses.on_lost(at(2), at(3)) && losses.are_many());
        assert!(!losses.on_lost(at(3), at(4)), "once");
        assert!(
            !losses.on_lost(at(4), at(14)) && !losses.are_many(),
            "an agent that has restarted"
        );
    }
}

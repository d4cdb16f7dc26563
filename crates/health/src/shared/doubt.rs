//! Whether a prober is believed: its results compared with this member's own.

use model::Moment;

use super::assignment::MemberIndex;

/// Contradictions in a row after which a prober is ignored.
pub const CONTRADICTIONS_IN_A_ROW: u32 = 3;
/// Contradictions in the last 8 comparisons after which it is ignored.
pub const CONTRADICTIONS_OF_LAST: u32 = 5;
/// Agreements in a row after which an ignored prober is believed again.
pub const AGREEMENTS_NEEDED: u32 = 8;

/// A change in whom this member believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A member's results are ignored from now on.
    Ignored {
        /// Which.
        member: MemberIndex,
        /// Contradictions since the last time it was beyond doubt.
        contradictions: u32,
        /// The first of them.
        since: Moment,
    },
    /// They count again.
    Believed {
        /// Which.
        member: MemberIndex,
    },
}

/// The last comparisons with one prober.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubt {
    /// One bit for each of the last 8 comparisons, the last one lowest: it was a contradiction.
    last: u8,
    agreements_in_a_row: u32,
    contradictions: u32,
    since: Option<Moment>,
    ignored: bool,
}

impl Doubt {
    pub(crate) fn is_ignored(&self) -> bool {
        self.ignored
    }

    /// Counts a comparison of two results of about the same time.
    pub(crate) fn compare(
        &mut self,
        member: MemberIndex,
        agrees: bool,
        now: Moment,
    ) -> Option<Event> {
        self.last = self.last << 1 | u8::from(!agrees);
        if agrees {
            self.agreements_in_a_row = self.agreements_in_a_row.saturating_add(1);
            if self.agreements_in_a_row < AGREEMENTS_NEEDED {
                return None;
            }
            let was_ignored = self.ignored;
            *self = Doubt { agreements_in_a_row: self.agreements_in_a_row, ..Doubt::default() };
            return was_ignored.then_some(Event::Believed { member });
        }
        self.agreements_in_a_row = 0;
        self.contradictions = self.contradictions.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let in_a_row = self.last.trailing_ones() >= CONTRADICTIONS_IN_A_ROW;
        let is_refuted = in_a_row || self.last.count_ones() >= CONTRADICTIONS_OF_LAST;
        if self.ignored || !is_refuted {
            return None;
        }
        self.ignored = true;
        Some(Event::Ignored { member, contradictions: self.contradictions, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a comparison (a agrees, c contradicts), one letter what follows (I ignored from
    /// here on, B believed again).
    #[test]
    fn contradictions_and_agreements_table() {
        for (comparisons, expected) in [
            ("ccc", "..I"),
            ("ccaccacc", "......I."),
            ("cacacaca", "........"),
            ("cacacacac", "........."),
            ("cacaccac", ".......I"),
            ("cccaaaaaaaa", "..I.......B"),
            ("cccaaaaaaacaaaaaaaa", "..I...............B"),
            ("ccaaaaaaaac", "..........."),
        ] {
            let mut doubt = Doubt::default();
            let mut got = String::new();
            for letter in comparisons.chars() {
                let event = doubt.compare(MemberIndex(1), letter == 'a', Moment::ZERO);
                got.push(match event {
                    None => '.',
                    Some(Event::Ignored { .. }) => 'I',
                    Some(Event::Believed { .. }) => 'B',
                });
            }
            assert_eq!(got, expected, "{comparisons}");
        }
    }
}

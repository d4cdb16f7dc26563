//! When a member sends its message to all others: regularly, and more often while it has news, since a message may be
//! lost.

use std::time::Duration;

use model::Moment;

/// The pause between messages, and while something has changed lately.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_NEWS: Duration = Duration::from_millis(500);
/// How long a change is news.
const NEWS: Duration = Duration::from_secs(2);
/// The pause between turns.
const TURN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Pace {
    turned_at: Moment,
    /// `None`: a message is due at once.
    sent_at: Option<Moment>,
    news_until: Moment,
}

impl Pace {
    pub(crate) fn new(now: Moment) -> Pace {
        Pace { turned_at: now, sent_at: None, news_until: now }
    }

    /// Makes a message due at once, and repeats it soon.
    pub(crate) fn announce(&mut self, now: Moment) {
        (self.sent_at, self.news_until) = (None, now + NEWS);
    }

    /// Returns when the next turn is due.
    pub(crate) fn next_due(&self) -> Moment {
        if self.sent_at.is_none() { self.turned_at } else { self.turned_at + TURN }
    }

    /// Begins a turn. Returns whether a message is due in it; then it counts as sent.
    pub(crate) fn turn(&mut self, now: Moment) -> bool {
        self.turned_at = now;
        let pause = if now < self.news_until { PAUSE_NEWS } else { PAUSE };
        let is_due = self.sent_at.is_none_or(|at| now.since(at) >= pause);
        if is_due {
            self.sent_at = Some(now);
        }
        is_due
    }
}

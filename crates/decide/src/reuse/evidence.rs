//! The two kinds of evidence about idle timeouts: idle times survived, and closes.

use std::collections::VecDeque;
use std::time::Duration;

use model::Moment;

/// Number of survived idle times needed before their age counts as safe.
const WITNESSES: usize = 3;

/// A close, between the last check that found the connection open and the first that did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Close {
    pub(super) low: Duration,
    pub(super) high: Duration,
    pub(super) at: Moment,
}

/// How far the closes lie apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) youngest_low: Duration,
    pub(super) youngest_high: Duration,
    pub(super) oldest_low: Duration,
    pub(super) oldest_high: Duration,
}

impl Spread {
    pub(super) const EMPTY: Spread = Spread {
        youngest_low: Duration::MAX,
        youngest_high: Duration::MAX,
        oldest_low: Duration::ZERO,
        oldest_high: Duration::ZERO,
    };

    /// Returns `None` if there are none.
    pub(super) fn of(closes: &VecDeque<Close>) -> Option<Spread> {
        let mut spread = Spread::EMPTY;
        for close in closes {
            spread.add(close.low, close.high);
        }
        (!closes.is_empty()).then_some(spread)
    }

    pub(super) fn add(&mut self, low: Duration, high: Duration) {
        self.youngest_low = self.youngest_low.min(low);
        self.youngest_high = self.youngest_high.min(high);
        self.oldest_low = self.oldest_low.max(low);
        self.oldest_high = self.oldest_high.max(high);
    }

    /// Returns whether the oldest is certainly older than the youngest by more than this factor.
    pub(super) fn is_wide(&self, (times, of): (u32, u32)) -> bool {
        self.oldest_low > self.youngest_high * times / of + Duration::from_millis(100)
    }
}

/// The longest survived idle times, identified by when they began. (Two that began in the same
/// microsecond count as one, which errs on the safe side.)
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Witnesses {
    pub(super) longest: [(Moment, Duration); WITNESSES],
}

impl Witnesses {
    pub(super) fn note(&mut self, since: Moment, age: Duration) {
        let known = self.longest.iter_mut().find(|(s, a)| *s == since && !a.is_zero());
        let place = match known {
            Some(place) => Some(place),
            None => self.longest.iter_mut().min_by_key(|(_, age)| *age),
        };
        if let Some(place) = place
            && age > place.1
        {
            *place = (since, age);
        }
    }

    /// Returns the age that all of them survived; zero while there are too few.
    pub(super) fn safe_age(&self) -> Duration {
        self.longest.iter().map(|(_, age)| *age).min().unwrap_or_default()
    }
}

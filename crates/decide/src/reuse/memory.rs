//! What has been seen of a server's connections, and what follows from it. Plain data behind the
//! learner's lock; bounded.

use std::collections::VecDeque;
use std::time::Duration;

use model::Moment;

use super::below;
use super::habit::Habit;

/// A connection that was never seen open at this age or above was closed "at once".
pub(super) const AT_ONCE: Duration = Duration::from_millis(50);
/// At-once closes one after the other, with no connection left open in between, that make a habit.
const AT_ONCE_RUN: u32 = 3;
/// Closes that lie closer together than this count as one for that: they may have one reason.
const AT_ONCE_APART: Duration = Duration::from_millis(100);
/// What a worker needs at most to notice a close; a longer interval tells of a busy worker.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Idle times that must have come through before their age is believed to be safe, and closes that
/// must agree before they are believed to be a timeout.
const WITNESSES: usize = 3;
/// Witnesses of this much time are kept together; the last two such generations count.
const GENERATION: Duration = Duration::from_mins(5);

/// By which factor ages may differ that are called the same.
const SPREAD_MAX: (u32, u32) = (8, 5);
/// Closes remembered.
const CLOSES_MAX: usize = 16;
/// For how long.
const CLOSE_REMEMBERED: Duration = Duration::from_mins(10);
/// Idle times that outlive all remembered closes, with no close in between, that refute them.
const OUTLIVED_MIN: u32 = 3;
/// The same where closes come at any age: some idle times are long by chance.
const OUTLIVED_ERRATIC_MIN: u32 = 16;
/// And the time without a close: those of a server that makes room come when it is busy.
const QUIET_MIN: Duration = Duration::from_mins(1);

/// Closes within this time of the first are looked at together: a restart?
const BURST: Duration = Duration::from_millis(300);
/// Restarts that nobody else noticed do not come more often; what looks like it is a habit.
const RESTART_APART: Duration = Duration::from_mins(10);

/// What has been seen.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of this generation, and of the one before.
    witnesses: [Witnesses; 2],
    generation_began: Moment,
    /// Oldest first.
    closes: VecDeque<Close>,
    /// They come at any age.
    erratic: bool,
    /// Present run of at-once closes.
    at_once: u32,
    at_once_last: Moment,
    /// Idle times that outlived all remembered closes since the last one.
    outlived: u32,
    burst: Option<Burst>,
    /// The last burst that was taken for a restart.
    restart_guessed: Option<Moment>,
    promise_broken: bool,
    /// Nothing has been learned since the server's last restart.
    pub(super) is_new_life: bool,
    /// What people were told last.
    pub(super) told: Habit,
}

/// What follows.
#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    /// A request that may not be repeated may be sent below this idle age.
    pub(super) safe: Duration,
    /// The pool keeps connections below this age.
    pub(super) keep: Option<Duration>,
    /// Only ages above this say anything new.
    pub(super) news: Duration,
    /// A connection open at this age speaks against the closes.
    pub(super) outlive: Option<Duration>,
    /// When the burst began that is being looked into.
    pub(super) burst: Option<Moment>,
    /// When something will follow though nothing new is seen.
    pub(super) due: Moment,
    pub(super) promises_hold: bool,
}

/// A close, between the last look that found the connection open and the first that did not.
#[derive(Clone, Copy, Debug)]
struct Close {
    low: Duration,
    high: Duration,
    at: Moment,
}

/// Closes that came at about the same time.
#[derive(Debug)]
struct Burst {
    since: Moment,
    count: u32,
    ages: Spread,
    /// A connection from before it is still open.
    survived: bool,
    /// Closes at any age were known before.
    erratic: bool,
}

/// What the closes look like together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    None,
    AtOnce,
    Erratic,
    /// At about this age.
    Steady(Duration),
}

impl Memory {
    /// The idle time that began at `since` was found open, such that a request at idle age `age`
    /// would have come in time.
    pub(super) fn survived(&mut self, since: Moment, age: Duration) {
        self.is_new_life = false;
        self.witnesses[0].note(since, age);
        if self.at_once < AT_ONCE_RUN {
            self.at_once = 0;
        }
    }

    /// A connection from before the present burst of closes is still open.
    pub(super) fn survived_burst(&mut self) {
        if let Some(burst) = &mut self.burst {
            burst.survived = true;
        }
    }

    /// An idle time outlived all remembered closes.
    pub(super) fn outlived_closes(&mut self, now: Moment) {
        self.outlived = self.outlived.saturating_add(1);
        let needed = if self.erratic { OUTLIVED_ERRATIC_MIN } else { OUTLIVED_MIN };
        let quiet = self.closes.back().is_none_or(|last| now.since(last.at) >= QUIET_MIN);
        if self.outlived >= needed && quiet {
            self.forget_closes();
        }
    }

    /// A connection was closed by the server at an idle age between those two.
    pub(super) fn closed(
        &mut self,
        (low, high): (Duration, Duration),
        promised: Option<Duration>,
        now: Moment,
    ) {
        self.is_new_life = false;
        self.outlived = 0;
        // A promise is in whole seconds; who rounds it up by a little does not break it.
        self.promise_broken |= promised.is_some_and(|p| high < p - p / 20);
        self.note_burst(low, high, now);
        if low >= AT_ONCE {
            self.at_once = if self.at_once < AT_ONCE_RUN { 0 } else { self.at_once };
        } else if high <= LOOK_MAX
            && (self.at_once == 0 || now.since(self.at_once_last) >= AT_ONCE_APART)
        {
            self.at_once = self.at_once.saturating_add(1);
            self.at_once_last = now;
        }
        if self.closes.len() == CLOSES_MAX {
            self.closes.pop_front();
        }
        self.closes.push_back(Close { low, high, at: now });
        self.note_spread();
    }

    /// Ages that differ by more than a timer's whole seconds (which make 2 s into 3 s at most) are
    /// erratic until they differ by much less again.
    fn note_spread(&mut self) {
        let Some(spread) = Spread::of(&self.closes) else {
            self.erratic = false;
            return;
        };
        let factor = if self.erratic { (5, 4) } else { SPREAD_MAX };
        self.erratic = spread.is_wide(factor);
    }

    fn note_burst(&mut self, low: Duration, high: Duration, now: Moment) {
        let erratic = self.erratic;
        let burst = self.burst.get_or_insert(Burst {
            since: now,
            count: 0,
            ages: Spread::EMPTY,
            survived: false,
            erratic,
        });
        burst.count += 1;
        burst.ages.add(low, high);
    }

    /// Once a burst of closes is over: whether it was a restart. It was if nothing from before it
    /// is open, and the ages are no timeout's: they differ, or are much below what many
    /// connections have come through.
    pub(super) fn judge_burst(&mut self, now: Moment) -> bool {
        let Some(burst) = self.burst.take_if(|burst| now.since(burst.since) >= BURST) else {
            return false;
        };
        let differ = burst.ages.is_wide(SPREAD_MAX);
        let early = burst.count > 2 && burst.ages.oldest_high * 8 / 5 < self.safe_age();
        let lately = self.restart_guessed.is_some_and(|at| now.since(at) < RESTART_APART);
        let is_restart = !burst.survived && !burst.erratic && !lately && (differ || early);
        if is_restart {
            self.restart_guessed = Some(now);
        }
        is_restart
    }

    /// Forgets what has become old.
    pub(super) fn forget_old(&mut self, now: Moment) {
        let age = now.since(self.generation_began);
        if age >= GENERATION {
            self.witnesses[1] =
                if age < 2 * GENERATION { self.witnesses[0] } else { Witnesses::default() };
            self.witnesses[0] = Witnesses::default();
            self.generation_began = now;
        }
        let had = !self.closes.is_empty();
        self.closes.retain(|close| now.since(close.at) < CLOSE_REMEMBERED);
        if had && self.closes.is_empty() {
            self.forget_closes();
        }
        self.note_spread();
    }

    fn forget_closes(&mut self) {
        self.closes.clear();
        self.erratic = false;
        self.at_once = 0;
        self.outlived = 0;
        self.promise_broken = false;
    }

    /// Whether no burst of closes is being looked into.
    pub(super) fn is_settled(&self) -> bool {
        self.burst.is_none()
    }

    /// Whether there is nothing to forget.
    pub(super) fn is_blank(&self) -> bool {
        self.closes.is_empty() && self.safe_age().is_zero()
    }

    /// Forgets everything that was seen.
    pub(super) fn begin_anew(&mut self, now: Moment) {
        *self = Memory {
            generation_began: now,
            restart_guessed: self.restart_guessed,
            is_new_life: true,
            ..Memory::default()
        };
    }

    pub(super) fn limits(&self, trip: Duration) -> Limits {
        let seen = self.safe_age();
        let (safe, keep) = match self.pattern() {
            Pattern::None => (seen, None),
            Pattern::AtOnce => (Duration::ZERO, Some(Duration::ZERO)),
            Pattern::Erratic => (Duration::ZERO, self.keep_erratic()),
            // Some connection was unlucky: no reason to give up keeping them.
            Pattern::Steady(age) if age < AT_ONCE => (Duration::ZERO, None),
            // One close says little of the next: what may not be repeated stays further below it.
            Pattern::Steady(age) if self.closes.len() < WITNESSES => {
                (seen.min(age / 2), Some(below(age, trip)))
            }
            Pattern::Steady(age) => (seen.min(below(age, trip)), Some(below(age, trip))),
        };
        let oldest = Spread::of(&self.closes).map(|spread| spread.oldest_high);
        let run = 0 < self.at_once && self.at_once < AT_ONCE_RUN;
        let burst = self.burst.as_ref().map(|burst| burst.since);
        let next_generation = self.generation_began + GENERATION;
        Limits {
            safe,
            keep,
            news: if run { Duration::ZERO } else { self.witnesses[0].safe_age() },
            outlive: oldest.map(|age| age + age / 4 + Duration::from_millis(200)),
            burst,
            due: burst.map_or(next_generation, |since| next_generation.min(since + BURST)),
            promises_hold: !self.promise_broken,
        }
    }

    pub(super) fn habit(&self) -> Habit {
        let known = self.closes.len() >= WITNESSES;
        let spread = Spread::of(&self.closes).unwrap_or(Spread::EMPTY);
        match self.pattern() {
            Pattern::AtOnce => Habit::ClosesAtOnce,
            Pattern::Erratic if known => {
                Habit::Erratic { youngest: spread.youngest_low, oldest: spread.oldest_high }
            }
            Pattern::Steady(age) if known && age >= AT_ONCE => {
                Habit::ClosesAt { age: (age + spread.youngest_high) / 2 }
            }
            _ => Habit::Unknown,
        }
    }

    fn pattern(&self) -> Pattern {
        let Some(spread) = Spread::of(&self.closes) else {
            return Pattern::None;
        };
        if self.at_once >= AT_ONCE_RUN {
            Pattern::AtOnce
        } else if self.erratic {
            Pattern::Erratic
        } else if spread.oldest_low <= spread.youngest_high {
            // One age lies in all intervals; this is the least that it can be.
            Pattern::Steady(spread.oldest_low)
        } else {
            Pattern::Steady(spread.youngest_low)
        }
    }

    /// Half the age that half of the closes were above; at-once ones apart, which no age would
    /// avoid.
    fn keep_erratic(&self) -> Option<Duration> {
        let mut lows: Vec<_> =
            self.closes.iter().map(|close| close.low).filter(|&low| low >= AT_ONCE).collect();
        lows.sort_unstable();
        let half = *lows.get(lows.len().saturating_sub(1) / 2)? / 2;
        Some(if half < AT_ONCE { Duration::ZERO } else { half })
    }

    fn safe_age(&self) -> Duration {
        let mut both = self.witnesses[1];
        for &(since, age) in &self.witnesses[0].longest {
            both.note(since, age);
        }
        both.safe_age()
    }
}

/// How far closes lie apart.
#[derive(Clone, Copy, Debug)]
struct Spread {
    youngest_low: Duration,
    youngest_high: Duration,
    oldest_low: Duration,
    oldest_high: Duration,
}

impl Spread {
    const EMPTY: Spread = Spread {
        youngest_low: Duration::MAX,
        youngest_high: Duration::MAX,
        oldest_low: Duration::ZERO,
        oldest_high: Duration::ZERO,
    };

    /// `None` of none.
    fn of(closes: &VecDeque<Close>) -> Option<Spread> {
        let mut spread = Spread::EMPTY;
        closes.iter().for_each(|close| spread.add(close.low, close.high));
        (!closes.is_empty()).then_some(spread)
    }

    fn add(&mut self, low: Duration, high: Duration) {
        self.youngest_low = self.youngest_low.min(low);
        self.youngest_high = self.youngest_high.min(high);
        self.oldest_low = self.oldest_low.max(low);
        self.oldest_high = self.oldest_high.max(high);
    }

    /// Whether the oldest is certainly older than the youngest, by more than this factor.
    fn is_wide(&self, (times, of): (u32, u32)) -> bool {
        self.oldest_low > self.youngest_high * times / of + Duration::from_millis(100)
    }
}

/// The longest idle times that came through, known by when they began. (Two that began in the same
/// microsecond count as one, which errs on the safe side.)
#[derive(Clone, Copy, Debug, Default)]
struct Witnesses {
    longest: [(Moment, Duration); WITNESSES],
}

impl Witnesses {
    fn note(&mut self, since: Moment, age: Duration) {
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

    /// The age that all of them came through; zero while there are too few.
    fn safe_age(&self) -> Duration {
        self.longest.iter().map(|(_, age)| *age).min().unwrap_or_default()
    }
}

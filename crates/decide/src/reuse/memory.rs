//! What has been observed on a server's connections, and the conclusions. Plain data behind the
//! learner's lock; bounded.

use std::collections::VecDeque;
use std::time::Duration;

use model::Moment;

use super::below;
use super::evidence::{Close, Spread, Witnesses};
use super::habit::Habit;

/// A connection never seen open at this age or above was closed "at once".
pub(super) const AT_ONCE: Duration = Duration::from_millis(50);
/// Number of consecutive at-once closes, with no connection left open in between, that make a
/// habit.
const AT_ONCE_RUN: u32 = 3;
/// Closes closer together than this count as one for that purpose: they may have one reason.
const AT_ONCE_APART: Duration = Duration::from_millis(100);
/// Maximum time that a worker needs to notice a close; a longer interval means that the worker was
/// busy.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Survived idle times of this much time are kept together; the last two such generations count.
const GENERATION: Duration = Duration::from_mins(5);

/// Number of closes that must agree before they count as a timeout; doubled each time that such a
/// conclusion was refuted and closes came again.
const AGREE_MIN: usize = 5;
/// Factor by which ages may differ and still count as the same.
const SPREAD_MAX: (u32, u32) = (8, 5);
/// Number of closes remembered.
const CLOSES_MAX: usize = 16;
/// How long a close is remembered.
const CLOSE_REMEMBERED: Duration = Duration::from_mins(10);
/// Number of idle times that outlive all remembered closes, with no close in between, that refute
/// them.
const OUTLIVED_MIN: u32 = 3;
/// The same if closes come at any age: some idle times are long by chance.
const OUTLIVED_ERRATIC_MIN: u32 = 16;
/// Time without a close that refutes them. Doubled like [`AGREE_MIN`].
const QUIET_MIN: Duration = Duration::from_mins(1);
/// The same for a server whose closes came at any age since its last restart: a server that closes
/// to make room has no reason to while the pool is small, so a quiet time proves little.
const QUIET_ERRATIC_MIN: Duration = Duration::from_mins(10);

/// How often they are doubled at most.
const CAUTION_MAX: u32 = 6;

/// Closes within this time of the first are examined together as a possible restart.
const BURST: Duration = Duration::from_millis(300);
/// Minimum interval between restarts that were only inferred from closes; more frequent ones are a
/// habit.
const RESTART_APART: Duration = Duration::from_mins(10);

/// The observations.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Those of this generation, and of the one before.
    witnesses: [Witnesses; 2],
    generation_began: Moment,
    /// Oldest first.
    closes: VecDeque<Close>,
    /// Closes come at any age.
    erratic: bool,
    /// Closes came at any age at some time since the server's last restart.
    was_erratic: bool,
    /// Current number of consecutive at-once closes.
    at_once: u32,
    at_once_last: Moment,
    /// Number of idle times that outlived all remembered closes since the last one.
    outlived: u32,
    /// The closes were forgotten because idle times outlived them, or because none followed.
    refuted: bool,
    /// How often closes came again after that.
    caution: u32,
    burst: Option<Burst>,
    /// The last burst that was taken for a restart.
    restart_guessed: Option<Moment>,
    promise_broken: bool,
    /// Nothing has been learned since the server's last restart.
    pub(super) is_new_life: bool,
    /// What was last logged.
    pub(super) reported: Habit,
}

/// The conclusions.
#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    /// A non-idempotent request may be sent below this idle age.
    pub(super) safe: Duration,
    /// The pool keeps connections below this age.
    pub(super) keep: Option<Duration>,
    /// Only ages above this are new information.
    pub(super) news: Duration,
    /// A connection open at this age contradicts the closes.
    pub(super) outlive: Option<Duration>,
    /// When the burst under examination began.
    pub(super) burst: Option<Moment>,
    /// When there will be a conclusion even without new observations.
    pub(super) due: Moment,
    pub(super) promises_hold: bool,
}

/// Closes that came at about the same time.
#[derive(Debug)]
struct Burst {
    since: Moment,
    count: u32,
    ages: Spread,
    /// A connection from before it is still open.
    survived: bool,
    /// Closes at any age were known before: a burst is only more of them.
    erratic: bool,
}

/// The pattern of the closes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    None,
    AtOnce,
    Erratic,
    /// Too few to conclude, or connections that were just unlucky: no reason not to keep them, but
    /// a reason to send no non-idempotent requests on them.
    Few,
    /// At about this age, or later by the jitter.
    Steady {
        age: Duration,
        jitter: Duration,
    },
}

impl Memory {
    /// The idle time that began at `since` was found open, such that a request at idle age `age`
    /// would have arrived in time.
    pub(super) fn survived(&mut self, since: Moment, age: Duration) {
        self.is_new_life = false;
        self.witnesses[0].note(since, age);
        if self.at_once < AT_ONCE_RUN {
            self.at_once = 0;
        }
    }

    /// Records that a connection from before the current burst of closes is still open.
    pub(super) fn survived_burst(&mut self) {
        if let Some(burst) = &mut self.burst {
            burst.survived = true;
        }
    }

    /// Records that an idle time outlived all remembered closes.
    pub(super) fn outlived_closes(&mut self, now: Moment) {
        self.outlived = self.outlived.saturating_add(1);
        let needed = if self.erratic { OUTLIVED_ERRATIC_MIN } else { OUTLIVED_MIN };
        let quiet = self.closes.back().is_none_or(|last| now.since(last.at) >= self.quiet_min());
        if self.outlived >= needed && quiet {
            self.forget_closes();
            self.refuted = true;
        }
    }

    fn quiet_min(&self) -> Duration {
        let least = if self.was_erratic { QUIET_ERRATIC_MIN } else { QUIET_MIN };
        least * (1 << self.caution)
    }

    fn agree_min(&self) -> usize {
        (AGREE_MIN << self.caution).min(CLOSES_MAX)
    }

    /// Records that the server closed a connection at an idle age between those two.
    pub(super) fn closed(
        &mut self,
        (low, high): (Duration, Duration),
        promised: Option<Duration>,
        now: Moment,
    ) {
        self.is_new_life = false;
        self.outlived = 0;
        if std::mem::take(&mut self.refuted) {
            self.caution = (self.caution + 1).min(CAUTION_MAX);
        }
        // A promise is in whole seconds; a server that rounds it up slightly does not break it.
        self.promise_broken |= promised.is_some_and(|promised| high < promised * 19 / 20);
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

    /// Ages that differ by more than a timer with whole seconds explains (it makes at most 3 s of 2
    /// s) are erratic until they differ by much less again.
    fn note_spread(&mut self) {
        let Some(spread) = Spread::of(&self.closes) else {
            self.erratic = false;
            return;
        };
        let factor = if self.erratic { (5, 4) } else { SPREAD_MAX };
        self.erratic = spread.is_wide(factor);
        self.was_erratic |= self.erratic;
    }

    fn note_burst(&mut self, low: Duration, high: Duration, now: Moment) {
        let erratic = self.was_erratic;
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

    /// Decides, once a burst of closes is over, whether it was a restart. It was if nothing from
    /// before it is open, and the ages do not fit a timeout: they differ, or are far below what
    /// many connections have survived.
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

    /// Forgets expired observations.
    pub(super) fn forget_old(&mut self, now: Moment) {
        let age = now.since(self.generation_began);
        if age >= GENERATION {
            self.witnesses[1] =
                if age < 2 * GENERATION { self.witnesses[0] } else { Witnesses::default() };
            self.witnesses[0] = Witnesses::default();
            self.generation_began = now;
        }
        let had = !self.closes.is_empty();
        let remembered = CLOSE_REMEMBERED.max(self.quiet_min());
        self.closes.retain(|close| now.since(close.at) < remembered);
        if had && self.closes.is_empty() {
            self.forget_closes();
            self.refuted = self.was_erratic;
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

    /// Returns whether no burst of closes is under examination.
    pub(super) fn is_settled(&self) -> bool {
        self.burst.is_none()
    }

    /// Returns whether there is nothing to forget.
    pub(super) fn is_blank(&self) -> bool {
        self.closes.is_empty()
            && self.safe_age().is_zero()
            && !self.was_erratic
            && self.caution == 0
    }

    /// Forgets all observations.
    pub(super) fn reset(&mut self, now: Moment) {
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
            Pattern::Few => (Duration::ZERO, None),
            Pattern::Steady { age, jitter } => {
                let keep = below(age, trip.max(jitter));
                (seen.min(keep), Some(keep))
            }
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
        let spread = Spread::of(&self.closes).unwrap_or(Spread::EMPTY);
        match self.pattern() {
            Pattern::AtOnce => Habit::ClosesAtOnce,
            // Two that differ may be a restart's and a timeout's.
            Pattern::Erratic if self.closes.len() >= AGREE_MIN => {
                Habit::Erratic { youngest: spread.youngest_low, oldest: spread.oldest_high }
            }
            Pattern::Steady { age, .. } => {
                Habit::ClosesAt { age: (age + spread.youngest_high) / 2 }
            }
            Pattern::None | Pattern::Few | Pattern::Erratic => Habit::Unknown,
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
        } else if self.closes.len() < self.agree_min() || spread.youngest_low < AT_ONCE {
            Pattern::Few
        } else {
            // If one age lies in all intervals, it is no less than the highest lower end.
            let agree = spread.oldest_low <= spread.youngest_high;
            let age = if agree { spread.oldest_low } else { spread.youngest_low };
            Pattern::Steady { age, jitter: spread.oldest_low.saturating_sub(age) }
        }
    }

    /// Returns half the median age of the closes; at-once closes are left out, since no age limit
    /// would avoid them.
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

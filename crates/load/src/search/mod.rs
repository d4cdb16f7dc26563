//! The highest rate that an objective allows: doubling until a trial fails, bisection between the
//! last that passed and the first that failed, and a long run to confirm. Pure: trials are asked for
//! and their outcomes passed in.

mod cause;
mod trial;

use std::time::Duration;

pub use cause::{Facts, connections_ran_out, what_ran_out};
pub use trial::{Judged, judge};

/// Confirming runs, at most: each that fails lowers the rate.
const CONFIRMATIONS_MAX: u32 = 6;
/// Trials, at most: twice what doubling over six decades and bisection to 1 % take.
const TRIALS_MAX: u32 = 64;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The first rate, per second.
    pub from_per_s: f64,
    /// The highest that is tried.
    pub to_per_s: f64,
    /// How long each trial lasts.
    pub trial: Duration,
    /// How long the run lasts that confirms what was found.
    pub confirmation: Duration,
    /// Between the highest rate that passes and the lowest that fails, as a share: 0.02.
    pub precision: f64,
}

/// What is to be run next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requests per second.
    pub per_s: f64,
    /// How long.
    pub time: Duration,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that is too high.
    Doubling,
    /// To narrow down.
    Bisection,
    /// To see whether it lasts.
    Confirmation,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The highest rate that lasted.
    Limit(f64),
    /// Even the highest rate that was to be tried lasted.
    NoLimit(f64),
    /// Not even the lowest rate passed.
    Nothing,
    /// Short trials passed at this rate, but no longer run did.
    Unconfirmed(f64),
}

/// A search under way.
///
/// ```text
/// Doubling ─▶ Bisection ─▶ Confirmation ─▶ found
///     └───────────────────────▲  └─▶ Confirmation, lower
/// ```
#[derive(Clone, Debug)]
pub struct Search {
    terms: Terms,
    /// The highest rate that passed.
    low: Option<f64>,
    /// The lowest that failed.
    high: Option<f64>,
    purpose: Purpose,
    next: f64,
    trials: u32,
    confirmations: u32,
    found: Option<Found>,
}

impl Search {
    /// Begins.
    pub fn new(terms: Terms) -> Search {
        Search {
            terms,
            low: None,
            high: None,
            purpose: Purpose::Doubling,
            next: terms.from_per_s.min(terms.to_per_s),
            trials: 0,
            confirmations: 0,
            found: None,
        }
    }

    /// What is to be run next; `Err`: it is over, so.
    ///
    /// # Errors
    /// The search is over: what it found.
    pub fn next(&self) -> Result<Trial, Found> {
        let Terms { trial, confirmation, .. } = self.terms;
        let time = if self.purpose == Purpose::Confirmation { confirmation } else { trial };
        match self.found {
            Some(found) => Err(found),
            None => Ok(Trial { per_s: self.next, time, purpose: self.purpose }),
        }
    }

    /// How many short trials and confirming runs there still are, at most.
    pub fn left(&self) -> (u32, u32) {
        let Terms { from_per_s: from, to_per_s: to, precision, .. } = self.terms;
        let powers = |ratio: f64| ratio.max(1.0).log2().ceil() as u32;
        if self.found.is_some() {
            return (0, 0);
        }
        if self.purpose == Purpose::Confirmation {
            return (0, CONFIRMATIONS_MAX - self.confirmations);
        }
        // Doubling and halving leave a range as wide as its lower end.
        let bisections = powers(1.0 / precision);
        let doublings = powers(to / self.next) + 1 + bisections;
        let halvings = powers(self.next * 1000.0 / from) + 1 + bisections;
        let trials = match (self.low, self.high) {
            (Some(low), Some(high)) => powers((high - low) / (low * precision)),
            (Some(_), None) => doublings,
            (None, Some(_)) => halvings,
            (None, None) => doublings.max(halvings),
        };
        (trials.min(TRIALS_MAX - self.trials), CONFIRMATIONS_MAX)
    }

    /// Whether the trial passed.
    pub fn tell(&mut self, passed: bool) {
        self.trials += 1;
        let rate = self.next;
        if passed {
            self.low = Some(self.low.map_or(rate, |low| low.max(rate)));
        } else {
            self.high = Some(self.high.map_or(rate, |high| high.min(rate)));
        }
        match (self.purpose, passed) {
            (Purpose::Confirmation, true) => {
                let is_all = self.high.is_none();
                self.found = Some(if is_all { Found::NoLimit(rate) } else { Found::Limit(rate) });
            }
            (Purpose::Confirmation, false) => self.lower(rate),
            _ => self.narrow(),
        }
        if self.found.is_none() && self.trials >= TRIALS_MAX {
            self.found = Some(self.low.map_or(Found::Nothing, Found::Unconfirmed));
        }
    }

    /// The next of the short trials, or the confirmation.
    fn narrow(&mut self) {
        let (from, to) = (self.terms.from_per_s, self.terms.to_per_s);
        match (self.low, self.high) {
            (Some(low), None) if low >= to => self.confirm(low),
            (Some(low), None) => self.next = (low * 2.0).min(to),
            // Below where it began, the search halves as it has doubled, to a thousandth.
            (None, Some(high)) if high > from / 1000.0 => self.next = high / 2.0,
            (None, _) => self.found = Some(Found::Nothing),
            (Some(low), Some(high)) if high <= low * (1.0 + self.terms.precision) => {
                self.confirm(low);
            }
            (Some(low), Some(high)) => {
                self.purpose = Purpose::Bisection;
                self.next = f64::midpoint(low, high);
            }
        }
    }

    fn confirm(&mut self, rate: f64) {
        self.purpose = Purpose::Confirmation;
        self.next = rate;
    }

    /// A rate did not last: the next is lower.
    fn lower(&mut self, rate: f64) {
        self.confirmations += 1;
        if self.confirmations >= CONFIRMATIONS_MAX {
            self.found = Some(Found::Unconfirmed(rate));
        } else {
            // What passed in a short trial only is no lower bound any more.
            self.low = None;
            self.next = rate * (1.0 - self.terms.precision);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            from_per_s: 10.0,
            to_per_s: 1e6,
            trial: Duration::from_secs(5),
            confirmation: Duration::from_secs(30),
            precision: 0.02,
        }
    }

    /// Searches where `passes` says what passes; yields the end and the trials.
    fn search(terms: Terms, passes: impl Fn(Trial) -> bool) -> (Found, Vec<Trial>) {
        let mut search = Search::new(terms);
        let mut trials = Vec::new();
        loop {
            match search.next() {
                Err(found) => return (found, trials),
                Ok(trial) => {
                    trials.push(trial);
                    search.tell(passes(trial));
                }
            }
        }
    }

    #[test]
    fn it_comes_within_its_precision_wherever_the_limit_is() {
        for limit in [0.5, 3.0, 10.0, 431.7, 460.0, 12_345.0, 999_999.0] {
            let (found, trials) = search(terms(), |trial| trial.per_s <= limit);
            let Found::Limit(rate) = found else { panic!("{limit}: {found:?}") };
            assert!(rate <= limit && rate >= limit / 1.021, "{limit}: {rate}");
            assert!(trials.len() < 30, "{limit}: {} trials", trials.len());
            let last = trials.last().unwrap();
            assert_eq!((last.purpose, last.time), (Purpose::Confirmation, Duration::from_secs(30)));
        }
    }

    #[test]
    fn no_search_is_longer_than_it_has_said_at_any_time() {
        for limit in [0.001, 0.5, 9.0, 431.7, 12_345.0, 2e6] {
            for lasting in [1.0, 0.95, 0.0] {
                let mut search = Search::new(terms());
                let mut left = vec![search.left()];
                let mut done = Vec::new();
                while let Ok(trial) = search.next() {
                    let is_long = trial.purpose == Purpose::Confirmation;
                    search.tell(trial.per_s <= limit * if is_long { lasting } else { 1.0 });
                    done.push(is_long);
                    left.push(search.left());
                }
                for (at, (trials, confirmations)) in left.into_iter().enumerate() {
                    let rest = &done[at..];
                    let long = rest.iter().filter(|is_long| **is_long).count() as u32;
                    let short = rest.len() as u32 - long;
                    assert!(short <= trials, "{limit}, {at}: {short} of {trials}");
                    assert!(long <= confirmations, "{limit}, {at}: {long} of {confirmations}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_last_is_lowered_until_it_does() {
        // Queues hide 5 % too much for the length of a short trial.
        let (found, _) = search(terms(), |trial| {
            trial.per_s <= if trial.time > Duration::from_secs(5) { 400.0 } else { 420.0 }
        });
        let Found::Limit(rate) = found else { panic!("{found:?}") };
        assert!((384.0..=400.0).contains(&rate), "{rate}");
    }

    #[test]
    fn it_ends_when_nothing_passes_or_everything_does_or_nothing_lasts() {
        assert_eq!(search(terms(), |_| false).0, Found::Nothing);
        assert_eq!(search(terms(), |_| true).0, Found::NoLimit(1e6));
        let (found, trials) =
            search(terms(), |trial| trial.purpose != Purpose::Confirmation && trial.per_s <= 100.0);
        assert!(matches!(found, Found::Unconfirmed(rate) if rate < 100.0), "{found:?}");
        assert!(trials.len() < 40);
    }
}

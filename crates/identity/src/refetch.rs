//! When a key set may be fetched again from its issuer.

use std::time::Duration;

use model::Moment;

/// The settings of [`Refetch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefetchRules {
    /// The time between two fetches, if the response does not tell how long it is fresh.
    pub interval: Duration,
    /// The shortest and the longest time for which a response may say that it is fresh.
    pub fresh: std::ops::RangeInclusive<Duration>,
    /// The shortest time between two fetches because of unknown keys. Clients can make up
    /// identifiers, so this bounds the load that they cause.
    pub unknown_key: Duration,
    /// The wait after a first failure; it doubles with each further failure.
    pub failure_min: Duration,
    /// The longest wait after failures.
    pub failure_max: Duration,
}

impl Default for RefetchRules {
    /// Ten minutes, a response may say one minute to one day; unknown keys every 30 seconds; after
    /// failures 5 seconds to 5 minutes.
    fn default() -> RefetchRules {
        RefetchRules {
            interval: Duration::from_secs(600),
            fresh: Duration::from_secs(60)..=Duration::from_secs(86_400),
            unknown_key: Duration::from_secs(30),
            failure_min: Duration::from_secs(5),
            failure_max: Duration::from_secs(300),
        }
    }
}

/// Decides when one key set is fetched.
///
/// The caller starts a fetch when [`Refetch::due_at`] has come, and calls [`Refetch::started`]; at
/// its end, in any case, [`Refetch::succeeded`] or [`Refetch::failed`]. It passes on each token with
/// an unknown key ([`Refetch::unknown_key`]), which may make the next fetch due earlier. A failure
/// changes no keys: the caller keeps those that it has.
///
/// All waits but the first fetch, which is due at once, are lengthened by a random share of up to a
/// tenth (after failures, shortened by up to half), so that many balancers do not ask together.
#[derive(Clone, Debug)]
pub struct Refetch {
    rules: RefetchRules,
    random: fastrand::Rng,
    due_at: Moment,
    /// The earliest fetch because of an unknown key.
    unknown_key_from: Moment,
    /// The next fetch is made because of an unknown key.
    for_unknown_key: bool,
    /// Failures since the last success.
    failures: u32,
    is_running: bool,
}

impl Refetch {
    /// Returns the state before the first fetch, which is due at once. `seed` must differ between
    /// processes.
    pub fn new(rules: RefetchRules, seed: u64) -> Refetch {
        Refetch {
            rules,
            random: fastrand::Rng::with_seed(seed),
            due_at: Moment::ZERO,
            unknown_key_from: Moment::ZERO,
            for_unknown_key: false,
            failures: 0,
            is_running: false,
        }
    }

    /// Returns when the next fetch is due; none while one is running.
    pub fn due_at(&self) -> Option<Moment> {
        (!self.is_running).then_some(self.due_at)
    }

    /// Notes that a token had a key identifier that the set does not know.
    pub fn unknown_key(&mut self, now: Moment) {
        // While fetches fail, the back-off decides.
        let earliest = self.unknown_key_from.max(now);
        if !self.is_running && self.failures == 0 && earliest < self.due_at {
            self.due_at = earliest;
            self.for_unknown_key = true;
        }
    }

    /// Notes that a fetch has started.
    pub fn started(&mut self, now: Moment) {
        self.is_running = true;
        if std::mem::take(&mut self.for_unknown_key) {
            self.unknown_key_from = now + self.lengthened(self.rules.unknown_key);
        }
    }

    /// Notes that the fetch brought a key set with usable keys. `max_age` is the freshness that the
    /// response states (`Cache-Control: max-age`, less its `Age`), if it does.
    pub fn succeeded(&mut self, now: Moment, max_age: Option<Duration>) {
        let (min, max) = (*self.rules.fresh.start(), *self.rules.fresh.end());
        let wait = max_age.map_or(self.rules.interval, |age| age.min(max).max(min));
        self.is_running = false;
        self.failures = 0;
        self.due_at = now + self.lengthened(wait);
    }

    /// Notes that the fetch failed, or brought no usable keys.
    pub fn failed(&mut self, now: Moment) {
        let doubled = self.rules.failure_min.saturating_mul(1 << self.failures.min(20));
        let wait = doubled.min(self.rules.failure_max);
        self.is_running = false;
        self.failures = self.failures.saturating_add(1);
        self.due_at = now + wait.mul_f64(1.0 - 0.5 * self.random.f64());
    }

    /// Returns the failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    fn lengthened(&mut self, wait: Duration) -> Duration {
        wait.saturating_add((wait / 10).mul_f64(self.random.f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn refetch() -> Refetch {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        Refetch::new(RefetchRules::default(), seed)
    }

    /// Returns the time from `now` to the next fetch in seconds.
    fn wait_s(refetch: &Refetch, now: Moment) -> f64 {
        refetch.due_at().unwrap().since(now).as_secs_f64()
    }

    #[test]
    fn the_first_fetch_is_due_at_once_and_one_runs_at_a_time() {
        let mut refetch = refetch();
        assert_eq!(refetch.due_at(), Some(Moment::ZERO));
        refetch.started(at(1));
        assert_eq!(refetch.due_at(), None);
        refetch.unknown_key(at(100));
        assert_eq!(refetch.due_at(), None);
        refetch.succeeded(at(101), None);
        assert!((600.0..=660.0).contains(&wait_s(&refetch, at(101))));
    }

    #[test]
    fn the_response_decides_within_bounds() {
        for (max_age_s, bounds) in
            [(0, 60.0..=66.0), (120, 120.0..=132.0), (u64::MAX, 86_400.0..=95_040.0)]
        {
            let mut refetch = refetch();
            refetch.started(at(0));
            refetch.succeeded(at(0), Some(Duration::from_secs(max_age_s)));
            assert!(bounds.contains(&wait_s(&refetch, at(0))), "{max_age_s}");
        }
    }

    #[test]
    fn a_flood_of_unknown_keys_causes_a_fetch_every_half_minute() {
        let mut refetch = refetch();
        refetch.started(at(0));
        refetch.succeeded(at(0), None);
        let mut fetches = Vec::new();
        for second in 1..=500 {
            for _ in 0..100 {
                refetch.unknown_key(at(second));
            }
            if refetch.due_at().is_some_and(|due_at| due_at <= at(second)) {
                refetch.started(at(second));
                refetch.succeeded(at(second), None);
                fetches.push(second);
            }
        }
        assert!((15..=17).contains(&fetches.len()), "{fetches:?}");
        assert!(fetches.windows(2).all(|pair| pair[1] - pair[0] >= 30), "{fetches:?}");
    }

    #[test]
    fn a_single_unknown_key_is_fetched_at_once_if_no_other_was_recently() {
        let mut refetch = refetch();
        refetch.started(at(0));
        refetch.succeeded(at(0), None);
        // However recent the last fetch by schedule is: an issuer may have a new key just after it.
        refetch.unknown_key(at(1));
        assert_eq!(refetch.due_at(), Some(at(1)));
        refetch.unknown_key(at(100));
        assert_eq!(refetch.due_at(), Some(at(1)));
        // One that comes just after such a fetch waits, and is not forgotten.
        refetch.started(at(100));
        refetch.succeeded(at(101), None);
        refetch.unknown_key(at(102));
        assert!((28.0..=31.0).contains(&wait_s(&refetch, at(102))));
        // It never delays a fetch.
        refetch.unknown_key(at(103));
        assert!(wait_s(&refetch, at(103)) <= 30.0);
    }

    #[test]
    fn failures_back_off_whatever_clients_ask_for() {
        let mut refetch = refetch();
        let mut now = at(0);
        for (failure, bounds) in [
            2.5..=5.0,
            5.0..=10.0,
            10.0..=20.0,
            20.0..=40.0,
            40.0..=80.0,
            80.0..=160.0,
            150.0..=300.0,
            150.0..=300.0,
        ]
        .into_iter()
        .enumerate()
        {
            refetch.started(now);
            refetch.failed(now);
            refetch.unknown_key(now);
            assert!(bounds.contains(&wait_s(&refetch, now)), "{failure}");
            assert_eq!(refetch.failures() as usize, failure + 1);
            now = refetch.due_at().unwrap();
        }
        for _ in 0..1000 {
            refetch.failed(now);
        }
        refetch.started(now);
        refetch.succeeded(now, None);
        assert_eq!(refetch.failures(), 0);
        assert!(wait_s(&refetch, now) >= 600.0);
    }

    #[test]
    fn odd_settings_end_nowhere_else() {
        let rules = RefetchRules {
            interval: Duration::MAX,
            fresh: Duration::from_secs(10)..=Duration::ZERO,
            unknown_key: Duration::MAX,
            failure_min: Duration::MAX,
            failure_max: Duration::MAX,
        };
        let mut refetch = Refetch::new(rules, 1);
        refetch.started(at(1));
        refetch.succeeded(at(1), None);
        refetch.started(at(1));
        refetch.failed(at(1));
        refetch.started(at(1));
        refetch.succeeded(at(1), Some(Duration::from_secs(1)));
        assert!(wait_s(&refetch, at(1)) >= 10.0);
    }
}

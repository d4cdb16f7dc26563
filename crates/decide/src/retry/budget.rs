//! Retry budget: limits a service's retries to a share of its requests, plus a few more so that a
//! service with little traffic can retry at all. Prevents retry storms, in which every request to a
//! failing service is sent two or three times just when it can handle least.
//!
//! Like linkerd's and Envoy's budgets, it counts the requests of the last ten seconds, so that a
//! quiet hour builds up no credit. Counting a request is one addition to a worker's own cache line;
//! the windows are summed only after a failure. A window's memory is taken with its first count,
//! since most of many services are idle at most workers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::Moment;

/// The window over which requests and retries are counted.
pub(super) const WINDOW_S: u32 = 10;

/// Number of counters, so that workers rarely contend.
const SHARDS: usize = 16;

/// Number of seconds distinguished: a power of two above [`WINDOW_S`].
const SECONDS: usize = 16;

/// What a service allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetTerms {
    /// Retries per hundred requests.
    pub share_percent: u32,
    /// Retries per second in addition, the whole window's at once.
    pub floor_per_s: u32,
}

impl BudgetTerms {
    /// For responses whose status is retried: three in twenty requests, and two a second.
    pub const OF_RESPONSES: BudgetTerms = BudgetTerms { share_percent: 15, floor_per_s: 2 };
}

impl Default for BudgetTerms {
    /// One retry in five requests, and three a second.
    fn default() -> Self {
        BudgetTerms { share_percent: 20, floor_per_s: 3 }
    }
}

/// A service's requests and retries of the last ten seconds, shared by all workers. 272 bytes, and
/// 128 for each window in use.
#[derive(Debug, Default)]
pub struct RetryBudget {
    requests: [LazyWindow; SHARDS],
    retries: LazyWindow,
}

/// A window that is created with its first count.
#[derive(Debug, Default)]
struct LazyWindow(OnceLock<Box<Window>>);

impl LazyWindow {
    fn window(&self) -> &Window {
        self.0.get_or_init(Box::default)
    }

    fn sum(&self, second: u32) -> u64 {
        self.0.get().map_or(0, |window| window.sum(second))
    }
}

impl RetryBudget {
    /// Returns an unused budget.
    pub fn new() -> RetryBudget {
        RetryBudget::default()
    }

    /// Counts a request, once however often it is sent. `worker` selects a counter.
    pub fn note_request(&self, worker: usize, now: Moment) {
        self.requests[worker % SHARDS].window().add(second(now));
    }

    /// Takes one retry if there is one left. When workers compete for the last one, possibly none
    /// gets it, but never two.
    pub fn take(&self, terms: BudgetTerms, now: Moment) -> bool {
        let second = second(now);
        // Counted before it is compared, so that every competitor sees it.
        let retries = self.retries.window();
        retries.add(second);
        if retries.sum(second) <= self.allowed(terms, second) {
            return true;
        }
        retries.undo(second);
        false
    }

    /// Returns the retries made in the last ten seconds, and how many are allowed at this request
    /// rate.
    pub fn used(&self, terms: BudgetTerms, now: Moment) -> (u64, u64) {
        let second = second(now);
        (self.retries.sum(second), self.allowed(terms, second))
    }

    fn allowed(&self, terms: BudgetTerms, second: u32) -> u64 {
        let requests: u64 = self.requests.iter().map(|shard| shard.sum(second)).sum();
        requests * u64::from(terms.share_percent) / 100
            + u64::from(terms.floor_per_s) * u64::from(WINDOW_S)
    }
}

/// Counts of the last seconds. A cell holds its second in the upper half and the count in the
/// lower, so that a new count replaces an old one in one step.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Window {
    cells: [AtomicU64; SECONDS],
}

impl Window {
    fn add(&self, second: u32) {
        let cell = &self.cells[second as usize % SECONDS];
        let mut current = cell.load(Relaxed);
        while of(current) < second {
            match cell.compare_exchange_weak(current, pack(second, 1), Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => current = now,
            }
        }
        // The cell holds this second, or one a whole round later: then this count is too late.
        if of(current) == second {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Takes back an [`Window::add`] of the same second.
    fn undo(&self, second: u32) {
        let cell = &self.cells[second as usize % SECONDS];
        let _ = cell.fetch_update(Relaxed, Relaxed, |current| {
            (of(current) == second && count(current) > 0).then(|| current - 1)
        });
    }

    /// Returns the count of the window that ends with `second`.
    fn sum(&self, second: u32) -> u64 {
        self.cells
            .iter()
            .map(|cell| cell.load(Relaxed))
            .filter(|&cell| of(cell) <= second && second - of(cell) < WINDOW_S)
            .map(count)
            .sum()
    }
}

/// Returns seconds since the process started; 1 is the first, so that an unused cell is older than
/// any.
fn second(now: Moment) -> u32 {
    u32::try_from(now.as_micros() / 1_000_000).unwrap_or(u32::MAX - 1) + 1
}

fn pack(second: u32, count: u32) -> u64 {
    u64::from(second) << 32 | u64::from(count)
}

fn of(cell: u64) -> u32 {
    (cell >> 32) as u32
}

fn count(cell: u64) -> u64 {
    cell & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: BudgetTerms = BudgetTerms { share_percent: 20, floor_per_s: 3 };

    fn at_ms(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_small_service_may_retry_every_request() {
        let budget = RetryBudget::new();
        for second in 0..100 {
            let now = at_ms(second * 1_000);
            budget.note_request(0, now);
            assert!(budget.take(TERMS, now), "at {second} s");
            assert!(budget.take(TERMS, now), "at {second} s");
        }
    }

    #[test]
    fn a_failing_service_gets_its_share_and_the_floor_over_every_window() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let budget = RetryBudget::new();
        let (mut sent, mut retried) = (Vec::new(), Vec::new());
        let mut now_us = rng.u64(0..100_000_000);
        // Every request fails, and its retry too; the rate varies at random.
        let mut gap_us = 1_000;
        for n in 0..60_000 {
            if n % 5_000 == 0 {
                gap_us = *rng.choice(&[200, 1_000, 5_000, 20_000]).unwrap();
            }
            now_us += rng.u64(0..2 * gap_us);
            let now = Moment::from_micros(now_us);
            budget.note_request(rng.usize(..), now);
            sent.push(now_us);
            for _ in 0..2 {
                if budget.take(TERMS, now) {
                    retried.push(now_us);
                }
            }
        }
        let within = |times: &[u64], from: u64, to: u64| {
            times.partition_point(|&t| t < to) - times.partition_point(|&t| t < from)
        };
        for &end in retried.iter().step_by(97) {
            // As many as were allowed when the last of them was taken: its window began on a
            // second.
            let from = (end / 1_000_000 * 1_000_000).saturating_sub(9_000_000);
            let (retries, requests) = (within(&retried, from, end), within(&sent, from, end + 1));
            assert!(retries <= requests / 5 + 30, "{retries} of {requests}, seed {seed}");
        }
        let share = retried.len() as f64 / sent.len() as f64;
        assert!((0.15..0.75).contains(&share), "{share}, seed {seed}");
    }

    #[test]
    fn nothing_is_saved_up_and_nothing_is_owed_for_longer_than_the_window() {
        let budget = RetryBudget::new();
        for _ in 0..10_000 {
            budget.note_request(1, at_ms(500));
        }
        assert_eq!(budget.used(TERMS, at_ms(9_999)), (0, 2_030));
        assert_eq!(budget.used(TERMS, at_ms(10_000)), (0, 30));
        for _ in 0..30 {
            assert!(budget.take(TERMS, at_ms(10_000)));
        }
        assert!(!budget.take(TERMS, at_ms(19_999)));
        assert!(budget.take(TERMS, at_ms(20_000)));
    }

    #[test]
    fn workers_together_never_take_more_than_one_would() {
        let budget = RetryBudget::new();
        let now = at_ms(1_000);
        (0..1_000).for_each(|n| budget.note_request(n, now));
        let taken: usize = std::thread::scope(|scope| {
            let worker = || (0..1_000).filter(|_| budget.take(TERMS, now)).count();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert!((200..=230).contains(&taken), "{taken}");
        assert_eq!(budget.used(TERMS, now).0, taken as u64);
    }
}

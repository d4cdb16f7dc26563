//! The clocks, read in one place: I/O code calls these and passes the result on as an argument.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Moment;
use rustix::time::{ClockId, clock_gettime};

/// The first reading, in nanoseconds since the kernel's origin.
static ORIGIN_NANOS: OnceLock<u64> = OnceLock::new();

thread_local! {
    /// What [`now`] returns within [`held`].
    static HELD: Cell<Option<Moment>> = const { Cell::new(None) };
}

/// Returns the monotonic clock, in microseconds since the first call in this process (which returns
/// [`Moment::ZERO`]). Call it once early in `main`, so that the origin is the program's start.
pub fn now() -> Moment {
    HELD.get().unwrap_or_else(read)
}

fn read() -> Moment {
    Moment::from_micros(nanos() / 1_000)
}

/// Runs `work`, within which [`now`] always returns the time at which it began. For short work that
/// needs the time often, such as one poll of a request's future: a reading takes 20 ns or more.
pub fn held<T>(work: impl FnOnce() -> T) -> T {
    /// Lets the clock go on, also if the work panics.
    struct Held(Option<Moment>);
    impl Drop for Held {
        fn drop(&mut self) {
            HELD.set(self.0);
        }
    }
    let _held = Held(HELD.replace(Some(read())));
    work()
}

/// Returns the monotonic clock in nanoseconds since the first call of [`now`]: for durations that
/// need a resolution below a microsecond.
pub fn nanos() -> u64 {
    // Read many times for each request, so without the arithmetic of `Instant` and `Duration`.
    let time = clock_gettime(ClockId::Monotonic);
    let now = (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64;
    now.saturating_sub(*ORIGIN_NANOS.get_or_init(|| now))
}

/// Returns the CPU time of the calling thread, user and system together.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the wall clock, as time since 1970-01-01 00:00 UTC. It may jump in either direction: for
/// labels, logs and the Date field, never for measuring.
pub fn wall() -> Duration {
    #[allow(clippy::disallowed_methods, reason = "the replacement that the ban names")]
    let now = SystemTime::now();
    // A clock set before 1970 is an operator's error that must not stop traffic.
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the time since the machine booted, including sleep: the time base of the kernel log and
/// of process start times.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the ticks per second (`USER_HZ`), in which /proc counts CPU time.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_never_runs_backwards_and_counts_from_the_first_call() {
        let first = now();
        let second = now();
        assert!(second >= first);
        assert!(second.as_micros() < 3_600_000_000, "counted from this process's start");
    }

    #[test]
    fn the_clock_stands_still_while_it_is_held() {
        let wait_for_a_change = |from: Moment| {
            while Moment::from_micros(nanos() / 1_000) == from {}
        };
        let before = now();
        let (first, second, nested) = held(|| {
            let first = now();
            wait_for_a_change(first);
            (first, now(), held(now))
        });
        assert!(before <= first && first == second && nested > second);
        assert!(std::panic::catch_unwind(|| held(|| panic!())).is_err());
        let later = now();
        wait_for_a_change(later);
        assert!(now() > later && later > second);
    }

    #[test]
    fn nanoseconds_are_of_the_same_origin() {
        let micros = now().as_micros();
        let nanos = nanos();
        assert!(nanos / 1_000 >= micros, "{nanos} ns after {micros} us");
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let before = thread_cpu();
        let sum = (0..1_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        assert!(thread_cpu() > before, "{sum}");
    }

    #[test]
    fn wall_is_after_this_was_written() {
        assert!(wall() > Duration::from_secs(1_760_000_000));
    }
}

//! Two kinds of waiting that must not be confused: for a condition, and for a measurement.

use std::time::{Duration, Instant};

/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until `condition` yields something, at most `bound`; fails the test after that, naming
/// `what` was waited for.
pub fn until<T>(what: &str, bound: Duration, condition: impl FnMut() -> Option<T>) -> T {
    match within(bound, condition) {
        Some(value) => value,
        None => panic!("waited {bound:?} for {what}"),
    }
}

/// Like [`until`], for a condition that may as well not come true.
pub fn within<T>(bound: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + bound;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Lets a measurement run for `stretch`. What is looked at afterwards is a quantity over that
/// time; for anything that merely has to have happened, use [`until`].
pub fn measure_for(stretch: Duration) {
    std::thread::sleep(stretch);
}

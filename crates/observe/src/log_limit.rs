//! Limits how many lines of one kind are logged: the first few lines of a window pass, the rest are
//! counted, and their number is logged when the window ends. Pure; the caller provides the time.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use model::Moment;

/// Maximum lines of one kind per window.
pub const LINES_MAX: u32 = 10;
/// Length of a window. It starts with the first line.
pub const WINDOW: Duration = Duration::from_secs(10);

/// The windows of all kinds (`K`: the place in the program that writes a line, so there are few).
#[derive(Debug)]
pub struct LogLimit<K> {
    windows: HashMap<K, Window>,
}

#[derive(Debug)]
struct Window {
    ends: Moment,
    lines: u32,
    held: u64,
    /// The text of the first suppressed line.
    example: String,
}

/// Suppressed lines of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<K> {
    /// Which kind.
    pub kind: K,
    /// How many.
    pub lines: u64,
    /// The text of the first of them.
    pub example: String,
}

impl<K> Default for LogLimit<K> {
    fn default() -> LogLimit<K> {
        LogLimit { windows: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone> LogLimit<K> {
    /// Returns whether a line of this kind is logged now. `example` is called for its text if it is
    /// the first of its window that is not. An expired window is closed by [`LogLimit::take_due`]
    /// alone, so that no count is lost.
    pub fn admit(&mut self, kind: &K, now: Moment, example: impl FnOnce() -> String) -> bool {
        let Some(window) = self.windows.get_mut(kind) else {
            let window = Window { ends: now + WINDOW, lines: 1, held: 0, example: String::new() };
            self.windows.insert(kind.clone(), window);
            return true;
        };
        if window.held == 0 && now >= window.ends {
            (window.ends, window.lines) = (now + WINDOW, 0);
        }
        if window.lines < LINES_MAX {
            window.lines += 1;
            return true;
        }
        if window.held == 0 {
            window.example = example();
        }
        window.held += 1;
        false
    }

    /// Closes the windows that have expired at `now`, or all of them if `now` is `None`; returns
    /// what was suppressed in them.
    pub fn take_due(&mut self, now: Option<Moment>) -> Vec<Held<K>> {
        let is_over = |window: &Window| now.is_none_or(|now| now >= window.ends);
        let over = self.windows.extract_if(|_, window| is_over(window));
        over.filter(|(_, window)| window.held > 0)
            .map(|(kind, Window { held, example, .. })| Held { kind, lines: held, example })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn the_first_lines_pass_and_the_rest_are_counted() {
        let mut limit = LogLimit::default();
        let passed = (0..10_000).filter(|n| limit.admit(&"ping", at(1), || format!("line {n}")));
        assert_eq!(passed.count(), LINES_MAX as usize);
        // Another kind has its own window.
        assert!(limit.admit(&"reset", at(1), String::new));
        assert_eq!(limit.take_due(Some(at(10))), []);
        let held = Held { kind: "ping", lines: 9_990, example: "line 10".to_owned() };
        assert_eq!(limit.take_due(Some(at(11))), [held]);
        assert!(limit.admit(&"ping", at(11), String::new), "a new window");
    }

    #[test]
    fn seldom_lines_all_pass_and_no_number_is_lost() {
        let mut limit = LogLimit::default();
        for n in 0..1000 {
            assert!(limit.admit(&(), at(n * 2), String::new));
        }
        let mut limit = LogLimit::default();
        let mut passed = 0;
        // Expired windows are not collected, then all of them at the end.
        for n in 0..100 {
            passed += u64::from(limit.admit(&(), at(n / 2), String::new));
        }
        let held: u64 = limit.take_due(None).iter().map(|held| held.lines).sum();
        assert_eq!((passed, held), (u64::from(LINES_MAX), 90));
        assert_eq!(limit.take_due(None), []);
    }
}

//! What has been learned about a server's idle timeout, as shown to people.

use std::fmt;
use std::time::Duration;

/// How a server treats idle connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Habit {
    /// Not known: it has not been seen to close any, or not often enough.
    #[default]
    Unknown,
    /// Has not been seen to close any, and promises not to before this age.
    Promises {
        /// The shortest `Keep-Alive: timeout=`.
        timeout: Duration,
    },
    /// Closes them at this age.
    ClosesAt {
        /// The middle of the range on which the closes agree.
        age: Duration,
    },
    /// Closes them right after a response without announcing it.
    ClosesAtOnce,
    /// Closes them at ages that differ too much for a timeout.
    Erratic {
        /// Youngest of those remembered.
        youngest: Duration,
        /// Oldest of those remembered.
        oldest: Duration,
    },
}

model::word_of! { Habit {
    Unknown = "unknown",
    Promises { .. } = "promises",
    ClosesAt { .. } = "closes_at",
    ClosesAtOnce = "closes_at_once",
    Erratic { .. } = "erratic",
} }

impl Habit {
    /// Returns whether the difference to `other` is worth logging.
    pub(super) fn differs(self, other: Habit) -> bool {
        match (self, other) {
            (Habit::ClosesAt { age: a }, Habit::ClosesAt { age: b })
            | (Habit::Promises { timeout: a }, Habit::Promises { timeout: b }) => {
                a.abs_diff(b) > (a.min(b) / 4).max(Duration::from_millis(100))
            }
            (Habit::Erratic { .. }, Habit::Erratic { .. }) => false,
            _ => self != other,
        }
    }
}

/// What is known about a server, and the resulting limits. Displays as a sentence for the log:
/// `closes idle connections at 5.0 s; pool kept to 4.0 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The learned behaviour.
    pub habit: Habit,
    /// How long the pool keeps a connection; zero: not at all.
    pub kept: Duration,
    /// Up to which idle age a non-idempotent request is sent on a pooled connection, if no promise
    /// allows more.
    pub seen_open: Duration,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.habit {
            Habit::Unknown => f.write_str("not known to close idle connections")?,
            Habit::Promises { timeout } => {
                write!(f, "promises to keep idle connections for {}", Age(timeout))?;
            }
            Habit::ClosesAt { age } => write!(f, "closes idle connections at {}", Age(age))?,
            Habit::ClosesAtOnce => {
                f.write_str("closes connections after its responses without announcing it")?;
            }
            Habit::Erratic { youngest, oldest } => {
                let (youngest, oldest) = (Age(youngest), Age(oldest));
                write!(f, "closes idle connections at any age ({youngest} to {oldest})")?;
            }
        }
        if self.kept.is_zero() {
            return f.write_str("; none are kept");
        }
        write!(f, "; pool kept to {}", Age(self.kept))?;
        if let Habit::Erratic { .. } = self.habit {
            f.write_str(", for requests that may be repeated")?;
        }
        Ok(())
    }
}

/// Displays `4.0 s`, below a second `80 ms`.
struct Age(Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_millis(995) {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let s = Duration::from_secs_f64;
        for (habit, kept, text) in [
            (
                Habit::ClosesAt { age: s(4.98) },
                3.96,
                "closes idle connections at 5.0 s; pool kept to 4.0 s",
            ),
            (
                Habit::Promises { timeout: s(5.0) },
                4.0,
                "promises to keep idle connections for 5.0 s; pool kept to 4.0 s",
            ),
            (
                Habit::ClosesAtOnce,
                0.0,
                "closes connections after its responses without announcing it; none are kept",
            ),
            (
                Habit::Erratic { youngest: s(0.41), oldest: s(3.1) },
                0.8,
                "closes idle connections at any age (410 ms to 3.1 s); \
                 pool kept to 800 ms, for requests that may be repeated",
            ),
        ] {
            let view = View { habit, kept: s(kept), seen_open: Duration::ZERO };
            assert_eq!(view.to_string(), text);
        }
    }

    #[test]
    fn only_material_changes_are_reported_again() {
        let at = |age| Habit::ClosesAt { age: Duration::from_secs_f64(age) };
        let erratic = |youngest| Habit::Erratic {
            youngest: Duration::from_secs_f64(youngest),
            oldest: Duration::from_secs(5),
        };
        assert!(!at(5.0).differs(at(4.8)));
        assert!(!at(0.2).differs(at(0.12)));
        assert!(at(5.0).differs(at(2.0)));
        assert!(at(5.0).differs(Habit::Unknown));
        assert!(!erratic(1.0).differs(erratic(0.1)));
        assert!(erratic(1.0).differs(at(1.0)));
    }
}

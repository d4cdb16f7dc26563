//! Bounds how many events of one kind are reported: a cluster can have thousands of objects with the same problem.
//! Pure: time is an argument.

use std::collections::HashMap;
use std::mem::Discriminant;
use std::time::Duration;

use model::Moment;

use crate::event::Event;

/// At most this many events of one kind are reported in [`WINDOW`].
const COUNT_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// Counts events by kind.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    windows: HashMap<Discriminant<Event>, Window>,
}

#[derive(Debug)]
struct Window {
    start: Moment,
    count: u32,
}

impl Limit {
    /// Returns what is reported in place of an event: itself, that further ones are not reported, or nothing.
    pub(crate) fn admit(&mut self, event: Event, now: Moment) -> Option<Event> {
        let kind = std::mem::discriminant(&event);
        let window = self.windows.entry(kind).or_insert(Window { start: now, count: 0 });
        if now.since(window.start) >= WINDOW {
            *window = Window { start: now, count: 0 };
        }
        window.count = window.count.saturating_add(1);
        match window.count {
            ..COUNT_MAX => Some(event),
            COUNT_MAX => Some(Event::More { latest: event.to_string() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_limit() {
        let mut limit = Limit::default();
        let event = || Event::Permitted { what: "list secrets".to_owned() };
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        for second in 1..COUNT_MAX {
            assert_eq!(limit.admit(event(), at(u64::from(second))), Some(event()));
        }
        let more = limit.admit(event(), at(30));
        assert!(matches!(more, Some(Event::More { latest }) if latest == event().to_string()));
        assert_eq!(limit.admit(event(), at(59)), None);
        assert_eq!(limit.admit(Event::Connected, at(59)), Some(Event::Connected));
        assert_eq!(limit.admit(event(), at(61)), Some(event()));
    }
}

//! A worker's lines of exchanges that become traces, and how many of each cause become one.

use std::cell::RefCell;

use model::{Cause, Moment};

use crate::line_batch::{LineBatch, SpanSink};

/// What a worker sends to become traces.
pub(crate) struct SpanLines {
    pub(crate) batch: LineBatch<SpanSink>,
    of_second: RefCell<OfSecond>,
}

/// What was sent of each cause in a second.
struct OfSecond {
    second: u64,
    sent: [u32; Cause::ALL.len()],
}

impl OfSecond {
    fn new(second: u64) -> OfSecond {
        OfSecond { second, sent: [0; Cause::ALL.len()] }
    }
}

impl SpanLines {
    pub(crate) fn new(sink: SpanSink) -> SpanLines {
        SpanLines { batch: LineBatch::new(sink), of_second: RefCell::new(OfSecond::new(0)) }
    }

    /// Counts one more of a cause if fewer than `max` were sent in this second; returns whether it did.
    pub(crate) fn takes(&self, cause: Cause, max: u32, now: Moment) -> bool {
        let second = now.as_micros() / 1_000_000;
        let mut counts = self.of_second.borrow_mut();
        // Requests may be counted in another order than they ended.
        if second > counts.second {
            *counts = OfSecond::new(second);
        }
        let sent = &mut counts.sent[cause as usize];
        let has_room = *sent < max;
        *sent += u32::from(has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_cause_has_its_own_room_in_every_second() {
        let lines = SpanLines::new(Arc::new(|_| {}));
        let taken = |cause, at_ms| {
            (0..100).filter(|_| lines.takes(cause, 7, Moment::from_millis(at_ms))).count()
        };
        assert_eq!(taken(Cause::QueueFull, 1_000), 7);
        assert_eq!(taken(Cause::QueueFull, 1_999), 0);
        assert_eq!(taken(Cause::ConnectionRefused, 1_999), 7);
        assert_eq!(taken(Cause::QueueFull, 2_000), 7);
    }
}

//! Combines the seconds that the threads pass on: a second is complete when no thread can add to it
//! any more, however late. Pure.

use std::collections::VecDeque;

use super::recorder::Interval;
use super::worker::HandedOver;

/// Seconds that are not whole yet.
#[derive(Debug)]
pub(super) struct Gathered {
    open: VecDeque<Interval>,
    /// The first of them.
    next: u64,
    /// By thread: the first second of which it has handed over nothing; [`u64::MAX`]: it has ended.
    reached: Vec<u64>,
}

impl Gathered {
    pub(super) fn new(threads: usize) -> Gathered {
        Gathered { open: VecDeque::new(), next: 0, reached: vec![0; threads] }
    }

    /// Adds what a thread hands over.
    pub(super) fn add(&mut self, handed: &HandedOver) {
        if let Some(reached) = self.reached.get_mut(handed.thread) {
            *reached = handed.next.max(*reached);
        }
        // A thread's seconds come in order, so none is of one that was whole.
        let interval = &handed.interval;
        let at = interval.second.saturating_sub(self.next);
        while self.open.len() as u64 <= at {
            let second = self.next + self.open.len() as u64;
            self.open.push_back(Interval::new(second, interval.sources.len()));
        }
        if let Some(sum) = self.open.get_mut(at as usize) {
            sum.add(interval);
        }
    }

    /// The thread will hand over nothing more.
    pub(super) fn end(&mut self, thread: usize) {
        if let Some(reached) = self.reached.get_mut(thread) {
            *reached = u64::MAX;
        }
    }

    /// Seconds that have become whole, in order.
    pub(super) fn take(&mut self) -> Vec<Interval> {
        let until = self.reached.iter().copied().min().unwrap_or(u64::MAX);
        let count = until.saturating_sub(self.next).min(self.open.len() as u64);
        self.next += count;
        self.open.drain(..count as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(thread: usize, second: u64, next: u64, started: u64) -> HandedOver {
        let mut interval = Interval::new(second, 1);
        interval.counts.started = started;
        HandedOver { thread, next, interval }
    }

    /// Seconds and how many requests began in each.
    fn started(gathered: &mut Gathered) -> Vec<(u64, u64)> {
        gathered.take().iter().map(|whole| (whole.second, whole.counts.started)).collect()
    }

    #[test]
    fn what_a_thread_hands_over_late_counts_where_it_belongs() {
        let mut gathered = Gathered::new(2);
        for second in 0..5 {
            gathered.add(&handed(0, second, second + 1, 100));
        }
        assert_eq!(started(&mut gathered), [], "the other may still have something");
        // It stood still until the fourth second.
        gathered.add(&handed(1, 0, 4, 7));
        assert_eq!(started(&mut gathered), [(0, 107), (1, 100), (2, 100), (3, 100)]);
        gathered.add(&handed(1, 4, 5, 50));
        assert_eq!(started(&mut gathered), [(4, 150)]);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_waited_for() {
        let mut gathered = Gathered::new(2);
        gathered.end(1);
        gathered.add(&handed(0, 0, 1, 3));
        gathered.add(&handed(0, 2, 3, 4));
        assert_eq!(started(&mut gathered), [(0, 3), (1, 0), (2, 4)]);
        gathered.end(0);
        assert_eq!(started(&mut gathered), []);
    }
}

//! The server's workers: a limited number of concurrent requests, the others in order of arrival.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Moment;
use tokio::sync::{Semaphore, SemaphorePermit};

/// All workers of one server, with the time that each has been busy.
#[derive(Debug)]
pub(super) struct Slots {
    /// Tokio's semaphore is fair: first come, first served. `None`: no limit.
    places: Option<Semaphore>,
    workers: Mutex<Workers>,
}

#[derive(Debug, Default)]
struct Workers {
    /// Numbers of those who are free; the lowest is taken.
    free: Vec<usize>,
    /// Finished work, by number; one entry in all when there is no limit.
    busy: Vec<Duration>,
    /// Begun work, by number.
    since: Vec<Option<Moment>>,
}

impl Slots {
    pub(super) fn new(count: Option<usize>) -> Slots {
        let listed = count.unwrap_or(0);
        Slots {
            places: count.map(Semaphore::new),
            workers: Mutex::new(Workers {
                free: (0..listed).rev().collect(),
                busy: vec![Duration::ZERO; listed.max(1)],
                since: vec![None; listed],
            }),
        }
    }

    /// Waits for a free worker and begins.
    pub(super) async fn begin(&self) -> Slot<'_> {
        let permit = match &self.places {
            // The semaphore is never closed, so an error cannot come.
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        let since = os::clock::now();
        let mut workers = self.workers();
        let number = permit.as_ref().and_then(|_| workers.free.pop());
        if let Some(number) = number {
            workers.since[number] = Some(since);
        }
        Slot { slots: self, number, since, _permit: permit }
    }

    /// Time spent working, by worker, with the work that is going on; one sum in all when there is
    /// no limit (of finished work then).
    pub(super) fn busy(&self, now: Moment) -> Vec<Duration> {
        let workers = self.workers();
        let going_on = workers.since.iter().map(|since| since.map_or(Duration::ZERO, |s| now - s));
        let going_on = going_on.chain(std::iter::repeat(Duration::ZERO));
        workers.busy.iter().zip(going_on).map(|(&busy, more)| busy + more).collect()
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker at work; free again when dropped.
pub(super) struct Slot<'a> {
    slots: &'a Slots,
    number: Option<usize>,
    since: Moment,
    /// Given back after the number, so that the next request finds one.
    _permit: Option<SemaphorePermit<'a>>,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let worked = os::clock::now() - self.since;
        let mut workers = self.slots.workers();
        workers.busy[self.number.unwrap_or(0)] += worked;
        if let Some(number) = self.number {
            workers.since[number] = None;
            workers.free.push(number);
            workers.free.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test]
    async fn those_who_wait_are_served_in_order_and_never_more_than_the_count() {
        let slots = Slots::new(Some(2));
        let order = RefCell::new(Vec::new());
        let first = slots.begin().await;
        let second = slots.begin().await;
        assert_eq!((first.number, second.number), (Some(0), Some(1)));
        let waiter = |name| {
            let (slots, order) = (&slots, &order);
            async move {
                let slot = slots.begin().await;
                order.borrow_mut().push(name);
                drop(slot);
            }
        };
        let release = async {
            tokio::task::yield_now().await;
            assert!(order.borrow().is_empty(), "both workers are busy");
            drop(second);
        };
        tokio::join!(waiter('a'), waiter('b'), waiter('c'), release);
        assert_eq!(*order.borrow(), ['a', 'b', 'c']);
        drop(first);
        assert_eq!(slots.workers().free, [1, 0]);
    }

    #[tokio::test]
    async fn without_a_limit_all_work_at_once_and_time_is_summed() {
        let slots = Slots::new(None);
        let all = [slots.begin().await, slots.begin().await, slots.begin().await];
        assert!(all.iter().all(|slot| slot.number.is_none()));
        drop(all);
        assert_eq!(slots.busy(os::clock::now()).len(), 1);
    }

    #[tokio::test]
    async fn work_that_goes_on_counts_as_busy() {
        let slots = Slots::new(Some(2));
        let slot = slots.begin().await;
        let later = slot.since + Duration::from_secs(1);
        assert_eq!(slots.busy(later), [Duration::from_secs(1), Duration::ZERO]);
    }
}

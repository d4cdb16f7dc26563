//! Precise sleeps: tokio's timer counts in milliseconds and rounds up, which is an error of a
//! percent for a work time of 100 ms. One kernel timer serves all sleepers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};
use std::time::Duration;

use model::Moment;
use os::timer::Timer;
use tokio::io::unix::AsyncFd;

/// Everyone on this thread who waits.
pub(super) struct Pauses {
    timer: AsyncFd<Timer>,
    /// By when they are due; the number tells those apart who are due together.
    waiting: RefCell<BTreeMap<(Moment, u64), Waker>>,
    begun: Cell<u64>,
}

impl Pauses {
    /// Returns a list without waiters. Must be called within a runtime.
    pub(super) fn new() -> io::Result<Pauses> {
        let timer = transport::watched(Timer::new()?)?;
        Ok(Pauses { timer, waiting: RefCell::default(), begun: Cell::new(0) })
    }

    /// Waits for so long, if [`Pauses::run`] is polled meanwhile.
    pub(super) async fn wait(&self, time: Duration) {
        let until = os::clock::now() + time;
        self.begun.set(self.begun.get() + 1);
        let place = Place { pauses: self, key: (until, self.begun.get()) };
        poll_fn(|cx| {
            if os::clock::now() >= until {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            waiting.insert(place.key, cx.waker().clone());
            if waiting.first_key_value().is_some_and(|(first, _)| *first == place.key) {
                drop(waiting);
                self.set(until);
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes those whose time has come, until it is dropped.
    ///
    /// # Errors
    /// When the kernel's timer breaks.
    pub(super) async fn run(&self) -> io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            ready.clear_ready();
            drop(ready);
            let now = os::clock::now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry() {
                if first.key().0 > now {
                    break;
                }
                first.remove().wake();
            }
            let next = waiting.first_key_value().map(|(&(until, _), _)| until);
            drop(waiting);
            if let Some(until) = next {
                self.set(until);
            }
        }
    }

    /// Has the timer ring then.
    fn set(&self, until: Moment) {
        // The clock counts whole microseconds, so that one more makes sure that the time has come.
        // A valid timer refuses no time that is not negative.
        let _ = self.timer.get_ref().set(until.since(os::clock::now()) + Duration::from_micros(1));
    }
}

/// A waiter; removed when dropped.
struct Place<'a> {
    pauses: &'a Pauses,
    key: (Moment, u64),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pauses.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake};

    use super::*;

    async fn during<T>(client: impl AsyncFnOnce(&Pauses) -> T) -> T {
        let pauses = Pauses::new().unwrap();
        tokio::select! {
            ended = pauses.run() => unreachable!("{ended:?}"),
            result = client(&pauses) => result,
        }
    }

    #[tokio::test]
    async fn nobody_is_woken_early() {
        during(async |pauses| {
            for micros in [1, 300, 1_000, 1_500, 2_500, 4_200] {
                let time = Duration::from_micros(micros);
                for _ in 0..10 {
                    let begun = os::clock::nanos();
                    pauses.wait(time).await;
                    let took = Duration::from_nanos(os::clock::nanos() - begun);
                    assert!(took + Duration::from_micros(1) >= time, "{took:?} of {time:?}");
                }
            }
        })
        .await;
    }

    /// Notes its number when it is woken.
    struct Numbered(u64, Arc<Mutex<Vec<u64>>>);

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// Who is polled first, of several that were woken together, is up to the runtime: a thread that stalls
    /// wakes all of them together.
    #[tokio::test]
    async fn the_order_is_that_of_the_times_and_who_gives_up_is_forgotten() {
        during(async |pauses| {
            let woken = Arc::<Mutex<Vec<u64>>>::default();
            let begun = |millis| {
                let mut waiting = Box::pin(pauses.wait(Duration::from_millis(millis)));
                let waker = Waker::from(Arc::new(Numbered(millis, Arc::clone(&woken))));
                assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                waiting
            };
            let gone = begun(100);
            let waiting = [300, 200, 400].map(begun);
            drop(gone);
            pauses.wait(Duration::from_millis(450)).await;
            assert_eq!(*woken.lock().unwrap(), [200, 300, 400]);
            drop(waiting);
            assert!(pauses.waiting.borrow().is_empty());
        })
        .await;
    }
}

//! Bounds requests to the agent: in time, and when something else is wanted.

use std::time::Duration;

use tokio::sync::watch;

use super::wanted::Wanted;

/// How long a report may take to end when something else is wanted. A request that is dropped may still reach the
/// agent later.
const GRACE: Duration = Duration::from_millis(500);

/// How long a process that is replaced waits for requests in flight, and for removals.
pub(crate) const HANDED_OVER_MAX: Duration = Duration::from_secs(1);

/// How work has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended<T> {
    /// It is done.
    Done(T),
    /// It took too long.
    Late,
    /// Something else is wanted, and it did not end in time.
    Dropped,
}

/// Returns how long a report may take to end when this is wanted.
pub(super) fn grace(wanted: &Wanted) -> Duration {
    match wanted {
        Wanted::Listed(..) | Wanted::Gone(_) => GRACE,
        Wanted::HandedOver => HANDED_OVER_MAX,
    }
}

/// Works for `max` at most, or for `grace` if something else is wanted; `wanted` still shows that then.
pub(super) async fn bounded<T>(
    work: impl Future<Output = T>,
    max: Duration,
    grace: impl FnOnce(&Wanted) -> Duration,
    wanted: &mut watch::Receiver<Wanted>,
) -> Ended<T> {
    let mut work = std::pin::pin!(work);
    let changed = tokio::select! {
        biased;
        done = tokio::time::timeout(max, &mut work) => {
            return done.map_or(Ended::Late, Ended::Done);
        }
        changed = wanted.changed() => changed,
    };
    let grace = grace(&wanted.borrow());
    let done = tokio::time::timeout(grace, work).await;
    if changed.is_ok() {
        wanted.mark_changed();
    }
    done.map_or(Ended::Dropped, Ended::Done)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::testing::{DEADLINE, block_on};

    #[test]
    fn work_is_dropped_when_something_else_is_wanted() {
        block_on(async {
            let (sender, mut wanted) = watch::channel(Wanted::Gone(Vec::new()));
            let short = Duration::from_millis(10);
            let done = bounded(ready(7), DEADLINE, grace, &mut wanted).await;
            assert_eq!(done, Ended::Done(7));
            let late = bounded(pending::<u8>(), short, grace, &mut wanted).await;
            assert_eq!(late, Ended::Late);
            sender.send_replace(Wanted::HandedOver);
            let done = bounded(tokio::time::sleep(short), DEADLINE, grace, &mut wanted).await;
            assert_eq!(done, Ended::Done(()));
            assert!(wanted.has_changed().unwrap(), "the caller sees it, too");
            let dropped = bounded(pending::<u8>(), DEADLINE, |_| short, &mut wanted).await;
            assert_eq!(dropped, Ended::Dropped);
        });
    }
}

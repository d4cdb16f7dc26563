//! The history of traffic: reads all counters once a second, on a thread of its own, and keeps what
//! `history` makes of them for the API and for the process that takes over.

mod readings;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use history::History;
use model::Moment;

use crate::background::Background;

/// A process that has run for longer has counted what its first reading must not show as new.
const BEGUN_MAX: Duration = Duration::from_secs(3);

/// The sources of the counters.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) registry: Arc<decide::Registry>,
    pub(crate) counters: Arc<observe::Registry>,
    pub(crate) control: Arc<control::Status>,
}

/// The history, which the thread writes and the API reads.
pub(crate) type Shared = Arc<Mutex<History>>;

/// Returns the history that a predecessor has handed over, or an empty one.
pub(crate) fn begin(handed: Option<&[u8]>) -> Shared {
    let mut history = History::new(0);
    let restored = handed.map(|bytes| history.restore(bytes, second()));
    if let Some(Err(error)) = restored {
        tracing::warn!("the history of traffic begins again: {error}");
    }
    Arc::new(Mutex::new(history))
}

/// Locks it. The thread that reads the counters waits meanwhile, so not for long.
pub(crate) fn lock(history: &Shared) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread. Whether it keeps anything depends on the configuration in force. `looks` is called
/// after each second's readings.
pub(crate) fn start(
    sources: Sources,
    history: Shared,
    looks: impl FnMut(&Shared) + Send + 'static,
) -> io::Result<Background> {
    Background::start("weir-history", move |stopped| run(&sources, &history, stopped, looks))
}

fn run(
    sources: &Sources,
    history: &Shared,
    stopped: &Receiver<()>,
    mut looks: impl FnMut(&Shared),
) {
    let mut before = os::clock::now();
    loop {
        // Just after the next whole second of the machine's clock, which all its processes share.
        let into_second = Duration::from_nanos(os::clock::since_boot().subsec_nanos().into());
        let rest = Duration::from_secs(1).saturating_sub(into_second) + Duration::from_millis(1);
        match stopped.recv_timeout(rest) {
            Err(RecvTimeoutError::Timeout) => {
                before = read(sources, history, before);
                looks(history);
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Adds a second's readings. Returns when they were taken.
fn read(sources: &Sources, history: &Shared, before: Moment) -> Moment {
    let (now, second) = (os::clock::now(), second());
    let elapsed_ms = u32::try_from(now.since(before).as_millis()).unwrap_or(u32::MAX);
    let published = sources.registry.load_full();
    let memory_max = usize::try_from(published.snapshot.history_memory_max_bytes);
    let (totals, probed) = (sources.counters.totals(), sources.control.probed());
    let mut history = lock(history);
    if memory_max == Ok(0) {
        if history.second() > 0 {
            *history = History::new(0);
        }
        return now;
    }
    history.set_memory_max(memory_max.unwrap_or(usize::MAX));
    if history.second() == 0 && now.since(Moment::ZERO) > BEGUN_MAX {
        // It was just enabled: what was counted before did not happen in this second.
        history.begin_with_baseline(second);
    } else if !history.begin(second, elapsed_ms) {
        return before;
    }
    readings::add(&mut history, &published, &totals, &probed);
    now
}

/// Returns the second of the clock that all processes of this machine share.
fn second() -> u64 {
    os::clock::since_boot().as_secs()
}

//! The events of `/api/v1/stream`, which all streams share: each is made at most once a second.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Maximum number of streams. Each holds one of the listener's connections.
pub(crate) const STREAMS_MAX: usize = 8;

/// How long after the start of a second the answers are made: the counters have been read by then.
pub(crate) const READ_BY: Duration = Duration::from_millis(50);

model::words! {
    /// What can be streamed: the answers of the paths that end with these words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Topic {
        /// Rates and latencies.
        Traffic = "traffic",
        /// The process.
        Status = "status",
        /// Services with their servers.
        Services = "services",
        /// Findings of the doctor.
        Findings = "findings",
        /// Receipts of reloads.
        Reloads = "reloads",
        /// What has changed.
        Changes = "changes",
    }
}

/// The latest event of each topic, and places for streams.
pub(crate) struct Feed {
    latest: [Mutex<Latest>; Topic::ALL.len()],
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Latest {
    /// The second in which the event was made.
    second: u64,
    /// Grows when the event differs from the one before; 0: there is none yet.
    version: u64,
    event: Bytes,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed { latest: Default::default(), places: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }

    /// Returns a place for one more stream, held until it is dropped.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Returns a topic's event of this second, which begins with the reading of the counters, and the event's
    /// version, which is at least 1. `make` is called if it has not been made in this second.
    pub(crate) async fn latest<F: Future<Output = Bytes>>(
        &self,
        topic: Topic,
        make: impl FnOnce() -> F,
    ) -> (u64, Bytes) {
        let second = os::clock::since_boot().saturating_sub(READ_BY).as_secs();
        let mut latest = self.latest[topic as usize].lock().await;
        if latest.version == 0 || latest.second != second {
            let event = make().await;
            latest.second = second;
            if event != latest.event {
                latest.version += 1;
                latest.event = event;
            }
        }
        (latest.version, latest.event.clone())
    }
}

//! The server's application: its configured behaviour and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use wire::pattern::pattern;

use crate::slots::Slots;
use crate::stats::{Counters, Stats};
use crate::work::Work;

/// What a sample server is like.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSpec {
    /// Its name, for answers and counts.
    pub name: String,
    /// The zone it stands in.
    pub zone: Option<String>,
    /// Mean work time of a request.
    pub work: Duration,
    /// Coefficient of variation of the work time (standard deviation over mean); lognormal. 0: all
    /// the same.
    pub cv: f64,
    /// Seed for the drawing of work times.
    pub seed: u64,
    /// Requests worked on at once; others wait in order of their arrival, as before pre-forked
    /// workers. `None`: no limit.
    pub slots: Option<usize>,
    /// Each slot is a worker of one thread, as uWSGI's and gunicorn's are by default: it accepts a
    /// connection when it is free, and is taken until that is closed. Requests that arrive
    /// meanwhile wait in the kernel's accept queue. Without `slots`: one worker.
    pub workers_accept: bool,
    /// Requests on one connection, after which it is closed; `None`: no limit.
    pub requests_per_connection_max: Option<u64>,
    /// The longest silence on a connection, between requests or within one; then it is closed.
    pub silence_max: Duration,
    /// What it answers.
    pub payload: Payload,
}

/// The body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// So many bytes of text, the same each time.
    Text {
        /// How many.
        size_bytes: usize,
    },
    /// A short object: request id, server, zone.
    Json,
}

impl Default for SampleSpec {
    /// 100 ms of work for a short JSON, without a limit.
    fn default() -> SampleSpec {
        SampleSpec {
            name: "sample".to_owned(),
            zone: None,
            work: Duration::from_millis(100),
            cv: 0.0,
            seed: 1,
            slots: None,
            workers_accept: false,
            requests_per_connection_max: None,
            silence_max: Duration::from_secs(75),
            payload: Payload::Json,
        }
    }
}

impl SampleSpec {
    /// Workers, where there is a limit.
    pub(crate) fn workers(&self) -> Option<usize> {
        if self.workers_accept { Some(self.slots.unwrap_or(1)) } else { self.slots }
    }
}

/// A sample server's state, shared by its listeners and its observers.
#[derive(Debug)]
pub struct Sample {
    pub(crate) spec: SampleSpec,
    pub(crate) work: Work,
    pub(crate) slots: Slots,
    pub(crate) counters: Counters,
    /// What `/status` answers.
    status: AtomicU16,
    pub(crate) text: Vec<u8>,
}

impl Sample {
    /// A server that has seen nothing yet.
    pub fn new(spec: SampleSpec) -> Arc<Sample> {
        let text = match spec.payload {
            Payload::Text { size_bytes } => pattern(0, size_bytes),
            Payload::Json => Vec::new(),
        };
        Arc::new(Sample {
            work: Work::new(spec.work, spec.cv, spec.seed),
            slots: Slots::new(spec.workers()),
            counters: Counters::default(),
            status: AtomicU16::new(200),
            text,
            spec,
        })
    }

    /// As it was made.
    pub fn spec(&self) -> &SampleSpec {
        &self.spec
    }

    /// What it has counted so far, as `/status` tells it: a JSON object.
    pub fn status_json(&self) -> String {
        self.stats().to_json(&self.spec.name, self.spec.zone.as_deref())
    }

    /// What it has counted so far.
    pub fn stats(&self) -> Stats {
        self.counters.read(&self.slots)
    }

    /// What `/status` answers from now on.
    pub fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }
}

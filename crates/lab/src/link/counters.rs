//! Counters of a link, written by its thread, and a histogram of how late packets were.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::path::Reason;

/// The upper bound of the histogram: a minute, in nanoseconds.
const LATE_MAX_NS: u64 = 60_000_000_000;

/// Counts of one direction.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) packets: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) duplicated: AtomicU64,
    pub(super) held_back: AtomicU64,
    pub(super) opened: AtomicU64,
    cut: AtomicU64,
    throttled: AtomicU64,
    lost: AtomicU64,
    burst: AtomicU64,
    queue_full: AtomicU64,
    too_many: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// Counts of one direction at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that came to the link.
    pub packets: u64,
    /// Their bytes, from IP's header on.
    pub bytes: u64,
    /// Packets handed over at the other end, second copies included.
    pub delivered: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Packets held back, so that others passed them.
    pub held_back: u64,
    /// Packets that asked for a new connection.
    pub opened: u64,
    /// Dropped because the link was cut.
    pub cut: u64,
    /// New connections that the throttle dropped.
    pub throttled: u64,
    /// Lost by themselves.
    pub lost: u64,
    /// Lost in bursts.
    pub burst: u64,
    /// Dropped before the shaped link.
    pub queue_full: u64,
    /// Dropped because the lab's own queue was full, not by a setting.
    pub too_many: u64,
    /// Packets that the other end's kernel did not take.
    pub refused: u64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        // One thread writes.
        counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(super) fn dropped(&self, reason: Reason) {
        let counter = match reason {
            Reason::Cut => &self.cut,
            Reason::Throttled => &self.throttled,
            Reason::Lost => &self.lost,
            Reason::Burst => &self.burst,
            Reason::QueueFull => &self.queue_full,
            Reason::TooMany => &self.too_many,
        };
        Self::add(counter, 1);
    }

    pub(super) fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            packets: of(&self.packets),
            bytes: of(&self.bytes),
            delivered: of(&self.delivered),
            duplicated: of(&self.duplicated),
            held_back: of(&self.held_back),
            opened: of(&self.opened),
            cut: of(&self.cut),
            throttled: of(&self.throttled),
            lost: of(&self.lost),
            burst: of(&self.burst),
            queue_full: of(&self.queue_full),
            too_many: of(&self.too_many),
            refused: of(&self.refused),
        }
    }
}

/// How long after their time packets were handed over, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Packets that had a time to be handed over at.
    pub packets: u64,
    /// Half of them were not later than this, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
    /// CPU time of the link's thread, in milliseconds.
    pub cpu_ms: f64,
}

/// Where lateness is counted.
pub(super) struct Late(Option<Histogram<u64>>);

impl Late {
    pub(super) fn new() -> Late {
        Late(Histogram::new_with_max(LATE_MAX_NS, 3).ok())
    }

    pub(super) fn record(&mut self, late_ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(late_ns.max(1));
        }
    }

    pub(super) fn read(&self) -> Lateness {
        let Some(histogram) = &self.0 else { return Lateness::default() };
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Lateness {
            packets: histogram.len(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: histogram.max() as f64 / 1e6,
            cpu_ms: os::clock::thread_cpu().as_secs_f64() * 1e3,
        }
    }
}

//! What a sample server counts.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::slots::Slots;

/// Counts, live.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) connections_open: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) status_requests: AtomicU64,
    pub(super) body_bytes: AtomicU64,
    pub(super) bad_requests: AtomicU64,
    concurrent: AtomicU64,
    concurrent_max: AtomicU64,
}

impl Counters {
    /// Counts a request as present from here until the guard is dropped.
    pub(super) fn enter(&self) -> Present<'_> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let concurrent = self.concurrent.fetch_add(1, Ordering::Relaxed) + 1;
        self.concurrent_max.fetch_max(concurrent, Ordering::Relaxed);
        Present { counters: self, number }
    }

    pub(super) fn read(&self, slots: &Slots) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            connections: load(&self.connections),
            connections_open: load(&self.connections_open),
            requests: load(&self.requests),
            status_requests: load(&self.status_requests),
            body_bytes: load(&self.body_bytes),
            bad_requests: load(&self.bad_requests),
            concurrent: load(&self.concurrent),
            concurrent_max: load(&self.concurrent_max),
            busy: slots.busy(os::clock::now()),
        }
    }
}

/// A request that is in the server.
pub(super) struct Present<'a> {
    counters: &'a Counters,
    /// Which request this is, from 1.
    pub(super) number: u64,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.counters.concurrent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Requests for work, begun.
    pub requests: u64,
    /// Requests for `/status`.
    pub status_requests: u64,
    /// Bytes of request bodies received.
    pub body_bytes: u64,
    /// Requests that were none.
    pub bad_requests: u64,
    /// Requests for work in the server now: from the arrival of the head to the last byte of the
    /// answer given to the kernel, waiting ones included.
    pub concurrent: u64,
    /// The most of them ever seen at once.
    pub concurrent_max: u64,
    /// Time spent working, by slot; one sum when there is no limit.
    pub busy: Vec<Duration>,
}

impl Stats {
    /// As the JSON object of `/status`. Times are in microseconds.
    pub(super) fn to_json(&self, name: &str, zone: Option<&str>) -> String {
        let busy: Vec<String> = self.busy.iter().map(|b| b.as_micros().to_string()).collect();
        let mut text = String::from("{\"server\":");
        push_json_string(&mut text, name);
        text.push_str(",\"zone\":");
        match zone {
            Some(zone) => push_json_string(&mut text, zone),
            None => text.push_str("null"),
        }
        for (key, value) in [
            ("connections", self.connections),
            ("connections_open", self.connections_open),
            ("requests", self.requests),
            ("status_requests", self.status_requests),
            ("body_bytes", self.body_bytes),
            ("bad_requests", self.bad_requests),
            ("concurrent", self.concurrent),
            ("concurrent_max", self.concurrent_max),
        ] {
            // Writing to a String cannot fail.
            let _ = write!(text, ",\"{key}\":{value}");
        }
        let _ = writeln!(text, ",\"busy_us\":[{}]}}", busy.join(","));
        text
    }
}

/// Appends a JSON string (RFC 8259 section 7).
pub(super) fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_is_counted_with_its_peak() {
        let counters = Counters::default();
        let first = counters.enter();
        let second = counters.enter();
        drop(first);
        let third = counters.enter();
        drop((second, third));
        let stats = counters.read(&Slots::new(None));
        assert_eq!((stats.requests, stats.concurrent, stats.concurrent_max), (3, 0, 2));
    }

    #[test]
    fn json_is_escaped() {
        let stats = Stats { busy: vec![Duration::from_millis(2)], ..Stats::default() };
        let text = stats.to_json("a\"b\\\n", None);
        assert!(text.starts_with("{\"server\":\"a\\\"b\\\\\\u000a\",\"zone\":null,"), "{text}");
        assert!(text.ends_with(",\"busy_us\":[2000]}\n"), "{text}");
    }
}

//! Defines the pushed metrics and their names. docs/metrics.md lists them.

use std::fmt::Write as _;
use std::sync::Arc;

use decide::ServiceView;
use model::Cause;
use model::histogram::HistogramTotals;
use observe::counters::STATUS_CLASSES;
use observe::exposition::ProcessGauges;
use observe::registry::ExchangeTotals;
use observe::{ListenerTotals, ServiceTotals, Totals};

/// All data at the end of an interval.
pub(super) struct Moment<'a> {
    pub(super) totals: &'a Totals,
    /// The totals at the start of the interval.
    pub(super) before: &'a Totals,
    pub(super) services: &'a [ServiceView],
    pub(super) process: Option<ProcessGauges>,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sample {
    /// Number of events in the interval.
    Count(u64),
    /// A state, or a figure over the interval.
    Gauge(f64),
}

const CLASSES: [&str; STATUS_CLASSES] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Quantiles of durations and their names.
const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")];

type Counter = (&'static str, fn(&ServiceTotals) -> u64);

const COUNTERS: [Counter; 7] = [
    ("attempts", |service| service.attempts),
    ("retries", |service| service.retries),
    ("queued", |service| service.queued),
    ("connections_opened", |service| service.connections_opened),
    ("connections_reused", |service| service.connections_reused),
    ("request_body_bytes", |service| service.request_body_bytes),
    ("response_body_bytes", |service| service.response_body_bytes),
];

type Durations = (&'static str, fn(&ServiceTotals) -> &HistogramTotals);

const DURATIONS: [Durations; 4] = [
    ("response_ms", |service| &service.total),
    ("first_byte_ms", |service| &service.first_byte),
    ("queue_ms", |service| &service.queue),
    ("connect_ms", |service| &service.connect),
];

impl Moment<'_> {
    /// Calls `tell` with every sample, its name prefixed with `prefix`.
    pub(super) fn each(&self, prefix: &str, tell: &mut dyn FnMut(&str, Sample)) {
        let mut names = Names { name: prefix.to_owned(), tell };
        let nothing = ServiceTotals::default();
        for (name, totals) in &self.totals.services {
            let before = self.before.services.get(name).unwrap_or(&nothing);
            names.below(&["service", &word(name)], |names| names.service(totals, before));
        }
        for service in self.services {
            names.below(&["service", &word(&service.name)], |names| names.servers(service));
        }
        let nothing = ListenerTotals::default();
        for (name, totals) in &self.totals.listeners {
            let before = self.before.listeners.get(name).unwrap_or(&nothing);
            names.below(&["listener", &word(name)], |names| names.listener(totals, before));
        }
        let dropped = self.totals.access_lines_dropped;
        let dropped = dropped.saturating_sub(self.before.access_lines_dropped);
        names.tell("access_lines_dropped", Sample::Count(dropped));
        if let Some(process) = self.process {
            names.below(&["process"], |names| {
                names.gauge("resident_bytes", process.resident_bytes as f64);
                names.gauge("open_fds", process.open_fds as f64);
                names.gauge("cpu_seconds", process.cpu.as_secs_f64());
            });
        }
    }
}

/// Builds names from words and passes samples on.
struct Names<'t> {
    name: String,
    tell: &'t mut dyn FnMut(&str, Sample),
}

impl Names<'_> {
    /// Runs `tell` with `words` added to the name.
    fn below(&mut self, words: &[&str], tell: impl FnOnce(&mut Self)) {
        let length = self.name.len();
        for word in words {
            // Writing to a String cannot fail.
            let _ = write!(self.name, ".{word}");
        }
        tell(self);
        self.name.truncate(length);
    }

    fn tell(&mut self, word: &str, sample: Sample) {
        self.below(&[word], |names| (names.tell)(&names.name, sample));
    }

    fn gauge(&mut self, word: &str, value: f64) {
        self.tell(word, Sample::Gauge(value));
    }

    fn count(&mut self, word: &str, now: u64, before: u64) {
        // A counter that was dropped and created again has less than before.
        self.tell(word, Sample::Count(now.saturating_sub(before)));
    }

    fn service(&mut self, totals: &ServiceTotals, before: &ServiceTotals) {
        self.exchanges(&totals.exchanges, &before.exchanges);
        for (word, value) in COUNTERS {
            self.count(word, value(totals), value(before));
        }
        for (word, durations) in DURATIONS {
            let durations = durations(totals).since(durations(before));
            self.below(&[word], |names| {
                for (q, word) in QUANTILES {
                    // There is no quantile without values.
                    if let Some(duration) = durations.quantile(q) {
                        names.gauge(word, duration.as_secs_f64() * 1e3);
                    }
                }
            });
        }
    }

    fn servers(&mut self, service: &ServiceView) {
        let servers = &service.endpoints;
        let in_flight: u64 = servers.iter().map(|server| u64::from(server.in_flight)).sum();
        self.gauge("queue_length", f64::from(service.queue_length));
        self.gauge("in_flight", in_flight as f64);
        self.gauge("servers", servers.len() as f64);
        self.gauge("servers_ready", servers.iter().filter(|one| one.ready).count() as f64);
    }

    fn listener(&mut self, totals: &ListenerTotals, before: &ListenerTotals) {
        self.exchanges(&totals.exchanges, &before.exchanges);
        let (now, then) = (totals.connections_accepted, before.connections_accepted);
        self.count("connections_accepted", now, then);
        let (now, then) = (totals.accept_pauses, before.accept_pauses);
        self.count("accept_pauses", now, then);
        self.gauge("connections_open", totals.connections_open() as f64);
    }

    /// Samples by status class and by cause: all that ever occurred, so that a series continues with
    /// zeros.
    fn exchanges(&mut self, now: &ExchangeTotals, before: &ExchangeTotals) {
        self.below(&["requests"], |names| {
            for (class, word) in CLASSES.into_iter().enumerate() {
                let sum = |of: &ExchangeTotals| -> u64 {
                    Cause::ALL.iter().map(|&cause| of.get(cause, class)).sum()
                };
                if sum(now) > 0 || word == "2xx" {
                    names.count(word, sum(now), sum(before));
                }
            }
        });
        self.below(&["cause"], |names| {
            for &cause in Cause::ALL {
                if now.of_cause(cause) > 0 || cause == Cause::Completed {
                    names.count(cause.name(), now.of_cause(cause), before.of_cause(cause));
                }
            }
        });
    }
}

/// Returns a name as one word of a path; neither statsd nor graphite supports quoting.
fn word(name: &Arc<str>) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

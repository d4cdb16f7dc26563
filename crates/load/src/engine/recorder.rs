//! One thread's figures: counts, times, and the current second. It allocates nothing per request,
//! and its size does not grow with their number.

use hdrhistogram::Histogram;

use super::failure::{Failure, KINDS};

/// Statuses that are counted apart; others count as the last.
const STATUSES: usize = 1000;
/// Beyond it a start counts as late, in nanoseconds.
pub(crate) const LATE_NS: u64 = 1_000_000;
/// The longest time that is distinguished: an hour; longer times count as this.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// Significant digits of a second's histograms, of which each thread makes new ones every second.
pub(crate) const SECOND_DIGITS: u8 = 2;

/// A histogram of nanoseconds with `digits` significant digits.
pub(crate) fn histogram(digits: u8) -> Histogram<u64> {
    // The bounds are constants that the crate accepts; a failing fallback would not be one.
    Histogram::new_with_bounds(1, TIME_MAX_NS, digits)
        .or_else(|_| Histogram::new(digits))
        .unwrap_or_else(|_| unreachable!("3 digits at most"))
}

/// Times of all requests.
#[derive(Clone, Debug)]
pub struct Times {
    /// From the intended start to the last byte.
    pub intended: Histogram<u64>,
    /// From the real start to the last byte.
    pub service: Histogram<u64>,
    /// From the intended start to the real one.
    pub lateness: Histogram<u64>,
    /// From SYN to SYN+ACK.
    pub connect: Histogram<u64>,
    /// TLS handshakes.
    pub tls: Histogram<u64>,
    /// From the first byte sent to the first byte received.
    pub first_byte: Histogram<u64>,
    /// From the first byte received to the last.
    pub transfer: Histogram<u64>,
    /// TCP's own estimate of the round trip, of a share of the requests.
    pub round_trip: Histogram<u64>,
}

impl Times {
    fn new() -> Times {
        let new = || histogram(3);
        Times {
            intended: new(),
            service: new(),
            lateness: new(),
            connect: new(),
            tls: new(),
            first_byte: new(),
            transfer: new(),
            round_trip: new(),
        }
    }

    fn each<'a>(
        &'a mut self,
        other: &'a Times,
    ) -> [(&'a mut Histogram<u64>, &'a Histogram<u64>); 8] {
        [
            (&mut self.intended, &other.intended),
            (&mut self.service, &other.service),
            (&mut self.lateness, &other.lateness),
            (&mut self.connect, &other.connect),
            (&mut self.tls, &other.tls),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.transfer, &other.transfer),
            (&mut self.round_trip, &other.round_trip),
        ]
    }
}

/// What is counted over a second and over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests begun.
    pub started: u64,
    /// Responses read whole.
    pub responses: u64,
    /// Of them with a status of 400 or more.
    pub bad_statuses: u64,
    /// Requests that got none.
    pub errors: u64,
    /// Starts later than [`LATE_NS`].
    pub late: u64,
    /// Starts that never came.
    pub dropped: u64,
    /// Bytes read, of heads and bodies.
    pub bytes_in: u64,
    /// Bytes read, of bodies.
    pub body_bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Connections opened.
    pub connections: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        self.started += other.started;
        self.responses += other.responses;
        self.bad_statuses += other.bad_statuses;
        self.errors += other.errors;
        self.late += other.late;
        self.dropped += other.dropped;
        self.bytes_in += other.bytes_in;
        self.body_bytes_in += other.body_bytes_in;
        self.bytes_out += other.bytes_out;
        self.connections += other.connections;
    }
}

/// One second of one thread, or of all.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Which, from 0.
    pub second: u64,
    /// Its counts.
    pub counts: Counts,
    /// From the intended start, of responses complete in it.
    pub intended: Histogram<u64>,
    /// From the real start.
    pub service: Histogram<u64>,
    /// From the intended start to the real one, of requests begun in it; open model only.
    pub lateness: Histogram<u64>,
    /// Connections open at its end.
    pub connections_open: u64,
    /// Requests under way at its end.
    pub in_flight: u64,
    /// CPU time that the busiest thread used in it, in nanoseconds.
    pub busiest_cpu_ns: u64,
    /// Connections made and failed, by source address.
    pub sources: Vec<(u64, u64)>,
}

impl Interval {
    /// An empty one.
    pub fn new(second: u64, sources: usize) -> Interval {
        Interval {
            second,
            counts: Counts::default(),
            intended: histogram(SECOND_DIGITS),
            service: histogram(SECOND_DIGITS),
            lateness: histogram(SECOND_DIGITS),
            connections_open: 0,
            in_flight: 0,
            busiest_cpu_ns: 0,
            sources: vec![(0, 0); sources],
        }
    }

    /// Adds what another thread saw in the same second, or what was seen in another.
    pub fn add(&mut self, other: &Interval) {
        self.counts.add(&other.counts);
        // Histograms of the same bounds always fit.
        let _ = self.intended.add(&other.intended);
        let _ = self.service.add(&other.service);
        let _ = self.lateness.add(&other.lateness);
        self.connections_open += other.connections_open;
        self.in_flight += other.in_flight;
        self.busiest_cpu_ns = self.busiest_cpu_ns.max(other.busiest_cpu_ns);
        for (own, others) in self.sources.iter_mut().zip(&other.sources) {
            own.0 += others.0;
            own.1 += others.1;
        }
    }
}

/// The moments of a request, in nanoseconds of the process's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    /// When it was due; its real start, in the closed model.
    pub intended: u64,
    /// When it began, a new connection included.
    pub started: u64,
    /// When its first byte was sent.
    pub sent: u64,
    /// When the first byte of its response came; 0: none has.
    pub first_byte: u64,
}

/// A thread's figures.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Over the whole run.
    pub counts: Counts,
    /// Over the whole run.
    pub times: Times,
    /// By status.
    pub statuses: Vec<u64>,
    /// By kind, in the order of [`Failure::ALL`].
    pub failures: [u64; KINDS],
    /// Requests under way when the run was ended.
    pub cut_off: u64,
    /// When the last request ended, in nanoseconds of the process's clock.
    pub last_ns: u64,
    /// When the last response was whole.
    pub answered_ns: u64,
    /// How often a server gave a request back that it had not looked at.
    pub given_back: u64,
    /// When starts were ended by order, before their time; `None`: they were not.
    pub ordered_end_ns: Option<u64>,
    /// Whether starts had to wait because every connection was in use.
    pub all_in_use: u64,
    pub(crate) interval: Interval,
    is_open: bool,
}

impl Recorder {
    pub(crate) fn new(is_open: bool, sources: usize) -> Recorder {
        Recorder {
            counts: Counts::default(),
            times: Times::new(),
            statuses: vec![0; STATUSES],
            failures: [0; KINDS],
            cut_off: 0,
            last_ns: 0,
            answered_ns: 0,
            given_back: 0,
            ordered_end_ns: None,
            all_in_use: 0,
            interval: Interval::new(0, sources),
            is_open,
        }
    }

    /// A request begins.
    pub(crate) fn started(&mut self, moments: &Moments) {
        self.counts.started += 1;
        self.interval.counts.started += 1;
        if self.is_open {
            let late = moments.started.saturating_sub(moments.intended);
            self.times.lateness.saturating_record(late);
            self.interval.lateness.saturating_record(late);
            if late > LATE_NS {
                self.counts.late += 1;
                self.interval.counts.late += 1;
            }
        }
    }

    /// A request that was due did not begin.
    pub(crate) fn dropped(&mut self) {
        self.counts.dropped += 1;
        self.interval.counts.dropped += 1;
    }

    /// A response is whole.
    pub(crate) fn completed(&mut self, moments: &Moments, status: u16, now: u64) {
        self.counts.responses += 1;
        self.interval.counts.responses += 1;
        if status >= 400 {
            self.counts.bad_statuses += 1;
            self.interval.counts.bad_statuses += 1;
        }
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
        self.last_ns = now;
        self.answered_ns = now;
        let service = now.saturating_sub(moments.started);
        self.times.service.saturating_record(service);
        self.interval.service.saturating_record(service);
        if moments.first_byte > 0 {
            let first = moments.first_byte.saturating_sub(moments.sent);
            self.times.first_byte.saturating_record(first);
            self.times.transfer.saturating_record(now.saturating_sub(moments.first_byte));
        }
        if self.is_open {
            let intended = now.saturating_sub(moments.intended);
            self.times.intended.saturating_record(intended);
            self.interval.intended.saturating_record(intended);
        }
    }

    /// A request got no whole response.
    pub(crate) fn failed(&mut self, failure: Failure, now: u64) {
        self.counts.errors += 1;
        self.interval.counts.errors += 1;
        self.failures[failure as usize] += 1;
        self.last_ns = now;
    }

    /// A server has not looked at a request, which goes over another connection.
    pub(crate) fn given_back(&mut self) {
        self.given_back += 1;
    }

    /// A connection is there.
    pub(crate) fn connected(&mut self, took: u64, source: usize) {
        self.counts.connections += 1;
        self.interval.counts.connections += 1;
        self.times.connect.saturating_record(took);
        if let Some(counts) = self.interval.sources.get_mut(source) {
            counts.0 += 1;
        }
    }

    /// A connection could not be made.
    pub(crate) fn unconnected(&mut self, source: usize) {
        if let Some(counts) = self.interval.sources.get_mut(source) {
            counts.1 += 1;
        }
    }

    /// Bytes of a response came, `body` of them of its body.
    pub(crate) fn received(&mut self, bytes: usize, body: usize) {
        for counts in [&mut self.counts, &mut self.interval.counts] {
            counts.bytes_in += bytes as u64;
            counts.body_bytes_in += body as u64;
        }
    }

    /// Bytes of a request went.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.counts.bytes_out += bytes as u64;
        self.interval.counts.bytes_out += bytes as u64;
    }

    /// Ends the second; `next` begins.
    pub(crate) fn roll(&mut self, next: u64) -> Interval {
        let sources = self.interval.sources.len();
        std::mem::replace(&mut self.interval, Interval::new(next, sources))
    }

    /// Adds another thread's figures of the whole run.
    pub fn add(&mut self, other: &Recorder) {
        self.counts.add(&other.counts);
        for (own, others) in self.times.each(&other.times) {
            // Histograms of the same bounds always fit.
            let _ = own.add(others);
        }
        for (own, others) in self.statuses.iter_mut().zip(&other.statuses) {
            *own += others;
        }
        for (own, others) in self.failures.iter_mut().zip(&other.failures) {
            *own += others;
        }
        self.cut_off += other.cut_off;
        self.ordered_end_ns = self.ordered_end_ns.max(other.ordered_end_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.answered_ns = self.answered_ns.max(other.answered_ns);
        self.given_back += other.given_back;
        self.all_in_use += other.all_in_use;
    }
}

//! Ended exchanges that are kept for a while, as examples: of every ten seconds the first ones with each
//! cause, the first failed one and the slowest one of each service, and some whose choice of server was recorded.
//! Those that ended through their clients have memory of their own, so that no client displaces the others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Cause, Moment};

use crate::counters::{CAUSES, UNCOUNTED};

/// How long they are kept, unless others need the memory.
pub const KEPT: Duration = Duration::from_mins(15);

/// Seconds whose exchanges are chosen together.
const SPAN_S: u64 = 10;

/// Memory of one worker, in bytes of lines: of those that ended through their clients, and of all others. The
/// oldest go first.
const BYTES_MAX: [usize; 2] = [256 << 10, 768 << 10];

/// Kept of each cause in a span, by each worker.
const OF_CAUSE_MAX: u8 = 3;

/// Kept for their decisions in a span, by each worker.
const WITH_DECISION_MAX: u8 = 4;

/// Services of which the slowest exchange, or the first failed one, is kept in a span, by each worker.
const SERVICES_MAX: u8 = 32;

model::words! {
    /// Why an exchange is kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum KeptFor {
        /// It is among the first with its cause, or with a 5xx of a server; or the first of its service.
        Cause = "cause",
        /// Its response head came last of all in its service.
        Slowest = "slowest",
        /// Its choice of server was recorded.
        Decision = "decision",
    }
}

/// A kept exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptExchange {
    /// When it ended.
    pub ended: Moment,
    /// Why it is kept.
    pub kept_for: KeptFor,
    /// Whether it ended through its client.
    pub is_of_client: bool,
    /// The service it was routed to.
    pub service: Option<Arc<str>>,
    /// Its access line as JSON.
    pub line: Arc<[u8]>,
}

/// What decides whether an exchange is kept.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// When.
    pub at: Moment,
    /// Why.
    pub cause: Cause,
    /// The status sent to the client.
    pub status: Option<u16>,
    /// Time in the queue and at the server until the response head; zero: there was none.
    pub took: Duration,
    /// Whether the choice of its server was recorded.
    pub has_decision: bool,
    /// What is kept of its service, if it was routed.
    pub service: Option<&'a KeptOfService>,
}

/// What one worker keeps of a service in the current span.
#[derive(Debug, Default)]
pub struct KeptOfService {
    /// The number of the span, plus one.
    slowest_span: AtomicU64,
    slowest_us: AtomicU64,
    /// The same of the last span with a failed one.
    failed_span: AtomicU64,
}

/// Those of one worker, which alone adds to them.
#[derive(Debug, Default)]
pub struct KeptExchanges {
    span: AtomicU64,
    /// Kept in this span, by cause. That of completed exchanges counts 5xx of servers.
    of_causes: Counts,
    with_decision: AtomicU8,
    services: AtomicU8,
    services_failed: AtomicU8,
    kept: Mutex<[Kept; 2]>,
}

/// Counts, one for each cause.
#[derive(Debug)]
struct Counts([AtomicU8; CAUSES]);

#[derive(Debug, Default)]
struct Kept {
    exchanges: VecDeque<KeptExchange>,
    bytes: usize,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts(std::array::from_fn(|_| AtomicU8::new(0)))
    }
}

impl KeptExchanges {
    /// Returns why an exchange is to be kept; `None`: it is not. By one thread only.
    #[inline]
    pub fn wants(&self, ended: &Ended<'_>) -> Option<KeptFor> {
        if UNCOUNTED {
            return None;
        }
        let span = span_of(ended.at) + 1;
        if self.span.load(Relaxed) != span {
            self.begin(span);
        }
        let is_failed = ended.cause != Cause::Completed || ended.status.is_some_and(|it| it >= 500);
        if is_failed {
            let is_of_first = takes(&self.of_causes.0[ended.cause as usize], OF_CAUSE_MAX);
            let is_first = ended.service.is_some_and(|service| {
                service.is_first_failed(span) && takes(&self.services_failed, SERVICES_MAX)
            });
            if is_of_first || is_first {
                return Some(KeptFor::Cause);
            }
        }
        // The slowest is noted even if there is no room for more services.
        let is_slowest = ended.service.is_some_and(|service| {
            service.is_slowest(span, ended.took, || takes(&self.services, SERVICES_MAX))
        });
        if is_slowest {
            return Some(KeptFor::Slowest);
        }
        (ended.has_decision && takes(&self.with_decision, WITH_DECISION_MAX))
            .then_some(KeptFor::Decision)
    }

    /// Keeps an exchange. The slowest one of a service replaces the one before it in the same span.
    pub fn keep(&self, exchange: KeptExchange) {
        let place = usize::from(!exchange.is_of_client);
        self.lock()[place].add(exchange, BYTES_MAX[place]);
    }

    /// Returns those that are not too old at `now`, the oldest first.
    pub fn at(&self, now: Moment) -> Vec<KeptExchange> {
        let kept = self.lock();
        let all = kept.iter().flat_map(|kept| &kept.exchanges);
        all.filter(|one| !is_old(one, now)).cloned().collect()
    }

    #[cold]
    fn begin(&self, span: u64) {
        self.span.store(span, Relaxed);
        self.of_causes.0.iter().for_each(|count| count.store(0, Relaxed));
        self.with_decision.store(0, Relaxed);
        self.services.store(0, Relaxed);
        self.services_failed.store(0, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, [Kept; 2]> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, exchange: KeptExchange, bytes_max: usize) {
        if exchange.kept_for == KeptFor::Slowest {
            let span = span_of(exchange.ended);
            let of_span = self.exchanges.iter().enumerate().rev();
            let mut of_span = of_span.take_while(|(_, one)| span_of(one.ended) >= span);
            let is_same = |one: &KeptExchange| {
                one.kept_for == KeptFor::Slowest && one.service == exchange.service
            };
            let before = of_span.find(|(_, one)| is_same(one)).map(|(at, _)| at);
            if let Some(before) = before.and_then(|at| self.exchanges.remove(at)) {
                self.bytes -= before.line.len();
            }
        }
        self.bytes += exchange.line.len();
        let now = exchange.ended;
        self.exchanges.push_back(exchange);
        while self.bytes > bytes_max || self.exchanges.front().is_some_and(|one| is_old(one, now)) {
            let Some(oldest) = self.exchanges.pop_front() else { break };
            self.bytes -= oldest.line.len();
        }
    }
}

impl KeptOfService {
    /// Notes a failed exchange; returns whether it is the first of its span.
    fn is_first_failed(&self, span: u64) -> bool {
        let is_first = self.failed_span.load(Relaxed) != span;
        if is_first {
            self.failed_span.store(span, Relaxed);
        }
        is_first
    }

    /// Notes how long an exchange took, and returns whether it is the slowest of its span, by an eighth at least:
    /// while a queue grows, nearly every one is a little slower. The first one of a span is, if `begins` allows it.
    #[inline]
    fn is_slowest(&self, span: u64, took: Duration, begins: impl FnOnce() -> bool) -> bool {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if us == 0 {
            return false;
        }
        if self.slowest_span.load(Relaxed) != span {
            self.slowest_span.store(span, Relaxed);
            // Without room, no exchange of this span is slower than this.
            let noted = if begins() { us } else { u64::MAX };
            self.slowest_us.store(noted, Relaxed);
            return noted == us;
        }
        let slowest_us = self.slowest_us.load(Relaxed);
        if us <= slowest_us.saturating_add(slowest_us / 8) {
            return false;
        }
        self.slowest_us.store(us, Relaxed);
        true
    }
}

fn span_of(at: Moment) -> u64 {
    at.as_micros() / (SPAN_S * 1_000_000)
}

fn is_old(one: &KeptExchange, now: Moment) -> bool {
    now.since(one.ended) > KEPT
}

/// Counts one more if there are fewer than `max`; returns whether it did.
fn takes(count: &AtomicU8, max: u8) -> bool {
    let so_far = count.load(Relaxed);
    let has_room = so_far < max;
    if has_room {
        count.store(so_far + 1, Relaxed);
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at_ms: u64, cause: Cause, took_us: u64) -> Ended<'static> {
        let status = if cause == Cause::Completed { Some(200) } else { None };
        Ended {
            at: Moment::from_millis(at_ms),
            cause,
            status,
            took: Duration::from_micros(took_us),
            has_decision: false,
            service: None,
        }
    }

    fn keep(kept: &KeptExchanges, at_ms: u64, kept_for: KeptFor, line: &[u8]) {
        let service = Some("app".into());
        kept.keep(KeptExchange {
            ended: Moment::from_millis(at_ms),
            kept_for,
            is_of_client: false,
            service,
            line: line.into(),
        });
    }

    #[test]
    fn the_first_of_each_cause_are_kept_in_every_span() {
        let kept = KeptExchanges::default();
        let wanted = |at_ms, cause| kept.wants(&ended(at_ms, cause, 0)).is_some();
        let counts = |at_ms| {
            [Cause::ConnectionRefused, Cause::QueueFull]
                .map(|cause| (0..100).filter(|_| wanted(at_ms, cause)).count())
        };
        assert_eq!(counts(0), [usize::from(OF_CAUSE_MAX); 2]);
        assert_eq!(counts(9_999), [0; 2]);
        assert_eq!(counts(10_000), [usize::from(OF_CAUSE_MAX); 2]);
        assert!(!wanted(10_000, Cause::Completed));
        let failed = Ended { status: Some(503), ..ended(10_000, Cause::Completed, 0) };
        assert_eq!(kept.wants(&failed), Some(KeptFor::Cause));
    }

    #[test]
    fn the_slowest_of_a_service_replaces_the_one_before() {
        let (kept, service) = (KeptExchanges::default(), KeptOfService::default());
        for (at_ms, first_byte_us) in
            [(0, 500), (1, 400), (2, 900), (3, 1_000), (10_000, 10), (10_001, 20)]
        {
            let completed = ended(at_ms, Cause::Completed, first_byte_us);
            if let Some(why) = kept.wants(&Ended { service: Some(&service), ..completed }) {
                keep(&kept, at_ms, why, first_byte_us.to_string().as_bytes());
            }
        }
        let lines = kept.at(Moment::from_millis(10_001));
        let lines: Vec<&[u8]> = lines.iter().map(|one| &*one.line).collect();
        assert_eq!(lines, [&b"900"[..], b"20"]);
    }

    #[test]
    fn the_first_failed_one_of_every_service_is_kept_and_clients_displace_no_others() {
        let (kept, quiet) = (KeptExchanges::default(), KeptOfService::default());
        let refused = ended(0, Cause::ConnectionRefused, 0);
        let noisy: usize = (0..100).filter(|_| kept.wants(&refused).is_some()).count();
        assert_eq!(noisy, usize::from(OF_CAUSE_MAX));
        let of_quiet = Ended { service: Some(&quiet), ..refused };
        assert_eq!([0; 2].map(|_| kept.wants(&of_quiet)), [Some(KeptFor::Cause), None]);

        keep(&kept, 0, KeptFor::Cause, b"of a server");
        for at in 0..2_000 {
            let of_client = KeptExchange {
                ended: Moment::from_millis(at),
                kept_for: KeptFor::Cause,
                is_of_client: true,
                service: None,
                line: [b'x'; 1_000].as_slice().into(),
            };
            kept.keep(of_client);
        }
        let all = kept.at(Moment::from_millis(2_000));
        assert!(all.iter().any(|one| &*one.line == b"of a server"));
        assert!(kept.lock()[0].bytes <= BYTES_MAX[0]);
    }

    #[test]
    fn many_services_and_long_lines_stay_within_bounds() {
        let kept = KeptExchanges::default();
        let services: Vec<KeptOfService> = (0..1_000).map(|_| KeptOfService::default()).collect();
        let wanted = |us| {
            let of = |service| Ended { service: Some(service), ..ended(0, Cause::Completed, us) };
            services.iter().filter(|service| kept.wants(&of(*service)).is_some()).count()
        };
        assert_eq!((wanted(5), wanted(6)), (usize::from(SERVICES_MAX), usize::from(SERVICES_MAX)));
        for at in 0..3_000 {
            keep(&kept, at, KeptFor::Cause, &[b'x'; 1_000]);
        }
        let now = Moment::from_millis(3_000);
        assert!(kept.at(now).len() > 700);
        assert!(kept.lock()[1].bytes <= BYTES_MAX[1]);
        assert_eq!(kept.at(now + KEPT), []);
        keep(&kept, KEPT.as_millis() as u64 + 3_001, KeptFor::Cause, b"x");
        let only = &kept.lock()[1];
        assert_eq!((only.exchanges.len(), only.bytes), (1, 1));
    }
}

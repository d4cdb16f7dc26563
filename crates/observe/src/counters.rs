//! A worker's counters. Each number has one writer, its worker, so that adding is a plain load and
//! store without a bus lock; readers see each number whole, but not all of them at the same moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{AddressFound, Cause, Mirrored, Timings};

use crate::{FrequentClients, Histogram, KeptExchanges, KeptOfService};

/// For measuring the cost of counting (`scripts/bench-log-cost`); never set otherwise.
pub(crate) const UNCOUNTED: bool = cfg!(weir_uncounted);

/// A number that only grows. One thread writes it, any thread reads it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns a counter of zero.
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Adds `amount`. By one thread only: two writers would lose each other's additions.
    #[inline]
    pub fn add(&self, amount: u64) {
        if UNCOUNTED {
            return;
        }
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Adds one; see [`Counter::add`].
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Begins again from zero. By the thread that adds.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns the sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Classes of responses: none sent (also all of TCP mode), then 1xx to 5xx.
pub const STATUS_CLASSES: usize = 6;

/// Number of causes.
pub(crate) const CAUSES: usize = Cause::ALL.len();

/// Ends of exchanges, by cause and by the class of the status sent to the client.
#[derive(Debug)]
pub struct ExchangeCounters([[Counter; STATUS_CLASSES]; CAUSES]);

impl Default for ExchangeCounters {
    fn default() -> ExchangeCounters {
        ExchangeCounters(std::array::from_fn(|_| std::array::from_fn(|_| Counter::new())))
    }
}

impl ExchangeCounters {
    /// Counts an exchange that ended for `cause`; `status` is the one sent to the client.
    #[inline]
    pub fn count(&self, cause: Cause, status: Option<u16>) {
        let class = status.map_or(0, |status| usize::from(status / 100));
        // Servers may send statuses up to 999; those above 5xx are in no class.
        let class = if class < STATUS_CLASSES { class } else { 0 };
        self.0[cause as usize][class].increment();
    }

    pub(crate) fn add_to(&self, totals: &mut [[u64; STATUS_CLASSES]; CAUSES]) {
        for (total, counter) in totals.iter_mut().flatten().zip(self.0.iter().flatten()) {
            *total += counter.get();
        }
    }
}

/// One worker's counters for one service.
#[derive(Debug, Default)]
pub struct ServiceCounters {
    /// How exchanges (in TCP mode: connections) ended.
    pub exchanges: ExchangeCounters,
    /// Requests sent to servers, each attempt counted.
    pub attempts: Counter,
    /// Attempts after an exchange's first.
    pub retries: Counter,
    /// Exchanges that asked for a server.
    pub asked: Counter,
    /// Those of them that got none: they were refused, or left or ran out of time in the queue, or
    /// reached no server.
    pub unserved: Counter,
    /// Exchanges that a server has seen and that have ended.
    pub worked: Counter,
    /// The time for which those held slots at servers, in microseconds, as a sum; with the time for
    /// which servers went on with what was abandoned.
    pub worked_us: Counter,
    /// Bytes of request bodies (in TCP mode: from clients) forwarded to servers. Added as they
    /// flow.
    pub request_body_bytes: Counter,
    /// Bytes of response bodies (in TCP mode: from servers) forwarded to clients. Added as they
    /// flow.
    pub response_body_bytes: Counter,
    /// Connections opened to servers for requests.
    pub connections_opened: Counter,
    /// Requests sent on a reused connection.
    pub connections_reused: Counter,
    /// Requests that entered the queue.
    pub queued: Counter,
    /// Requests that were to be copied to this service, by what became of them: see
    /// [`Mirrored::ALL`].
    pub mirrored: [Counter; Mirrored::ALL.len()],
    /// Durations from the complete request head to the end, of requests that a server answered.
    pub total: Histogram,
    /// Durations of all others: refused, timed out, abandoned. Together with the served ones they
    /// would distort every percentile, downwards when most are refused at once and upwards when
    /// most wait in vain.
    pub unanswered: Histogram,
    /// From the complete request head to the first byte of the response head, if there was one.
    pub first_byte: Histogram,
    /// Time in the queue, of requests that were in it.
    pub queue: Histogram,
    /// Time to establish connections.
    pub connect: Histogram,
    /// TCP round-trip times to clients, of sampled exchanges.
    pub client_round_trip: Histogram,
    /// The clients with the most exchanges.
    pub clients: FrequentClients,
    /// Which of its exchanges are kept as examples.
    pub kept: KeptOfService,
}

impl ServiceCounters {
    /// Counts the end of an exchange: its cause, its attempts and its durations. Bytes, connections
    /// and queueing are counted where they happen.
    pub fn exchange_ended(
        &self,
        cause: Cause,
        status: Option<u16>,
        attempts: u32,
        timings: &Timings,
    ) {
        self.exchanges.count(cause, status);
        self.attempts.add(u64::from(attempts));
        self.retries.add(u64::from(attempts.saturating_sub(1)));
        if !timings.worked.is_zero() {
            self.worked.increment();
            self.worked_us.add(u64::try_from(timings.worked.as_micros()).unwrap_or(u64::MAX));
        } else if attempts > 0 {
            self.unserved.increment();
        }
        // A response head has arrived; a TCP connection has no response head, only an end.
        let answered = !timings.first_byte.is_zero() || cause == Cause::Completed;
        let whole = if answered { &self.total } else { &self.unanswered };
        whole.record(timings.total);
        // Zero means that the stage was not reached, not that it took no time.
        for (histogram, duration) in [
            (&self.first_byte, timings.first_byte),
            (&self.queue, timings.queue),
            (&self.connect, timings.connect),
        ] {
            if !duration.is_zero() {
                histogram.record(duration);
            }
        }
    }
}

/// One worker's counters for one listener.
#[derive(Debug, Default)]
pub struct ListenerCounters {
    /// Client connections accepted.
    pub connections_accepted: Counter,
    /// How many of these have ended.
    pub connections_closed: Counter,
    /// How often accepting paused because `connections_max` was reached.
    pub accept_pauses: Counter,
    /// Completed TLS handshakes.
    pub tls_handshakes: Counter,
    /// How many of these resumed an earlier session.
    pub tls_handshakes_resumed: Counter,
    /// How the client's address was found in requests of trusted peers, in order of
    /// [`AddressFound::ALL`].
    pub client_addresses: [Counter; AddressFound::ALL.len()],
    /// How exchanges ended, including those that found no service.
    pub exchanges: ExchangeCounters,
}

/// One worker's counters. The maps are locked for lookup, which a worker does once for each service
/// that it serves and configuration, and for reading.
#[derive(Debug, Default)]
pub struct Shard {
    services: Mutex<Named<ServiceCounters>>,
    listeners: Mutex<Named<ListenerCounters>>,
    /// Access lines dropped because their reader was too slow.
    pub access_lines_dropped: Counter,
    /// Ended exchanges, as examples.
    pub kept: KeptExchanges,
}

impl Shard {
    /// Returns the counters of a service; the caller keeps them until the next configuration.
    pub fn service(&self, name: &Arc<str>) -> Arc<ServiceCounters> {
        self.service_of(u64::MAX, name)
    }

    /// Returns the counters of a listener; the caller keeps them until the next configuration.
    pub fn listener(&self, name: &Arc<str>) -> Arc<ListenerCounters> {
        self.listener_of(u64::MAX, name)
    }

    /// Returns the counters of a service in the configuration of this generation. If a later one
    /// has removed it, they are not part of any metric: an exchange that outlives its service does
    /// not bring it back into the metrics.
    pub fn service_of(&self, generation: u64, name: &Arc<str>) -> Arc<ServiceCounters> {
        lock(&self.services).look_up(generation, name)
    }

    /// The same for a listener.
    pub fn listener_of(&self, generation: u64, name: &Arc<str>) -> Arc<ListenerCounters> {
        lock(&self.listeners).look_up(generation, name)
    }

    pub(crate) fn each_service(&self, mut visit: impl FnMut(&Arc<str>, &ServiceCounters)) {
        lock(&self.services).used.iter().for_each(|(name, counters)| visit(name, counters));
    }

    pub(crate) fn each_listener(&self, mut visit: impl FnMut(&Arc<str>, &ListenerCounters)) {
        lock(&self.listeners).used.iter().for_each(|(name, counters)| visit(name, counters));
    }

    /// Adopts the names of a configuration, and drops the counters of all others.
    pub(crate) fn configure(&self, configured: &Configured) {
        lock(&self.services).configure(configured.generation, &configured.services);
        lock(&self.listeners).configure(configured.generation, &configured.listeners);
    }
}

/// The names in a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configured {
    pub(crate) generation: u64,
    pub(crate) services: Names,
    pub(crate) listeners: Names,
}

/// Names of one kind, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<[Arc<str>]>);

impl Names {
    pub(crate) fn new(names: impl Iterator<Item = Arc<str>>) -> Names {
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        Names(names.into())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }

    fn contains(&self, name: &Arc<str>) -> bool {
        self.0.binary_search(name).is_ok()
    }
}

/// Counters by name, created with the first use: most of many services are idle at most workers.
#[derive(Debug)]
struct Named<T> {
    /// The configuration that was adopted last, and its names.
    generation: u64,
    configured: Names,
    used: BTreeMap<Arc<str>, Arc<T>>,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { generation: 0, configured: Names::default(), used: BTreeMap::new() }
    }
}

impl<T: Default> Named<T> {
    fn look_up(&mut self, generation: u64, name: &Arc<str>) -> Arc<T> {
        if generation < self.generation && !self.configured.contains(name) {
            return Arc::default();
        }
        Arc::clone(self.used.entry(Arc::clone(name)).or_default())
    }

    fn configure(&mut self, generation: u64, names: &Names) {
        self.generation = generation;
        self.configured = names.clone();
        self.used.retain(|name, _| names.contains(name));
    }
}

fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_shard_may_be_read_from_another_thread() {
        fn shared<T: Send + Sync>() {}
        shared::<Shard>();
        shared::<ServiceCounters>();
        shared::<ListenerCounters>();
    }

    #[test]
    fn a_name_is_one_set_of_counters() {
        let shard = Shard::default();
        let one = shard.service(&Arc::from("listings"));
        one.attempts.add(3);
        assert_eq!(shard.service(&Arc::from("listings")).attempts.get(), 3);
        assert_eq!(shard.service(&Arc::from("other")).attempts.get(), 0);
    }

    #[test]
    fn exchanges_are_counted_by_cause_and_class() {
        let counters = ExchangeCounters::default();
        let cases = [(None, 0), (Some(101), 1), (Some(599), 5), (Some(600), 0), (Some(999), 0)];
        for (status, _) in cases {
            counters.count(Cause::Completed, status);
        }
        counters.count(Cause::ProxyInternalError, Some(500));
        let mut totals = [[0; STATUS_CLASSES]; CAUSES];
        counters.add_to(&mut totals);
        assert_eq!(totals[Cause::Completed as usize], [3, 1, 0, 0, 0, 1]);
        assert_eq!(totals[Cause::ProxyInternalError as usize], [0, 0, 0, 0, 0, 1]);
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index, "causes are their index");
        }
    }

    #[test]
    fn refusals_do_not_move_the_percentiles_of_served_requests() {
        let counters = ServiceCounters::default();
        let timings = |total_us, first_byte_us| Timings {
            total: Duration::from_micros(total_us),
            first_byte: Duration::from_micros(first_byte_us),
            ..Timings::default()
        };
        for _ in 0..99 {
            counters.exchange_ended(Cause::QueueFull, Some(429), 0, &timings(500, 0));
        }
        counters.exchange_ended(Cause::Completed, Some(200), 1, &timings(100_000, 90_000));
        // Aborted by the client after the head: a server has answered.
        counters.exchange_ended(Cause::ClientReset, Some(200), 1, &timings(100_000, 90_000));
        // A server that never answers affects neither.
        let timeout = timings(60_000_000, 0);
        counters.exchange_ended(Cause::HttpResponseTimeout, Some(504), 1, &timeout);
        let totals = |histogram: &Histogram| {
            let mut totals = model::histogram::HistogramTotals::default();
            histogram.add_to(&mut totals);
            totals
        };
        let (served, others) = (totals(&counters.total), totals(&counters.unanswered));
        assert_eq!((served.count(), others.count()), (2, 100));
        for q in [0.5, 0.99] {
            let quantile = served.quantile(q).unwrap_or_default();
            assert!(quantile >= Duration::from_millis(95), "{q}: {quantile:?}");
        }
    }

    #[test]
    fn stages_that_were_not_reached_are_not_counted() {
        let counters = ServiceCounters::default();
        let timings = Timings { total: Duration::from_millis(3), ..Timings::default() };
        counters.exchange_ended(Cause::QueueFull, Some(429), 0, &timings);
        counters.exchange_ended(Cause::Completed, Some(200), 3, &timings);
        let count = |histogram: &Histogram| {
            let mut totals = model::histogram::HistogramTotals::default();
            histogram.add_to(&mut totals);
            totals.count()
        };
        assert_eq!((count(&counters.total), count(&counters.connect)), (1, 0));
        assert_eq!((counters.attempts.get(), counters.retries.get()), (3, 2));
    }
}

//! All workers' counters, and their sums as plain numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::histogram::HistogramTotals;
use model::{AddressFound, Cause, Ending, Mirrored, Moment};

use crate::clients::Frequent;
use crate::counters::{
    CAUSES, Configured, ExchangeCounters, ListenerCounters, Names, STATUS_CLASSES, ServiceCounters,
    Shard,
};
use crate::kept::KeptExchange;

/// The shards of all workers. Lives for the whole process; shared.
#[derive(Debug, Default)]
pub struct Registry {
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    shards: Vec<Arc<Shard>>,
    configured: Configured,
}

impl Registry {
    /// Returns a registry without workers.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a shard for one more worker.
    pub fn add_shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard::default());
        let mut state = self.state();
        shard.configure(&state.configured);
        state.shards.push(Arc::clone(&shard));
        shard
    }

    /// Adopts the names in the configuration of this generation: each of them has totals, also if
    /// it has counted nothing yet, and what is not among them is dropped. A worker that still adds
    /// to dropped counters, or looks them up for an older configuration, does no harm.
    pub fn configure(
        &self,
        generation: u64,
        services: impl Iterator<Item = Arc<str>>,
        listeners: impl Iterator<Item = Arc<str>>,
    ) {
        let (services, listeners) = (Names::new(services), Names::new(listeners));
        let mut state = self.state();
        state.configured = Configured { generation, services, listeners };
        for shard in &state.shards {
            shard.configure(&state.configured);
        }
    }

    /// Returns the sums over all workers.
    pub fn totals(&self) -> Totals {
        // Cloned, so that a worker that starts does not wait for a reader.
        let State { shards, configured } = self.state().clone();
        let mut totals = Totals {
            services: nothing_yet(&configured.services),
            listeners: nothing_yet(&configured.listeners),
            access_lines_dropped: 0,
        };
        for shard in &shards {
            shard.each_service(|name, counters| {
                totals.services.entry(Arc::clone(name)).or_default().add(counters);
            });
            shard.each_listener(|name, counters| {
                totals.listeners.entry(Arc::clone(name)).or_default().add(counters);
            });
            totals.access_lines_dropped += shard.access_lines_dropped.get();
        }
        totals
    }

    /// Returns the most frequent clients of each service in a span ([`crate::clients::span_of`]).
    pub fn frequent_clients(&self, span: u64) -> BTreeMap<Arc<str>, Frequent> {
        let State { shards, .. } = self.state().clone();
        let mut found: BTreeMap<Arc<str>, Frequent> = BTreeMap::new();
        for shard in &shards {
            shard.each_service(|name, counters| {
                counters.clients.add_to(span, found.entry(Arc::clone(name)).or_default());
            });
        }
        found.retain(|_, frequent| frequent.requests > 0);
        found
    }

    /// Returns the exchanges that the workers keep as examples at `now`, the latest first.
    pub fn kept_exchanges(&self, now: Moment) -> Vec<KeptExchange> {
        let State { shards, .. } = self.state().clone();
        let mut kept: Vec<KeptExchange> =
            shards.iter().flat_map(|shard| shard.kept.at(now)).collect();
        kept.sort_by_key(|one| std::cmp::Reverse(one.ended));
        kept
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nothing_yet<T: Default>(names: &Names) -> BTreeMap<Arc<str>, T> {
    names.iter().map(|name| (Arc::clone(name), T::default())).collect()
}

/// Everything counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By service, in order of name.
    pub services: BTreeMap<Arc<str>, ServiceTotals>,
    /// By listener, in order of name.
    pub listeners: BTreeMap<Arc<str>, ListenerTotals>,
    /// See [`Shard::access_lines_dropped`].
    pub access_lines_dropped: u64,
}

/// Number of exchanges by how they ended. Takes memory (2.8 kB) once something is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeTotals(Option<Box<[[u64; STATUS_CLASSES]; CAUSES]>>);

impl ExchangeTotals {
    /// Returns those that ended for `cause` with a status of `class`: 1 to 5 for 1xx to 5xx, 0 for
    /// none.
    pub fn get(&self, cause: Cause, class: usize) -> u64 {
        self.of(cause).get(class).copied().unwrap_or(0)
    }

    /// Returns those that ended for `cause`.
    pub fn of_cause(&self, cause: Cause) -> u64 {
        self.of(cause).iter().sum()
    }

    /// Returns the number of those with this ending.
    pub fn of_ending(&self, ending: Ending) -> u64 {
        let causes = self.0.iter().flat_map(|totals| Cause::ALL.iter().zip(totals.iter()));
        let counts = causes.flat_map(|(cause, classes)| {
            let classes = classes.iter().enumerate();
            classes.filter(|(class, _)| Ending::of(*cause, *class) == ending).map(|(_, n)| n)
        });
        counts.sum()
    }

    /// Returns those with a status of `class`.
    pub fn of_class(&self, class: usize) -> u64 {
        self.0.iter().flat_map(|totals| totals.iter()).map(|classes| classes[class]).sum()
    }

    /// Returns their total.
    pub fn sum(&self) -> u64 {
        self.0.iter().flat_map(|totals| totals.iter().flatten()).sum()
    }

    fn add(&mut self, counters: &ExchangeCounters) {
        let zero = || Box::new([[0; STATUS_CLASSES]; CAUSES]);
        counters.add_to(self.0.get_or_insert_with(zero));
    }

    fn of(&self, cause: Cause) -> [u64; STATUS_CLASSES] {
        self.0.as_ref().map_or([0; STATUS_CLASSES], |totals| totals[cause as usize])
    }
}

/// The sums of [`ServiceCounters`], under the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the sum of the counter of the same name")]
pub struct ServiceTotals {
    pub exchanges: ExchangeTotals,
    pub attempts: u64,
    pub retries: u64,
    pub asked: u64,
    pub unserved: u64,
    pub worked: u64,
    pub worked_us: u64,
    pub request_body_bytes: u64,
    pub response_body_bytes: u64,
    pub connections_opened: u64,
    pub connections_reused: u64,
    pub queued: u64,
    pub mirrored: [u64; Mirrored::ALL.len()],
    pub total: HistogramTotals,
    pub unanswered: HistogramTotals,
    pub first_byte: HistogramTotals,
    pub queue: HistogramTotals,
    pub connect: HistogramTotals,
    pub client_round_trip: HistogramTotals,
}

impl ServiceTotals {
    fn add(&mut self, counters: &ServiceCounters) {
        self.exchanges.add(&counters.exchanges);
        for (total, counter) in [
            (&mut self.attempts, &counters.attempts),
            (&mut self.retries, &counters.retries),
            (&mut self.asked, &counters.asked),
            (&mut self.unserved, &counters.unserved),
            (&mut self.worked, &counters.worked),
            (&mut self.worked_us, &counters.worked_us),
            (&mut self.request_body_bytes, &counters.request_body_bytes),
            (&mut self.response_body_bytes, &counters.response_body_bytes),
            (&mut self.connections_opened, &counters.connections_opened),
            (&mut self.connections_reused, &counters.connections_reused),
            (&mut self.queued, &counters.queued),
        ] {
            *total += counter.get();
        }
        for (total, counter) in self.mirrored.iter_mut().zip(&counters.mirrored) {
            *total += counter.get();
        }
        counters.total.add_to(&mut self.total);
        counters.unanswered.add_to(&mut self.unanswered);
        counters.first_byte.add_to(&mut self.first_byte);
        counters.queue.add_to(&mut self.queue);
        counters.connect.add_to(&mut self.connect);
        counters.client_round_trip.add_to(&mut self.client_round_trip);
    }
}

/// The sums of [`ListenerCounters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerTotals {
    /// See [`ListenerCounters::connections_accepted`].
    pub connections_accepted: u64,
    /// See [`ListenerCounters::connections_closed`].
    pub connections_closed: u64,
    /// See [`ListenerCounters::accept_pauses`].
    pub accept_pauses: u64,
    /// See [`ListenerCounters::tls_handshakes`].
    pub tls_handshakes: u64,
    /// See [`ListenerCounters::tls_handshakes_resumed`].
    pub tls_handshakes_resumed: u64,
    /// See [`ListenerCounters::client_addresses`].
    pub client_addresses: [u64; AddressFound::ALL.len()],
    /// See [`ListenerCounters::exchanges`].
    pub exchanges: ExchangeTotals,
}

impl ListenerTotals {
    /// Returns the connections accepted and not yet ended.
    pub fn connections_open(&self) -> u64 {
        // A connection may be accepted by one worker and end at another, and the two are read one
        // after the other.
        self.connections_accepted.saturating_sub(self.connections_closed)
    }

    fn add(&mut self, counters: &ListenerCounters) {
        self.connections_closed += counters.connections_closed.get();
        self.connections_accepted += counters.connections_accepted.get();
        self.accept_pauses += counters.accept_pauses.get();
        self.tls_handshakes += counters.tls_handshakes.get();
        self.tls_handshakes_resumed += counters.tls_handshakes_resumed.get();
        for (sum, counter) in self.client_addresses.iter_mut().zip(&counters.client_addresses) {
            *sum += counter.get();
        }
        self.exchanges.add(&counters.exchanges);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Timings;

    use super::*;

    #[test]
    fn totals_are_sums_over_workers() {
        let registry = Registry::new();
        let workers = [registry.add_shard(), registry.add_shard()];
        let (service, listener) = (Arc::from("listings"), Arc::from("public"));
        for (worker, status) in workers.iter().zip([200, 503]) {
            let timings = Timings { total: Duration::from_millis(5), ..Timings::default() };
            let counters = worker.service(&service);
            counters.exchange_ended(Cause::Completed, Some(status), 2, &timings);
            counters.response_body_bytes.add(50);
            worker.access_lines_dropped.increment();
        }
        // Accepted by one worker, ended at the other.
        workers[0].listener(&listener).connections_accepted.add(3);
        workers[1].listener(&listener).connections_closed.add(2);

        let totals = registry.totals();
        let of_service = &totals.services["listings"];
        assert_eq!(of_service.exchanges.get(Cause::Completed, 2), 1);
        assert_eq!(of_service.exchanges.get(Cause::Completed, 5), 1);
        assert_eq!(of_service.exchanges.of_cause(Cause::Completed), 2);
        assert_eq!(of_service.exchanges.sum(), 2);
        assert_eq!(of_service.exchanges.of_ending(Ending::Failed), 1);
        assert_eq!(of_service.exchanges.of_class(2), 1);
        assert_eq!((of_service.attempts, of_service.retries), (4, 2));
        assert_eq!(of_service.response_body_bytes, 100);
        assert_eq!(of_service.total.count(), 2);
        assert_eq!(totals.listeners["public"].connections_accepted, 3);
        assert_eq!(totals.listeners["public"].connections_open(), 1);
        assert_eq!(totals.access_lines_dropped, 2);
    }

    fn configure(registry: &Registry, generation: u64, names: &[&str]) {
        let names = || names.iter().map(|name| Arc::from(*name));
        registry.configure(generation, names(), names());
    }

    #[test]
    fn what_is_configured_no_more_is_forgotten() {
        let registry = Registry::new();
        let shard = registry.add_shard();
        for name in ["stays", "goes"] {
            shard.service(&Arc::from(name)).attempts.increment();
            shard.listener(&Arc::from(name)).connections_accepted.increment();
        }
        configure(&registry, 2, &["stays"]);
        // Like a connection that ends under an older configuration.
        for name in ["stays", "goes"] {
            shard.service_of(1, &Arc::from(name)).attempts.increment();
            shard.listener_of(1, &Arc::from(name)).connections_accepted.increment();
        }
        let totals = registry.totals();
        assert_eq!(totals.services["stays"].attempts, 2);
        assert_eq!(totals.services.keys().map(|n| &**n).collect::<Vec<_>>(), ["stays"]);
        assert_eq!(totals.listeners.keys().map(|n| &**n).collect::<Vec<_>>(), ["stays"]);
        // Configured again.
        shard.service_of(3, &Arc::from("goes")).attempts.increment();
        assert_eq!(registry.totals().services["goes"].attempts, 1);
    }

    #[test]
    fn what_is_configured_has_totals_before_it_is_used_and_counts_in_older_configurations_too() {
        let registry = Registry::new();
        configure(&registry, 2, &["idle", "late"]);
        let shard = registry.add_shard();
        let totals = registry.totals();
        assert_eq!(totals.services.keys().map(|n| &**n).collect::<Vec<_>>(), ["idle", "late"]);
        assert_eq!(totals.services["idle"], ServiceTotals::default());
        assert_eq!(totals.listeners["late"], ListenerTotals::default());
        // The first exchange at this worker began before the configuration changed.
        shard.service_of(1, &Arc::from("late")).attempts.increment();
        assert_eq!(registry.totals().services["late"].attempts, 1);
    }

    #[test]
    fn readers_see_a_writer_at_work_without_nonsense() {
        let registry = Registry::new();
        let shard = registry.add_shard();
        let name: Arc<str> = Arc::from("listings");
        let counters = shard.service(&name);
        const WRITES: u64 = 100_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for micros in 1..=WRITES {
                    let total = Duration::from_micros(micros);
                    let timings = Timings { total, ..Timings::default() };
                    counters.exchange_ended(Cause::Completed, Some(200), 1, &timings);
                }
            });
            let mut before = 0;
            while before < WRITES {
                let now = registry.totals().services["listings"].total.count();
                assert!((before..=WRITES).contains(&now));
                before = now;
            }
        });
        let totals = registry.totals();
        assert_eq!(totals.services["listings"].attempts, WRITES);
        assert_eq!(totals.services["listings"].total.max(), Duration::from_micros(WRITES));
    }
}

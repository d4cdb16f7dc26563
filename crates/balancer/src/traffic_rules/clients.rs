//! The most frequent clients of each service, in the last spans of five seconds that have ended.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use diagnose::facts::ClientsSpan;
use model::Moment;
use observe::clients::{Frequent, SPAN_S, span_of};

/// Spans of the last ten seconds.
const RECENT: usize = 2;

/// Spans that are kept: these, and the minute before them.
const KEPT: usize = RECENT + 12;

/// The services' clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// The last spans, newest first: what was counted in each.
    spans: VecDeque<BTreeMap<Arc<str>, Frequent>>,
    /// The number of the newest.
    newest: u64,
    /// By service, those of the last ten seconds and of the minute before.
    sums: HashMap<Arc<str>, (ClientsSpan, ClientsSpan)>,
}

impl Clients {
    /// Takes in the span that has ended by `now`, if it is a new one.
    pub(super) fn update(&mut self, now: Moment, counters: &observe::Registry) {
        let Some(ended) = span_of(now).checked_sub(1) else { return };
        if ended == self.newest {
            return;
        }
        // After a pause of the machine, nothing is known of the spans in between.
        if ended != self.newest + 1 {
            self.spans.clear();
        }
        self.newest = ended;
        self.spans.push_front(counters.frequent_clients(ended));
        self.spans.truncate(KEPT);
        let services: BTreeSet<&Arc<str>> =
            self.spans.iter().take(RECENT).flat_map(BTreeMap::keys).collect();
        let sums = services.into_iter().map(|name| (Arc::clone(name), self.sum(name)));
        self.sums = sums.collect();
    }

    /// Returns a service's clients of the last ten seconds, and of the minute before.
    pub(super) fn spans(&self, service: &str) -> (ClientsSpan, ClientsSpan) {
        self.sums.get(service).cloned().unwrap_or_default()
    }

    fn sum(&self, service: &str) -> (ClientsSpan, ClientsSpan) {
        let spans: Vec<Option<&Frequent>> = self.spans.iter().map(|one| one.get(service)).collect();
        let (recent, before) = spans.split_at(RECENT.min(spans.len()));
        (sum(recent), sum(before))
    }
}

fn sum(spans: &[Option<&Frequent>]) -> ClientsSpan {
    let mut of = HashMap::new();
    let mut requests = 0;
    for frequent in spans.iter().flatten() {
        requests += frequent.requests;
        for (client, count) in &frequent.clients {
            *of.entry(*client).or_insert(0) += count;
        }
    }
    let named = of.into_iter().map(|(client, count)| (client.to_string(), count));
    ClientsSpan { seconds: spans.len() as u64 * SPAN_S, requests, of: named.collect() }
}

//! The demo's status line: the difference between two readings of the balancer's own counters, so
//! it includes traffic that the user adds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::histogram::HistogramTotals;
use model::{Cause, Moment};
use observe::Totals;

/// What had been counted at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    at: Moment,
    totals: Totals,
    /// Requests given to servers, by their zone.
    by_zone: BTreeMap<Arc<str>, u64>,
}

impl Look {
    pub(super) fn now(counters: &observe::Registry, registry: &decide::Registry) -> Look {
        let mut by_zone = BTreeMap::new();
        for service in &registry.current().services {
            for endpoint in &service.endpoints().all {
                if let Some(zone) = &endpoint.row.zone {
                    *by_zone.entry(Arc::clone(zone)).or_default() +=
                        endpoint.state.requests.load(Relaxed);
                }
            }
        }
        Look { at: os::clock::now(), totals: counters.totals(), by_zone }
    }
}

/// One line about the time from `before` to `after`: requests per second, the median time of each
/// service, answers by status and by what went wrong, requests by zone.
pub(super) fn line(before: &Look, after: &Look) -> String {
    let seconds = after.at.since(before.at).as_secs_f64().max(0.001);
    let ends = ends(before, after);
    let count: u64 = ends.iter().map(|(_, count)| count).sum();
    let mut line = format!("{:>7.1} req/s", count as f64 / seconds);
    // Writing to a String cannot fail.
    for (name, service) in &after.totals.services {
        let earlier = before.totals.services.get(name).map(|service| &service.total);
        match median(earlier, &service.total) {
            Some(time) => _ = write!(line, "   {name} {:>4} ms", time.as_millis()),
            None => _ = write!(line, "   {name}    - ms"),
        }
    }
    line.push_str("   ");
    for (name, count) in &ends {
        _ = write!(line, " {name}: {count}");
    }
    line.push_str("   ");
    for (zone, count) in &after.by_zone {
        let count = count.saturating_sub(before.by_zone.get(zone).copied().unwrap_or(0));
        _ = write!(line, " {zone}: {count}");
    }
    line
}

/// How many exchanges ended how: by the answer's class, and by cause where it was no success.
fn ends(before: &Look, after: &Look) -> Vec<(String, u64)> {
    let sum = |look: &Look, cause, class| -> u64 {
        let listeners = look.totals.listeners.values();
        listeners.map(|listener| listener.exchanges.get(cause, class)).sum()
    };
    let mut ends = Vec::new();
    for &cause in Cause::ALL {
        for class in 0..observe::counters::STATUS_CLASSES {
            let count = sum(after, cause, class).saturating_sub(sum(before, cause, class));
            if count > 0 {
                let status = if class == 0 { "no answer".to_owned() } else { format!("{class}xx") };
                let good = matches!(cause, Cause::Completed | Cause::Redirected | Cause::Responded);
                let name = if good { status } else { format!("{status} {}", cause.name()) };
                ends.push((name, count));
            }
        }
    }
    ends
}

/// The median of what was recorded between two looks, to two digits.
fn median(before: Option<&HistogramTotals>, after: &HistogramTotals) -> Option<Duration> {
    let at_most = |bound| {
        let earlier = before.map_or(0, |before| before.count_at_most(bound));
        after.count_at_most(bound).saturating_sub(earlier)
    };
    let count = at_most(Duration::MAX);
    if count == 0 {
        return None;
    }
    // The shortest time that at least half did not exceed, by halving the range it lies in.
    let (mut low, mut high) = (0_u64, u64::try_from(after.max().as_micros()).unwrap_or(u64::MAX));
    while low < high {
        let middle = low + (high - low) / 2;
        if at_most(Duration::from_micros(middle)) * 2 >= count {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(Duration::from_micros(low))
}

#[cfg(test)]
mod tests {
    use model::Timings;

    use super::*;

    fn count(shard: &observe::Shard, cause: Cause, status: u16, total_ms: u64) {
        let timings = Timings { total: Duration::from_millis(total_ms), ..Timings::default() };
        shard.service(&"catalog".into()).exchange_ended(cause, Some(status), 1, &timings);
        shard.listener(&"public".into()).exchanges.count(cause, Some(status));
    }

    fn look(at_ms: u64, counters: &observe::Registry, by_zone: [u64; 2]) -> Look {
        let zones = ["eu-west-1a", "eu-west-1b"].map(Arc::from);
        Look {
            at: Moment::from_millis(at_ms),
            totals: counters.totals(),
            by_zone: zones.into_iter().zip(by_zone).collect(),
        }
    }

    #[test]
    fn it_tells_what_happened_between_two_looks() {
        let counters = observe::Registry::new();
        let shard = counters.add_shard();
        for _ in 0..50 {
            count(&shard, Cause::Completed, 200, 5);
        }
        let before = look(1_000, &counters, [50, 0]);
        for _ in 0..24 {
            count(&shard, Cause::Completed, 200, 300);
        }
        count(&shard, Cause::QueueFull, 429, 1);
        let after = look(3_000, &counters, [74, 0]);
        assert_eq!(
            line(&before, &after),
            "   12.5 req/s   catalog  300 ms    2xx: 24 4xx queue_full: 1    eu-west-1a: 24 \
             eu-west-1b: 0"
        );
        assert!(line(&after, &after).starts_with("    0.0 req/s   catalog    - ms"));
    }
}

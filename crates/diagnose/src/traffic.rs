//! What the rules on traffic share: names, groups of servers that may be at fault together, and what is
//! proved about two distributions of durations.

use std::collections::BTreeMap;

use model::histogram::{HistogramTotals, bounds};

use crate::evidence::Units;
use crate::facts::{ServerSpan, TrafficServer, TrafficService};
use crate::finding::Finding;
use crate::words;

/// One of a server's spans.
pub(crate) type SpanOf = fn(&TrafficServer) -> &ServerSpan;

/// Servers of a service that may be at fault together: one, or all of a zone.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// `10.0.0.2:80 of api`, `zone b of api`.
    pub(crate) name: String,
    pub(crate) servers: Vec<&'a TrafficServer>,
}

impl Group<'_> {
    /// Returns commands that take these servers out, at most `max`.
    pub(crate) fn drains(&self, service: &TrafficService, max: usize) -> Vec<String> {
        let servers = self.servers.iter().take(max);
        servers.map(|one| words::drain(&service.name, one.address)).collect()
    }

    /// Says which servers of which service a finding is about.
    pub(crate) fn mark(&self, finding: Finding, service: &TrafficService) -> Finding {
        finding.about(&service.name, self.servers.iter().map(|one| one.address))
    }
}

impl TrafficService {
    /// Returns a server as a group.
    pub(crate) fn alone<'a>(&self, server: &'a TrafficServer) -> Group<'a> {
        Group { name: format!("{} of {}", server.address, self.name), servers: vec![server] }
    }

    /// Returns the zones that have several of its servers, but not all.
    pub(crate) fn zones(&self) -> Vec<Group<'_>> {
        let mut zones: BTreeMap<&str, Vec<&TrafficServer>> = BTreeMap::new();
        for server in &self.servers {
            if let Some(zone) = &server.zone {
                zones.entry(zone).or_default().push(server);
            }
        }
        let is_part = |servers: &Vec<_>| servers.len() > 1 && servers.len() < self.servers.len();
        let zones = zones.into_iter().filter(|(_, servers)| is_part(servers));
        let named =
            |(zone, servers)| Group { name: format!("zone {zone} of {}", self.name), servers };
        zones.map(named).collect()
    }
}

/// Returns the durations of several servers together.
pub(crate) fn together<'a>(
    servers: impl IntoIterator<Item = &'a &'a TrafficServer>,
    span: SpanOf,
) -> HistogramTotals {
    let mut sum = HistogramTotals::default();
    for server in servers {
        span(server).first_byte.add_to(&mut sum);
    }
    sum
}

/// A duration, and the share of two groups' responses that took longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Separation {
    /// In microseconds.
    pub(crate) bound_us: u64,
    pub(crate) slower: Units,
    pub(crate) others: Units,
}

/// Returns a duration that is proved to be exceeded by more than a share of the responses in `slower`, and by
/// less than that share of those in `others`, for one of `limits`. `alarm_chance`: the probability of a false
/// alarm of each test.
pub(crate) fn separation(
    slower: &HistogramTotals,
    others: &HistogramTotals,
    limits: &[f64],
    alarm_chance: f64,
) -> Option<Separation> {
    let (count, others_count) = (slower.count(), others.count());
    limits.iter().find_map(|&limit| {
        let (mut below, mut others_below) = (0, 0);
        let buckets = slower.counts().iter().zip(others.counts()).enumerate();
        for (bucket, (in_slower, in_others)) in buckets {
            below += in_slower;
            others_below += in_others;
            if Units::new(others_below, others_count).exceeds_at(1.0 - limit, alarm_chance) {
                let found = Separation {
                    bound_us: bounds(bucket).1,
                    slower: Units::new(count - below, count),
                    others: Units::new(others_count - others_below, others_count),
                };
                return found.slower.exceeds_at(limit, alarm_chance).then_some(found);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use model::histogram::bucket_of;

    use super::*;
    use crate::evidence::alarm_chance;

    const LIMITS: &[f64] = &[0.4, 0.15, 0.05];

    fn totals(counts: &[(u64, u64)]) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        totals.add(counts.iter().map(|&(us, count)| (bucket_of(us), count)), 0, u64::MAX);
        totals
    }

    #[test]
    fn few_responses_are_enough_if_all_are_slow() {
        let peers = totals(&[(20_000, 1_000), (40_000, 10)]);
        assert!(separation(&totals(&[(1_500_000, 6)]), &peers, LIMITS, alarm_chance(1)).is_none());
        let found =
            separation(&totals(&[(1_500_000, 9)]), &peers, LIMITS, alarm_chance(1)).unwrap();
        assert_eq!(found.slower, Units::new(9, 9));
        assert!((20_000..40_000).contains(&found.bound_us), "{found:?}");
    }

    #[test]
    fn a_tail_like_that_of_the_others_proves_nothing() {
        let one = totals(&[(20_000, 330), (900_000, 20)]);
        let peers = totals(&[(20_000, 660), (900_000, 33)]);
        assert_eq!(separation(&one, &peers, LIMITS, alarm_chance(3)), None);
        // Nor do others that are not known well enough.
        assert_eq!(
            separation(&totals(&[(900_000, 50)]), &totals(&[(20_000, 9)]), LIMITS, alarm_chance(3)),
            None
        );
    }

    #[test]
    fn zones_are_groups_if_they_have_several_servers() {
        let server = |address: &str, zone: &str| {
            serde_json::from_value(serde_json::json!({"address": address, "zone": zone})).unwrap()
        };
        let service = TrafficService {
            name: "api".to_owned(),
            servers: vec![
                server("10.0.0.1:80", "a"),
                server("10.0.0.2:80", "a"),
                server("10.0.1.1:80", "b"),
            ],
            ..TrafficService::default()
        };
        let names: Vec<String> = service.zones().into_iter().map(|group| group.name).collect();
        assert_eq!(names, ["zone a of api"]);
        let only = TrafficService { servers: service.servers[..2].to_vec(), ..service };
        assert!(only.zones().is_empty());
    }
}

//! What the balancer's counts say of its servers between two samples, and where what is wrong has
//! its place: at one server, in a zone, or everywhere. Shared by the rules about the balancer.

use std::collections::HashMap;

use model::Address;

use crate::evidence::Units;
use crate::facts::{Balancer, BalancerSample, Facts, ServerCounts};
use crate::finding::Finding;
use crate::words;

/// A server's counts between the samples.
#[derive(Clone, Debug)]
pub(crate) struct Server<'a> {
    pub(crate) now: &'a ServerCounts,
    pub(crate) attempts: u64,
    pub(crate) connects: Option<u64>,
    connects_repeated: Option<u64>,
    pub(crate) syn_retries: u64,
    pub(crate) segments_sent: u64,
    pub(crate) segments_sent_again: u64,
    loss_episodes: Option<u64>,
    pub(crate) reordered: u64,
}

impl Server<'_> {
    /// Connections, and how many of them had a SYN sent again.
    pub(crate) fn handshakes(&self) -> Units {
        let connects = self.connects.unwrap_or(self.attempts).max(1);
        Units::new(self.connects_repeated.unwrap_or(self.syn_retries), connects)
    }

    /// Segments, and how many of them were sent again.
    pub(crate) fn lost(&self) -> Units {
        Units::new(self.segments_sent_again, self.segments_sent)
    }

    /// Segments, and how many of them had been overtaken.
    pub(crate) fn overtaken(&self) -> Units {
        Units::new(self.reordered, self.segments_sent)
    }

    /// Whether loss episodes prove that more than `limit` of the segments are lost, when `peers` servers
    /// are judged. An episode is a sample with segments sent again; where one sample stands for many
    /// exchanges it hides several, and then groups of segments are the units.
    pub(crate) fn loses(&self, limit: f64, peers: usize) -> bool {
        let groups = grouped(self.lost());
        let episodes =
            Units::new(self.loss_episodes.unwrap_or(groups.affected), self.segments_sent);
        episodes.exceeds(limit, peers) || groups.exceeds(limit, peers)
    }

    /// The same of segments that were overtaken.
    pub(crate) fn reorders(&self, limit: f64, peers: usize) -> bool {
        grouped(self.overtaken()).exceeds(limit, peers)
    }

    /// `10.0.0.2:80 of api`.
    pub(crate) fn name(&self) -> String {
        format!("{} of {}", self.now.address, self.now.service)
    }
}

/// Segments of one episode are lost together, commonly no more than the initial window (RFC 6928): that
/// many count as one unit.
fn grouped(segments: Units) -> Units {
    const GROUP: u64 = 10;
    Units::new(segments.affected / GROUP, segments.of / GROUP)
}

/// The balancer's samples before the newest, the latest first, each by service and address: a look at thousands
/// of servers finds each of them at once.
pub(crate) struct Spans<'a>(Vec<HashMap<(&'a str, Address), &'a ServerCounts>>);

impl<'a> Spans<'a> {
    /// Empty where there is no balancer, or one sample.
    pub(crate) fn of(facts: &'a Facts) -> Spans<'a> {
        let samples = facts.balancer.get().map_or(&[][..], |balancer| balancer.samples.as_slice());
        let earlier = samples.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let key = |one: &'a ServerCounts| ((one.service.as_str(), one.address), one);
        let by_server = |sample: &'a BalancerSample| sample.servers.iter().map(key).collect();
        Spans(earlier.iter().rev().map(by_server).collect())
    }

    /// Returns a server's counts between each sample and the newest, the shortest span first: what began a
    /// moment ago fills the shortest, and is a small part of the longest.
    pub(crate) fn up_to<'s>(
        &'s self,
        now: &'a ServerCounts,
    ) -> impl Iterator<Item = Server<'a>> + use<'s, 'a> {
        let key = (now.service.as_str(), now.address);
        // One that is new has done all of its work in between.
        self.0.iter().filter_map(move |sample| between(sample.get(&key).copied(), now))
    }

    /// Whether what `of` counts has ended at `server`, though it exceeds `limit` in its span: by the time
    /// between the newest two of at least three samples.
    pub(crate) fn has_ended(
        &self,
        server: &Server<'a>,
        of: fn(&Server<'_>) -> Units,
        limit: f64,
    ) -> bool {
        let newest = self.up_to(server.now).next().filter(|_| self.0.len() >= 2);
        newest.is_some_and(|newest| of(server).has_ended(of(&newest), limit))
    }
}

/// The balancer's servers between its first sample and its last, and the seconds between; `None`
/// where there is no balancer, or too few samples.
pub(crate) fn servers<'a>(facts: &'a Facts, spans: &Spans<'a>) -> Option<(Vec<Server<'a>>, f64)> {
    let balancer: &Balancer = facts.balancer.get()?;
    let (from, last) = (balancer.samples.first()?.at_ms, balancer.samples.last()?);
    let seconds = last.at_ms.checked_sub(from).filter(|&ms| ms > 0)? as f64 / 1000.0;
    let first = spans.0.last()?;
    let longest = |now: &'a ServerCounts| {
        between(first.get(&(now.service.as_str(), now.address)).copied(), now)
    };
    Some((last.servers.iter().filter_map(longest).collect(), seconds))
}

/// `None` when counts went backwards: the server was taken away and came again.
fn between<'a>(then: Option<&ServerCounts>, now: &'a ServerCounts) -> Option<Server<'a>> {
    let since = |of: fn(&ServerCounts) -> u64| of(now).checked_sub(then.map_or(0, of));
    let known =
        |of: fn(&ServerCounts) -> Option<u64>| of(now)?.checked_sub(then.and_then(of).unwrap_or(0));
    Some(Server {
        now,
        attempts: since(|one| one.attempts)?,
        connects: known(|one| one.connects.get().copied()),
        connects_repeated: known(|one| one.connects_repeated.get().copied()),
        syn_retries: since(|one| one.syn_retries)?,
        segments_sent: since(|one| one.segments_sent)?,
        segments_sent_again: since(|one| one.segments_sent_again)?,
        loss_episodes: known(|one| one.loss_episodes.get().copied()),
        reordered: since(|one| one.reordered)?,
    })
}

/// Returns the affected servers of services that have unaffected ones; the others do not show whether the
/// cause is at the servers or near this host.
pub(crate) fn at_fault<'a>(judged: &[(&Server<'a>, bool)]) -> Vec<&'a ServerCounts> {
    let has_good = |service: &str| judged.iter().any(|(one, is)| !is && one.now.service == service);
    let affected = judged.iter().filter(|(one, is)| *is && has_good(&one.now.service));
    affected.map(|(one, _)| one.now).collect()
}

/// Names the servers in the finding if all belong to one service.
pub(crate) fn mark(finding: Finding, servers: &[&ServerCounts]) -> Finding {
    match servers {
        [first, rest @ ..] if rest.iter().all(|one| one.service == first.service) => {
            finding.about(&first.service, servers.iter().map(|one| one.address))
        }
        _ => finding,
    }
}

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At some servers, by name.
    Servers(Vec<String>),
    /// At every server of one zone, and at none of the others.
    Zone(String),
    /// At every server, in more than one zone or without zones.
    Everywhere,
}

impl Place {
    /// Of the servers that can be judged, those that are affected. `None` when none is.
    pub(crate) fn of(judged: &[(&Server<'_>, bool)]) -> Option<Place> {
        let affected: Vec<&Server<'_>> =
            judged.iter().filter(|(_, is)| *is).map(|(server, _)| *server).collect();
        let first = affected.first()?;
        if affected.len() == judged.len() && judged.len() > 1 {
            return Some(Place::Everywhere);
        }
        let zone = first.now.zone.as_ref();
        let in_zone = |server: &Server<'_>| server.now.zone.as_ref() == zone;
        let others_well = judged.iter().all(|(server, is)| *is == in_zone(server));
        match zone {
            Some(zone) if others_well && affected.len() > 1 => Some(Place::Zone(zone.clone())),
            _ => Some(Place::Servers(affected.iter().map(|one| one.name()).collect())),
        }
    }

    /// For a finding's subject.
    pub(crate) fn subject(&self) -> String {
        match self {
            Place::Servers(names) => words::list(names, 3),
            Place::Zone(zone) => format!("zone {zone}"),
            Place::Everywhere => "all servers".to_owned(),
        }
    }

    /// What that usually means.
    pub(crate) fn meaning(&self) -> &'static str {
        match self {
            Place::Servers(_) => {
                "Only a part of the requests is slow, which averages hide. Other servers are not affected, so these servers or the path to them are at fault."
            }
            Place::Zone(_) => {
                "Only a part of the requests is slow, which averages hide. Other zones are not affected, so the path to this zone is at fault."
            }
            Place::Everywhere => {
                "All servers are affected, so the cause is near this host: its interface, its instance's limits, its provider."
            }
        }
    }
}

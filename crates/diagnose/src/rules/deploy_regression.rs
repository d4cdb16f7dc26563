//! A new version, or a reload, made a service slower or made it fail.
//!
//! **When.** The version of servers changed in the last hour, by their label (`version`) or by the response field
//! that `version_field` names. Some servers run the new version and some do not, and in the same seconds (since the
//! last change, at most a minute) it is proved that the servers of the new version, together, respond more slowly
//! (a median 1.5 times as long and 5 ms longer) or fail more (2 % of the requests, twice the other share)
//! than the others, with at most one false alarm a month; and they did not do so before their own change, but did in
//! the minute after it. Or all servers changed, or a
//! reload changed the service's settings or servers, in the last ten minutes, and since then the service responds more slowly (2.5 times,
//! 5 ms) or fails more (5 %, three times the share) than in the minute before. This must have begun in the minute after the
//! change. It is not reported if the service gets 1.5 times as many requests as before, if requests wait
//! for servers, or if a single server is the cause (`server_slow`, `server_failing`).
//!
//! **Why.** Deployments and changes of the configuration cause most incidents. Requests of the same kinds go to
//! both versions, so a difference between them is caused by the version. Before and after a change,
//! something else may have begun at the same time: then the finding is only *likely*, as it is with two servers, or with
//! servers of which nothing is known from the time before. It is *possible* if requests
//! choose their server (`balance = "hash"`, affinity).
//!
//! **What to do.** Drain the servers of the new version, or go back to the old one. After a reload, restore the
//! configuration before it (`weir reload` prints what a reload changes). Compare the logs of both versions. A version that only starts
//! slowly recovers within seconds, and the finding ends: `slow_start` gives it fewer requests in that time.

use crate::evidence::{Units, alarm_chance};
use crate::facts::{Traffic, TrafficChange, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::sides::{Limits, Side, Worse};
use crate::traffic::{Group, SpanOf};
use crate::view::Out;
use crate::words;

use super::{server_failing, server_slow};

/// Side by side, versions get requests of the same kinds at the same time.
const SIDE_BY_SIDE: Limits = Limits { slower_times: 1.5, failed_share: 0.02, failed_times: 2.0 };
/// The new version must also be this much worse than the same servers were before.
const THAN_ITSELF: Limits = Limits { slower_times: 1.2, failed_share: 0.0, failed_times: 1.5 };
/// Trouble just before a change is not its effect.
const THAN_JUST_BEFORE: Limits =
    Limits { slower_times: 1.5, failed_share: 0.02, failed_times: 2.0 };
/// Before and after, other things may have changed too.
const BEFORE_AND_AFTER: Limits =
    Limits { slower_times: 2.5, failed_share: 0.05, failed_times: 3.0 };

/// The probability that trouble from before a change is blamed on it. A weaker proof is enough here: the one
/// against the other side has been given. It is sought at every look in the minutes after a change, so that the
/// probability over all of them is many times this.
const BLAMED_CHANCE: f64 = 1e-5;

/// A second or two may be a pause.
const SIDE_BY_SIDE_S_MIN: u64 = 3;
const SINCE_S_MIN: u64 = 5;
/// From here on, seconds just before a change may be among those that are compared. Of response times, they can
/// only hide that they are longer now, since they were not so then. For failures see [`of_change`].
const CHANGED_S_MIN: u64 = 2;
const BEFORE_S_MIN: u64 = 10;
/// Later, what was before says too little about the present.
const COMPARED_S_MAX: u64 = 600;
/// From here on, the minute after the change is known apart.
const ONSET_S: u64 = 60;
/// So much more work explains longer times.
const GROWTH_MAX: f64 = 1.5;
const DRAINED_MAX: usize = 3;

const FRESH: SpanOf = |one| &one.fresh;
const RECENT: SpanOf = |one| &one.recent;
/// What is compared side by side, and how many seconds before the change may be among it.
const SPANS: [(SpanOf, u64); 3] = [(|one| &one.since_version, 0), (FRESH, 9), (RECENT, 0)];

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let judged = traffic.judged();
    for service in traffic.services.iter().filter(|service| !service.changes.is_empty()) {
        let found = side_by_side(service, judged).or_else(|| before_and_after(service, judged));
        if let Some(found) = found {
            out.push(finding(out, service, &found));
        }
    }
}

/// A change that made something worse.
struct Found<'a> {
    change: &'a TrafficChange,
    /// The servers at fault; empty: all of them.
    servers: Vec<&'a TrafficServer>,
    /// Whether it is known that they were not worse before.
    has_past: bool,
    /// The other side, as it is named in a sentence.
    other_name: String,
    worse: Worse,
    side: Side,
    other: Side,
}

fn side(servers: &[&TrafficServer], span: SpanOf) -> Side {
    Side::of(servers.iter().map(|one| span(one)))
}

/// Compares the servers of a new version with the others, in the same seconds.
fn side_by_side(service: &TrafficService, judged: usize) -> Option<Found<'_>> {
    let changes = || service.changes.iter().filter(|change| change.version.is_some());
    let since_s = changes().map(|change| change.since_s).min()?;
    // One that has just come back is allowed to be slower.
    let warm = || service.servers.iter().filter(|one| !one.is_starting);
    changes().find_map(|change| {
        let (servers, others): (Vec<_>, Vec<_>) =
            warm().partition(|one| one.version == change.version);
        let before = Side::of_running(servers.iter().map(|one| &one.before_version));
        let fresh = (side(&servers, FRESH), side(&others, FRESH));
        // Those that get no requests any more have been drained.
        if side(&servers, RECENT).sent == 0 {
            return None;
        }
        SPANS.iter().find_map(|&(span, margin_s)| {
            let (side, other) = (side(&servers, span), side(&others, span));
            let is_since =
                (SIDE_BY_SIDE_S_MIN..=since_s.saturating_add(margin_s)).contains(&side.seconds);
            let is_comparable = is_since && since_s >= CHANGED_S_MIN;
            if !is_comparable || side.sent == 0 || other.sent == 0 {
                return None;
            }
            let worse = SIDE_BY_SIDE.proved(&side, &other, alarm_chance(judged))?;
            let worse = of_change(worse, &side, since_s)?;
            let worse = than(THAN_ITSELF, worse, &side, &before)?;
            let is_still = SIDE_BY_SIDE.is_still(&worse, &fresh.0, &fresh.1);
            let found = Found {
                change,
                servers: servers.clone(),
                has_past: before.median().is_some(),
                other_name: version_of(&others),
                worse,
                side,
                other,
            };
            (is_still && began_beside(change, &found.worse)).then_some(found)
        })
    })
}

/// Whether the servers of the version were worse than the others already in the minute after they got it. Later
/// trouble has another cause.
fn began_beside(change: &TrafficChange, worse: &Worse) -> bool {
    if change.since_s <= ONSET_S {
        return true;
    }
    let Some([own, others]) = &change.onset_sides else { return false };
    let (own, others) = (Side::of([own]), Side::of([others]));
    worse.slower.is_some() && SIDE_BY_SIDE.is_slower(&own, &others)
        || worse.is_failing && SIDE_BY_SIDE.is_failing(&own, &others)
}

/// Leaves what seconds before the change cannot have caused: a server that is restarted fails requests before its
/// new version responds.
fn of_change(worse: Worse, side: &Side, since_s: u64) -> Option<Worse> {
    let is_failing = worse.is_failing && side.seconds <= since_s;
    (is_failing || worse.slower.is_some()).then_some(Worse { is_failing, ..worse })
}

/// Leaves what is proved to be worse than before, too: a server may always have been slower than the others, or a
/// change may be the answer to trouble. Without responses in that time, nothing is known of how long they took, and
/// without requests nothing of failures.
fn than(limits: Limits, worse: Worse, side: &Side, before: &Side) -> Option<Worse> {
    let proved = limits.proved(side, before, BLAMED_CHANCE);
    let (is_slower, fails_more) = proved.map_or((false, false), |than_before| {
        (than_before.slower.is_some(), than_before.is_failing)
    });
    let slower = worse.slower.filter(|_| is_slower || before.median().is_none());
    let is_failing = worse.is_failing && (fails_more || before.sent == 0);
    (slower.is_some() || is_failing).then_some(Worse { slower, is_failing })
}

/// Names the version of some servers.
fn version_of(servers: &[&TrafficServer]) -> String {
    let mut versions = servers.iter().map(|one| one.version.as_deref());
    match versions.next().flatten() {
        Some(first) if versions.all(|one| one == Some(first)) => format!("version {first}"),
        _ => "the other servers".to_owned(),
    }
}

/// Compares a service before and since a change of all its servers, or a reload.
fn before_and_after(service: &TrafficService, judged: usize) -> Option<Found<'_>> {
    let is_of_all = |change: &TrafficChange| {
        let mut busy = service.servers.iter().filter(|one| one.since_version.sent > 0);
        change.version.is_none() || busy.all(|one| one.version == change.version)
    };
    let fresh = side(&service.servers.iter().collect::<Vec<_>>(), FRESH);
    let changes = service.changes.iter().filter(|one| one.since_s <= COMPARED_S_MAX);
    let found = changes.filter(|one| is_of_all(one)).find_map(|change| {
        let (other, just_before) =
            (Side::of([&change.before]), Side::of_running([&change.just_before]));
        let is_early = (CHANGED_S_MIN..ONSET_S).contains(&change.since_s);
        let sides = [Some(Side::of([&change.since])), is_early.then(|| fresh.clone())];
        let (worse, side) = sides.into_iter().flatten().find_map(|side| {
            let is_comparable = fresh.sent > 0
                && side.seconds >= SINCE_S_MIN
                && other.seconds >= BEFORE_S_MIN
                && side.rate() <= GROWTH_MAX * other.rate();
            let worse = BEFORE_AND_AFTER
                .proved(&side, &other, alarm_chance(judged))
                .filter(|_| is_comparable)?;
            let worse = of_change(worse, &side, change.since_s)?;
            Some((than(THAN_JUST_BEFORE, worse, &side, &just_before)?, side))
        })?;
        let began_with_it = change.since_s <= ONSET_S || worse_at_onset(change, &other, &worse);
        let is_still = BEFORE_AND_AFTER.is_still(&worse, &fresh, &other);
        let other_name = "before".to_owned();
        let (servers, has_past) = (Vec::new(), true);
        let found = Found { change, servers, has_past, other_name, worse, side, other };
        (began_with_it && is_still).then_some(found)
    })?;
    let has_other_cause = service.queue_length > 0
        || service.recent.queued > 0
        || server_slow::finds(service, judged)
        || server_failing::find(service, RECENT).is_some();
    (!has_other_cause).then_some(found)
}

/// Whether the minute after the change was worse in the same way.
fn worse_at_onset(change: &TrafficChange, before: &Side, worse: &Worse) -> bool {
    let Some(onset) = &change.onset else { return false };
    let onset = Side::of([onset]);
    worse.slower.is_some() && BEFORE_AND_AFTER.is_slower(&onset, before)
        || worse.is_failing && BEFORE_AND_AFTER.is_failing(&onset, before)
}

fn finding(out: &Out, service: &TrafficService, found: &Found<'_>) -> Finding {
    let Found { change, servers, has_past, .. } = found;
    let name = change.name();
    let certainty = match servers.as_slice() {
        _ if service.is_bound => Certainty::Possible,
        // Something else may have begun at the same time, or at one of two servers.
        [] => Certainty::Likely,
        _ if !has_past || service.servers.len() <= 2 => Certainty::Likely,
        _ => Certainty::Certain,
    };
    let subject = format!("{name} of {}", service.name);
    let finding = out.finding(subject, Severity::Warning, certainty, what(service, found));
    let finding = finding
        .about(&service.name, servers.iter().map(|one| one.address))
        .evidences(evidence(found))
        .why(why(service, found));
    let finding = if servers.is_empty() {
        finding
    } else {
        let group = Group { name: name.clone(), servers: servers.clone() };
        let drains = group.drains(service, DRAINED_MAX);
        let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
        let action = match servers.len().saturating_sub(DRAINED_MAX) {
            0 => format!("Drain the servers with {name}"),
            more => format!("Drain the servers with {name}: these and {more} more"),
        };
        finding.remedy(action, &drains, "the other servers take their load")
    };
    let (action, commands) = match (&change.version, &change.version_before) {
        (Some(_), Some(before)) => (format!("Go back to version {before}"), &[][..]),
        (Some(_), None) => ("Go back to the version before".to_owned(), &[][..]),
        (None, _) => {
            ("Restore the configuration file before this reload".to_owned(), &["weir reload"][..])
        }
    };
    finding
        .remedy(action, commands, "the other changes that came with it are undone too")
        .verify("weir status shows response times and failures as before")
        .source(&["the balancer's histograms and counters by server, and when versions changed"])
}

fn what(service: &TrafficService, found: &Found<'_>) -> String {
    let Found { change, servers, other_name, worse, side, other, .. } = found;
    let failed = |side: &Side| words::percent(side.failures().share());
    let median = |side: &Side| words::duration(side.median().unwrap_or_default());
    let name = &service.name;
    let (since, whose) = match &change.version {
        Some(version) => (format!("Since {name} runs version {version}"), "its".to_owned()),
        None => (format!("Since the reload to {}", change.name()), format!("{name}'s")),
    };
    let version = change.version.as_deref().unwrap_or_default();
    match (servers.is_empty(), worse.is_failing) {
        (false, true) => format!(
            "Version {version} of {name} fails {} of its requests, {other_name} {}.",
            failed(side),
            failed(other),
        ),
        (false, false) => format!(
            "Version {version} of {name} is slow: its median response time is {}, that of {other_name} {}.",
            median(side),
            median(other),
        ),
        (true, true) => {
            format!("{since}, {} of {whose} requests fail, before {}.", failed(side), failed(other))
        }
        (true, false) => format!(
            "{since}, {whose} median response time is {}, before {}.",
            median(side),
            median(other)
        ),
    }
}

/// The figures of both sides.
fn evidence(found: &Found<'_>) -> Vec<Evidence> {
    let Found { change, servers, other_name, worse, side, other, .. } = found;
    let own_name = if servers.is_empty() { "since".to_owned() } else { change.name() };
    let failed = |name: &str, side: &Side| {
        let Units { affected, of } = side.failures();
        let figure = format!(
            "{} of {} in {} s ({})",
            words::thousands(affected),
            words::plural(of, "request"),
            side.seconds,
            words::percent(side.failures().share()),
        );
        Evidence::text(format!("failed, {name}"), figure)
    };
    let times = |name: &str, side: &Side| {
        let time = |q| words::duration(side.first_byte.quantile(q).unwrap_or_default());
        let responses = words::plural(side.first_byte.count(), "response");
        let figure = format!(
            "median {}, 99th percentile {} of {responses} in {} s",
            time(0.5),
            time(0.99),
            side.seconds
        );
        Evidence::text(format!("response times, {name}"), figure)
    };
    let mut all = Vec::new();
    let both = |of: &dyn Fn(&str, &Side) -> Evidence| [of(&own_name, side), of(other_name, other)];
    if worse.is_failing {
        all.extend(both(&failed));
    }
    if let Some(separation) = &worse.slower {
        let bound = words::duration(std::time::Duration::from_micros(separation.bound_us));
        all.extend(both(&times));
        let slower = |name: &str, units: Units| {
            Evidence::number(format!("slower than {bound}, {name}"), units.share() * 100.0, "%")
        };
        all.push(slower(&own_name, separation.slower));
        all.push(slower(other_name, separation.others));
    } else {
        all.extend(both(&times));
    }
    if !worse.is_failing {
        all.extend(both(&failed));
    }
    all.push(Evidence::count("last change", change.since_s, "s ago"));
    all
}

fn why(service: &TrafficService, found: &Found<'_>) -> &'static str {
    match (found.servers.is_empty(), found.has_past) {
        (false, _) if service.is_bound => {
            "The servers of the new version are worse than the others since the change. Requests choose their server here, so they may get other requests."
        }
        (false, false) => {
            "Both get requests of the same kinds in the same seconds. The servers of the new version are new, too: it may be their hosts."
        }
        (false, true) => {
            "Both get requests of the same kinds in the same seconds, and the servers of the new version were not worse before the change. Each further server that gets this version makes it worse."
        }
        (true, _) => {
            "It began with the change, the number of requests has not grown much, and no single server is the cause. Something else may have begun at the same time."
        }
    }
}

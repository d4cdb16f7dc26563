//! The account of a bundle's span: what is wrong, what happened in which order, what did not cause it, and what
//! to do.

use std::time::Duration;

use admin_api::changes::{Change, Changed, Changes, Effect};
use admin_api::findings::{Findings, SeenFinding};
use admin_api::requests::{EndedRequest, EndedRequests};
use admin_api::status::Status;
use diagnose::finding::Remedy;
use diagnose::words;
use serde::Serialize;
use serde_json::Value;

use super::bundle::Bundle;
use super::excluded::{Excluded, Trouble, excluded};
use super::moves::{Event, moves};
use super::series::Past;

/// Events that are listed.
const EVENTS_MAX: usize = 40;

/// Other findings.
const ALSO_MAX: usize = 5;

/// Examples of requests.
const EXAMPLES_MAX: usize = 3;

/// A change precedes trouble that begins within this time.
const PRECEDES_MS: u64 = 120_000;

/// A change is seen up to a second after it happened, and the beginning of trouble is known to a row.
const SEEN_LATE_MS: u64 = 2_000;

/// A load that moves this close to the beginning of trouble, before or after it, may be its cause.
const LOAD_NEAR_MS: u64 = 15_000;

/// The account.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Account {
    pub(super) host: String,
    pub(super) from_unix_ms: u64,
    pub(super) at_unix_ms: u64,
    /// The length of the history's rows, if there is a history.
    pub(super) step_s: Option<f64>,
    /// What is wrong, or was; null: nothing is known to be.
    pub(super) headline: Option<String>,
    /// Whether it is wrong at the end of the span.
    pub(super) is_present: bool,
    /// What follows from it.
    pub(super) consequences: Vec<String>,
    /// What else is wrong at the end of the span.
    pub(super) also: Vec<String>,
    pub(super) events: Vec<Event>,
    pub(super) events_left_out: usize,
    pub(super) ruled_out: Vec<String>,
    pub(super) unknown: Vec<String>,
    /// The changes that precede it; null: they are not known.
    pub(super) preceded_by: Option<Vec<String>>,
    pub(super) remedy: Option<String>,
    pub(super) commands: Vec<String>,
    pub(super) examples: Vec<String>,
    /// What the bundle does not contain, and why.
    pub(super) missing: Vec<String>,
}

/// Returns the account of a bundle.
pub(crate) fn account(bundle: &Bundle) -> Account {
    let past = Past::of(&bundle.history);
    let changes = bundle.answer::<Changes>("changes").map(|answer| answer.changes);
    let workers = bundle.answer::<Status>("status").map(|status| status.workers);
    let findings = bundle.answer::<Findings>("findings").unwrap_or_default();
    let mut events: Vec<Event> = changes.iter().flatten().map(changed).collect();
    events.extend(moves(&past));
    events.retain(|event| (bundle.from_unix_ms..=bundle.at_unix_ms).contains(&event.at_unix_ms));
    // What happened in the same second: first the changes, then their effects on servers, then on services.
    events.sort_by_key(|event| {
        let rank = if event.measure.is_none() { 0 } else { 1 + u8::from(event.servers.is_empty()) };
        (event.at_unix_ms / 1_000, rank, event.at_unix_ms)
    });

    let mut account = Account {
        host: bundle.host.clone(),
        from_unix_ms: bundle.from_unix_ms,
        at_unix_ms: bundle.at_unix_ms,
        step_s: (!past.ended_unix_ms.is_empty()).then_some(past.step_s),
        missing: missing(bundle, &findings, &past),
        ..Account::default()
    };
    if let Some(lead) = Lead::of(&findings, &events) {
        let first = first_trouble(&events, &lead);
        let began = first.map_or(lead.seen_unix_ms, |event| event.at_unix_ms);
        account.exclude((&lead, began), (&past, &events), workers);
        account.preceded_by = changes.map(|changes| preceding(&lead, began, &changes));
        account.examples = examples(bundle, &lead);
        account.take(lead);
        let present = by_importance(&findings).into_iter().skip(1).filter(|seen| seen.is_present);
        account.also = present.take(ALSO_MAX).map(|seen| seen.finding.what.clone()).collect();
    }
    account.events_left_out = shorten(&mut events);
    account.events = events;
    account
}

/// The trouble that the account is about.
#[derive(Debug, Default)]
struct Lead {
    what: String,
    service: Option<String>,
    servers: Vec<String>,
    is_present: bool,
    /// When it was seen first.
    seen_unix_ms: u64,
    consequences: Vec<String>,
    remedy: Option<Remedy>,
}

impl Lead {
    /// Chooses a finding; without one, the last finding of the span; without any, the first figure that moved to
    /// trouble.
    fn of(findings: &Findings, events: &[Event]) -> Option<Lead> {
        if let Some(seen) = by_importance(findings).first() {
            return Some(Lead::of_finding(seen));
        }
        let ended = events.iter().rev().find(|event| event.is_finding && event.is_trouble());
        let first = || events.iter().find(|event| event.is_trouble());
        ended.or_else(first).map(|event| Lead {
            what: event.what.clone(),
            service: event.service.clone(),
            servers: event.servers.clone(),
            seen_unix_ms: event.at_unix_ms,
            ..Lead::default()
        })
    }

    fn of_finding(seen: &SeenFinding) -> Lead {
        let finding = &seen.finding;
        Lead {
            what: finding.what.clone(),
            service: finding.service.clone(),
            servers: finding.servers.clone(),
            is_present: seen.is_present,
            seen_unix_ms: seen.first_seen_unix_ms,
            consequences: finding.consequences.iter().map(|one| one.what.clone()).collect(),
            remedy: finding.remedy.first().cloned(),
        }
    }
}

impl Account {
    fn take(&mut self, lead: Lead) {
        self.headline = Some(lead.what);
        self.is_present = lead.is_present;
        self.consequences = lead.consequences;
        if let Some(Remedy { action, commands, .. }) = lead.remedy {
            (self.remedy, self.commands) = (Some(action), commands);
        }
    }

    fn exclude(
        &mut self,
        (lead, began): (&Lead, u64),
        (past, events): (&Past, &[Event]),
        workers: Option<usize>,
    ) {
        let service = lead.service.as_ref().and_then(|name| past.services.get(name));
        if let Some(service) = service {
            let trouble = Trouble {
                servers: &lead.servers,
                began_unix_ms: began,
                load_moved: events.iter().any(|event| {
                    event.is_of_load()
                        && event.service == lead.service
                        && event.at_unix_ms.abs_diff(began) <= LOAD_NEAR_MS
                }),
            };
            let found = excluded(past, service, &trouble, workers);
            Excluded { ruled_out: self.ruled_out, unknown: self.unknown } = found;
        }
    }
}

/// Returns the changes that came just before trouble, of the same service or of everything; of all services if the
/// trouble is of none.
fn preceding(lead: &Lead, began: u64, changes: &[Change]) -> Vec<String> {
    let span = began.saturating_sub(PRECEDES_MS)..=began.saturating_add(SEEN_LATE_MS);
    let precedes = |change: &&Change| {
        let is_of_it =
            change.service.is_none() || lead.service.is_none() || change.service == lead.service;
        is_possible_cause(change) && span.contains(&change.at_unix_ms) && is_of_it
    };
    changes.iter().rev().filter(precedes).map(|one| one.what.clone()).collect()
}

/// Returns the findings with weight, the most important first: present ones; of services rather than of the host,
/// since these say whose requests suffer; then by severity, and the earliest.
fn by_importance(findings: &Findings) -> Vec<&SeenFinding> {
    let all = findings.findings.iter().filter(|seen| seen.finding.has_weight());
    let mut all: Vec<&SeenFinding> = all.collect();
    all.sort_by_key(|seen| {
        let severity = std::cmp::Reverse(seen.finding.severity);
        let is_of_host = seen.finding.service.is_none();
        (!seen.is_present, is_of_host, severity, seen.first_seen_unix_ms)
    });
    all
}

/// Whether a change may have caused trouble, rather than being its effect.
fn is_possible_cause(change: &Change) -> bool {
    let kind = change.kind.known();
    !matches!(kind, Some(Changed::Health | Changed::Ejection | Changed::Finding))
}

/// Returns the first event of the trouble that the account is about.
fn first_trouble<'a>(events: &'a [Event], lead: &Lead) -> Option<&'a Event> {
    let is_about = |event: &&Event| {
        let is_same_server = lead.servers.is_empty()
            || event.servers.is_empty()
            || event.servers.iter().any(|server| lead.servers.contains(server));
        let is_early = event.at_unix_ms <= lead.seen_unix_ms.saturating_add(SEEN_LATE_MS);
        lead.service.is_some() && event.service == lead.service && is_same_server && is_early
    };
    let troubles = events.iter().filter(|event| event.is_trouble());
    // The last run of troubles: what ended before is another story.
    let mut first: Option<&Event> = None;
    for event in troubles.filter(is_about) {
        let is_over = first.is_some_and(|first| has_ended(events, first, event.at_unix_ms));
        if first.is_none() || is_over {
            first = Some(event);
        }
    }
    first
}

/// Whether what an event began had ended before a moment.
fn has_ended(events: &[Event], began: &Event, until_unix_ms: u64) -> bool {
    events.iter().any(|event| {
        event.effect.known() == Some(Effect::Recovery)
            && event.measure == began.measure
            && event.service == began.service
            && began.servers.iter().all(|server| event.servers.contains(server))
            && (began.at_unix_ms.saturating_add(1)..until_unix_ms).contains(&event.at_unix_ms)
    })
}

fn changed(change: &Change) -> Event {
    Event {
        at_unix_ms: change.at_unix_ms,
        effect: change.effect.clone(),
        measure: None,
        is_finding: change.kind.known() == Some(Changed::Finding),
        service: change.service.clone(),
        servers: change.server.iter().cloned().collect(),
        what: change.what.clone(),
    }
}

/// Keeps the most telling events. Returns how many are left out.
fn shorten(events: &mut Vec<Event>) -> usize {
    let excess = events.len().saturating_sub(EVENTS_MAX);
    let rank = |event: &Event| match (event.measure, event.effect.known()) {
        (None, _) => 3,
        (Some(_), Some(Effect::Trouble)) => 2,
        (Some(_), Some(Effect::Recovery)) => 1,
        (Some(_), Some(Effect::Neutral) | None) => 0,
    };
    for rank_out in 0..4 {
        let mut excess_now = events.len().saturating_sub(EVENTS_MAX);
        events.retain(|event| {
            let goes = excess_now > 0 && rank(event) == rank_out;
            excess_now -= usize::from(goes);
            !goes
        });
    }
    excess
}

/// Requests that show the trouble: failed ones before slow ones, the latest first.
fn examples(bundle: &Bundle, lead: &Lead) -> Vec<String> {
    let ended = bundle.answer::<EndedRequests>("requests/ended").unwrap_or_default().requests;
    let text = |request: &EndedRequest, name: &str| -> Option<String> {
        Some(request.line.get(name)?.as_str()?.to_owned())
    };
    let is_example = |request: &&EndedRequest| {
        let server = text(request, "server");
        request.ended_unix_ms >= bundle.from_unix_ms
            && text(request, "service") == lead.service
            && (lead.servers.is_empty() || server.is_some_and(|one| lead.servers.contains(&one)))
    };
    let mut examples: Vec<&EndedRequest> = ended.iter().filter(is_example).collect();
    let total = |request: &EndedRequest| request.line.get("total_ms").and_then(Value::as_f64);
    examples.sort_by(|a, b| {
        let key = |one: &EndedRequest| one.kept_for.known();
        key(a).cmp(&key(b)).then(total(b).unwrap_or(0.0).total_cmp(&total(a).unwrap_or(0.0)))
    });
    examples.into_iter().take(EXAMPLES_MAX).map(example).collect()
}

fn example(request: &EndedRequest) -> String {
    let shown = |name: &str| match request.line.get(name) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => format!("no {name}"),
        Some(other) => other.to_string(),
    };
    let time = |name: &str| {
        let ms = request.line.get(name).and_then(Value::as_f64).unwrap_or_default();
        words::duration(Duration::from_secs_f64((ms / 1e3).clamp(0.0, 1e9)))
    };
    format!(
        "{} {} at {}: {} {} after {} (queue {}, connect {}, response head {}), request {}",
        shown("method"),
        shown("path"),
        shown("server"),
        shown("status"),
        shown("cause"),
        time("total_ms"),
        time("queue_ms"),
        time("connect_ms"),
        time("first_byte_ms"),
        shown("request_id"),
    )
}

fn missing(bundle: &Bundle, findings: &Findings, past: &Past) -> Vec<String> {
    let mut missing: Vec<String> =
        bundle.failed.iter().map(|(path, why)| format!("{path}: {why}")).collect();
    if past.ended_unix_ms.is_empty() && !bundle.failed.contains_key("history") {
        missing.push("the history is empty: nothing is known of rates and latencies".to_owned());
    }
    if bundle.answers.contains_key("findings") && !findings.enabled {
        missing.push("the doctor is off ([doctor] interval): there are no findings".to_owned());
    }
    if past.other_rows > 0 {
        let text =
            format!("{} answers of the history, whose rows are of other times", past.other_rows);
        missing.push(text);
    }
    let first = past.ended_unix_ms.first().copied().unwrap_or(bundle.at_unix_ms);
    let step_ms = (past.step_s * 1e3) as u64;
    let late_ms = first.saturating_sub(bundle.from_unix_ms);
    if late_ms / 2 > step_ms.max(1_000) && !past.ended_unix_ms.is_empty() {
        let late_s = late_ms / 1_000;
        missing.push(format!("the first {late_s} s of the span: the history begins later"));
    }
    missing
}

//! What moved in a bundle's history, as events with a sentence each.

use std::collections::BTreeSet;
use std::time::Duration;

use admin_api::Word;
use admin_api::changes::Effect;
use admin_api::history::Series;
use diagnose::words::{self, number, percent};
use serde::Serialize;

use super::series::{Past, Rows, Service, median};
use super::shifts::{Least, Shift, shifts};

/// Servers that moved in the same way within this time are one event.
const TOGETHER_MS: u64 = 5_000;

/// More servers than this are not named one by one.
const APART_MAX: usize = 2;

/// Something that happened, or a figure that moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Event {
    pub(super) at_unix_ms: u64,
    pub(super) effect: Word<Effect>,
    /// What moved; null for a change or a finding.
    pub(super) measure: Option<&'static str>,
    /// Whether a finding of the doctor began or ended.
    pub(super) is_finding: bool,
    pub(super) service: Option<String>,
    pub(super) servers: Vec<String>,
    pub(super) what: String,
}

impl Event {
    /// Returns whether a service's load moved.
    pub(super) fn is_of_load(&self) -> bool {
        self.measure == Some(REQUESTS.name)
    }

    pub(super) fn is_trouble(&self) -> bool {
        self.effect.known() == Some(Effect::Trouble)
    }
}

/// A figure whose moves matter.
struct Measure {
    name: &'static str,
    least: Least,
    /// Whether it is trouble when it rises, and better when it falls.
    is_trouble: bool,
    /// How its level is written.
    show: fn(f64) -> String,
    /// The words for one server or a service when it rose, and when it fell.
    rose: &'static str,
    fell: &'static str,
}

const fn least(ratio: f64, difference: f64, floor: f64) -> Least {
    Least { ratio, difference, floor }
}

fn micros(us: f64) -> String {
    words::duration(Duration::from_micros(us.max(0.0) as u64))
}

fn per_second(rate: f64) -> String {
    format!("{}/s", number(rate))
}

fn count(level: f64) -> String {
    words::thousands(level.round().max(0.0) as u64)
}

/// Time to the response head. A difference of less than 5 ms does not matter.
const FIRST_BYTE: Measure = Measure {
    name: "first_byte",
    least: least(2.0, 5_000.0, 500.0),
    is_trouble: true,
    show: micros,
    rose: "became slower: its median time to the response head was",
    fell: "became faster: its median time to the response head was",
};
const FAILED: Measure = Measure {
    name: "failed",
    least: least(3.0, 0.5, 0.1),
    is_trouble: true,
    show: per_second,
    rose: "failed more:",
    fell: "failed less:",
};
const SHARE: Measure = Measure {
    name: "share",
    least: least(1.5, 0.1, 0.02),
    is_trouble: false,
    show: percent,
    rose: "received more of the service's requests:",
    fell: "received less of the service's requests:",
};
const IN_FLIGHT: Measure = Measure {
    name: "in_flight",
    least: least(3.0, 5.0, 1.0),
    is_trouble: true,
    show: count,
    rose: "had more requests in flight:",
    fell: "had fewer requests in flight:",
};
const CONNECT: Measure = Measure {
    name: "connect",
    least: least(3.0, 2_000.0, 200.0),
    is_trouble: true,
    show: micros,
    rose: "accepted connections later: connecting took",
    fell: "accepted connections sooner: connecting took",
};
const REQUESTS: Measure = Measure {
    name: "requests",
    least: least(1.5, 5.0, 1.0),
    is_trouble: false,
    show: per_second,
    rose: "received more requests:",
    fell: "received fewer requests:",
};
const REFUSED: Measure = Measure {
    name: "refused",
    least: least(3.0, 0.5, 0.1),
    is_trouble: true,
    show: per_second,
    rose: "refused more requests:",
    fell: "refused fewer requests:",
};
const CLIENT_FAULTS: Measure = Measure {
    name: "client_faults",
    least: least(3.0, 1.0, 0.2),
    is_trouble: false,
    show: per_second,
    rose: "had more requests that clients aborted or sent wrongly:",
    fell: "had fewer requests that clients aborted or sent wrongly:",
};
const RETRIES: Measure = Measure {
    name: "retries",
    least: least(3.0, 1.0, 0.2),
    is_trouble: true,
    show: per_second,
    rose: "retried more:",
    fell: "retried less:",
};
const QUEUE: Measure = Measure {
    name: "queue_length",
    least: least(3.0, 2.0, 0.5),
    is_trouble: true,
    show: count,
    rose: "had more requests in the queue:",
    fell: "had fewer requests in the queue:",
};
const P99: Measure = Measure {
    name: "p99",
    least: least(2.5, 20_000.0, 1_000.0),
    is_trouble: true,
    show: micros,
    rose: "took longer: 1 % of its requests took more than",
    fell: "took less time: 1 % of its requests took more than",
};
const CPU: Measure = Measure {
    name: "cpu",
    least: least(2.0, 0.3, 0.05),
    is_trouble: false,
    show: |cores| format!("{} of a core", percent(cores)),
    rose: "used more CPU time:",
    fell: "used less CPU time:",
};

/// Returns everything that moved, in order of time.
pub(super) fn moves(past: &Past) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(process) = &past.process {
        let cores = past.rates(process, "cpu_us").into_iter().map(|us| Some(us? / 1e6)).collect();
        events.extend(of_one(past, &CPU, &cores, "Weir"));
    }
    for (name, service) in &past.services {
        if let Some(own) = &service.own {
            events.extend(of_service(past, name, own));
        }
        events.extend(of_servers(past, name, service));
    }
    events.sort_by_key(|event| event.at_unix_ms);
    events
}

fn of_service(past: &Past, name: &str, own: &Series) -> Vec<Event> {
    let measures = [
        (&REQUESTS, past.rates(own, "requests")),
        (&FAILED, past.rates(own, "failed")),
        (&REFUSED, past.rates(own, "refused")),
        (&CLIENT_FAULTS, past.rates(own, "client_faults")),
        (&RETRIES, past.rates(own, "retries")),
        (&QUEUE, past.levels(own, "queue_length")),
        (&P99, past.levels(own, "total_p99_us")),
    ];
    let mut events = Vec::new();
    for (measure, rows) in measures {
        for shift in shifts(&rows, &measure.least) {
            let mut event = event(past, measure, &shift, name);
            if [FAILED.name, REFUSED.name].contains(&measure.name) && shift.after > shift.before {
                let causes = causes(own, &shift, &rows);
                event.what = format!("{}{causes}.", event.what.trim_end_matches('.'));
            }
            event.service = Some(name.to_owned());
            events.push(event);
        }
    }
    events
}

/// Returns the most frequent causes from a shift on.
fn causes(own: &Series, shift: &Shift, rows: &Rows) -> String {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for one in own.causes.iter().filter(|one| (shift.row..rows.len()).contains(&one.row)) {
        let Some(cause) = one.cause.as_deref().filter(|cause| *cause != "completed") else {
            continue;
        };
        match counts.iter_mut().find(|(name, _)| *name == cause) {
            Some((_, sum)) => *sum = sum.saturating_add(one.count),
            None => counts.push((cause, one.count)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<String> = counts.iter().take(2).map(|(name, _)| (*name).to_owned()).collect();
    if named.is_empty() { String::new() } else { format!(", mostly {}", words::list(&named, 2)) }
}

/// A move of one server.
struct Moved<'a> {
    server: &'a str,
    shift: Shift,
    at_unix_ms: u64,
}

fn of_servers(past: &Past, name: &str, service: &Service) -> Vec<Event> {
    let all = service.own.as_ref().map(|own| past.levels(own, "attempts")).unwrap_or_default();
    let share = |series: &Series| -> Rows {
        let own = past.levels(series, "requests").into_iter().zip(&all);
        own.map(|(own, all)| Some(own? / all.filter(|&all| all >= 5.0)?)).collect()
    };
    type Read<'a> = &'a dyn Fn(&Series) -> Rows;
    let rows: [(&Measure, Read<'_>); 5] = [
        (&FIRST_BYTE, &|series| past.levels(series, "first_byte_p50_us")),
        (&FAILED, &|series| past.rates(series, "failed")),
        (&SHARE, &share),
        (&IN_FLIGHT, &|series| past.levels(series, "in_flight")),
        (&CONNECT, &|series| past.levels(series, "connect_mean_us")),
    ];
    let mut events = Vec::new();
    for (measure, rows) in rows {
        // With one server there is nothing to share.
        if measure.name == SHARE.name && service.servers.len() < 2 {
            continue;
        }
        let mut moved: Vec<Moved<'_>> = Vec::new();
        for (server, series) in &service.servers {
            let found = shifts(&rows(series), &measure.least).into_iter();
            moved.extend(found.map(|shift| Moved {
                server,
                at_unix_ms: past.began_unix_ms(shift.row),
                shift,
            }));
        }
        moved.sort_by_key(|one| (one.shift.after < one.shift.before, one.at_unix_ms));
        events.extend(together(past, measure, (name, service.servers.len()), moved));
    }
    events
}

/// Makes one event of the servers that moved together, or one for each.
fn together(
    past: &Past,
    measure: &Measure,
    (name, all): (&str, usize),
    moved: Vec<Moved<'_>>,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut rest = &moved[..];
    while let Some(first) = rest.first() {
        let is_near = |one: &&Moved<'_>| {
            one.at_unix_ms - first.at_unix_ms.min(one.at_unix_ms) <= TOGETHER_MS
                && (one.shift.after > one.shift.before) == (first.shift.after > first.shift.before)
        };
        let number = rest.iter().take_while(is_near).count();
        let (near, later) = rest.split_at(number);
        rest = later;
        let of = |subject: &str, shift: &Shift| event(past, measure, shift, subject);
        let servers: BTreeSet<&str> = near.iter().map(|one| one.server).collect();
        if servers.len() > APART_MAX {
            let level = |pick: fn(&Shift) -> f64| {
                median(near.iter().map(|one| Some(pick(&one.shift)))).unwrap_or_default()
            };
            let (before, after) = (level(|shift| shift.before), level(|shift| shift.after));
            let shift = Shift { row: first.shift.row, before, after };
            let mut event = of(&format!("{} of {all} servers of {name}", servers.len()), &shift);
            event.what = event.what.replace(" its ", " their ");
            event.service = Some(name.to_owned());
            event.servers = servers.into_iter().map(str::to_owned).collect();
            events.push(event);
            continue;
        }
        for one in near {
            let mut event = of(&format!("{} of {name}", one.server), &one.shift);
            event.service = Some(name.to_owned());
            event.servers = vec![one.server.to_owned()];
            events.push(event);
        }
    }
    events
}

fn of_one(past: &Past, measure: &Measure, rows: &Rows, subject: &str) -> Vec<Event> {
    shifts(rows, &measure.least).iter().map(|shift| event(past, measure, shift, subject)).collect()
}

fn event(past: &Past, measure: &Measure, shift: &Shift, subject: &str) -> Event {
    let Shift { row, before, after } = *shift;
    let is_up = after > before;
    let effect = match (measure.is_trouble, is_up) {
        (true, true) => Effect::Trouble,
        (true, false) => Effect::Recovery,
        (false, _) => Effect::Neutral,
    };
    let verb = if is_up { measure.rose } else { measure.fell };
    let (now, then) = ((measure.show)(after), (measure.show)(before));
    Event {
        at_unix_ms: past.began_unix_ms(row),
        effect: effect.into(),
        measure: Some(measure.name),
        is_finding: false,
        service: None,
        servers: Vec::new(),
        what: format!("{subject} {verb} {now}, before {then}."),
    }
}

//! What did not move when the trouble began, and is therefore not its cause; and what is not known.

use std::time::Duration;

use diagnose::words::{self, number, percent};

use super::series::{Past, Rows, Service, median};
use super::shifts::Least;

/// Rows compared on each side of the beginning: a minute, if they are seconds.
const ROWS: usize = 60;

/// A row that covers this much more than it should: the process was not running.
const STALL: f64 = 1.5;

/// With more of its workers' cores in use, the balancer may be slow itself.
const BUSY: f64 = 0.7;

/// Which difference would be a cause of trouble.
struct Cause {
    least: Least,
    /// Whether only a rise is one.
    rises: bool,
}

impl Cause {
    const fn new(ratio: f64, difference: f64, floor: f64, rises: bool) -> Cause {
        Cause { least: Least { ratio, difference, floor }, rises }
    }

    fn is_it(&self, before: f64, after: f64) -> bool {
        self.least.differ(before, after) && (after > before || !self.rises)
    }
}

const OF_LOAD: Cause = Cause::new(1.5, 1.0, 0.5, false);
const OF_PEERS: Cause = Cause::new(1.5, 3_000.0, 500.0, true);

/// A network with a shorter round trip is not slow. A longer one may be that of the acknowledgement: a server may
/// delay it up to 40 ms, or until its response.
const NEAR_US: f64 = 5_000.0;

/// What is ruled out, and what is not known, as parts of sentences.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Excluded {
    pub(super) ruled_out: Vec<String>,
    pub(super) unknown: Vec<String>,
}

/// The trouble of a service.
pub(super) struct Trouble<'a> {
    /// Those at fault, if some are.
    pub(super) servers: &'a [String],
    pub(super) began_unix_ms: u64,
    /// The service's load moved at about that time. Medians do not show a load that has just risen.
    pub(super) load_moved: bool,
}

/// Examines a service. `workers`: of the balancer.
pub(super) fn excluded(
    past: &Past,
    service: &Service,
    trouble: &Trouble<'_>,
    workers: Option<usize>,
) -> Excluded {
    let &Trouble { servers, began_unix_ms, load_moved } = trouble;
    let mut excluded = Excluded::default();
    if past.ended_unix_ms.is_empty() {
        excluded.unknown.push("everything else: there is no history".to_owned());
        return excluded;
    }
    let row = past.row_at(began_unix_ms);
    let levels = |rows: &Rows| {
        let before = median(rows[row.saturating_sub(ROWS)..row].iter().copied());
        let after = median(rows[row..(row + ROWS).min(rows.len())].iter().copied());
        (before, after)
    };
    let mut compare =
        |name: &str, rows: &Rows, cause: &Cause, show: &dyn Fn(f64) -> String| match levels(rows) {
            (Some(before), Some(after)) if cause.is_it(before, after) => {}
            (Some(before), Some(after)) => {
                let text = format!("{name} ({}, before {})", show(after), show(before));
                excluded.ruled_out.push(text);
            }
            _ => excluded.unknown.push(name.to_owned()),
        };
    if let Some(own) = &service.own
        && !load_moved
    {
        let rate = |rate: f64| format!("{} requests/s", number(rate));
        compare("load", &past.rates(own, "requests"), &OF_LOAD, &rate);
    }
    let of_all = |column: &str, of: &dyn Fn(&str) -> bool| -> Rows {
        let rows: Vec<Rows> = service
            .servers
            .iter()
            .filter(|(server, _)| of(server))
            .map(|(_, series)| past.levels(series, column))
            .collect();
        (0..past.ended_unix_ms.len()).map(|row| median(rows.iter().map(|rows| rows[row]))).collect()
    };
    let micros = |us: f64| words::duration(Duration::from_micros(us as u64));
    let at_fault = |server: &str| servers.is_empty() || servers.iter().any(|one| one == server);
    let peers = service.servers.keys().filter(|server| !at_fault(server)).count();
    if peers > 0 && !servers.is_empty() {
        let name = match peers {
            1 => "the other server".to_owned(),
            peers => format!("the {peers} other servers"),
        };
        let first_bytes = of_all("first_byte_p50_us", &|server| !at_fault(server));
        compare(&name, &first_bytes, &OF_PEERS, &|us| {
            format!("response heads after {}", micros(us))
        });
    }
    network(levels(&of_all("round_trip_mean_us", &at_fault)).1, servers, &mut excluded);
    own(past, service, row, workers, &mut excluded);
    excluded
}

/// The network, by the round trip since the trouble began.
fn network(round_trip_us: Option<f64>, servers: &[String], excluded: &mut Excluded) {
    let name = match servers {
        [_] => "the network to it",
        _ => "the network to the servers",
    };
    match round_trip_us {
        Some(us) if us <= NEAR_US => {
            let time = words::duration(Duration::from_micros(us as u64));
            excluded.ruled_out.push(format!("{name} (round trip {time})"));
        }
        Some(_) => {}
        None => excluded.unknown.push(name.to_owned()),
    }
}

/// The balancer: its CPU time, stalls, its queue. `workers`: how many cores it can use.
fn own(
    past: &Past,
    service: &Service,
    row: usize,
    workers: Option<usize>,
    excluded: &mut Excluded,
) {
    let end = (row + ROWS).min(past.ended_unix_ms.len());
    let after = |rows: Option<Rows>| rows.and_then(|rows| median(rows[row..end].iter().copied()));
    let cpu = after(past.process.as_ref().map(|process| past.rates(process, "cpu_us")));
    let queue = after(service.own.as_ref().map(|own| past.levels(own, "queue_length")));
    let (Some(cpu), Some(queue), Some(workers)) = (cpu, queue, workers) else {
        excluded.unknown.push("Weir itself".to_owned());
        return;
    };
    let (cores, workers) = (cpu / 1e6, workers.max(1) as f64);
    let is_stalled = past.covered_s[row..end].iter().any(|&covered| covered > STALL * past.step_s);
    if !is_stalled && queue < 1.0 && cores <= BUSY * workers {
        let share = percent(cores / workers);
        excluded.ruled_out.push(format!(
            "Weir (its queue is empty, it was not interrupted, its workers use {share} of their cores)"
        ));
    }
}

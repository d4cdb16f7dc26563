//! What did not move when the trouble began, and is therefore not its cause; and what is not known.

use std::time::Duration;

use diagnose::words::{self, number, percent};

use super::series::{Past, Rows, Service, median};
use super::shifts::Least;

/// Rows compared on each side of the beginning: a minute, if they are seconds.
const ROWS: usize = 60;

/// A row that covers this much more than it should: the process was not running.
const STALL: f64 = 1.5;

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

const OF_LOAD: Cause = Cause::new(1.5, 5.0, 1.0, false);
const OF_NETWORK: Cause = Cause::new(2.0, 1_000.0, 200.0, true);
const OF_PEERS: Cause = Cause::new(1.5, 3_000.0, 500.0, true);

/// What is ruled out, and what is not known, as parts of sentences.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Excluded {
    pub(super) ruled_out: Vec<String>,
    pub(super) unknown: Vec<String>,
}

/// Examines a service. `began_unix_ms`: when its trouble began; `servers`: those at fault, if some are.
pub(super) fn excluded(
    past: &Past,
    service: &Service,
    servers: &[String],
    began_unix_ms: u64,
) -> Excluded {
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
    if let Some(own) = &service.own {
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
    let round_trips = of_all("round_trip_mean_us", &at_fault);
    let network =
        if servers.is_empty() { "the network to the servers" } else { "the network to it" };
    compare(network, &round_trips, &OF_NETWORK, &|us| format!("round trip {}", micros(us)));
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
    own(past, service, row, &mut excluded);
    excluded
}

/// The balancer: its processor time, stalls, its queue.
fn own(past: &Past, service: &Service, row: usize, excluded: &mut Excluded) {
    let end = (row + ROWS).min(past.ended_unix_ms.len());
    let stalled = past.covered_s[row..end].iter().any(|&covered| covered > STALL * past.step_s);
    let cpu = past.process.as_ref().map(|process| past.rates(process, "cpu_us"));
    let cores = cpu.and_then(|cpu| median(cpu[row..end].iter().copied())).map(|us| us / 1e6);
    let Some(cores) = cores else {
        excluded.unknown.push("Weir itself".to_owned());
        return;
    };
    let queues = service.own.as_ref().map(|own| past.levels(own, "queue_length"));
    let queue = queues.and_then(|rows| median(rows[row..end].iter().copied())).unwrap_or_default();
    if !stalled && queue < 1.0 {
        excluded.ruled_out.push(format!(
            "Weir (its queue is empty, it was not interrupted, it uses {} of a core)",
            percent(cores)
        ));
    }
}

//! Rates and latencies as people read them, and which service is in trouble.

use admin_api::services::Service;
use admin_api::traffic::{Ended, Quantiles, ServerWindow, ServiceTraffic, ServiceWindow};

use diagnose::words::thousands;

use super::columns::Columns;

/// The rates of a service, a line for each span.
pub(crate) fn windows(traffic: &ServiceTraffic, spans_s: &[u64]) -> String {
    let mut columns = Columns::headed([
        "LAST",
        "REQ/S",
        "FAILED",
        "REFUSED",
        "CLIENT FAULT",
        "P50",
        "P90",
        "P99",
    ])
    .numbers(1..);
    if traffic.windows.is_empty() {
        return String::new();
    }
    let mut before = None;
    for (window, span_s) in traffic.windows.iter().zip(spans_s) {
        // A balancer that has just started has counted no longer than the shorter span.
        if before.replace(window.ended.seconds) == Some(window.ended.seconds) {
            continue;
        }
        let ServiceWindow { ended, total: Quantiles { p50_ms, p90_ms, p99_ms }, .. } = window;
        let Ended { seconds, requests, failed, refused, client_faults, .. } = *ended;
        columns.row([
            span(seconds, *span_s),
            rate(requests, seconds),
            share(failed, requests),
            share(refused, requests),
            share(client_faults, requests),
            time(*p50_ms),
            time(*p90_ms),
            time(*p99_ms),
        ]);
    }
    columns.text()
}

/// What the table of servers shows of one: requests a second, failures, and the time to the response
/// head.
pub(crate) fn server(window: Option<&ServerWindow>) -> [String; 4] {
    let Some(window) = window else { return Default::default() };
    let Quantiles { p50_ms, p99_ms, .. } = window.first_byte;
    [
        rate(window.requests, window.seconds),
        share(window.failed, window.requests),
        time(p50_ms),
        time(p99_ms),
    ]
}

/// How much trouble a service is in; more is worse. Services without trouble are equal.
pub(crate) fn trouble(service: &Service, traffic: Option<&ServiceTraffic>) -> u64 {
    let out = service.servers.iter().filter(|server| !server.eligible && !server.backup).count();
    let out = out + service.unresolved.len();
    let none_left = u64::from(service.eligible == 0 && out > 0);
    let ended = traffic.and_then(|traffic| traffic.windows.first()).map(|window| window.ended);
    let Ended { requests, failed, refused, .. } = ended.unwrap_or_default();
    // In thousandths, and more than none if it is any.
    let failing = ((failed + refused) * 1_000).div_ceil(requests.max(1)).min(1_000);
    none_left * 1_000_000
        + failing * 1_000
        + u64::from(service.queue.length > 0) * 100
        + out.min(99) as u64
}

/// Returns the span that was asked for, or what there is of it.
fn span(seconds: u64, asked_s: u64) -> String {
    match seconds.min(asked_s) {
        3_600 => "hour".to_owned(),
        60 => "minute".to_owned(),
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// A rate a second, with three digits.
pub(crate) fn rate(count: u64, seconds: u64) -> String {
    match count as f64 / seconds.max(1) as f64 {
        0.0 => "0".to_owned(),
        rate if rate < 0.01 => "<0.01".to_owned(),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => thousands(rate.round() as u64),
    }
}

/// A part of all; nothing only if it is nothing, and everything only if it is everything.
pub(crate) fn share(part: u64, all: u64) -> String {
    // Failures of requests that were sent before the window began may be more than all.
    let percent = part as f64 / all.max(part).max(1) as f64 * 1e2;
    match percent {
        0.0 => "0".to_owned(),
        percent if percent < 0.01 => "<0.01 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.2} %"),
        percent if percent < 99.95 => format!("{percent:.1} %"),
        percent if percent < 100.0 => ">99.9 %".to_owned(),
        _ => "100 %".to_owned(),
    }
}

/// A duration with two or three digits; empty if there is none.
pub(crate) fn time(ms: Option<f64>) -> String {
    match ms {
        None => String::new(),
        Some(ms) if ms < 1.0 => format!("{ms:.2} ms"),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 10_000.0 => format!("{} ms", thousands(ms.round() as u64)),
        Some(ms) => format!("{:.1} s", ms / 1e3),
    }
}

/// The two largest units of a longer time: `3d 4h`, `12m 5s`.
pub(crate) fn elapsed(seconds: u64) -> String {
    let units = [(seconds / 86_400, 'd'), (seconds / 3_600 % 24, 'h'), (seconds / 60 % 60, 'm')];
    let all = units.into_iter().chain([(seconds % 60, 's')]);
    let shown: Vec<String> = all
        .skip_while(|(number, unit)| *number == 0 && *unit != 's')
        .take(2)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_digits() {
        let rates = [(0, 10), (3, 3_600), (7, 60), (600, 60), (420, 10), (12_402, 10)];
        let rates = rates.map(|(count, seconds)| rate(count, seconds));
        assert_eq!(rates, ["0", "<0.01", "0.12", "10.0", "42.0", "1,240"]);
        let shares = [(0, 0), (1, 100_000), (5, 1_000), (1, 3), (9_999, 10_000), (3, 1)];
        let shares = shares.map(|(part, all)| share(part, all));
        assert_eq!(shares, ["0", "<0.01 %", "0.50 %", "33.3 %", ">99.9 %", "100 %"]);
        let times = [None, Some(0.25), Some(4.06), Some(48.2), Some(1_508.0), Some(30_000.0)];
        assert_eq!(times.map(time), ["", "0.25 ms", "4.1 ms", "48 ms", "1,508 ms", "30.0 s"]);
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (60, "1m 0s"), (3_700, "1h 1m"), (864_000, "10d 0h")]
        {
            assert_eq!(elapsed(seconds), text);
        }
    }

    #[test]
    fn a_span_that_is_not_over_says_so() {
        let spans = [(10, 10), (13, 10), (7, 10), (61, 60), (12, 60), (720, 3_600), (3_650, 3_600)];
        let spans = spans.map(|(seconds, asked)| span(seconds, asked));
        assert_eq!(spans, ["10 s", "10 s", "7 s", "minute", "12 s", "12 min", "hour"]);
    }

    #[test]
    fn trouble_is_ordered() {
        let service = |eligible: usize, servers: usize, waiting: u32| {
            let server = |at: usize| admin_api::services::Server {
                eligible: at < eligible,
                ..admin_api::services::Server::default()
            };
            Service {
                eligible,
                servers: (0..servers).map(server).collect(),
                queue: admin_api::services::Queue { length: waiting, ..Default::default() },
                ..Service::default()
            }
        };
        let failing = |failed: u64| {
            let ended = Ended { requests: 100, failed, ..Ended::default() };
            let window = ServiceWindow { ended, ..ServiceWindow::default() };
            ServiceTraffic { windows: vec![window], ..ServiceTraffic::default() }
        };
        let order = [
            trouble(&service(3, 3, 0), Some(&failing(0))),
            trouble(&service(2, 3, 0), Some(&failing(0))),
            trouble(&service(3, 3, 7), None),
            trouble(&service(3, 3, 0), Some(&failing(1))),
            trouble(&service(3, 3, 0), Some(&failing(30))),
            trouble(&service(0, 3, 0), None),
        ];
        assert!(order.is_sorted() && order[0] == 0 && order[1] > 0, "{order:?}");
        assert_eq!(trouble(&Service::default(), None), 0);
    }
}

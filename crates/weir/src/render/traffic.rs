//! Rates and latencies as people read them, and which service is in trouble.

use admin_api::services::Service;
use admin_api::traffic::{Quantiles, Rates, ServerWindow, ServiceTraffic, ServiceWindow};

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
    let mut before = None;
    for (window, span_s) in traffic.windows.iter().zip(spans_s) {
        // A balancer that has just started has counted no longer than the shorter span.
        if before.replace(window.rates.seconds) == Some(window.rates.seconds) {
            continue;
        }
        let ServiceWindow { rates, total: Quantiles { p50_ms, p90_ms, p99_ms }, .. } = window;
        let of_all = |part: f64| share(part, rates.requests_per_s);
        columns.row([
            span(rates.seconds, *span_s),
            rate(rates.requests_per_s),
            of_all(rates.failed_per_s),
            of_all(rates.refused_per_s),
            of_all(rates.client_faults_per_s),
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
        rate(window.requests_per_s),
        share(window.failed_per_s, window.requests_per_s),
        time(p50_ms),
        time(p99_ms),
    ]
}

/// How much trouble a service is in; more is worse. Services without trouble are equal.
pub(crate) fn trouble(service: &Service, traffic: Option<&ServiceTraffic>) -> u64 {
    let out = service.servers.iter().filter(|server| !server.eligible && !server.backup).count();
    let out = out + service.unresolved.len();
    let none_left = u64::from(service.eligible == 0 && out > 0);
    let rates = traffic.and_then(|traffic| traffic.windows.first()).map(|window| window.rates);
    let Rates { requests_per_s, failed_per_s, refused_per_s, .. } = rates.unwrap_or_default();
    let failing = (failed_per_s + refused_per_s) / requests_per_s.max(f64::MIN_POSITIVE);
    let failing = (failing.clamp(0.0, 1.0) * 1_000.0).ceil() as u64;
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

/// A rate with three digits.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0".to_owned(),
        rate if rate < 0.01 => "<0.01".to_owned(),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => grouped(rate.round() as u64),
    }
}

/// A part of all; nothing only if it is nothing, and everything only if it is everything.
pub(crate) fn share(part: f64, all: f64) -> String {
    let percent = if part > 0.0 { part / all.max(part) * 1e2 } else { 0.0 };
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
        Some(ms) if ms < 10_000.0 => format!("{} ms", grouped(ms.round() as u64)),
        Some(ms) => format!("{:.1} s", ms / 1e3),
    }
}

/// A whole number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_digits() {
        let rates = [0.0, 0.004, 0.12, 9.994, 42.04, 999.6, 1_240.2, 1_234_567.0].map(rate);
        assert_eq!(rates, ["0", "<0.01", "0.12", "9.99", "42.0", "1,000", "1,240", "1,234,567"]);
        let shares = [(0.0, 0.0), (0.001, 100.0), (0.5, 100.0), (20.0, 100.0), (99.99, 100.0)];
        let shares = shares.map(|(part, all)| share(part, all));
        assert_eq!(shares, ["0", "<0.01 %", "0.50 %", "20.0 %", ">99.9 %"]);
        // Failures of requests that were sent before the window began.
        assert_eq!(share(1.0, 0.0), "100 %");
        let times = [None, Some(0.25), Some(4.06), Some(48.2), Some(1_508.0), Some(30_000.0)];
        assert_eq!(times.map(time), ["", "0.25 ms", "4.1 ms", "48 ms", "1,508 ms", "30.0 s"]);
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
        let failing = |failed_per_s: f64| {
            let rates = Rates { requests_per_s: 100.0, failed_per_s, ..Rates::default() };
            let window = ServiceWindow { rates, ..ServiceWindow::default() };
            ServiceTraffic { windows: vec![window], ..ServiceTraffic::default() }
        };
        let order = [
            trouble(&service(3, 3, 0), Some(&failing(0.0))),
            trouble(&service(2, 3, 0), Some(&failing(0.0))),
            trouble(&service(3, 3, 7), None),
            trouble(&service(3, 3, 0), Some(&failing(1.0))),
            trouble(&service(3, 3, 0), Some(&failing(30.0))),
            trouble(&service(0, 3, 0), None),
        ];
        assert!(order.is_sorted() && order[0] == 0 && order[1] > 0, "{order:?}");
        assert_eq!(trouble(&Service::default(), None), 0);
    }
}

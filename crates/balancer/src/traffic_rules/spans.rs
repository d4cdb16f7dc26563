//! The history's windows as spans of facts.

use std::sync::Arc;

use decide::Endpoints;
use diagnose::facts::{Durations, ServerSpan};
use history::{History, Key, Window};

/// The name of responses with a 5xx status among causes of failures.
const STATUS_5XX: &str = "status_5xx";

/// Returns what all servers of a service did together in the last seconds.
pub(super) fn all_servers(
    history: &History,
    service: &Arc<str>,
    endpoints: &Endpoints,
    seconds: u64,
) -> ServerSpan {
    let mut all = ServerSpan::default();
    for endpoint in &endpoints.all {
        let key = Key::Server(Arc::clone(service), endpoint.row.address);
        if let Some(window) = history.window(&key, seconds) {
            all.add(&server_span(&window));
        }
    }
    all
}

/// Returns what a server did in the seconds of a window.
pub(super) fn server_span(window: &Window) -> ServerSpan {
    let round_trip = window.mean("round_trip_mean_us").average();
    let answered_5xx = window.count(STATUS_5XX);
    let status_5xx = (answered_5xx > 0).then(|| (STATUS_5XX.to_owned(), answered_5xx));
    ServerSpan {
        seconds: window.seconds,
        sent: window.count("requests"),
        bound: window.count("bound"),
        failures: causes(window).chain(status_5xx).collect(),
        first_byte: durations(window, "first_byte_p50_us"),
        round_trip_us: round_trip.map(|average| average.as_micros() as u64),
        checks_passed: window.count("checks_passed"),
        checks_failed: window.count("checks_failed"),
    }
}

/// Returns how often each cause occurred.
pub(super) fn causes(window: &Window) -> impl Iterator<Item = (String, u64)> {
    window.causes().map(|(cause, count)| (cause.name().to_owned(), count))
}

/// Returns the durations of which this column is a quantile.
pub(super) fn durations(window: &Window, column: &str) -> Durations {
    window.durations(column).map(Durations::from).unwrap_or_default()
}

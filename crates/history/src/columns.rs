//! The kinds of series, and the columns of each.

use serde::Deserialize;

use crate::reading::FURTHER_COUNTS;

/// What a series is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The balancer's process.
    Process,
    /// A listener.
    Listener,
    /// A service.
    Service,
    /// A server of a service.
    Server,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name, with its unit unless it is a number of something.
    pub name: &'static str,
    pub(crate) source: Source,
}

impl Column {
    /// Returns its value in a row in which nothing has happened.
    pub(crate) fn when_quiet(&self) -> Option<u64> {
        match self.source {
            Source::Count(_) | Source::Level(_) => Some(0),
            Source::State(_) | Source::Mean(_) | Source::Quantile(..) => None,
        }
    }
}

/// How a column's number is computed from two readings. Indices are those of [`crate::Reading`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// How much a count has grown.
    Count(usize),
    /// The largest level.
    Level(usize),
    /// The same, of a level that is no activity: rows without any other are not kept.
    State(usize),
    /// The average of the durations in between.
    Mean(usize),
    /// The quantile of the durations in between, in hundredths.
    Quantile(usize, u8),
}

const fn count(name: &'static str, index: usize) -> Column {
    Column { name, source: Source::Count(index) }
}

const fn level(name: &'static str, index: usize) -> Column {
    Column { name, source: Source::Level(index) }
}

const fn state(name: &'static str, index: usize) -> Column {
    Column { name, source: Source::State(index) }
}

const fn mean(name: &'static str, index: usize) -> Column {
    Column { name, source: Source::Mean(index) }
}

const fn quantile(name: &'static str, index: usize, hundredths: u8) -> Column {
    Column { name, source: Source::Quantile(index, hundredths) }
}

const PROCESS: [Column; 3] =
    [count("cpu_us", 0), level("resident_bytes", 0), level("connections", 1)];

const LISTENER: [Column; 8] = [
    count("requests", 0),
    count("failed", 1),
    count("refused", 2),
    count("client_faults", 3),
    count("connections_accepted", 4),
    count("accept_pauses", 5),
    count("tls_handshakes", 6),
    level("connections_open", 0),
];

const SERVICE: [Column; 24] = [
    count("requests", 0),
    count("failed", 1),
    count("refused", 2),
    count("client_faults", 3),
    count("status_4xx", 4),
    count("status_5xx", 5),
    count("attempts", 6),
    count("retries", 7),
    count("queued", 8),
    count("request_bytes", 9),
    count("response_bytes", 10),
    count("connections_opened", 11),
    level("in_flight", 0),
    level("queue_length", 1),
    state("servers_ready", 2),
    state("servers", 3),
    quantile("total_p50_us", 0, 50),
    quantile("total_p90_us", 0, 90),
    quantile("total_p99_us", 0, 99),
    quantile("first_byte_p50_us", 1, 50),
    quantile("first_byte_p99_us", 1, 99),
    mean("queue_mean_us", 0),
    mean("connect_mean_us", 1),
    mean("client_round_trip_mean_us", 2),
];

const SERVER: [Column; 7] = [
    count("requests", 0),
    count("failed", 1),
    level("in_flight", 0),
    quantile("first_byte_p50_us", 0, 50),
    quantile("first_byte_p99_us", 0, 99),
    mean("connect_mean_us", 0),
    mean("round_trip_mean_us", 1),
];

/// What rules on traffic need to know about a server's last seconds. Rows do not have it, since there are
/// many of them.
const SERVER_WINDOW: [&str; FURTHER_COUNTS] =
    ["status_5xx", "bound", "checks_passed", "checks_failed"];

impl Kind {
    /// Every kind, in order.
    pub const ALL: [Kind; 4] = [Kind::Process, Kind::Listener, Kind::Service, Kind::Server];

    /// Returns the columns.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Kind::Process => &PROCESS,
            Kind::Listener => &LISTENER,
            Kind::Service => &SERVICE,
            Kind::Server => &SERVER,
        }
    }

    /// Returns the names of counts that windows have and rows do not.
    pub fn further_counts(self) -> &'static [&'static str] {
        match self {
            Kind::Process | Kind::Listener | Kind::Service => &[],
            Kind::Server => &SERVER_WINDOW,
        }
    }

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Process => "process",
            Kind::Listener => "listener",
            Kind::Service => "service",
            Kind::Server => "server",
        }
    }

    /// Returns whether series of this kind keep how exchanges ended, by cause.
    pub fn has_causes(self) -> bool {
        matches!(self, Kind::Listener | Kind::Service)
    }
}
